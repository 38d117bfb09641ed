"""Formats of traces: what a row must hold, by the rules of the engine's own loader (src/replay/loadgen/trace.rs).

The point is the sentence: what the engine would refuse after a start with no line number, or only in the middle of a
campaign, is refused here with its line. Three things that the loader lets pass in silence are refused too: an input
of no tokens, a negative time, and a request with neither a time nor a delay. Keys that the loader does not know are
passed over, as it does. A key given twice in one object is refused: readers differ in which of the two they take.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol


@dataclass(frozen=True)
class Request:
    """One request of a trace; `session` is None when the request is a session of its own.

    `at_ms` is the time that its row names, None when it only follows another.
    """

    input_length: int
    output_length: int
    session: str | None
    at_ms: float | None = field(default=None, compare=False)


class TraceFormat(Protocol):
    """Checks the lines of one slice, in order; memory grows with the sessions or requests that rows name."""

    header_lines: int

    def header(self, line: bytes) -> None:
        """Check a header line, or raise RowError."""

    def request(self, line: bytes) -> Request:
        """Check a request line, or raise RowError."""

    def finish(self) -> None:
        """Check what only the whole slice can show, or raise RowError."""
