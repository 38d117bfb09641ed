"""YAML, read safely (GITHUB.md, threat 5).

A document is built from parser events, so that whatever is refused is refused when it is first seen, before anything
could be expanded: aliases, anchors, tags, directives, duplicate keys, a second document, and more than the caps on
size, depth and number of values. Keys are always text. Plain scalars follow the core schema of YAML 1.2 as far as JSON
has a word for them: `true`, `false`, `null` (also `~` and nothing at all) and numbers; `on`, `yes`, `010`, `1:30`,
`2026-01-31` and `1_000` are text.
"""

from __future__ import annotations

import codecs
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn

import yaml

from replay_parity.campaign.document import Document, Mark, Place, located
from replay_parity.campaign.scalars import parse_number

SIZE_CAP = 1 << 20
DEPTH_CAP = 64
VALUES_CAP = 50_000
_SHOWN = 80

# The compiled parser when PyYAML has one; both send the same events.
_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

_WORDS: dict[str, bool | None] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), None),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
# Line ends that are not one to every reader are refused too: they would shift the line numbers of errors.
_UNWANTED = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")

# Parts of the parsers' words, and what a person can do.
_HINTS = {
    "mapping values are not allowed": "put a text that holds ': ' in quotes",
    "that cannot start any token": "put a text that starts with '@', '`' or '%' in quotes",
    "could not find expected ':'": "a key is followed by ': ' and its value",
}


@dataclass
class _Open:
    """A mapping (with the key whose value comes next) or a list that is not complete yet."""

    place: Place
    value: dict[str, Any] | list[Any]
    key: str | None = None


@dataclass
class _Builder:
    path: Path
    root: Any = None
    marks: dict[Place, Mark] = field(default_factory=dict)
    open: list[_Open] = field(default_factory=list)

    def take(self, event: yaml.Event) -> None:
        """Add one event; ConfigurationError when it is one that is refused."""
        match event:
            case yaml.AliasEvent():
                self.refuse(
                    event, f"uses the alias '*{_name(str(event.anchor))}'; aliases are refused, write the value out"
                )
            case yaml.DocumentStartEvent():
                self._start(event)
            case yaml.NodeEvent():
                self._node(event)
            case yaml.CollectionEndEvent():
                self.open.pop()
            case _:
                pass

    def refuse(self, event: yaml.Event, message: str, *, hint: str | None = None) -> NoReturn:
        """Raise ConfigurationError that names the container in which the event comes."""
        place = self.open[-1].place if 0 < len(self.open) < DEPTH_CAP else ()
        raise located(message, path=self.path, line=_position(event).line, place=place, hint=hint)

    def _start(self, event: yaml.DocumentStartEvent) -> None:
        if event.version or event.tags:
            self.refuse(event, "has a '%' directive; directives are refused")
        if self.marks:
            self.refuse(event, "holds a second document; one file holds one")
        self.marks[()] = Mark(1, 1)

    def _node(self, event: yaml.NodeEvent) -> None:
        if event.anchor is not None:
            self.refuse(event, f"has the anchor '&{_name(event.anchor)}'; anchors are refused, write the value out")
        if getattr(event, "tag", None) is not None:
            self.refuse(event, f"has the tag '{_name(str(getattr(event, 'tag', '')))}'; tags are refused")
        parent = self.open[-1] if self.open else None
        if isinstance(event, yaml.ScalarEvent):
            if parent and isinstance(parent.value, dict) and parent.key is None:
                self._key(parent, parent.value, event)
            else:
                self._value(self._scalar(event), event)
            return
        if parent and isinstance(parent.value, dict) and parent.key is None:
            self.refuse(event, "has a key that is no plain text")
        if len(self.open) >= DEPTH_CAP:
            self.refuse(event, f"is nested deeper than {DEPTH_CAP} levels")
        container: dict[str, Any] | list[Any] = {} if isinstance(event, yaml.MappingStartEvent) else []
        self.open.append(_Open(self._value(container, event), container))

    def _key(self, parent: _Open, mapping: dict[str, Any], event: yaml.ScalarEvent) -> None:
        key = str(event.value)
        if not key:
            self.refuse(event, "has an empty key")
        if key == "<<" and not event.style:
            self.refuse(event, "uses a merge key ('<<'); merge keys are refused, write the values out")
        if key in mapping:
            first = self.marks[(*parent.place, key)].line
            self.refuse(event, f"has the key '{_name(key)}' twice (first on line {first})")
        self._mark((*parent.place, key), event)
        mapping[key] = None
        parent.key = key

    def _value(self, value: Any, event: yaml.Event) -> Place:
        parent = self.open[-1] if self.open else None
        if parent is None:
            self.root = value
            return ()
        if isinstance(parent.value, list):
            place: Place = (*parent.place, len(parent.value))
            self._mark(place, event)
            parent.value.append(value)
            return place
        assert parent.key is not None  # noqa: S101 (the caller has looked; mypy cannot see it)
        place = (*parent.place, parent.key)
        parent.value[parent.key] = value
        parent.key = None
        return place

    def _mark(self, place: Place, event: yaml.Event) -> None:
        if len(self.marks) > VALUES_CAP:
            self.refuse(event, f"holds more than {VALUES_CAP:,} values")
        self.marks[place] = _position(event)

    def _scalar(self, event: yaml.ScalarEvent) -> Any:
        text = str(event.value)
        if event.style:
            # Only the parser that is not compiled lets half a surrogate pair through.
            if any("\ud800" <= letter <= "\udfff" for letter in text):
                self.refuse(event, "holds half a surrogate pair")
            return text
        if text in _WORDS:
            return _WORDS[text]
        try:
            number = parse_number(text)
        except ValueError as error:
            self.refuse(event, str(error), hint="if it is a text, put it in quotes")
        return text if number is None else number


