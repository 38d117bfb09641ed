"""Documents in a folder that other machines filled (GITHUB.md, threat 6)."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TypeVar

from pydantic import ValidationError

from replay_parity.campaign.base import Model
from replay_parity.errors import BadInputError
from replay_parity.publish.plain import visible
from replay_parity.system.files import read_capped

_MANY = 200_000
_DEEP = 16
_SHOWN = 300
_TOLD = 50


@dataclass(frozen=True)
class Found:
    """Entries of one name in sorted order, whatever they are, and what is wrong with the folder in sentences."""

    paths: tuple[Path, ...]
    problems: tuple[str, ...]


def documents(root: Path, name: str) -> Found:
    """Every entry called `name`; a link is followed nowhere and told. Nothing is found where there is too much."""
    if root.is_symlink():
        return Found((), (f"the folder {root.name} is a symbolic link",))
    paths: list[Path] = []
    problems: list[str] = []
    waiting = [(root, 0)] if root.is_dir() else []
    left = _MANY
    while waiting:
        folder, depth = waiting.pop()
        if depth > _DEEP:
            return Found((), (f"the folder {root.name} is nested more than {_DEEP} folders deep",))
        try:
            with os.scandir(folder) as entries:
                listed = list(islice(entries, left + 1))
        except OSError as error:
            problems.append(f"{place(folder, root)} cannot be listed: {error.strerror}")
            continue
        left -= len(listed)
        if left < 0:
            return Found((), (f"the folder {root.name} holds more than {_MANY:,} files",))
        for entry in listed:
            if entry.name == name:
                paths.append(Path(entry.path))
            elif entry.is_symlink():
                problems.append(f"{place(Path(entry.path), root)} is a symbolic link")
            elif entry.is_dir(follow_symlinks=False):
                waiting.append((Path(entry.path), depth + 1))
    return Found(tuple(sorted(paths)), tuple(sorted(problems)))


_M = TypeVar("_M", bound=Model)


def read_document(model: type[_M], path: Path, *, cap: int) -> _M:
    """A document of at most `cap` bytes, no value of which is converted; BadInputError otherwise."""
    try:
        return model.model_validate_json(read_capped(path, cap=cap), strict=True)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        pointer = visible("".join(f"/{part}" for part in first["loc"]))[:_SHOWN]
        words = f"{pointer} {visible(first['msg'])[:_SHOWN]}".strip()
        raise BadInputError(f"cannot be read: {words}") from None


def place(path: Path, root: Path) -> str:
    """Where a file lies below a folder, in printable characters; a name may be any bytes."""
    return visible(path.relative_to(root).as_posix())[:_SHOWN]


def few(problems: Sequence[str]) -> list[str]:
    """The first of many problems, each once, and how many more there are."""
    unique = list(dict.fromkeys(problems))
    more = len(unique) - _TOLD
    return [*unique[:_TOLD], f"and {more:,} more problems"] if more > 0 else unique
