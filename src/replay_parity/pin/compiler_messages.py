"""Cargo's JSON messages: what was compiled, and whose fault an error is (rule 5)."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Literal

import orjson

RUNNER_PACKAGE = "replay-parity-runner"
_EXCERPT_LINES = 30

Fault = Literal["runner_api", "revision"]


def read_messages(path: Path) -> Iterator[dict[str, Any]]:
    """Messages of a build, one JSON object a line; a line cut off by a kill is skipped."""
    if not path.is_file():
        return
    with path.open("rb") as file:
        for line in file:
            with contextlib.suppress(orjson.JSONDecodeError):
                message = orjson.loads(line)
                if isinstance(message, dict):
                    yield message


def package_name(package_id: str) -> str:
    """Name in a package id such as `path+file:///x/runner#replay-parity-runner@0.1.0` or `…/core#0.12.1`."""
    location, _, fragment = package_id.partition("#")
    name, at, _ = fragment.partition("@")
    return name if at else location.partition("?")[0].rstrip("/").rsplit("/", 1)[-1]


def error_texts(path: Path) -> list[tuple[str, str]]:
    """Every error of a build as rustc rendered it, with the name of the package that it was found in."""
    found: list[tuple[str, str]] = []
    for message in read_messages(path):
        body = message.get("message")
        if message.get("reason") == "compiler-message" and isinstance(body, dict) and body.get("level") == "error":
            text = str(body.get("rendered") or body.get("message") or "")
            found.append((package_name(str(message.get("package_id", ""))), text))
    return found


def compile_errors(errors: Sequence[tuple[str, str]]) -> tuple[Fault, str]:
    """Whose errors they are, and the first of them on one screen; `errors` must not be empty."""
    lines = "\n".join(text.rstrip() for _, text in errors).splitlines()
    cut = lines[:_EXCERPT_LINES]
    if len(lines) > _EXCERPT_LINES:
        cut.append(f"... and {len(lines) - _EXCERPT_LINES} more lines in the log")
    packages = {package for package, _ in errors}
    return ("runner_api" if packages == {RUNNER_PACKAGE} else "revision"), "\n".join(cut)