def read_yaml(data: bytes, *, path: Path) -> Document:
    """The document that `data`, the bytes of the file `path`, holds: a mapping.

    Raises ConfigurationError with file, line and pointer of the first thing that is refused.
    """
    if len(data) > SIZE_CAP:
        raise located(f"is {len(data):,} bytes long, at most {SIZE_CAP:,} are read", path=path)
    text = decode(data, path=path)
    builder = _Builder(path)
    try:
        for event in yaml.parse(text, Loader=_LOADER):
            builder.take(event)
    except yaml.MarkedYAMLError as error:
        raise _syntax(error, text, path) from None
    except yaml.YAMLError as error:
        raise located(f"is not YAML: {' '.join(str(error).split())}", path=path) from None
    if not isinstance(builder.root, dict):
        what = "is empty" if builder.root is None else "does not hold a mapping"
        raise located(f"{what}; it must hold keys with values, such as 'name: ...'", path=path, line=1)
    return Document(path, builder.root, builder.marks)


def decode(data: bytes, *, path: Path) -> str:
    """UTF-8 text without byte order mark and without control characters, or one clear sentence."""
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise located("is UTF-16 text; save it as UTF-8", path=path)
    if data.startswith(codecs.BOM_UTF8):
        raise located("starts with a byte order mark; save it as UTF-8 without one", path=path, line=1)
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise located(f"is not UTF-8 text (byte 0x{data[error.start]:02x})", path=path, line=line) from None
    if unwanted := _UNWANTED.search(text):
        line = text.count("\n", 0, unwanted.start()) + 1
        raise located(f"holds the control character U+{ord(unwanted[0]):04X}", path=path, line=line)
    return text


def _syntax(error: yaml.MarkedYAMLError, text: str, path: Path) -> Exception:
    problem = error.problem or "it cannot be read"
    mark = error.problem_mark or error.context_mark
    line = mark.line + 1 if mark else None
    rows = text.splitlines()
    at = rows[mark.line] if mark and mark.line < len(rows) else ""
    if at[: len(at) - len(at.lstrip())].find("\t") >= 0:
        return located("is indented with a tab; YAML wants spaces", path=path, line=line)
    if "maximum nesting depth" in problem:
        return located(f"is nested deeper than {DEPTH_CAP} levels", path=path, line=line)
    hint = next((hint for words, hint in _HINTS.items() if words in problem), None)
    return located(f"is not YAML: {problem}", path=path, line=line, hint=hint)


def _position(event: yaml.Event) -> Mark:
    mark = event.start_mark
    return Mark(mark.line + 1, mark.column + 1) if mark else Mark(1, 1)


def _name(text: str) -> str:
    return text if text.isprintable() and len(text) <= _SHOWN else repr(text[:_SHOWN])[1:-1]
