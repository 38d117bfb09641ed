"""Cargo's JSON messages: what was compiled, and whose fault an error is (rule 5)."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
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
    return name if at else location.rstrip("/").rsplit("/", 1)[-1]


def path_packages(path: Path) -> frozenset[str]:
    """Names of the packages that were compiled from folders, not from a registry."""
    return frozenset(
        package_name(str(message["package_id"]))
        for message in read_messages(path)
        if message.get("reason") == "compiler-artifact" and str(message.get("package_id", "")).startswith("path+")
    )


def compile_errors(path: Path) -> tuple[Fault, str] | None:
    """Whose error it is and the first errors as rustc rendered them, on one screen; None when rustc reported none."""
    rendered: list[str] = []
    faults: set[str] = set()
    for message in read_messages(path):
        body = message.get("message")
        if message.get("reason") != "compiler-message" or not isinstance(body, dict) or body.get("level") != "error":
            continue
        faults.add(package_name(str(message.get("package_id", ""))))
        rendered.append(str(body.get("rendered") or body.get("message") or ""))
    if not rendered:
        return None
    lines = "\n".join(text.rstrip() for text in rendered).splitlines()
    cut = lines[:_EXCERPT_LINES]
    if len(lines) > _EXCERPT_LINES:
        cut.append(f"... and {len(lines) - _EXCERPT_LINES} more lines in the log")
    return ("runner_api" if faults == {RUNNER_PACKAGE} else "revision"), "\n".join(cut)
