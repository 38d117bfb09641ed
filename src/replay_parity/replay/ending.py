"""How one process of a row ended, in words: a record, a typed refusal, a crash, a broken limit."""

from __future__ import annotations

import signal
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from replay_parity.errors import BadInputError
from replay_parity.replay.qualification import Qualification, RunnerFailure, read_failure, read_qualification
from replay_parity.system.process import Completed

Status = Literal["ok", "refused", "failed", "timed_out", "output_cap"]

RECORD = "canonical.jsonl"
_PANIC = 101
# The runner's exit status for each kind of typed error; another status beside such a file is a crash.
_STATUS_OF_KIND = {"bad_config": 10, "trace_mismatch": 11, "engine_refused": 12, "io_error": 13}
_TAIL_LINES = 12


@dataclass(frozen=True)
class Ending:
    """`reason` completes "the runner ..." when there is no typed error, and is empty for "ok"."""

    status: Status
    reason: str = ""
    failure: RunnerFailure | None = None
    qualification: Qualification | None = None


def how_it_ended(report: Path, ended: Completed, *, row_name: str, identity: Mapping[str, Any] | None = None) -> Ending:
    """Read what a process left in its folder `report` and hold it against its exit status.

    `identity` is what the artifact's record says of the runner; None when that is not known here. Nothing is raised:
    whatever a revision's code writes is an outcome of the row.
    """
    if ended.end == "timed_out":
        return Ending("timed_out", f"did not end within {ended.seconds:.0f} s and was ended")
    if ended.end == "output_cap":
        return Ending("output_cap", "wrote more than a replay may and was ended")
    try:
        if ended.returncode == 0:
            return _finished(report, row_name, identity)
        return _failed(read_failure(report), ended)
    except BadInputError as error:
        return Ending("failed", f"{_death(ended.returncode)} and left a wrong file: {error}")


def _finished(report: Path, row_name: str, identity: Mapping[str, Any] | None) -> Ending:
    if not _is_file(report / RECORD):
        return Ending("failed", f"ended with status 0 but left no {RECORD}")
    qualification = read_qualification(report)
    problems = qualification.names_another(row_name=row_name, identity=identity or {})
    if problems:
        return Ending("failed", f"ran something else: {problems[0]}")
    return Ending("ok", qualification=qualification)


def _failed(failure: RunnerFailure | None, ended: Completed) -> Ending:
    if failure is None:
        return Ending("failed", f"{_death(ended.returncode)}: {_last_lines(ended)}")
    if ended.returncode != _STATUS_OF_KIND[failure.kind]:
        return Ending("failed", f"{_death(ended.returncode)} although it left a '{failure.kind}': {_last_lines(ended)}")
    return Ending("refused" if failure.kind == "engine_refused" else "failed", failure.message, failure)


def _is_file(path: Path) -> bool:
    try:
        return stat.S_ISREG(path.lstat().st_mode)
    except OSError:
        return False


def _last_lines(ended: Completed) -> str:
    lines = ended.tail().splitlines()
    return "\n".join(lines[-_TAIL_LINES:]) or "it printed nothing"


def _death(returncode: int) -> str:
    if returncode < 0:
        try:
            return f"was ended by signal {signal.Signals(-returncode).name}"
        except ValueError:
            return f"was ended by signal {-returncode}"
    return "panicked" if returncode == _PANIC else f"ended with status {returncode}"
