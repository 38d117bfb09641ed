"""All rows in one table: what became of each, on what evidence."""

from __future__ import annotations

from collections.abc import Sequence

from replay_parity.parity.result import RowResult
from replay_parity.parity.verdict import is_failing, is_green
from replay_parity.publish.markdown import code, details, line, table, text
from replay_parity.publish.page import size
from replay_parity.publish.words import NO_PERFORMANCE, NONE, by_urgency, digests, evidence, outcomes, virtual_ms
from replay_parity.publish.words import rows_in_words as in_words

_HEADER = ("row", "outcome", "digest", "virtual ms", "evidence", "wall&nbsp;s")
_RIGHT = frozenset({3, 5})
# More matching rows than this are folded.
_MOST_OPEN = 20
# For the sentence that counts the rows left out.
_RESERVED = 500


def row_table(rows: Sequence[RowResult], room: int) -> str:
    """The table in at most `room` bytes, urgent rows first; rows that do not fit are told as counts."""
    ordered = by_urgency(rows)
    matching = [row for row in ordered if row.outcome == "match"]
    folded = matching if len(matching) > _MOST_OPEN else []
    parts, left, cut = [], room - _RESERVED, list[RowResult]()
    for group, fold in ((ordered[: len(ordered) - len(folded)], False), (folded, True)):
        if not group:
            continue
        part, kept = _part(group, left, fold=fold)
        cut += group[kept:]
        if kept:
            parts.append(part)
            left -= size(part) + 2
    if cut:
        parts.append(f"{'And ' if parts else ''}{in_words(len(cut))}{' more' if parts else ''}: {text(outcomes(cut))}.")
    return "\n\n".join((*parts, f"Digests are SHA-256 of canonical records, shortened. Wall {NO_PERFORMANCE}."))


def _part(rows: Sequence[RowResult], room: int, *, fold: bool) -> tuple[str, int]:
    """A table of as many rows as fit, and how many those are."""
    lines = [line(_cells(row)) for row in rows]
    room -= size(_finished([], len(rows), fold=fold))
    kept = 0
    while kept < len(lines) and size(lines[kept]) + 1 <= room:
        room -= size(lines[kept]) + 1
        kept += 1
    return _finished(lines[:kept], kept, fold=fold), kept


def _finished(lines: Sequence[str], number: int, *, fold: bool) -> str:
    shown = "\n".join((table(_HEADER, [], right=_RIGHT), *lines))
    return details(f"{in_words(number)} that match", shown) if fold else shown


def _cells(row: RowResult) -> list[str]:
    attempt = f" (attempt {row.attempt:,})" if row.attempt > 1 else ""
    return [
        code(row.id),
        f"{signed(row)}{attempt}",
        " ≠ ".join(map(code, digests(row))) or NONE,
        virtual_ms(row),
        evidence(row),
        f"{row.seconds:,.0f}" if row.seconds else NONE,
    ]


def signed(row: RowResult) -> str:
    """The outcome with a sign that is seen before the word is read, never on a line of its own."""
    sign = "⚠️" if row.outcome == "excepted" else "✅" if is_green(row) else "❌" if is_failing(row) else "❔"
    return f"{sign}&nbsp;{text(row.outcome)}"
