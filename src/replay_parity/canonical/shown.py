"""Values of a record as text for people: short, on one line, without anything that a terminal would obey.

A record comes from a process that ran code of a pull request, so its keys and strings are shown, never trusted.
"""

from __future__ import annotations

from collections.abc import Iterable

import orjson

ELLIPSIS = "…"


def printable(text: str, limit: int) -> str:
    """`text` with every character that is not printable written as an escape, cut to `limit` characters."""
    # One character more than asked for tells whether there was more; the rest need not be escaped.
    head = text[: limit + 1]
    if not head.isprintable():
        head = "".join(char if char.isprintable() else _escaped(char) for char in head)
    return head if len(head) <= limit else head[: limit - 1] + ELLIPSIS


def shown(value: object, limit: int) -> str:
    """The JSON text of `value`, printable and cut to `limit` characters."""
    return printable(orjson.dumps(value, option=orjson.OPT_SORT_KEYS).decode(), limit)


def json_pointer(keys: Iterable[str | int]) -> str:
    """The JSON Pointer (RFC 6901) of a path; the empty path is the whole document, "" in a pointer."""
    return "".join(f"/{pointer_token(key)}" for key in keys)


def pointer_token(key: str | int) -> str:
    """One reference token of a JSON Pointer, escaped."""
    return key.replace("~", "~0").replace("/", "~1") if isinstance(key, str) else str(key)


def _escaped(char: str) -> str:
    code = ord(char)
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"  # noqa: PLR2004 (the last character of the BMP)
