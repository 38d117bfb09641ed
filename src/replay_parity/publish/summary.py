"""The job summary: the verdict first, then what a person needs to act on it, never over GitHub's limit."""

from __future__ import annotations

from collections.abc import Sequence

from replay_parity.parity.verdict import Verdict, is_green
from replay_parity.publish.compared import compared, policy
from replay_parity.publish.markdown import cut, text
from replay_parity.publish.page import Page, fitted
from replay_parity.publish.provenance import build_errors, dependencies, provenance
from replay_parity.publish.row_details import Reproduce, add_details
from replay_parity.publish.row_table import row_table
from replay_parity.publish.words import NO_ACCURACY, by_urgency, headline

# 1 MiB a step, over which the upload fails while the step stays green; the margin is for what else the step writes.
LIMIT_BYTES = (1 << 20) - (16 << 10)

_SIGNS = {"PASS": "✅", "PASS_WITH_SEMANTIC_EXCEPTIONS": "⚠️", "FAIL": "❌", "ERROR": "❗"}
_SENTENCE = 2_000
_SHORT_ERROR = 1_000


def summary(verdict: Verdict, *, reproduce: Reproduce, limit_bytes: int = LIMIT_BYTES) -> str:
    """The job summary as Markdown of at most `limit_bytes` bytes; `reproduce` gives the one command for a red row."""
    page = Page(limit_bytes)
    page.add(f"## {_SIGNS[verdict.verdict]} {text(headline(verdict))}", "")
    add_head(page, verdict)
    add_rows(page, verdict)
    add_rest(page, verdict, reproduce)
    return page.text()


def add_head(page: Page, verdict: Verdict) -> None:
    """Problems, what was compared, whose policy, and builds that failed."""
    page.add(_list("**Why it cannot be green:**", verdict.problems, room=page.left // 2), "problems")
    page.add(compared(verdict), "what was compared")
    page.add(policy(verdict.origin), "edits of the policy")
    errors = build_errors(verdict)
    if len(errors.encode()) > page.left // 3:
        errors = build_errors(verdict, _SHORT_ERROR)
    page.add(errors, "build errors")


def add_rows(page: Page, verdict: Verdict) -> None:
    """The table of all rows; where room is short a part of it stays for the reasons."""
    if verdict.rows:
        room = page.left // 3 if any(not is_green(row) for row in verdict.rows) else page.left * 2 // 3
        page.add(row_table(verdict.rows, room), "the table of rows")


def add_rest(page: Page, verdict: Verdict, reproduce: Reproduce | None) -> None:
    """Red rows in detail, notes, dependencies, provenance, and what a verdict does not say."""
    add_details(page, [row for row in by_urgency(verdict.rows) if row.outcome != "match"], reproduce)
    page.add(_list("**Notes:**", _notes(verdict), room=page.left // 2), "notes")
    page.add(dependencies(verdict), "dependencies that differ")
    page.add(provenance(verdict), "provenance")
    if verdict.rows:
        page.add(NO_ACCURACY, "what parity does not say")


def _notes(verdict: Verdict) -> list[str]:
    of_rows = [
        f"{row.id}: {name}: {note}"
        for row in verdict.rows
        if is_green(row)
        for name, side in (("baseline", row.baseline), ("candidate", row.candidate))
        for note in side.evidence_notes
    ]
    return [*verdict.notes, *of_rows]


def _list(title: str, sentences: Sequence[str], *, room: int) -> str:
    if not sentences:
        return ""
    # An escape takes up to ten bytes a character, so one sentence fits into any room.
    length = min(_SENTENCE, room // 12)
    lines = [f"- {text(cut(sentence, length))}" for sentence in sentences]
    return "\n".join((title, "", *fitted(lines, room - len(title) - 2, _more)))


def _more(number: int) -> str:
    return f"- and {number:,} more in `verdict.json`"
