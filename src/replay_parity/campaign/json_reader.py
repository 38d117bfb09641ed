"""JSON files that other programs wrote: strict, with the same places as YAML files."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NoReturn

from replay_parity.campaign.document import Document, Mark, Place, located
from replay_parity.campaign.scalars import parse_number
from replay_parity.campaign.yaml_reader import DEPTH_CAP, SIZE_CAP, decode

_PIECE = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\],:]|[^\s{}\[\],:"]+')


def read_json(data: bytes, *, path: Path) -> Document:
    """The object that `data`, the bytes of the file `path`, holds.

    Duplicate keys, NaN and infinities, numbers that would lose digits and lone surrogates are refused: raises
    ConfigurationError with file and line, and with the pointer when there is one.
    """
    if len(data) > SIZE_CAP:
        raise located(f"is {len(data):,} bytes long, at most {SIZE_CAP:,} are read", path=path)
    text = decode(data, path=path)
    try:
        # Numbers that are refused become None here; the walk finds them again and knows their line.
        value = json.loads(text, parse_constant=lambda _: None, parse_int=_number, parse_float=_number)
    except json.JSONDecodeError as error:
        raise located(f"is not JSON: {error.msg}", path=path, line=error.lineno) from None
    except RecursionError:
        raise located(f"is nested deeper than {DEPTH_CAP} levels", path=path) from None
    if not isinstance(value, dict):
        raise located("does not hold an object", path=path, line=1)
    walk = _Walk(path)
    for piece, mark in _pieces(text):
        walk.take(piece, mark)
    return Document(path, value, walk.marks)


def _number(text: str) -> int | float | None:
    try:
        return parse_number(text)
    except ValueError:
        return None


@dataclass
class _Level:
    """An open container: its place, and the key or the index whose value comes next (None: a key comes next)."""

    place: Place
    member: str | int | None


@dataclass
class _Walk:
    """One pass over the pieces of a text that is known to be JSON."""

    path: Path
    marks: dict[Place, Mark] = field(default_factory=lambda: {(): Mark(1, 1)})
    levels: list[_Level] = field(default_factory=list)

    def take(self, piece: str, mark: Mark) -> None:
        """Follow one piece; ConfigurationError at a duplicate key, at a lone surrogate, and below the depth cap."""
        level = self.levels[-1] if self.levels else None
        if piece in {"}", "]"}:
            self.levels.pop()
        elif piece == "," and level is not None:
            level.member = level.member + 1 if isinstance(level.member, int) else None
        elif piece != ":":
            if level is not None and level.member is None:
                self._key(level, piece, mark)
            else:
                self._value(level, piece, mark)

    def _key(self, level: _Level, piece: str, mark: Mark) -> None:
        level.member = self._text(piece, level.place, mark)
        place = (*level.place, level.member)
        if place in self.marks:
            first = self.marks[place].line
            self._refuse(f"has the key {level.member!r} twice (first on line {first})", level.place, mark)
        self.marks[place] = mark

    def _value(self, level: _Level | None, piece: str, mark: Mark) -> None:
        place: Place = ()
        if level is not None and level.member is not None:
            place = (*level.place, level.member)
            self.marks.setdefault(place, mark)
        if piece.startswith('"'):
            self._text(piece, place, mark)
        elif piece in {"{", "["}:
            if len(self.levels) >= DEPTH_CAP:
                self._refuse(f"is nested deeper than {DEPTH_CAP} levels", (), mark)
            self.levels.append(_Level(place, None if piece == "{" else 0))
        elif piece not in {"true", "false", "null"}:
            self._number(piece, place, mark)

    def _text(self, piece: str, place: Place, mark: Mark) -> str:
        text = str(json.loads(piece))
        if any("\ud800" <= letter <= "\udfff" for letter in text):
            self._refuse("holds half a surrogate pair", place, mark)
        return text

    def _number(self, piece: str, place: Place, mark: Mark) -> None:
        try:
            number = parse_number(piece)
        except ValueError as error:
            self._refuse(str(error), place, mark)
        if number is None:
            self._refuse(f"holds {piece}, which is no JSON number", place, mark)

    def _refuse(self, message: str, place: Place, mark: Mark) -> NoReturn:
        raise located(message, path=self.path, line=mark.line, place=place)


def _pieces(text: str) -> Iterator[tuple[str, Mark]]:
    line, start, end = 1, 0, 0
    for match in _PIECE.finditer(text):
        # A piece holds no line end, so only what lies between pieces moves the line on.
        if (ends := text.count("\n", end, match.start())) > 0:
            line += ends
            start = text.rindex("\n", end, match.start()) + 1
        end = match.end()
        yield match[0], Mark(line, match.start() - start + 1)
