"""The command line as a user runs it; engines are built once into the user's cache, keyed by content."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_TIMEOUT_SECONDS = 3000


@dataclass(frozen=True)
class Finished:
    """A command line that ended: exit code, both streams, and the verdict when one was written."""

    code: int
    out: str
    err: str
    output: Path

    @property
    def verdict(self) -> dict[str, Any]:
        document: dict[str, Any] = json.loads((self.output / "verdict.json").read_text())
        return document

    def row(self, name: str) -> dict[str, Any]:
        return next(row for row in self.verdict["rows"] if row["row"] == name)


def replay_parity(*arguments: str, cwd: Path, env: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    """Run the command line as a user does."""
    return subprocess.run(
        [sys.executable, "-m", "replay_parity", *arguments],
        cwd=cwd,
        env={**os.environ, **(env or {})},
        capture_output=True,
        text=True,
        timeout=_TIMEOUT_SECONDS,
        check=False,
    )


def run_campaign(campaign: Path | str, output: Path, *options: str, env: Mapping[str, str] | None = None) -> Finished:
    """`replay-parity run` into a folder of the test."""
    done = replay_parity("run", str(campaign), "--output", str(output), *options, cwd=output.parent, env=env)
    return Finished(done.returncode, done.stdout, done.stderr, output)
