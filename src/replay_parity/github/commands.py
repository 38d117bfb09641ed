"""Workflow commands and outputs that no text can break out of (GITHUB.md, threat 9). Nothing is written here."""

from __future__ import annotations

import contextlib
import re
import secrets
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Literal

from replay_parity.github.check_run import Annotation

Command = Literal["debug", "notice", "warning", "error", "group", "endgroup", "add-mask"]
Level = Literal["notice", "warning", "failure"]

# GitHub shows ten annotations of a type and step, and cuts a message there (GITHUB.md, limits).
ANNOTATIONS_SHOWN = 10
MESSAGE_CHARACTERS = 4_096
# In the order in which they are told.
_COMMANDS: dict[Level, Command] = {"failure": "error", "warning": "warning", "notice": "notice"}
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")
_TOKEN_BYTES = 16


def command(name: Command, message: str, **properties: str | int) -> str:
    """One line for standard output; line breaks and what separates properties are escaped as GitHub's toolkit does."""
    shown = ",".join(f"{key}={_property(str(value))}" for key, value in properties.items())
    return f"::{name}{f' {shown}' if shown else ''}::{_data(message)}"


def output(name: str, value: str, *, token: Callable[[], str] | None = None) -> str:
    """Lines for the file GITHUB_OUTPUT; the random delimiter does not occur in the value.

    ValueError when the name could end its line or begin a delimiter of its own.
    """
    if not _NAME.fullmatch(name):
        raise ValueError(f"no name of an output: {name!r}")
    delimiter = _unused(value, token)
    return f"{name}<<{delimiter}\n{value}\n{delimiter}\n"


def stopped(lines: Iterable[str], *, token: Callable[[], str] | None = None) -> str:
    """Lines of a program that is not trusted, between marks that keep GitHub from reading commands in them."""
    body = "".join(f"{line}\n" for line in lines)
    mark = _unused(body, token)
    return f"::stop-commands::{mark}\n{body}::{mark}::\n"


def log_annotations(annotations: Sequence[Annotation], limit: int = ANNOTATIONS_SHOWN) -> list[str]:
    """Commands that make annotations: failures first, of each level at most `limit`, the last one counts the rest."""
    lines: list[str] = []
    for level, name in _COMMANDS.items():
        found = [annotation for annotation in annotations if annotation.level == level]
        for index, annotation in enumerate(found[:limit]):
            rest = len(found) - limit if index == limit - 1 else 0
            lines.append(_log_annotation(name, annotation, rest=rest))
    return lines


def _log_annotation(name: Command, annotation: Annotation, *, rest: int) -> str:
    more = f"\n(and {rest:,} more of this kind: see the summary of the run)" if rest else ""
    message = annotation.message
    room = MESSAGE_CHARACTERS - len(more)
    if len(message) > room:
        message = f"{message[: room - 1]}…"
    return command(
        name,
        message + more,
        file=annotation.path,
        line=annotation.start_line,
        endLine=annotation.end_line,
        title=annotation.title,
    )


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")


def _unused(text: str, token: Callable[[], str] | None) -> str:
    """A random mark that does not occur in the text."""
    make = token or (lambda: secrets.token_hex(_TOKEN_BYTES))
    while True:
        mark = make()
        if mark not in text:
            return mark


@contextlib.contextmanager
def stopped_output(commands: list[str], *, write: Callable[[str], object]) -> Iterator[None]:
    """Keep GitHub from reading commands in anything that is printed inside; `commands` are printed at the end.

    Progress and errors hold words of campaigns, engines and compilers (threat 9).
    """
    mark = secrets.token_hex(_TOKEN_BYTES)
    write(f"::stop-commands::{mark}\n")
    try:
        yield
    finally:
        write(f"::{mark}::\n")
        write("".join(f"{line}\n" for line in commands))
