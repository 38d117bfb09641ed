"""Text of files and engines made safe for GitHub's Markdown: shown exactly, never acted on (GITHUB.md, threat 9).

GitHub turns mentions, references, commit ids, addresses, emoji names and formulas into something else *after* Markdown
is rendered, where a backslash no longer helps; only code is left alone. So a word that holds one of them is shown as
code, which also keeps it exact when it is copied.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal

from replay_parity.publish.plain import visible

Language = Literal["", "text", "console", "json"]

# What GitHub acts on in rendered text: mentions and mail, issues and pull requests, commit ids, emoji names, formulas,
# addresses with and without a scheme. Wider than GitHub's own patterns: a word too many in code does no harm.
_ACTED_ON = re.compile(
    r"@|\$|#\w|\bgh-\d|(?<![0-9a-z])[0-9a-f]{7,64}(?![0-9a-z])|:[\w+-]+:|://|www\.|mailto:|xmpp:", re.IGNORECASE
)
_ESCAPED = str.maketrans(
    {character: f"\\{character}" for character in "\\`*_[]~#"}
    # A pipe ends a table's cell even where a backslash stands before it in some renderers; an entity never does.
    | {"<": "&lt;", ">": "&gt;", "&": "&amp;", "|": "&#124;"}
)
# At the start of a line: lists, underlines of headings, the second line of a table.
_LEADING = re.compile(r"^(\d{0,9})([-+=:.)])")
_NEWLINE = re.compile(r"\r\n|\r|\n")
_NEWLINE_SIGN = " ⏎ "
_BACKTICKS = re.compile("`+")
_SHORTEST_FENCE = 3


def text(words: str) -> str:
    """The words as one line that is plain text in a paragraph, a list, a heading and a table's cell.

    Line breaks become a sign, spaces at both ends go, characters that hide or move others are written as escapes.
    """
    line = _visible_line(words).strip()
    *words_before, last = line.split(" ")
    shown = [_word(word, word) for word in words_before]
    # Our own words mostly go on with a colon, which would end the name of an emoji.
    return _LEADING.sub(r"\1\\\2", " ".join([*shown, _word(last, f"{last}:")]))


def code(words: str) -> str:
    """The words as inline code, whatever backticks they hold; `table` takes care of pipes."""
    line = _visible_line(words) or " "
    fence = "`" * _free_length(line, shortest=1)
    # One space at both ends is dropped by every renderer, so one more keeps what is there.
    padding = " " if line.strip(" ") and (line[0] in "` " or line[-1] in "` ") else ""
    return f"{fence}{padding}{line}{padding}{fence}"


def block(words: str, language: Language = "") -> str:
    """The words as a block of code with their own line breaks; its fence is longer than any run of backticks inside."""
    lines = "\n".join(_visible_but_tabs(part) for part in _NEWLINE.split(words))
    fence = "`" * _free_length(lines, shortest=_SHORTEST_FENCE)
    return f"{fence}{language}\n{lines}\n{fence}"


def table(header: Sequence[str], rows: Sequence[Sequence[str]], *, right: frozenset[int] = frozenset()) -> str:
    """A table; cells are Markdown on one line each, columns in `right` are aligned to the right."""
    rule = ["---:" if column in right else "---" for column in range(len(header))]
    return "\n".join([line(header), f"| {' | '.join(rule)} |", *map(line, rows)])


def line(cells: Sequence[str]) -> str:
    """One line of a table."""
    # `text` leaves no pipe; those in code need the backslash, which a table takes away again before code is read.
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def details(title: str, body: str) -> str:
    """A part that is folded until a person opens it; `title` is HTML of our own words."""
    return f"<details><summary>{title}</summary>\n\n{body}\n\n</details>"


def cut(words: str, length: int) -> str:
    """At most `length` characters; cutting comes before escaping, so that no escape is cut in two."""
    return words if len(words) <= length else f"{words[: length - 1].rstrip()}…"


def _word(word: str, seen: str) -> str:
    return code(word) if _ACTED_ON.search(seen) else word.translate(_ESCAPED)


def _visible_line(words: str) -> str:
    return _NEWLINE_SIGN.join(visible(part) for part in _NEWLINE.split(words))


def _visible_but_tabs(words: str) -> str:
    return "\t".join(map(visible, words.split("\t")))


def _free_length(words: str, *, shortest: int) -> int:
    """How many backticks nothing inside is taken for: a fence ends at as many or more, inline code at as many."""
    lengths = {len(run) for run in _BACKTICKS.findall(words)}
    if shortest == _SHORTEST_FENCE:
        return max(lengths | {shortest - 1}) + 1
    return next(length for length in range(shortest, len(lengths) + shortest + 1) if length not in lengths)
