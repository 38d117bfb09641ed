"""Patterns: the JSON Pointer of a field with `*` for every array position, one text for all requests.

`/per_request/17/ttft_ms` and `/per_request/4000/ttft_ms` share the pattern `/per_request/*/ttft_ms`. A key that is
literally `*` is written `~2` (JSON Pointer itself leaves that escape free), so that a pattern means one thing.
"""

from __future__ import annotations

from replay_parity.canonical.shown import pointer_token


class Pattern:
    """One pattern. Children are made once and kept, so patterns compare and hash by identity within a comparison."""

    __slots__ = ("_children", "element", "text")

    def __init__(self, text: str = "") -> None:
        self.text = text
        self._children: dict[str, Pattern] = {}
        # The array whose positions this pattern stands for makes it on first use.
        self.element: Pattern | None = None

    def child(self, key: str) -> Pattern:
        """The pattern of the member `key` of an object."""
        child = self._children.get(key)
        if child is None:
            token = "~2" if key == "*" else pointer_token(key)
            child = self._children[key] = Pattern(f"{self.text}/{token}")
        return child

    def elements(self) -> Pattern:
        """The pattern of every element of an array."""
        if self.element is None:
            self.element = Pattern(f"{self.text}/*")
        return self.element

    def __repr__(self) -> str:
        return f"Pattern({self.text!r})"
