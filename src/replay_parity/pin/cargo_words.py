"""What cargo says when it fails, shortened to what a person needs."""

from __future__ import annotations

import re

# Progress, and links of a chain of causes that only repeat what was tried.
_NOISE = re.compile(
    r"^(?:(?:Updating|Locking|Adding|Downloading|Downloaded|Vendoring|Unpacking|Compiling|Blocking|Caused by:)\b.*"
    r"|Caused by:"
    r"|(?:error: )?failed to (?:sync|load lockfile for .*|get `.*|load source for dependency .*)"
    r"|\.\.\. (?:required by|which satisfies) .*"
    r"|required by package .*"
    r"|As a reminder, you're using offline mode.*"
    r"|To use vendored sources.*)$"
)
_SCREEN_LINES = 30


def reason(text: str) -> str:
    """The causes in one line."""
    lines = [line.strip() for line in text.splitlines()]
    told = [line.removeprefix("error: ") for line in lines if line and not _NOISE.match(line)]
    return " / ".join(told[:3]) or "it printed nothing"


def line_with(text: str, words: tuple[str, ...]) -> str | None:
    """The first line that holds any of the words."""
    return next((line.strip() for line in text.splitlines() if any(part in line for part in words)), None)


def on_one_screen(text: str) -> str:
    """The first lines from the first error on."""
    lines = text.splitlines()
    start = next((number for number, line in enumerate(lines) if line.startswith("error")), 0)
    return "\n".join(lines[start : start + _SCREEN_LINES])
