"""The one place where processes start: own session, allow-listed environment, time limit, output cap, whole-tree kill.

Threat 15: a child that ignores TERM, forks away or floods its output is ended with everything that it started.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import resource
import secrets
import signal
import subprocess  # the only module that may
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import psutil

from replay_parity.errors import InfrastructureError, ProcessError
from replay_parity.system.files import storage_errors

_POLL_SECONDS = 0.02
_SAMPLE_SECONDS = 0.25
_GRACE_SECONDS = 2.0
_TAIL_BYTES = 4096
_SAME_MOMENT_SECONDS = 1e-3
_MARKER = "REPLAY_PARITY_CHILD"
_PR_SET_CHILD_SUBREAPER = 36

End = Literal["exited", "timed_out", "output_cap"]


@dataclass(frozen=True)
class ProcessSpec:
    """What to start. `env` is the whole environment; nothing is inherited. Times in seconds, sizes in bytes."""

    argv: Sequence[str]
    cwd: Path
    env: Mapping[str, str]
    stdout: Path
    stderr: Path
    timeout: float
    output_cap: int = 64 << 20
    file_cap: int | None = None
    watched: Path | None = None
    watched_cap: int | None = None
    cpus: frozenset[int] | None = None
    umask: int = 0o022


@dataclass(frozen=True)
class Completed:
    """How a process ended: `returncode` is negative for a signal, as in the standard library."""

    argv: tuple[str, ...]
    cwd: Path
    stdout: Path
    stderr: Path
    returncode: int
    end: End
    seconds: float
    peak_threads: int
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


@dataclass
class RunningProcess:
    """A started process with what has been seen of it so far."""

    spec: ProcessSpec
    popen: subprocess.Popen[bytes]
    marker: str
    started: float
    seen: dict[int, float] = field(default_factory=dict)
    peak_threads: int = 0
    peak_rss: int = 0
    affinity: tuple[int, ...] = ()
    next_sample: float = 0.0
    end: End = "exited"
    finished: float | None = None
    leftovers: int = 0

    def sample(self, now: float) -> None:
        """Look at threads, memory, affinity and descendants; a process that just ended is no error."""
        if now < self.next_sample:
            return
        # The first looks come quickly: a short replay must be seen at all.
        self.next_sample = now + (_POLL_SECONDS if now - self.started < _SAMPLE_SECONDS else _SAMPLE_SECONDS)
        with contextlib.suppress(psutil.Error, OSError):
            process = psutil.Process(self.popen.pid)
            self.peak_threads = max(self.peak_threads, process.num_threads())
            self.peak_rss = max(self.peak_rss, process.memory_info().rss)
            if hasattr(process, "cpu_affinity"):
                self.affinity = tuple(sorted(process.cpu_affinity() or ()))
            for child in process.children(recursive=True):
                self.seen[child.pid] = child.create_time()

    def overdue(self, now: float) -> End | None:
        """Why this process must be ended now, or None."""
        if now - self.started > self.spec.timeout:
            return "timed_out"
        if any(_size(path) > self.spec.output_cap for path in (self.spec.stdout, self.spec.stderr)):
            return "output_cap"
        if self.spec.watched is not None and self.spec.watched_cap is not None:
            with contextlib.suppress(OSError):
                if sum(_size(entry) for entry in self.spec.watched.iterdir()) > self.spec.watched_cap:
                    return "output_cap"
        return None


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def _adopt_orphans() -> None:
    """Let orphans of our children become our children (Linux), so that a process that forks away is still found."""
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


@contextlib.contextmanager
def _affinity(cpus: frozenset[int] | None) -> Iterator[None]:
    """Give this thread the child's CPUs for the moment of the fork, so that the child never runs elsewhere."""
    if cpus is None or not hasattr(os, "sched_setaffinity"):
        yield
        return
    own = os.sched_getaffinity(0)
    os.sched_setaffinity(0, cpus)
    try:
        yield
    finally:
        os.sched_setaffinity(0, own)


