"""Why rows are what they are, and the command that shows it again."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from replay_parity.parity.result import RowResult
from replay_parity.parity.verdict import is_green
from replay_parity.publish.markdown import block, code, cut, text
from replay_parity.publish.page import Page, fitted, size
from replay_parity.publish.row_table import signed
from replay_parity.publish.words import rows_in_words

Reproduce = Callable[[RowResult], str]

_REASON = 2_000
_SHORT_REASON = 400
_LINE = 300
_LINES = 24
_REPORTS = 8
_NAMES_BYTES = 2_000
# The first rows are explained in full even where not every row can be.
_ALWAYS_FULL = 3


def add_details(page: Page, rows: Sequence[RowResult], reproduce: Reproduce | None) -> None:
    """A part for each row that does not simply match, in this order.

    Where the page is too short for all, later rows become shorter, then are left out.
    """
    groups = _grouped(rows)
    short = [_detail(group, reproduce, full=False) for group in groups]
    # What the shorter parts of the later rows need; what an earlier row takes more must not push them out.
    rest = sum(size(part) + 2 for part in short)
    omitted = 0
    for index, (group, least) in enumerate(zip(groups, short, strict=True)):
        rest -= size(least) + 2
        room = max(page.left - rest, page.left // 4 if index < _ALWAYS_FULL else 0)
        full = _detail(group, reproduce, full=True) if size(least) <= room else ""
        if full and size(full) <= room:
            page.add(full, "")
        elif size(least) <= page.left:
            page.add(least, "")
            page.leave_out("parts of the details of some rows")
        else:
            omitted += len(group)
    if omitted:
        page.leave_out(f"details of {rows_in_words(omitted)}")


def _grouped(rows: Sequence[RowResult]) -> list[list[RowResult]]:
    """Rows that have nothing to say but the same sentence are told once."""
    groups: dict[tuple[str, ...], list[RowResult]] = {}
    for row in rows:
        own = row.differences or row.reports or _has_evidence(row)
        groups.setdefault((row.outcome, row.reason, row.id if own else ""), []).append(row)
    return list(groups.values())


def _detail(group: Sequence[RowResult], reproduce: Reproduce | None, *, full: bool) -> str:
    first = group[0]
    reason = text(cut(first.reason, _REASON if full else _SHORT_REASON))
    parts = [f"#### {signed(first)}: {_names(group)}"]
    if len(group) > 1:
        names = fitted([code(row.id) for row in group], _NAMES_BYTES, lambda number: f"and {number:,} more")
        parts += [reason, ", ".join(names)]
    else:
        parts.append(f"{reason}\\\n{text(cut(first.title, _LINE))}" if first.title != first.row else reason)
    if full:
        parts += _explained(first)
    if reproduce is not None and not is_green(first) and (full or len(group) == 1):
        whose = "this row" if len(group) == 1 else "one of these rows"
        parts += [f"Reproduce {whose}:", block("\n".join(map(reproduce, group)), "console")]
    return "\n\n".join(part for part in parts if part)


def _names(group: Sequence[RowResult]) -> str:
    return code(group[0].id) if len(group) == 1 else rows_in_words(len(group))


def _explained(row: RowResult) -> list[str]:
    """Digests in full, evidence, the most frequent differences, and where all of it lies."""
    evidence = _evidence_lines(row)
    rest = len(evidence) - _LINES
    more = [f"- and {rest:,} more about its evidence in `verdict.json`"] if rest > 0 else []
    parts = ["\n".join((*_digests(row), *evidence[:_LINES], *more))]
    files = list(row.reports[:_REPORTS])
    if row.differences is not None:
        files.insert(0, row.differences.file)
        if row.differences.top:
            parts.append(block("\n".join(cut(line, _LINE) for line in row.differences.top[:_LINES]), "text"))
    if files:
        parts.append(f"Kept in the results: {', '.join(code(cut(file, _LINE)) for file in files)}")
    return parts


def _digests(row: RowResult) -> list[str]:
    sides = [("baseline", row.baseline.digests), ("candidate", row.candidate.digests)]
    if len({digest for _, digests in sides for digest in digests}) == 1:
        sides = [("canonical SHA-256 of all processes", (*row.baseline.digests, *row.candidate.digests))]
    return [f"- {name}: {' and '.join(map(code, dict.fromkeys(digests)))}" for name, digests in sides if digests]


def _has_evidence(row: RowResult) -> bool:
    return any(side.evidence_problems or side.evidence_notes for side in (row.baseline, row.candidate))


def _evidence_lines(row: RowResult) -> list[str]:
    return [
        f"- {name} {kind}: {text(cut(words, _REASON))}"
        for name, side in (("baseline", row.baseline), ("candidate", row.candidate))
        for kind, found in (("evidence problem", side.evidence_problems), ("evidence note", side.evidence_notes))
        for words in found
    ]
