"""What a slice holds, in numbers for people: requests, sessions, tokens, time, and how lengths are distributed.

Memory grows with the names of sessions and with the number of distinct lengths, not with the rows.
"""

from __future__ import annotations

from collections import Counter
from typing import Literal

from replay_parity.campaign.base import Model
from replay_parity.corpus.formats import Request

_SHARES = (1, 10, 25, 50, 75, 90, 99)


class Lengths(Model):
    """Distribution of a length in tokens; percentiles by nearest rank."""

    total: int
    smallest: int
    largest: int
    percentiles: dict[str, int]


class Facts(Model):
    """Sums over all requests of a slice; a request without a session id is a session of its own."""

    schema_version: Literal[1] = 1
    requests: int
    sessions: int
    input_tokens: Lengths
    output_tokens: Lengths
    first_at_ms: float | None
    last_at_ms: float | None

    @property
    def seconds(self) -> float | None:
        """From the first to the last time that a row names, before any speed-up."""
        if self.first_at_ms is None or self.last_at_ms is None:
            return None
        return (self.last_at_ms - self.first_at_ms) / 1000


class Facing:
    """Running sums of one pass."""

    def __init__(self) -> None:
        self._inputs: Counter[int] = Counter()
        self._outputs: Counter[int] = Counter()
        self._sessions: set[str] = set()
        self._alone = 0
        self._first: float | None = None
        self._last: float | None = None

    def add(self, request: Request) -> None:
        """Count one request."""
        self._inputs[request.input_length] += 1
        self._outputs[request.output_length] += 1
        if request.session is None:
            self._alone += 1
        else:
            self._sessions.add(request.session)
        if request.at_ms is not None:
            self._first = request.at_ms if self._first is None else min(self._first, request.at_ms)
            self._last = request.at_ms if self._last is None else max(self._last, request.at_ms)

    def facts(self) -> Facts | None:
        """What was counted; None when nothing was."""
        if not self._inputs:
            return None
        return Facts(
            requests=self._inputs.total(),
            sessions=self._alone + len(self._sessions),
            input_tokens=_lengths(self._inputs),
            output_tokens=_lengths(self._outputs),
            first_at_ms=self._first,
            last_at_ms=self._last,
        )


def _lengths(counted: Counter[int]) -> Lengths:
    values, total = sorted(counted), counted.total()
    percentiles: dict[str, int] = {}
    position, passed = -1, 0
    for share in _SHARES:
        rank = -(-share * total // 100)
        while passed < rank:
            position += 1
            passed += counted[values[position]]
        percentiles[f"p{share}"] = values[position]
    return Lengths(
        total=sum(value * count for value, count in counted.items()),
        smallest=values[0],
        largest=values[-1],
        percentiles=percentiles,
    )
