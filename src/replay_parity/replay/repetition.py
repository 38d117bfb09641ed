"""A row's four processes: baseline and candidate, twice each, in separate surroundings (rules 9, 11, 12)."""

from __future__ import annotations

import contextlib
import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import orjson

from replay_parity.errors import InfrastructureError
from replay_parity.replay.ending import RECORD, Status, how_it_ended
from replay_parity.replay.placement import Placement
from replay_parity.replay.qualification import Qualification, RunnerFailure
from replay_parity.replay.surroundings import Surroundings, make_surroundings
from replay_parity.system.files import remove_tree, sha256_file, storage_errors, write_whole
from replay_parity.system.interrupts import uninterrupted
from replay_parity.system.locks import cpu_leases, host_lock
from replay_parity.system.process import Completed, ProcessSpec, run_all
from replay_parity.system.progress import Progress

__all__ = ["REPETITIONS", "SIDES", "Repetition", "ReplayJob", "Runner", "Side", "Status", "replay_row"]

Side = Literal["baseline", "candidate"]
SIDES: tuple[Side, Side] = ("baseline", "candidate")

REPETITIONS = 2
_LOCK_WAIT_SECONDS = 4 * 3600.0
_STREAM_CAP = 16 << 20
# Two reports of a hundred thousand requests; a real one has 10 MB.
_REPORT_CAP = 512 << 20
# Everything that a process writes into folders of its own: report, home, working directory, streams.
_FOLDER_CAP = _REPORT_CAP + (64 << 20)
_ROOM_FOR_A_REPORT = 32 << 20


@dataclass(frozen=True)
class Runner:
    """A built runner: its path and the SHA-256 that it must have before and after every use (threat 2).

    `identity` is what it must say of itself in every report; None leaves that to the reader of the reports.
    """

    path: Path
    sha256: str
    identity: Mapping[str, Any] | None = None


@dataclass(frozen=True)
class ReplayJob:
    """One row to replay: `config` is the runner's configuration, `work` an empty folder for everything it writes."""

    config: dict[str, Any]
    runners: Mapping[Side, Runner]
    timeout_seconds: float
    work: Path


@dataclass(frozen=True)
class Repetition:
    """How one process ended; the report lies in `folder` when `status` is "ok". Times in seconds.

    `peak_threads` counts all its threads and those of its children, `peak_runnable` those that wanted a CPU at one
    moment: more than one is too many for a set of one CPU (rule 11). `leftovers` are processes that outlived it.
    """

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
    peak_runnable: int = 0
    leftovers: int = 0

    @property
    def report(self) -> Path:
        """Where the runner writes its canonical record."""
        return self.folder / RECORD

    @property
    def faults(self) -> tuple[str, ...]:
        """What a result must say of the process although it gave a record."""
        found = []
        if self.cpus and self.peak_runnable > len(self.cpus):
            found.append(f"{self.peak_runnable} threads shared {len(self.cpus)} CPU: their order could leak")
        if self.leftovers:
            found.append(f"{self.leftovers} process(es) outlived the replay and were ended")
        return tuple(found)


def replay_row(
    job: ReplayJob, *, placement: Placement, locks: Path, progress: Progress
) -> dict[Side, tuple[Repetition, ...]]:
    """Run all repetitions of a row; what a process did wrong is in its `Repetition`, not raised.

    Holds the host's sample lock and the leases of the CPUs meanwhile: no build runs, no CPU serves another replay.
    Raises InfrastructureError when an artifact changed or nothing can be started; then, and on an interrupt, no process
    lives on and `job.work` is empty again.
    """
    try:
        with _node_held(placement, locks, progress):
            return _run(job, placement, progress)
    except BaseException:
        with uninterrupted():
            for entry in job.work.iterdir():
                remove_tree(entry)
        raise


