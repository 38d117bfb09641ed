"""Text of files and engines made safe to show: control and bidirectional characters become visible (threat 9)."""

from __future__ import annotations

import unicodedata

_HIDDEN = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}


def visible(text: str) -> str:
    """The text on one line, every character that would hide or move others written as an escape."""
    if text.isprintable():
        return text
    return "".join(
        f"\\u{ord(character):04x}" if unicodedata.category(character) in _HIDDEN else character for character in text
    )
