"""The Mooncake format: one request a line."""

from __future__ import annotations

from typing import Any

from replay_parity.corpus import fields
from replay_parity.corpus.fields import RowError
from replay_parity.corpus.formats import Request


class Mooncake:
    """Mooncake: one request a line; rows with the same `session_id` are the turns of one session."""

    header_lines = 0

    def __init__(self, block_size: int) -> None:
        self._block_size = block_size
        self._last_turn: dict[str, float | None] = {}

    def header(self, line: bytes) -> None:
        """Mooncake traces have no header."""
        raise AssertionError(line)

    def request(self, line: bytes) -> Request:
        """A request has input, output, hashes for all of its input, and a time or a delay after the turn before."""
        row = fields.json_object(line)
        input_length = fields.length(row, "input_length", smallest=1)
        output_length = fields.length(row, "output_length", smallest=0)
        capacity = len(fields.hash_ids(row)) * self._block_size
        if input_length > capacity:
            raise RowError(
                f"has an input_length of {input_length}, "
                f"but hash_ids for {capacity} tokens in blocks of {self._block_size}"
            )
        fields.output_ids(row, output_length)
        session = None if row.get("session_id") is None else fields.text(row, "session_id")
        at_ms = self._time(row, session)
        return Request(input_length, output_length, session, at_ms)

    def finish(self) -> None:
        """A Mooncake slice has no loose ends."""

    def _time(self, row: dict[str, Any], session: str | None) -> float | None:
        at_ms = fields.milliseconds(row, "timestamp")
        delay_ms = fields.milliseconds(row, "delay")
        first = session is None or session not in self._last_turn
        if first and delay_ms:
            raise RowError("has a delay, but it is the first turn of its session in the slice")
        if at_ms is None and (first or delay_ms is None):
            raise RowError("has no timestamp")
        if session is None:
            return at_ms
        before_ms = self._last_turn.get(session)
        if delay_ms is None and at_ms is not None and before_ms is not None and at_ms < before_ms:
            raise RowError(f"goes back in time: {at_ms:g} ms after {before_ms:g} ms in session {session!r}")
        self._last_turn[session] = before_ms if at_ms is None else at_ms
        return at_ms
