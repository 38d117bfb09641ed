"""One running process: how it is started, watched, limited and ended (threat 15)."""

from __future__ import annotations

import contextlib
import math
import os
import resource
import secrets
import signal
import subprocess  # only here
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from replay_parity.errors import InfrastructureError
from replay_parity.system.descendants import MARKER, Family, signal_group
from replay_parity.system.files import storage_errors
from replay_parity.system.interrupts import uninterrupted
from replay_parity.system.observe import Observation, size_of_file, size_of_tree

POLL_SECONDS = 0.02
_LOOK_SECONDS = 0.25
_SIZE_SECONDS = 0.1
_GRACE_SECONDS = 2.0
_DEATH_SECONDS = 30.0
_CPU_SLACK_SECONDS = 30

End = Literal["exited", "timed_out", "output_cap"]

_FAMILY = Family()


@dataclass(frozen=True)
class ProcessSpec:
    """What to start. `env` is the whole environment; nothing is inherited. Times in seconds, sizes in bytes.

    `program` is started when it is given; `argv[0]` is only what it is told then. `output_cap` is for each of `stdout`
    and `stderr`, `watched_cap` for everything below the folder `watched`, `file_cap` for any single file.
    """

    argv: Sequence[str]
    cwd: Path
    env: Mapping[str, str]
    stdout: Path
    stderr: Path
    timeout: float
    program: Path | None = None
    output_cap: int = 64 << 20
    file_cap: int | None = None
    watched: Path | None = None
    watched_cap: int | None = None
    cpus: frozenset[int] | None = None
    umask: int = 0o022


@dataclass
class Running:
    """A started process with what has been seen of it so far."""

    spec: ProcessSpec
    popen: subprocess.Popen[bytes]
    marker: str
    started: float
    observation: Observation = field(default_factory=Observation)
    next_look: float = 0.0
    next_size: float = 0.0
    end: End = "exited"
    finished: float | None = None
    leftovers: int = 0

    def step(self) -> bool:
        """Look at the process or note its end; true when it broke a limit (`end` says which) and must be ended."""
        if self.finished is not None:
            return False
        now = time.monotonic()
        if self.popen.poll() is not None:
            self.close()
            return False
        if now >= self.next_look:
            # The first looks come quickly: a short replay must be seen at all.
            self.next_look = now + (POLL_SECONDS if now - self.started < _LOOK_SECONDS else _LOOK_SECONDS)
            self.observation.look(self.popen.pid)
        broken = self.broken_limit(now)
        self.end = broken or self.end
        return broken is not None

    def broken_limit(self, now: float) -> End | None:
        """Why this process must be ended now, or None."""
        if now - self.started > self.spec.timeout:
            return "timed_out"
        if now >= self.next_size:
            self.next_size = now + _SIZE_SECONDS
            return "output_cap" if self.wrote_too_much() else None
        return None

    def wrote_too_much(self) -> bool:
        """Whether the logs or the watched folder are over their caps."""
        spec = self.spec
        if any(size_of_file(path) > spec.output_cap for path in (spec.stdout, spec.stderr)):
            return True
        if spec.watched is None or spec.watched_cap is None:
            return False
        return size_of_tree(spec.watched, limit=spec.watched_cap) > spec.watched_cap

    def close(self) -> None:
        """The process was waited for: note when, and end what it left behind."""
        self.finished = time.monotonic()
        with uninterrupted():
            self.leftovers = _FAMILY.ended(self.popen.pid, self.marker, self.observation.seen)
        if self.end == "exited":
            self.end = self.judged()

    def judged(self) -> End:
        """A process that the kernel ended at a limit, or that broke one in its last moments, did not just exit."""
        if self.popen.returncode == -signal.SIGXFSZ or self.wrote_too_much():
            return "output_cap"
        return "exited"


def start(spec: ProcessSpec) -> Running:
    """Start a process; InfrastructureError when that fails. Whoever calls this must end it, whatever happens."""
    marker = secrets.token_hex(16)
    with (
        storage_errors("open the log", spec.stdout),
        spec.stdout.open("wb") as out,
        spec.stderr.open("wb") as err,
    ):

        def popen() -> subprocess.Popen[bytes]:
            return subprocess.Popen(
                list(spec.argv),
                executable=spec.program,
                cwd=spec.cwd,
                env={**spec.env, MARKER: marker},
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                start_new_session=True,
                close_fds=True,
                umask=spec.umask,
            )

        with _affinity(spec.cpus):
            try:
                started = _FAMILY.born(marker, popen)
            except OSError as error:
                program = spec.program or spec.argv[0]
                raise InfrastructureError(f"cannot start: {error.strerror}", where=str(program)) from error
    running = Running(spec=spec, popen=started, marker=marker, started=time.monotonic())
    _limit(started.pid, spec)
    # A process that is over before anybody waits is still seen once.
    running.observation.look(started.pid)
    return running


@contextlib.contextmanager
def _affinity(cpus: frozenset[int] | None) -> Iterator[None]:
    """Give this thread the child's CPUs for the moment of the fork, so that the child never runs elsewhere."""
    if cpus is None or not hasattr(os, "sched_setaffinity"):
        yield
        return
    own = os.sched_getaffinity(0)
    try:
        os.sched_setaffinity(0, cpus)
    except OSError as error:
        names = ", ".join(str(cpu) for cpu in sorted(cpus)) or "none"
        raise InfrastructureError(f"cannot run a process on CPU {names}: {error.strerror}") from error
    try:
        yield
    finally:
        os.sched_setaffinity(0, own)


def _limit(pid: int, spec: ProcessSpec) -> None:
    """Limits that the kernel keeps, even when this process is killed and can keep none itself."""
    if not hasattr(resource, "prlimit"):
        return
    limits = [(resource.RLIMIT_CORE, 0)]
    if spec.file_cap is not None:
        limits.append((resource.RLIMIT_FSIZE, spec.file_cap))
    if spec.cpus is not None:
        # On a CPU set nothing can use more CPU time than there is wall time for each of its CPUs.
        limits.append((resource.RLIMIT_CPU, math.ceil(spec.timeout) * len(spec.cpus) + _CPU_SLACK_SECONDS))
    for kind, wanted in limits:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            _, hard = resource.prlimit(pid, kind)
            value = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
            resource.prlimit(pid, kind, (value, value))


def end_all(running: Sequence[Running]) -> None:
    """TERM to all groups, a moment of grace, then KILL of everything that is left."""
    for process in running:
        process.observation.look(process.popen.pid)
        signal_group(process.popen.pid, signal.SIGTERM)
    deadline = time.monotonic() + _GRACE_SECONDS
    while any(process.popen.poll() is None for process in running) and time.monotonic() < deadline:
        time.sleep(POLL_SECONDS)
    for process in running:
        signal_group(process.popen.pid, signal.SIGKILL)
    for process in running:
        try:
            process.popen.wait(timeout=_DEATH_SECONDS)
        except subprocess.TimeoutExpired:
            raise InfrastructureError(
                f"process {process.popen.pid} ({process.spec.argv[0]}) does not end, not even by KILL",
                hint="a disk or a network file system may hang on this machine",
            ) from None
        process.close()
