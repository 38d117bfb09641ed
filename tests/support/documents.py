"""Pages of the documentation: fenced blocks, headings, links and commands, read as a Markdown reader does."""

from __future__ import annotations

import itertools
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from markdown_it import MarkdownIt

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").glob("*.md"))]
_MARKDOWN = MarkdownIt("commonmark").enable("table")


@dataclass(frozen=True)
class Block:
    """A fenced block; `line` is where it starts."""

    page: Path
    line: int
    language: str
    text: str

    def __str__(self) -> str:
        return f"{self.page.relative_to(ROOT)}:{self.line}"

    @property
    def file(self) -> str | None:
        """The path that the first line names: `# .github/workflows/x.yml`."""
        found = re.match(r"# (\.\S+)\n", self.text)
        return found[1] if found else None

    @property
    def document(self) -> Any:
        """The YAML of the block."""
        return yaml.safe_load(self.text)


def blocks(language: str) -> list[Block]:
    """Every block of a language on every page."""
    return [
        Block(page, token.map[0] + 1 if token.map else 0, language, token.content)
        for page in PAGES
        for token in _MARKDOWN.parse(page.read_text("utf-8"))
        if token.type == "fence" and token.info.strip() == language
    ]


def workflow_blocks() -> list[Block]:
    """Every block that is a whole workflow."""
    return [block for block in blocks("yaml") if isinstance(block.document, dict) and "jobs" in block.document]


def links(page: Path) -> Iterator[str]:
    """Targets of all links and pictures."""
    for token in _MARKDOWN.parse(page.read_text("utf-8")):
        for child in token.children or []:
            target = child.attrGet("href") or child.attrGet("src")
            if target is not None:
                yield str(target)


def anchors(page: Path) -> set[str]:
    """Names that GitHub gives to the headings."""
    tokens = _MARKDOWN.parse(page.read_text("utf-8"))
    headings = [after.content for token, after in itertools.pairwise(tokens) if token.type == "heading_open"]
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def commands(program: str) -> Iterator[tuple[str, list[str]]]:
    """Every command that calls `program`, in console blocks and in code between words, as place and arguments."""
    for page in PAGES:
        tokens = _MARKDOWN.parse(page.read_text("utf-8"))
        console = [
            token.content for token in tokens if token.type == "fence" and token.info.strip() in {"console", "sh"}
        ]
        inline = [child.content for token in tokens for child in token.children or [] if child.type == "code_inline"]
        for line in [*"\n".join(console).splitlines(), *inline]:
            words = shlex.split(line, comments=True) if program in line else []
            if words and words[0].rpartition("/")[2] == program:
                yield f"{page.relative_to(ROOT)}: {line}", words[1:]


def tables(page: Path) -> list[list[list[str]]]:
    """Tables as rows of cells, the head first; a cell is its source."""
    found: list[list[list[str]]] = []
    tokens = _MARKDOWN.parse(page.read_text("utf-8"))
    for token, after in itertools.pairwise(tokens):
        if token.type == "table_open":
            found.append([])
        elif token.type == "tr_open":
            found[-1].append([])
        elif token.type in {"td_open", "th_open"}:
            found[-1][-1].append(after.content)
    return found
