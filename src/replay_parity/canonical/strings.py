r"""Which JSON strings are canonical: those that escape exactly what must be escaped, in the one short way.

Both writers escape `"`, `\` and the control characters below U+0020 (`\b \f \n \r \t`, else `\u00xx` in lower-case
hex) and nothing else; every other character is written as itself.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

# Possessive quantifiers: a hostile string of any length costs one pass.
_PLAIN = r'[^"\\\x00-\x1f]++'
_ESCAPE = r'\\(?:["\\bfnrt]|u00(?:0[0-7be]|0f|1[0-9a-f]))'
_BODY = re.compile(rf"(?:{_PLAIN}|{_ESCAPE})*+")
_HEX = re.compile(r"\\u([0-9a-fA-F]{4})")
_HIGH_SURROGATES = range(0xD800, 0xDC00)
_LOW_SURROGATES = range(0xDC00, 0xE000)
_JSON_ESCAPES = '"\\/bfnrt'


@dataclass(frozen=True, slots=True)
class StringFault:
    """Why a string is not canonical, and the index of the character that shows it."""

    reason: str
    message: str
    index: int


def string_end(text: str, start: int) -> int | StringFault:
    """Index behind the closing quote of the string that opens at `start`, or what is wrong with the string."""
    end = _BODY.match(text, start + 1).end()  # type: ignore[union-attr]  # an empty body matches too
    if text.startswith('"', end):
        return end + 1
    return _fault(text, end)


def _fault(text: str, index: int) -> StringFault:
    # A newline can only be the line's own: one inside of the line is refused before.
    if index >= len(text) or text[index] == "\n":
        return StringFault("not_json", "ends in the middle of a string: it is truncated", index)
    if text[index] != "\\":
        return StringFault("not_json", f"holds the raw control character U+{ord(text[index]):04X} in a string", index)
    if (match := _HEX.match(text, index)) is not None:
        return _escaped_character(text, match)
    following = text[index + 1 : index + 2]
    if not following or (following == "u" and len(text) < index + 6):
        return StringFault("not_json", "ends in the middle of an escape: it is truncated", index)
    if following in _JSON_ESCAPES:
        return StringFault("escape_form", f"escapes {following!r}, which the canonical form writes as itself", index)
    return StringFault("not_json", "holds an escape that JSON does not know", index)


def _escaped_character(text: str, match: re.Match[str]) -> StringFault:
    code, index = int(match[1], 16), match.start()
    if code in _HIGH_SURROGATES:
        low = _HEX.match(text, match.end())
        if low is not None and int(low[1], 16) in _LOW_SURROGATES:
            return StringFault("escape_form", "escapes a character that the canonical form writes as itself", index)
    if code in _HIGH_SURROGATES or code in _LOW_SURROGATES:
        return StringFault("lone_surrogate", f"holds the lone surrogate \\u{match[1]}", index)
    return StringFault("escape_form", f"spells U+{code:04X} as {match[0]}, which is not the canonical form", index)
