"""Why rows are not green, and the command that shows it again."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from replay_parity.parity.result import RowResult, SideResult
from replay_parity.publish.markdown import block, code, cut, text
from replay_parity.publish.page import Page, fitted, size
from replay_parity.publish.row_table import sign
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
    """A part for each red row; where the page is too short for all, later rows become shorter, then are left out."""
    groups = _grouped(rows)
    full = [_detail(group, reproduce, full=True) for group in groups]
    short = [_detail(group, reproduce, full=False) for group in groups]
    # What the shorter parts of the later rows need.
    rest = sum(size(part) + 2 for part in short)
    omitted = 0
    for index, group in enumerate(groups):
        rest -= size(short[index]) + 2
        wanted = size(full[index]) + 2
        if wanted + rest <= page.left or (index < _ALWAYS_FULL and wanted <= page.left // 4):
            page.add(full[index], "")
        elif size(short[index]) <= page.left:
            page.add(short[index], "")
            if short[index] != full[index]:
                page.leave_out("differences of some rows")
        else:
            omitted += len(group)
    if omitted:
        page.leave_out(f"details of {rows_in_words(omitted)}")


def _grouped(rows: Sequence[RowResult]) -> list[list[RowResult]]:
    """Rows that have nothing to say but the same sentence are told once."""
    groups: dict[tuple[str, ...], list[RowResult]] = {}
    for row in rows:
        own = row.differences or row.reports or _evidence_lines(row)
        groups.setdefault((row.outcome, row.reason, row.id if own else ""), []).append(row)
    return list(groups.values())


def _detail(group: Sequence[RowResult], reproduce: Reproduce | None, *, full: bool) -> str:
    first = group[0]
    reason = text(cut(first.reason, _REASON if full else _SHORT_REASON))
    parts = [f"#### {sign(first)} {_names(group)}: {text(first.outcome)}"]
    if len(group) > 1:
        names = fitted([code(row.id) for row in group], _NAMES_BYTES, lambda number: f"and {number:,} more")
        parts += [reason, ", ".join(names)]
    else:
        parts.append(f"{reason}\\\n{text(cut(first.title, _LINE))}" if first.title != first.row else reason)
    if full:
        parts += _explained(first)
    if reproduce is not None and (full or len(group) == 1):
        parts += ["Reproduce:", block("\n".join(map(reproduce, group)), "console")]
    return "\n\n".join(part for part in parts if part)


def _names(group: Sequence[RowResult]) -> str:
    return code(group[0].id) if len(group) == 1 else rows_in_words(len(group))


def _explained(row: RowResult) -> list[str]:
    """Digests in full, the most frequent differences, evidence, and where all of it lies."""
    parts = [
        "\n".join(line for line in map(_digests, ("baseline", "candidate"), (row.baseline, row.candidate)) if line)
    ]
    if row.differences is not None:
        lines = [cut(line, _LINE) for line in row.differences.top[:_LINES]]
        parts += [block("\n".join(lines), "text")] if lines else []
    evidence = _evidence_lines(row)
    parts.append("\n".join(evidence[:_LINES]))
    if len(evidence) > _LINES:
        parts.append(f"and {len(evidence) - _LINES:,} more about its evidence in `verdict.json`")
    files = [*([row.differences.file] if row.differences else []), *row.reports[:_REPORTS]]
    if files:
        parts.append(f"Kept in the results: {', '.join(code(cut(file, _LINE)) for file in files)}")
    return parts


def _digests(name: str, side: SideResult) -> str:
    unique = list(dict.fromkeys(side.digests))
    return f"- {name}: {' and '.join(map(code, unique))}" if unique else ""


def _evidence_lines(row: RowResult) -> list[str]:
    return [
        f"- {name} {kind}: {text(cut(words, _REASON))}"
        for name, side in (("baseline", row.baseline), ("candidate", row.candidate))
        for kind, found in (("evidence problem", side.evidence_problems), ("evidence note", side.evidence_notes))
        for words in found
    ]
