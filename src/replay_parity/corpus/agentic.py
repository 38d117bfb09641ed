"""The agentic Mooncake format: a header line, then a graph of requests."""

from __future__ import annotations

import sys
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
        self._play_of: dict[str, str] = {}
        # Of requests that are waited for before their line came: one that waits.
        self._awaited: dict[str, str] = {}
        self._waits_for: dict[str, tuple[str, ...]] = {}

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
        if request_id in self._play_of:
            raise RowError(f"has the request_id {request_id!r} of an earlier line")
        play = fields.text(row, "play_id")
        self._play_of[request_id] = play
        waiting = self._awaited.pop(request_id, None)
        if waiting is not None and self._play_of[waiting] != play:
            raise RowError(f"is of play {play!r}, but {waiting!r} of play {self._play_of[waiting]!r} waits for it")
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
        at_ms = fields.milliseconds(row, "not_before_ms")
        if at_ms is None:
            raise RowError("has no not_before_ms")
        self._dependencies(row, request_id, play)
        return Request(input_length, output_length, fields.text(row, "session_id"), at_ms)

    def finish(self) -> None:
        """Every request that is waited for is in the slice, and none waits for itself round a circle."""
        for awaited, waiting in self._awaited.items():
            raise RowError(
                f"ends the slice without request {awaited!r}, for which {waiting!r} waits: a slice must not cut a play"
            )

        circle = _circle(self._waits_for)
        if circle is not None:
            raise RowError(f"ends the slice with requests that wait for each other in a circle: {circle!r} is one")

    def _dependencies(self, row: dict[str, Any], request_id: str, play: str) -> None:
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
            other = self._play_of.get(awaited)
            if other is None:
                self._awaited.setdefault(awaited, request_id)
            elif other != play:
                raise RowError(f"is of play {play!r}, but waits for {awaited!r} of play {other!r}")
        if dependencies:
            self._waits_for[request_id] = tuple(sys.intern(item["request_id"]) for item in dependencies)


def _circle(waits_for: dict[str, tuple[str, ...]]) -> str | None:
    """A request on a circle of dependencies or behind one, None when every one can start."""
    missing = {request: len(awaited) for request, awaited in waits_for.items()}
    freed: dict[str, list[str]] = {}
    for request, awaited in waits_for.items():
        for each in awaited:
            freed.setdefault(each, []).append(request)
    ready = [request for request in freed if request not in missing]
    while ready:
        for request in freed.get(ready.pop(), ()):
            missing[request] -= 1
            if not missing[request]:
                ready.append(request)
    return next((request for request, count in missing.items() if count), None)


def _relation(relation: object, trigger: object) -> None:
    """Only a spawned request may start at the dispatch of another; all others start at its completion."""
    if relation not in _RELATIONS or trigger not in {"completion", "dispatch"}:
        raise RowError("has a dependency with an unknown relation or trigger")
    if trigger == "dispatch" and relation != "spawn":
        raise RowError(f"has a {relation} dependency on a dispatch; only spawn may have one")
