"""The one place where processes start: own session, allow-listed environment, time limit, output cap, whole-tree kill.

Threat 15: a child that ignores TERM, forks away, floods its output or fills its folder is ended with everything that it
started. An interrupt ends all children before it goes on.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from replay_parity.errors import ProcessError
from replay_parity.system.interrupts import uninterrupted
from replay_parity.system.running import POLL_SECONDS, End, ProcessSpec, Running, end_all, start

__all__ = ["Completed", "End", "ProcessSpec", "run", "run_all", "tail_of"]

_TAIL_BYTES = 4096
# Most of what is started, such as a question to git, is over at once.
_FIRST_PAUSE_SECONDS = 0.002


@dataclass(frozen=True)
class Completed:
    """How a process ended: `returncode` is negative for a signal, as in the standard library.

    `leftovers` are processes that outlived it and were ended; for peaks and `affinity` see `Observation`.
    """

    argv: tuple[str, ...]
    cwd: Path
    stdout: Path
    stderr: Path
    returncode: int
    end: End
    seconds: float
    peak_threads: int
    peak_runnable: int
    peak_rss_bytes: int
    affinity: tuple[int, ...]
    leftovers: int

    def tail(self) -> str:
        """The last lines of standard error (or of standard output when that is empty), for a message."""
        for path in (self.stderr, self.stdout):
            text = tail_of(path)
            if text:
                return text
        return ""

    def require_success(self, doing: str) -> Completed:
        """Raise ProcessError unless the process ended by itself with status 0; `doing` completes "cannot ..."."""
        if self.end == "exited" and self.returncode == 0:
            return self
        how = {
            "timed_out": f"it was ended after {self.seconds:.0f} s",
            "output_cap": "it wrote more than it may and was ended",
            "exited": f"it ended with status {self.returncode}",
        }[self.end]
        raise ProcessError(
            f"cannot {doing}: {how}: {self.tail() or 'it printed nothing'}",
            argv=list(self.argv),
            returncode=self.returncode,
            tail=self.tail(),
            folder=str(self.cwd),
        )


def tail_of(path: Path, *, size: int = _TAIL_BYTES) -> str:
    """The last `size` bytes of a file as text; empty when there is none."""
    try:
        with path.open("rb") as file:
            file.seek(0, os.SEEK_END)
            file.seek(max(0, file.tell() - size))
            return file.read().decode("utf-8", "replace").strip()
    except OSError:
        return ""


def run(spec: ProcessSpec, *, tick: Callable[[], None] | None = None) -> Completed:
    """Start one process and wait for it; `tick` is called while waiting."""
    return run_all([spec], tick=tick)[0]


def run_all(specs: Sequence[ProcessSpec], *, tick: Callable[[], None] | None = None) -> list[Completed]:
    """Start processes at the same time and wait for all, ending each that breaks a limit.

    Raises InfrastructureError when one cannot be started or ended. Whatever interrupts the waiting, no process of
    `specs` and none that they started lives on afterwards.
    """
    running: list[Running] = []
    pause = _FIRST_PAUSE_SECONDS
    try:
        with uninterrupted():
            for spec in specs:
                running.append(start(spec))  # noqa: PERF401 (the list must hold the first when the second fails)
        while any(process.finished is None for process in running):
            if broken := [process for process in running if process.step()]:
                with uninterrupted():
                    end_all(broken)
            if tick is not None:
                tick()
            time.sleep(pause)
            pause = min(2 * pause, POLL_SECONDS)
        return [_completed(process) for process in running]
    finally:
        with uninterrupted():
            end_all([process for process in running if process.finished is None])


def _completed(process: Running) -> Completed:
    spec = process.spec
    return Completed(
        argv=tuple(spec.argv),
        cwd=spec.cwd,
        stdout=spec.stdout,
        stderr=spec.stderr,
        returncode=process.popen.returncode,
        end=process.end,
        seconds=(process.finished or time.monotonic()) - process.started,
        peak_threads=process.observation.peak_threads,
        peak_runnable=process.observation.peak_runnable,
        peak_rss_bytes=process.observation.peak_rss,
        affinity=tuple(sorted(process.observation.cpus)),
        leftovers=process.leftovers,
    )
