"""A row's four processes: baseline and candidate, twice each, in separate surroundings (rules 9, 11, 12)."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import orjson

from replay_parity.errors import BadInputError, InfrastructureError
from replay_parity.replay.placement import Placement
from replay_parity.replay.qualification import Qualification, RunnerFailure, read_failure, read_qualification
from replay_parity.replay.surroundings import Surroundings, make_surroundings
from replay_parity.system.files import sha256_file, write_whole
from replay_parity.system.locks import cpu_leases, host_lock
from replay_parity.system.process import Completed, ProcessSpec, RunningProcess, kill_tree, start, wait_all
from replay_parity.system.progress import Progress

Side = Literal["baseline", "candidate"]
SIDES: tuple[Side, Side] = ("baseline", "candidate")
Status = Literal["ok", "refused", "failed", "timed_out", "output_cap"]

REPETITIONS = 2
_LOCK_WAIT_SECONDS = 4 * 3600.0
_STREAM_CAP = 16 << 20
# Two reports of a hundred thousand requests; a real one has 10 MB.
_REPORT_CAP = 512 << 20


@dataclass(frozen=True)
class Runner:
    """A built runner: its path and the SHA-256 that it must have before and after every use (threat 2)."""

    path: Path
    sha256: str


@dataclass(frozen=True)
class ReplayJob:
    """One row to replay: `config` is the runner's configuration, `work` an empty folder for everything it writes."""

    config: dict[str, Any]
    runners: dict[Side, Runner]
    timeout_seconds: float
    work: Path


@dataclass(frozen=True)
class Repetition:
    """How one process ended; the report lies in `folder` when `status` is "ok". Times in seconds."""

    side: Side
    index: int
    status: Status
    reason: str
    folder: Path
    qualification: Qualification | None
    failure: RunnerFailure | None
    seconds: float
    peak_threads: int
    peak_rss_bytes: int
    cpus: tuple[int, ...]

    @property
    def report(self) -> Path:
        """Where the runner writes its canonical record."""
        return self.folder / "canonical.jsonl"


def replay_row(
    job: ReplayJob, *, placement: Placement, locks: Path, progress: Progress
) -> dict[Side, tuple[Repetition, ...]]:
    """Run all repetitions of a row; what a process did wrong is in its `Repetition`, not raised.

    Holds the host's sample lock and the leases of the CPUs meanwhile: no build runs, no CPU serves another replay.
    Raises InfrastructureError when an artifact changed or nothing can be started.
    """
    done: dict[Side, list[Repetition]] = {side: [] for side in SIDES}
    with _node_held(placement, locks, progress):
        for index in range(1, REPETITIONS + 1):
            groups: Sequence[tuple[Side, ...]] = [SIDES] if placement.together else [(side,) for side in SIDES]
            for group in groups:
                for repetition in _run_group(job, group, index, placement, progress):
                    done[repetition.side].append(repetition)
            # A side that refused or broke will do so again; its second try would decide nothing.
            if any(done[side][-1].status != "ok" for side in SIDES):
                break
    return {side: tuple(done[side]) for side in SIDES}


@contextlib.contextmanager
def _node_held(placement: Placement, locks: Path, progress: Progress) -> Iterator[None]:
    with (
        host_lock(locks, "node", shared=True, timeout=_LOCK_WAIT_SECONDS, waiting=progress.notice),
        cpu_leases(locks, [placement.reserved], timeout=_LOCK_WAIT_SECONDS, waiting=progress.notice),
    ):
        yield


def _run_group(
    job: ReplayJob, group: Sequence[Side], index: int, placement: Placement, progress: Progress
) -> list[Repetition]:
    for side in group:
        _verify(job.runners[side], side)
    places = {side: make_surroundings(job.work, repetition=index) for side in group}
    with contextlib.ExitStack() as stack:
        running: list[RunningProcess] = []
        for side in group:
            process = _start(job, side, places[side], placement)
            stack.callback(kill_tree, process)
            running.append(process)
        # All are started; from here on waiting ends them when it must.
        stack.pop_all()
    completed = wait_all(running, tick=_teller(index, running, progress))
    for side in group:
        _verify(job.runners[side], side)
    return [_repetition(side, index, places[side], ended) for side, ended in zip(group, completed, strict=True)]


def _start(job: ReplayJob, side: Side, place: Surroundings, placement: Placement) -> RunningProcess:
    config = place.work / "config.json"
    write_whole(config, orjson.dumps(job.config), mode=0o400)
    return start(
        ProcessSpec(
            argv=[str(job.runners[side].path), "run", "--config", "config.json", "--output", str(place.report)],
            cwd=place.work,
            env=place.environment,
            stdout=place.work.parent / "stdout",
            stderr=place.work.parent / "stderr",
            timeout=job.timeout_seconds,
            output_cap=_STREAM_CAP,
            file_cap=_REPORT_CAP,
            watched=place.report,
            watched_cap=_REPORT_CAP,
            cpus=placement.cpus(side),
            umask=place.umask,
        )
    )


def _verify(runner: Runner, side: Side) -> None:
    found = sha256_file(runner.path)
    if found != runner.sha256:
        raise InfrastructureError(
            f"the {side}'s artifact was changed: it has SHA-256 {found}, its record says {runner.sha256}",
            where=str(runner.path),
            hint="something on this machine writes to the cache; do not trust this node's results",
        )


def _teller(index: int, running: Sequence[RunningProcess], progress: Progress) -> Callable[[], None]:
    def tick() -> None:
        alive = sum(1 for process in running if process.finished is None)
        progress.detail(f"repetition {index} of {REPETITIONS}, {alive} process(es) running")

    return tick


def _repetition(side: Side, index: int, place: Surroundings, ended: Completed) -> Repetition:
    status, reason, failure, qualification = _how(place.report, ended)
    return Repetition(
        side=side,
        index=index,
        status=status,
        reason=reason,
        folder=place.report,
        qualification=qualification,
        failure=failure,
        seconds=ended.seconds,
        peak_threads=ended.peak_threads,
        peak_rss_bytes=ended.peak_rss_bytes,
        cpus=ended.affinity,
    )


def _how(report: Path, ended: Completed) -> tuple[Status, str, RunnerFailure | None, Qualification | None]:
    if ended.end == "timed_out":
        return "timed_out", f"did not end within {ended.seconds:.0f} s and was ended", None, None
    if ended.end == "output_cap":
        return "output_cap", "wrote more than a replay may and was ended", None, None
    try:
        if ended.returncode == 0:
            return "ok", "", None, read_qualification(report)
        failure = read_failure(report)
    except BadInputError as error:
        return "failed", str(error), None, None
    if failure is not None:
        status: Status = "refused" if failure.kind == "engine_refused" else "failed"
        return status, failure.message, failure, None
    return "failed", f"{_death(ended.returncode)}: {ended.tail() or 'it printed nothing'}", None, None


def _death(returncode: int) -> str:
    if returncode < 0:
        try:
            return f"was ended by signal {signal.Signals(-returncode).name}"
        except ValueError:
            return f"was ended by signal {-returncode}"
    return "panicked" if returncode == 101 else f"ended with status {returncode}"  # noqa: PLR2004 (Rust's own status)