def _run(job: ReplayJob, placement: Placement, progress: Progress) -> dict[Side, tuple[Repetition, ...]]:
    done: dict[Side, tuple[Repetition, ...]] = dict.fromkeys(SIDES, ())
    wanted: tuple[Side, ...] = SIDES
    for index in range(1, REPETITIONS + 1):
        groups: Sequence[tuple[Side, ...]] = [wanted] if placement.together else [(side,) for side in wanted]
        for group in groups:
            for repetition in _run_group(job, group, index, placement, progress):
                done[repetition.side] += (repetition,)
        wanted = _worth_repeating(done)
    return done


def _worth_repeating(done: Mapping[Side, Sequence[Repetition]]) -> tuple[Side, ...]:
    """A crash or a hang decides the row; beside a refusal the other side is still qualified, twice (rule 24)."""
    last = {side: repetitions[-1].status for side, repetitions in done.items()}
    if any(status not in {"ok", "refused"} for status in last.values()):
        return ()
    return tuple(side for side in SIDES if last[side] == "ok")


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
    specs = [_spec(job, side, places[side], placement) for side in group]
    completed = run_all(specs, tick=_teller(index, group, progress))
    for side in group:
        _verify(job.runners[side], side)
    repetitions = [
        _repetition(job, side, index, places[side], ended) for side, ended in zip(group, completed, strict=True)
    ]
    _refuse_full_disk(job.work, repetitions)
    return repetitions


def _spec(job: ReplayJob, side: Side, place: Surroundings, placement: Placement) -> ProcessSpec:
    write_whole(place.work / "config.json", orjson.dumps(job.config), mode=0o400)
    return ProcessSpec(
        # The same words for both sides: the path of the artifact would tell a binary which side it is (rule 11).
        argv=["replay-parity-runner", "run", "--config", "config.json", "--output", place.report_argument],
        program=job.runners[side].path,
        cwd=place.work,
        env=place.environment,
        stdout=place.base / "stdout",
        stderr=place.base / "stderr",
        timeout=job.timeout_seconds,
        output_cap=_STREAM_CAP,
        file_cap=_REPORT_CAP,
        watched=place.base,
        watched_cap=_FOLDER_CAP,
        cpus=placement.cpus(side),
        umask=place.umask,
    )


def _verify(runner: Runner, side: Side) -> None:
    with storage_errors(f"read the {side}'s artifact", runner.path):
        found = sha256_file(runner.path)
    if found != runner.sha256:
        raise InfrastructureError(
            f"the {side}'s artifact was changed: it has SHA-256 {found}, its record says {runner.sha256}",
            where=str(runner.path),
            hint="something on this machine writes to the cache; do not trust this node's results",
        )


def _refuse_full_disk(work: Path, repetitions: Sequence[Repetition]) -> None:
    """A runner that could not write where nothing can be written tells of this machine, not of its revision."""
    failed = next((item.failure for item in repetitions if item.failure and item.failure.kind == "io_error"), None)
    if failed is not None and shutil.disk_usage(work).free < _ROOM_FOR_A_REPORT:
        raise InfrastructureError(
            f"the disk is full: {failed.message}",
            where=str(work),
            hint="free some space on that disk and run again; finished rows are kept",
        )


def _teller(index: int, group: Sequence[Side], progress: Progress) -> Callable[[], None]:
    alone = f", {group[0]}" if len(group) == 1 else ""
    started = time.monotonic()

    def tick() -> None:
        progress.detail(f"repetition {index} of {REPETITIONS}{alone}, {time.monotonic() - started:.0f} s")

    return tick


def _repetition(job: ReplayJob, side: Side, index: int, place: Surroundings, ended: Completed) -> Repetition:
    ending = how_it_ended(
        place.report, ended, row_name=str(job.config["row_name"]), identity=job.runners[side].identity
    )
    return Repetition(
        side=side,
        index=index,
        status=ending.status,
        reason=ending.reason,
        folder=place.report,
        qualification=ending.qualification,
        failure=ending.failure,
        seconds=ended.seconds,
        peak_threads=ended.peak_threads,
        peak_rss_bytes=ended.peak_rss_bytes,
        cpus=ended.affinity,
        peak_runnable=ended.peak_runnable,
        leftovers=ended.leftovers,
    )
