"""One step of the action as action.yml starts it, and its log as GitHub's runner reads it."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

_TIMEOUT_SECONDS = 300
_OLD_COMMAND = "##["


@dataclass
class Log:
    """What a runner makes of the lines of a step: commands that it obeys, and lines that stand outside of marks."""

    commands: list[str] = field(default_factory=list)
    loose: list[str] = field(default_factory=list)
    between: list[str] = field(default_factory=list)
    stopped: bool = False

    @classmethod
    def of(cls, text: str) -> Log:
        """Read it line by line; both streams go into one."""
        log = cls()
        mark = ""
        for line in re.split(r"\r\n|\r|\n", text):
            if mark:
                if line.strip() == f"::{mark}::":
                    mark = ""
                else:
                    log.between.append(line)
            elif stop := re.fullmatch(r"::stop-commands::(.+)", line.strip()):
                mark = stop[1]
            elif line.lstrip().startswith("::") or _OLD_COMMAND in line:
                # The old form of a command is found anywhere in a line, unless it is one of the new form.
                log.commands.append(line)
            elif line.strip():
                log.loose.append(line)
        log.stopped = bool(mark)
        return log


@dataclass(frozen=True)
class Step:
    """A step that ended."""

    code: int
    text: str
    output: Path
    summary: Path

    @property
    def log(self) -> Log:
        return Log.of(self.text)

    @property
    def outputs(self) -> dict[str, str]:
        """As the runner reads the file, delimiters and all."""
        lines = self.output.read_bytes().decode().split("\n")
        assert lines.pop() == ""
        found: dict[str, str] = {}
        while lines:
            name, delimiter = lines.pop(0).split("<<", 1)
            end = lines.index(delimiter)
            assert name not in found
            found[name] = "\n".join(lines[:end])
            del lines[: end + 1]
        return found


def run_step(variables: Mapping[str, str], folder: Path, *, cwd: Path, program: str | None = None) -> Step:
    """Run the stage with this environment and no other; `folder` takes what it tells GitHub.

    `program` runs in place of the module, for a fault that cannot be made otherwise.
    """
    folder.mkdir(parents=True, exist_ok=True)
    output, summary = folder / "output", folder / "summary"
    for file in (output, summary):
        file.write_bytes(b"")
    done = subprocess.run(
        [sys.executable, "-I", *(["-c", program] if program else ["-m", "replay_parity"]), "action"],
        cwd=cwd,
        env={"GITHUB_OUTPUT": str(output), "GITHUB_STEP_SUMMARY": str(summary), **variables},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=_TIMEOUT_SECONDS,
        check=False,
    )
    return Step(done.returncode, done.stdout.decode(), output, summary)