def start(spec: ProcessSpec) -> RunningProcess:
    """Start a process; InfrastructureError when it cannot be started at all."""
    _adopt_orphans()
    marker = secrets.token_hex(16)
    environment = {**spec.env, _MARKER: marker}
    with (
        storage_errors("open the log", spec.stdout),
        spec.stdout.open("wb") as out,
        spec.stderr.open("wb") as err,
    ):
        try:
            with _affinity(spec.cpus):
                popen = subprocess.Popen(
                    list(spec.argv),
                    cwd=spec.cwd,
                    env=environment,
                    stdin=subprocess.DEVNULL,
                    stdout=out,
                    stderr=err,
                    start_new_session=True,
                    close_fds=True,
                    umask=spec.umask,
                )
        except OSError as error:
            raise InfrastructureError(f"cannot start: {error.strerror}", where=str(spec.argv[0])) from error
    if spec.file_cap is not None and hasattr(resource, "prlimit"):
        with contextlib.suppress(ProcessLookupError):
            resource.prlimit(popen.pid, resource.RLIMIT_FSIZE, (spec.file_cap, spec.file_cap))
    return RunningProcess(spec=spec, popen=popen, marker=marker, started=time.monotonic())


def wait_all(running: Sequence[RunningProcess], *, tick: Callable[[], None] | None = None) -> list[Completed]:
    """Wait for all, ending each that is overdue; on an interrupt end all of them, then let it through."""
    try:
        while any(process.finished is None for process in running):
            for process in running:
                if process.finished is None:
                    _step(process)
            if tick is not None:
                tick()
            time.sleep(_POLL_SECONDS)
    except BaseException:
        for process in running:
            if process.finished is None:
                kill_tree(process)
        raise
    return [_completed(process) for process in running]


def run(spec: ProcessSpec, *, tick: Callable[[], None] | None = None) -> Completed:
    """Start one process and wait for it."""
    return wait_all([start(spec)], tick=tick)[0]


def _step(process: RunningProcess) -> None:
    now = time.monotonic()
    process.sample(now)
    if process.popen.poll() is not None:
        process.finished = time.monotonic()
        process.leftovers = _sweep(process)
        return
    reason = process.overdue(now)
    if reason is not None:
        process.end = reason
        kill_tree(process)


def kill_tree(process: RunningProcess) -> None:
    """TERM, a moment of grace, then KILL of the process, its group, its descendants and its orphans."""
    process.next_sample = 0.0
    process.sample(time.monotonic())
    _signal_group(process, signal.SIGTERM)
    deadline = time.monotonic() + _GRACE_SECONDS
    while process.popen.poll() is None and time.monotonic() < deadline:
        process.next_sample = 0.0
        process.sample(time.monotonic())
        time.sleep(_POLL_SECONDS)
    _signal_group(process, signal.SIGKILL)
    process.popen.wait()
    process.finished = time.monotonic()
    process.leftovers = _sweep(process)


def _signal_group(process: RunningProcess, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.popen.pid, number)


def _sweep(process: RunningProcess) -> int:
    """End whatever the process left behind; returns how many there were."""
    _signal_group(process, signal.SIGKILL)
    left = [orphan for orphan in _descendants(process) if orphan.is_running()]
    for orphan in left:
        with contextlib.suppress(psutil.Error):
            orphan.kill()
    psutil.wait_procs(left, timeout=_GRACE_SECONDS)
    return len(left)


def _descendants(process: RunningProcess) -> list[psutil.Process]:
    """Descendants that were seen while the process ran, and adopted orphans that carry its marker."""
    found: dict[int, psutil.Process] = {}
    for pid, created in process.seen.items():
        with contextlib.suppress(psutil.Error):
            candidate = psutil.Process(pid)
            if abs(candidate.create_time() - created) < _SAME_MOMENT_SECONDS:
                found[pid] = candidate
    with contextlib.suppress(psutil.Error):
        for child in psutil.Process().children(recursive=True):
            with contextlib.suppress(psutil.Error):
                if child.pid != process.popen.pid and child.environ().get(_MARKER) == process.marker:
                    found[child.pid] = child
    return list(found.values())


def _completed(process: RunningProcess) -> Completed:
    spec = process.spec
    return Completed(
        argv=tuple(spec.argv),
        cwd=spec.cwd,
        stdout=spec.stdout,
        stderr=spec.stderr,
        returncode=process.popen.returncode,
        end=process.end,
        seconds=(process.finished or time.monotonic()) - process.started,
        peak_threads=process.peak_threads,
        peak_rss_bytes=process.peak_rss,
        affinity=process.affinity,
        leftovers=process.leftovers,
    )
