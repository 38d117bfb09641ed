"""A file that was read: its values, and the place of each, so that an error names file, line and JSON Pointer."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from replay_parity.errors import ConfigurationError

# Keys and indices from the root; the empty one is the whole document.
Place = tuple[str | int, ...]


class Finding(NamedTuple):
    """Something wrong at a place: a sentence, and what a person can do about it."""

    place: Place
    message: str
    hint: str | None = None


class Mark(NamedTuple):
    """A position in a text file; both count from 1."""

    line: int
    column: int


@dataclass(frozen=True)
class Document:
    """One file's values with the mark of every key and of every item of a list."""

    path: Path
    data: dict[str, Any]
    marks: Mapping[Place, Mark]

    def mark(self, place: Place) -> Mark:
        """Position of a place, or of the nearest one around it that is written down."""
        while place and place not in self.marks:
            place = place[:-1]
        return self.marks.get(place, Mark(1, 1))

    def error(self, finding: Finding) -> ConfigurationError:
        """An error whose `where` is `path:line /json/pointer`."""
        place, message, hint = finding
        return located(message, path=self.path, line=self.mark(place).line, place=place, hint=hint)


def located(
    message: str, *, path: Path, line: int | None = None, place: Place = (), hint: str | None = None
) -> ConfigurationError:
    """An error at a line of a file that need not have been read to its end."""
    where = shown(path) if line is None else f"{shown(path)}:{line}"
    return ConfigurationError(message, where=f"{where} {pointer(place)}".rstrip(), hint=hint)


def pointer(place: Place) -> str:
    """The JSON Pointer (RFC 6901) of a place, with anything unprintable escaped."""
    parts = (str(part).replace("~", "~0").replace("/", "~1") for part in place)
    return "".join(f"/{part if part.isprintable() else repr(part)[1:-1]}" for part in parts)


def shown(path: Path) -> str:
    """The path as a person would write it: from the working directory when it is below it."""
    whole = Path(os.path.abspath(path))  # noqa: PTH100 (links stay as they are written)
    try:
        text = str(whole.relative_to(Path.cwd()))
    except ValueError:
        text = str(whole)
    return text if text.isprintable() else repr(text)
