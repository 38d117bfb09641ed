"""Documents in a folder that other machines filled (GITHUB.md, threat 6)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from replay_parity.errors import BadInputError

_MANY = 200_000
_DEEP = 16


def documents(root: Path, name: str) -> Iterator[Path]:
    """Every entry called `name` in sorted order, none of them a link or below a link.

    BadInputError for a folder with absurdly many or deeply nested entries.
    """
    waiting = [(root, 0)] if root.is_dir() and not root.is_symlink() else []
    count = 0
    while waiting:
        folder, depth = waiting.pop()
        if depth > _DEEP:
            raise BadInputError(f"is nested more than {_DEEP} folders deep", where=str(root))
        for entry in sorted(folder.iterdir()):
            count += 1
            if count > _MANY:
                raise BadInputError(f"holds more than {_MANY:,} files", where=str(root))
            if entry.is_symlink():
                continue
            if entry.is_dir():
                waiting.append((entry, depth + 1))
            elif entry.name == name:
                yield entry
