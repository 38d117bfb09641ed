"""The exact slow path of the proof: one pass over the text that names the first thing that is not canonical.

It runs only when the fast path fails, so it may take seconds for a large record; it never needs more stack or memory
than the depth cap and the text allow.
"""

from __future__ import annotations

import json
import re
from typing import NoReturn

from replay_parity.canonical.numbers import NON_FINITE, NUMBER, number_fault, positive_exponent
from replay_parity.canonical.shown import json_pointer, printable, shown
from replay_parity.canonical.strings import StringFault, string_end

# Real records are six levels deep; the difference walks one Python frame per level.
MAX_DEPTH = 64

_WHITESPACE = " \t\r\n"
_NUMBER_LIKE = re.compile(r"[-+.0-9eE]*")
_LITERALS = ("true", "false", "null")
_NAME_LIMIT = 80


class ScanRefusal(Exception):  # noqa: N818 (proof.py turns it into the error of the house)
    """The first thing that is not canonical: reason, sentence, character index and JSON Pointer."""

    def __init__(self, reason: str, message: str, index: int, pointer: str) -> None:
        super().__init__(message)
        self.reason = reason
        self.message = message
        self.index = index
        self.pointer = pointer


def scan(text: str) -> None:
    """Walk one line, its newline included; raise ScanRefusal for the first fault in byte order."""
    _Scanner(text).line()


class _Scanner:
    def __init__(self, text: str) -> None:
        self._text = text
        self._path: list[str | int] = []
        self._exponent: str | None = None

    def line(self) -> None:
        """One value, one newline, nothing else."""
        end = self._value(0)
        rest = self._text[end : end + 1]
        if not rest:
            self._refuse("no_final_newline", "does not end in a newline: it is truncated or was rewritten", end)
        if rest != "\n":
            self._whitespace(end)
            self._refuse("not_json", "has more behind the end of the record", end)

    def _value(self, start: int) -> int:
        char = self._text[start : start + 1]
        if char == '"':
            return self._string(start)
        if char in {"{", "["}:
            if len(self._path) >= MAX_DEPTH:
                self._refuse("too_deep", f"nests more than {MAX_DEPTH} objects and arrays", start)
            return self._object(start) if char == "{" else self._array(start)
        if (match := NUMBER.match(self._text, start)) is not None:
            return self._number(match[0], start)
        for literal in _LITERALS:
            if self._text.startswith(literal, start):
                return start + len(literal)
        return self._no_value(start)

    def _object(self, start: int) -> int:
        index = start + 1
        if self._text.startswith("}", index):
            return index + 1
        seen: set[str] = set()
        previous: str | None = None
        while True:
            key, end = self._key(index, seen, previous)
            previous = key
            seen.add(key)
            self._path.append(key)
            index = self._value(self._expect(end, ":"))
            self._path.pop()
            if self._text.startswith("}", index):
                return index + 1
            index = self._expect(index, ",", "}")

    def _key(self, start: int, seen: set[str], previous: str | None) -> tuple[str, int]:
        if not self._text.startswith('"', start):
            self._whitespace(start)
            self._truncated(start)
            self._refuse("not_json", "has something else where a key must stand", start)
        end = self._string(start)
        key: str = json.loads(self._text[start:end])
        if key in seen:
            self._refuse("duplicate_key", f"has the key {shown(key, _NAME_LIMIT)} twice", start)
        if previous is not None and key < previous:
            order = f"{shown(key, _NAME_LIMIT)} after {shown(previous, _NAME_LIMIT)}"
            self._refuse("unsorted_keys", f"has the key {order}", start)
        return key, end

    def _array(self, start: int) -> int:
        index = start + 1
        if self._text.startswith("]", index):
            return index + 1
        position = 0
        while True:
            self._path.append(position)
            index = self._value(index)
            self._path.pop()
            position += 1
            if self._text.startswith("]", index):
                return index + 1
            index = self._expect(index, ",", "]")

    def _string(self, start: int) -> int:
        end = string_end(self._text, start)
        if isinstance(end, StringFault):
            self._refuse(end.reason, end.message, end.index)
        return end

    def _number(self, token: str, start: int) -> int:
        if self._path:
            # A cut number, its exponent included, would be judged for digits that it never had.
            run = _NUMBER_LIKE.match(self._text, start)
            self._truncated(run.end() if run else start)
        fault = number_fault(token)
        if fault is not None:
            self._refuse(fault.reason, fault.message, start)
        spelling = positive_exponent(token)
        if spelling is not None and spelling != (self._exponent or spelling):
            self._refuse("number_form", f"is spelled {token}, unlike the exponents before it", start)
        self._exponent = spelling or self._exponent
        return start + len(token)

    def _expect(self, index: int, char: str, *others: str) -> int:
        if self._text.startswith(char, index):
            return index + 1
        self._whitespace(index)
        self._truncated(index)
        expected = " or ".join((char, *others))
        return self._refuse("not_json", f"has something else where {expected} must stand", index)

    def _no_value(self, start: int) -> NoReturn:
        self._whitespace(start)
        if (match := NON_FINITE.match(self._text, start)) is not None:
            self._refuse("non_finite_number", f"is {match[0]}, which JSON does not know", start)
        self._truncated(start)
        self._refuse("not_json", "has something else where a value must stand", start)

    def _whitespace(self, index: int) -> None:
        # The final newline is no white space between tokens: what stands before it is missing.
        if self._text[index : index + 1] in set(_WHITESPACE) and index < len(self._text.rstrip("\n")):
            self._refuse("whitespace", "has white space between its tokens", index)

    def _truncated(self, index: int) -> None:
        if index >= len(self._text.rstrip("\n")):
            self._refuse("not_json", "ends in the middle of the record: it is truncated", index)

    def _refuse(self, reason: str, message: str, index: int) -> NoReturn:
        raise ScanRefusal(reason, message, index, printable(json_pointer(self._path), 4 * _NAME_LIMIT))
