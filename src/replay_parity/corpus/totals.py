"""Totals of a workload, which the evidence of a row is held against: every request complete, output tokens exact."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from replay_parity.corpus.formats import Request
from replay_parity.corpus.lines import trace_lines
from replay_parity.corpus.slice import FILE_CAP, VerifiedSlice
from replay_parity.corpus.verify import form_of, judge, scan
from replay_parity.system.files import open_regular


@dataclass(frozen=True)
class WorkloadTotals:
    """Sums over all requests of a slice; a request without a session id is a session of its own.

    `turns` are the sessions by the name that the engine gives them, in order of first appearance, with their numbers of
    turns; empty for agentic traces, whose turns each release numbers in its own way.
    """

    requests: int
    input_tokens: int
    requested_output_tokens: int
    sessions: int
    turns: tuple[tuple[str, int], ...] = ()

    def authored(self) -> Iterator[tuple[str, int]]:
        """Session and turn of every request, in the order in which a record must hold them (rule 13)."""
        return ((name, turn) for name, turns in self.turns for turn in range(turns))


class _Sums:
    """Running sums; memory grows with the names of sessions only."""

    def __init__(self) -> None:
        self.requests = 0
        self.input_tokens = 0
        self.output_tokens = 0
        self.turns: dict[str, int] = {}

    def add(self, request: Request) -> None:
        self.requests += 1
        self.input_tokens += request.input_length
        self.output_tokens += request.output_length
        # The engine's loader names a request without a session by its number in the file.
        name = request.session if request.session is not None else f"request_{self.requests}"
        self.turns[name] = self.turns.get(name, 0) + 1


def totals(verified: VerifiedSlice) -> WorkloadTotals:
    """Sum up a slice, whose checksum is proven once more on the way; CorpusError when it changed meanwhile."""
    sums = _Sums()
    with open_regular(verified.path, cap=FILE_CAP) as file:
        lines = trace_lines(file, where=str(verified.path))
        found = scan(lines, form_of(verified.corpus), start=0, rows=verified.rows, tally=sums.add)
    judge(found, verified.corpus, where=str(verified.path))
    return WorkloadTotals(
        requests=sums.requests,
        input_tokens=sums.input_tokens,
        requested_output_tokens=sums.output_tokens,
        sessions=len(sums.turns),
        turns=tuple(sums.turns.items()) if verified.format == "mooncake" else (),
    )
