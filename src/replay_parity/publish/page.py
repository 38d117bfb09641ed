"""Markdown that never gets longer than a limit in bytes: GitHub drops or refuses what is longer (GITHUB.md, limits)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

# Under it not even a verdict with its problems would fit.
SMALLEST = 4_096
_GAP = "\n\n"
# For the sentence that tells what was left out; its parts are our own short words.
_RESERVED = 600


def size(text: str) -> int:
    """Bytes of UTF-8, which is what GitHub counts."""
    return len(text.encode())


class Page:
    """Parts in the order of their importance; each is taken whole or left out, and what is left out is told."""

    def __init__(self, limit: int) -> None:
        if limit < SMALLEST:
            raise ValueError(f"a page of {limit} bytes holds no verdict; at least {SMALLEST} are needed")
        self._left = limit - _RESERVED
        self._parts: list[str] = []
        self._left_out: list[str] = []

    @property
    def left(self) -> int:
        """Bytes that the next part may have."""
        return self._left - size(_GAP)

    def add(self, part: str, name: str) -> bool:
        """Append the part if it fits; otherwise `name`, a few own words, is told as left out."""
        if not part:
            return True
        if size(part) > self.left:
            self.leave_out(name)
            return False
        self._parts.append(part)
        self._left -= size(part) + size(_GAP)
        return True

    def leave_out(self, name: str) -> None:
        """Tell that something is not here."""
        if name not in self._left_out:
            self._left_out.append(name)

    def text(self) -> str:
        """The whole page, a newline at its end."""
        parts = list(self._parts)
        if self._left_out:
            cut = f"Cut to GitHub's limit, left out: {', '.join(self._left_out)}. `verdict.json` holds all of it."
            # Behind the heading: who reads on must know that it is not all.
            parts.insert(1, cut)
        return _GAP.join(parts) + "\n" if parts else ""


def fitted(lines: Sequence[str], room: int, more: Callable[[int], str]) -> list[str]:
    """The first lines that fit into `room` bytes, their line ends counted; `more` tells how many were cut.

    Nothing at all when not even that fits.
    """
    sizes = [size(line) + 1 for line in lines]
    if sum(sizes) <= room:
        return list(lines)
    # The longest that it can get: no line fits, so all are cut.
    room -= size(more(len(lines))) + 1
    if room < 0:
        return []
    kept = 0
    while sizes[kept] <= room:
        room -= sizes[kept]
        kept += 1
    return [*lines[:kept], more(len(lines) - kept)]
