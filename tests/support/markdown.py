"""Markdown as GitHub reads it: rendered, then looked at for what GitHub's own filters would act on."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from html.parser import HTMLParser

from markdown_it import MarkdownIt

_RENDERER = MarkdownIt("commonmark").enable(["table", "strikethrough"])
# What renderers themselves write: the language of a block, the alignment of a cell.
_ATTRIBUTES = {
    ("code", "class"),
    ("pre", "lang"),
    *((tag, name) for tag in ("th", "td") for name in ("style", "align")),
}
# GitHub's filters run over rendered text, except inside of code (and links).
_FILTERS = {
    "mention": r"(?<![\w`])@[a-z0-9]",
    "mail": r"[\w.+-]+@[\w-]+\.\w",
    "reference": r"#\d|\bgh-\d",
    "commit": r"\b[0-9a-f]{7,40}\b",
    "emoji": r":[a-z0-9_+-]+:",
    "address": r"(?:https?|ftp)://\w|\bwww\.\w|(?:mailto|xmpp):",
    "formula": r"\$",
}


@dataclass
class Seen:
    """What a reader gets: the text, the elements, and what a filter of GitHub would act on."""

    text: str = ""
    elements: list[str] = field(default_factory=list)
    acted_on: list[str] = field(default_factory=list)
    links: list[str] = field(default_factory=list)
    code: list[str] = field(default_factory=list)


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.seen = Seen()
        self._open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.elements.append(tag)
        self._open.append(tag)
        for name, value in attrs:
            if name == "href":
                self.seen.links.append(value or "")
            else:
                assert (tag, name) in _ATTRIBUTES

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_comment(self, data: str) -> None:
        raise AssertionError(f"a comment: {data!r}")

    def handle_data(self, data: str) -> None:
        self.seen.text += data
        if "code" in self._open:
            self.seen.code.append(data)
        elif "a" not in self._open:
            self.seen.acted_on += [
                name for name, pattern in _FILTERS.items() if re.search(pattern, data, re.IGNORECASE)
            ]

    def finish(self) -> Seen:
        self.close()
        assert self._open == []
        return self.seen


def html(markdown: str) -> str:
    """The HTML of GitHub-flavoured Markdown."""
    return str(_RENDERER.render(markdown))


def seen(markdown: str) -> Seen:
    """What a reader gets of GitHub-flavoured Markdown."""
    reader = _Reader()
    reader.feed(html(markdown))
    return reader.finish()
