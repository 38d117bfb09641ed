"""Text that fits GitHub's limits, which count UTF-8 bytes: a cut is told and leaves no Markdown open."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

_FENCE = re.compile(r" {0,3}(`{3,}(?=[^`]*$)|~{3,})(.*)$")
_HTML_BLOCK = re.compile(
    r" {0,3}</?(?:details|summary|table|thead|tbody|tr|t[dh]|div|p|[uo]l|li|h[1-6])(?:[\s>/]|$)", re.IGNORECASE
)
_CODE_SPAN = re.compile(r"(?<!`)(`+)(?!`).*?(?<!`)\1(?!`)")
_FOLD = re.compile(r"<(/?)(details|summary)(?:\s[^<>]*)?>", re.IGNORECASE)
_HALF_TAG = re.compile(r"<[^<>]{0,200}$")
_DELIMITER_ROW = re.compile(r" {0,3}(?=.*\|)[\s|:-]*-[\s|:-]*$")
_CLOSING = {"details": "\n\n</details>", "summary": "</summary>"}
_DOTS = "…"
_HALF = 2


@dataclass(frozen=True)
class _State:
    """What is open behind some lines of Markdown."""

    fence: str = ""
    html: bool = False
    table: bool = False
    head: bool = False
    folds: tuple[str, ...] = ()

    @property
    def closing(self) -> str:
        """What closes it, the innermost first."""
        fence = f"\n{self.fence}" if self.fence else ""
        return fence + "".join(_CLOSING[fold] for fold in reversed(self.folds))

    def after(self, line: str) -> _State:
        """The state behind one more line."""
        fence = _FENCE.match(line)
        if self.fence:
            closes = fence and fence[1].startswith(self.fence) and not fence[2].strip()
            return replace(self, fence="") if closes else self
        if not line.strip():
            return replace(self, html=False, table=False, head=False)
        if self.html or _HTML_BLOCK.match(line):
            return replace(self, html=True, table=False, head=False, folds=self._folded(line))
        if fence:
            return replace(self, fence=fence[1], table=False, head=False)
        return replace(
            self,
            table=self.table or (self.head and _DELIMITER_ROW.match(line) is not None),
            head="|" in line,
            folds=self._folded(_CODE_SPAN.sub("", line)),
        )

    def is_row(self, line: str) -> bool:
        """Whether the next line belongs to a table."""
        return not self.fence and (self.table or line.lstrip().startswith("|"))

    def _folded(self, line: str) -> tuple[str, ...]:
        folds = self.folds
        for slash, name in _FOLD.findall(line):
            if not slash:
                folds = (*folds, name.lower())
            elif name.lower() in folds:
                last = len(folds) - 1 - folds[::-1].index(name.lower())
                folds = folds[:last]
        return folds


def cut(markdown: str, limit: int, notice: str) -> str:
    """Markdown of at most `limit` UTF-8 bytes; when it was longer, it ends with `notice` as a paragraph of its own.

    Lines are kept whole, unless one of them would fill half of the room. A row of a table is never cut, and its head
    does not stay alone. Code fences (backticks or tildes of any length, as CommonMark has them) and <details> are
    closed.
    """
    if _size(markdown) <= limit:
        return markdown
    room = limit - _size(f"\n\n{notice}")
    kept: list[str] = []
    used = 0
    state = _State()
    # No line behind the first `limit` characters can fit.
    for line in markdown[: limit + 1].split("\n"):
        left = room - used - 1
        after = state.after(line)
        if _size(line) + _size(after.closing) <= left:
            kept.append(line)
            used += _size(line) + 1
            state = after
            continue
        if left > room // _HALF and not state.is_row(line):
            part = _part(line, left, state)
            kept.append(part)
            state = state.after(part)
        elif state.head and not state.table and _DELIMITER_ROW.match(line):
            kept.pop()
        break
    body = "\n".join(kept).rstrip() + state.closing
    return shorten(f"{body}\n\n{notice}" if body else notice, limit)


def _part(line: str, left: int, state: _State) -> str:
    """The beginning of a line that fits together with what must close it; no half of a tag at its end."""
    room = left
    while room > 0:
        part = _HALF_TAG.sub("", _first_bytes(line, room))
        over = _size(part) + _size(state.after(part).closing) - left
        if over <= 0:
            return part
        room -= over
    return ""


def shorten(text: str, limit: int) -> str:
    """Plain text of at most `limit` UTF-8 bytes, cut on a character, with an ellipsis when it was longer."""
    if _size(text) <= limit:
        return text
    return _first_bytes(text, max(0, limit - _size(_DOTS))) + _DOTS


def well_formed(text: str) -> str:
    """The text without what no JSON carries or GitHub refuses: lone surrogates and NUL become U+FFFD."""
    return re.sub("[\\0\ud800-\udfff]", "\ufffd", text)


def _size(text: str) -> int:
    return len(text.encode("utf-8", "surrogatepass"))


def _first_bytes(text: str, size: int) -> str:
    return text[:size].encode("utf-8", "surrogatepass")[:size].decode("utf-8", "ignore")
