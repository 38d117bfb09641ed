"""The agentic Mooncake format: a header line, then a graph of requests."""

from __future__ import annotations

from typing import Any

from replay_parity.corpus import fields
from replay_parity.corpus.fields import RowError
from replay_parity.corpus.formats import Request

_SCHEMA = "dynamo.agentic_mooncake"
_VERSION = 2
_RELATIONS = {"sequence", "spawn", "join", "replay_barrier"}


class AgenticMooncake:
    """Agentic Mooncake version 2: a header line, then requests that may wait for others of their play."""

    header_lines = 1

    def __init__(self, block_size: int) -> None:
        self._block_size = block_size
        self._seen: set[str] = set()
        self._awaited: dict[str, str] = {}

    def header(self, line: bytes) -> None:
        """The header names schema, version, block size, hash scope and source."""
        row = fields.json_object(line)
        if row.get("schema") != _SCHEMA:
            raise RowError(f"is not the header of an agentic trace: its schema must be {_SCHEMA}")
        if fields.length(row, "version", smallest=0) != _VERSION:
            raise RowError(f"has another version than {_VERSION}, the only one that is read")
        block_size = fields.length(row, "block_size", smallest=1)
        if block_size != self._block_size:
            raise RowError(f"has blocks of {block_size} tokens, but the corpus file says {self._block_size}")
        if row.get("hash_id_scope") != "local":
            raise RowError("has another hash_id_scope than local, the only one that is read")
        source = row.get("source")
        if not isinstance(source, dict):
            raise RowError("has no source")
        fields.text(source, "format")
        fields.text(source, "digest")

    def request(self, line: bytes) -> Request:
        """A request has an id of its own, a play, a session, a model, exact hashes, a time and its dependencies."""
        row = fields.json_object(line)
        request_id = fields.text(row, "request_id")
        if request_id in self._seen:
            raise RowError(f"has the request_id {request_id!r} of an earlier line")
        self._seen.add(request_id)
        self._awaited.pop(request_id, None)
        fields.text(row, "play_id")
        fields.text(row, "model")
        input_length = fields.length(row, "input_length", smallest=1)
        output_length = fields.length(row, "output_length", smallest=0)
        needed, found = -(-input_length // self._block_size), len(fields.hash_ids(row))
        if needed != found:
            raise RowError(
                f"has {found} hash_ids, "
                f"but an input_length of {input_length} needs {needed} in blocks of {self._block_size}"
            )
        fields.output_ids(row, output_length)
        if fields.milliseconds(row, "not_before_ms") is None:
            raise RowError("has no not_before_ms")
        self._dependencies(row, request_id)
        return Request(input_length, output_length, fields.text(row, "session_id"))

    def finish(self) -> None:
        """Every request that is waited for is in the slice."""
        for awaited, waiting in self._awaited.items():
            raise RowError(
                f"ends the slice without request {awaited!r}, for which {waiting!r} waits: a slice must not cut a play"
            )

    def _dependencies(self, row: dict[str, Any], request_id: str) -> None:
        dependencies = row.get("dependencies", [])
        if not isinstance(dependencies, list):
            raise RowError("has bad dependencies: they must be a list")
        for dependency in dependencies:
            if not isinstance(dependency, dict):
                raise RowError("has a dependency that is not a JSON object")
            awaited = fields.text(dependency, "request_id")
            if awaited == request_id:
                raise RowError("waits for itself")
            if fields.milliseconds(dependency, "delay_ms") is None:
                raise RowError("has a dependency without delay_ms")
            _relation(dependency.get("relation"), dependency.get("trigger"))
            if awaited not in self._seen:
                self._awaited.setdefault(awaited, request_id)


def _relation(relation: object, trigger: object) -> None:
    """Only a spawned request may start at the dispatch of another; all others start at its completion."""
    if relation not in _RELATIONS or trigger not in {"completion", "dispatch"}:
        raise RowError("has a dependency with an unknown relation or trigger")
    if trigger == "dispatch" and relation != "spawn":
        raise RowError(f"has a {relation} dependency on a dispatch; only spawn may have one")
