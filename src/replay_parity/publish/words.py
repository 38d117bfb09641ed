"""A verdict in plain words, the same in the job summary, the check, the badge and the evidence block.

Only our own words and numbers: nothing here comes from a file or an engine as text.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from replay_parity.errors import EXIT_BAD_INPUT, EXIT_INTERRUPTED
from replay_parity.parity.result import RowResult, SideResult
from replay_parity.parity.verdict import Verdict, count, is_failing, is_green

ADVISORY = "advisory: shown, stands in nobody's way"
SELF_COMPARE = "self-comparison: one revision on both sides"
NO_PERFORMANCE = "times are not a performance result"
NO_ACCURACY = (
    "Parity means that both revisions give the same bytes for these rows. "
    "It is no claim that the simulation is accurate, and no claim about speed."
)
NONE = "-"
_SHORTEST_DIGEST = 8
_LARGEST = 10**15
_EVIDENCE = (
    ("completed_requests", "requests"),
    ("vllm_preemptions", "preemptions"),
    ("sglang_retractions", "retractions"),
    ("requests_with_first_admission_reuse", "with reuse"),
    ("handoffs_complete", "hand-offs"),
)


def headline(verdict: Verdict) -> str:
    """The verdict and what it rests on, in one line of at most some 200 characters."""
    asides = ((verdict.self_compare, SELF_COMPARE), (verdict.advisory, ADVISORY))
    return "; ".join((f"{name(verdict)}: {finding(verdict)}", *(words for said, words in asides if said)))


def name(verdict: Verdict) -> str:
    """The verdict's name; wrong input, a fault of the machine and an interrupt never look alike."""
    if verdict.verdict == "PASS_WITH_SEMANTIC_EXCEPTIONS":
        return "PASS with semantic exceptions"
    if verdict.verdict != "ERROR":
        return verdict.verdict
    causes = {EXIT_BAD_INPUT: "bad input", EXIT_INTERRUPTED: "interrupted"}
    return f"ERROR ({causes.get(verdict.exit_code, 'infrastructure')})"


def finding(verdict: Verdict) -> str:
    """What the verdict rests on: how many rows of how many became what."""
    if verdict.campaign is None:
        return "no plan could be made"
    parts = _findings(verdict)
    if verdict.equal_trees:
        parts.append("both sides are the same sources" if verdict.rows else "nothing to compare, equal sources")
    return "; ".join(parts) or "no rows"


def _findings(verdict: Verdict) -> list[str]:
    rows = verdict.rows
    failing = [row for row in rows if is_failing(row)]
    undecided = [row for row in rows if not is_failing(row) and not is_green(row)]
    excepted = [row for row in rows if row.outcome == "excepted"]
    parts = []
    if failing:
        alike = all(row.outcome == "mismatch" for row in failing)
        verb = ("differs", "differ") if alike else ("fails", "fail")
        kinds = "" if alike else f" ({_kinds(failing)})"
        parts.append(f"{len(failing):,} of {rows_in_words(len(rows))} {verb[len(failing) != 1]}{kinds}")
    if undecided:
        verb = ("is", "are")
        kinds = f"undecided ({_kinds(undecided)})"
        parts.append(f"{len(undecided):,} of {rows_in_words(len(rows))} {verb[len(undecided) != 1]} {kinds}")
    if verdict.problems:
        parts.append(counted(len(verdict.problems), "problem"))
    if excepted:
        parts.append(f"{len(excepted):,} of {rows_in_words(len(rows))} by a reviewed exception")
    if not parts and rows:
        parts.append(f"all {len(rows):,} rows match" if len(rows) > 1 else "the row matches")
    return parts


def counted(number: int, noun: str) -> str:
    """A number and its noun: "1 problem", "2 problems"."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def rows_in_words(number: int) -> str:
    """How many rows."""
    return counted(number, "row")


def outcomes(rows: Sequence[RowResult]) -> str:
    """How many rows of each outcome: "3 mismatch, 1 missing"."""
    return ", ".join(f"{number:,} {outcome}" for outcome, number in count(rows).items())


def _kinds(rows: Sequence[RowResult]) -> str:
    """The outcomes, counted when there are several."""
    return outcomes(rows) if len(count(rows)) > 1 else rows[0].outcome


def by_urgency(rows: Iterable[RowResult]) -> list[RowResult]:
    """Failing rows first, then undecided, then excepted ones; inside of each in the plan's order."""
    return sorted(rows, key=lambda row: (not is_failing(row), is_green(row), row.outcome != "excepted"))


def digests(row: RowResult) -> tuple[str, ...]:
    """The digests that differ, the baseline's first, shortened as far as they stay apart; one when all agree."""
    unique = list(dict.fromkeys((*row.baseline.digests, *row.candidate.digests)))
    length = _SHORTEST_DIGEST if len(unique) > 1 else _SHORTEST_DIGEST + 4
    while len({digest[:length] for digest in unique}) < len(unique):
        length += 1
    return tuple(digest[:length] for digest in unique)


def virtual_ms(row: RowResult) -> str:
    """Virtual duration in ms, both when they differ."""
    shown = [_number(side, "virtual_duration_ms") for side in (row.baseline, row.candidate)]
    return " → ".join(dict.fromkeys(f"{value:,.3f}" for value in shown if value is not None)) or NONE


def evidence(row: RowResult) -> str:
    """Counters of the record that are not 0, both when they differ: "5,000 requests, 2 → 3 preemptions"."""
    parts = []
    for key, words in _EVIDENCE:
        values = [value for side in (row.baseline, row.candidate) if (value := _number(side, key)) is not None]
        if any(values):
            parts.append(f"{' → '.join(dict.fromkeys(f'{value:,.0f}' for value in values))} {words}")
    return ", ".join(parts) or NONE


def _number(side: SideResult, key: str) -> float | None:
    """A counter of the candidate's own file: a number of a sane size, or nothing."""
    value: object = (side.qualification or {}).get(key)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < _LARGEST:
        return None
    return value
