"""The face of the check run: title, summary and text inside GitHub's limits, and the conclusion."""

from __future__ import annotations

from typing import Literal, NamedTuple

from replay_parity.errors import EXIT_INTERRUPTED, EXIT_OK
from replay_parity.parity.verdict import Verdict
from replay_parity.publish.markdown import cut
from replay_parity.publish.page import Page
from replay_parity.publish.row_details import Reproduce
from replay_parity.publish.summary import add_head, add_rest, add_rows
from replay_parity.publish.words import headline

Conclusion = Literal["success", "failure", "neutral", "cancelled", "action_required"]

# Characters of a title; bytes of summary and text each, over which the API answers 422 (GITHUB.md, limits).
TITLE_CHARACTERS = 255
LIMIT_BYTES = 65_535


class CheckText(NamedTuple):
    """What a check run shows: the title beside the name, the summary, and the text under it, both Markdown."""

    title: str
    summary: str
    text: str


def check_text(verdict: Verdict, *, reproduce: Reproduce | None = None, limit_bytes: int = LIMIT_BYTES) -> CheckText:
    """Title of at most 255 characters, summary and text of at most `limit_bytes` bytes each."""
    above, below = Page(limit_bytes), Page(limit_bytes)
    add_head(above, verdict)
    add_rows(above, verdict)
    add_rest(below, verdict, reproduce)
    title = cut(headline(verdict), TITLE_CHARACTERS)
    # GitHub shows no check without a summary.
    return CheckText(title, above.text() or f"{title}\n", below.text())


def conclusion(verdict: Verdict) -> Conclusion:
    """What GitHub shall show; an advisory verdict that is not green is neutral, so it stands in nobody's way.

    `action_required` is for the day on which an exception waits for nothing but its approval.
    """
    if verdict.exit_code == EXIT_INTERRUPTED:
        return "cancelled"
    if verdict.exit_code == EXIT_OK:
        return "success"
    return "neutral" if verdict.advisory else "failure"
