"""One process that replays a row once: what it is given, how it ended (rules 9, 11, 12)."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import orjson

from replay_parity.errors import InfrastructureError
from replay_parity.replay.ending import RECORD, Status, how_it_ended
from replay_parity.replay.qualification import Qualification, RunnerFailure
from replay_parity.replay.surroundings import Surroundings, make_surroundings
from replay_parity.system.files import sha256_file, storage_errors, write_whole
from replay_parity.system.process import Completed, ProcessSpec, run_all

Side = Literal["baseline", "candidate"]
SIDES: tuple[Side, Side] = ("baseline", "candidate")

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


@dataclass(frozen=True)
class Turn:
    """One process to run: `config` is the runner's configuration, `work` a folder for everything it writes.

    `index` is the repetition, which decides about the surroundings; `cpus` is None where pinning is impossible.
    """

    side: Side
    index: int
    runner: Runner
    config: Mapping[str, Any]
    cpus: frozenset[int] | None
    timeout_seconds: float
    work: Path


def run_turns(turns: Sequence[Turn], *, tick: Callable[[], None]) -> list[Repetition]:
    """Run processes at the same time; what one did wrong is in its `Repetition`, not raised.

    Raises InfrastructureError when an artifact changed, the disk is full or nothing can be started.
    """
    for turn in turns:
        _verify(turn.runner, turn.side)
    places = [make_surroundings(turn.work, repetition=turn.index) for turn in turns]
    completed = run_all([_spec(turn, place) for turn, place in zip(turns, places, strict=True)], tick=tick)
    for turn in turns:
        _verify(turn.runner, turn.side)
    repetitions = [_repetition(turn, place, ended) for turn, place, ended in zip(turns, places, completed, strict=True)]
    for turn, repetition in zip(turns, repetitions, strict=True):
        _refuse_full_disk(turn.work, repetition)
    return repetitions


def _spec(turn: Turn, place: Surroundings) -> ProcessSpec:
    write_whole(place.work / "config.json", orjson.dumps(turn.config), mode=0o400)
    return ProcessSpec(
        # The same words for both sides: the path of the artifact would tell a binary which side it is (rule 11).
        argv=["replay-parity-runner", "run", "--config", "config.json", "--output", place.report_argument],
        program=turn.runner.path,
        cwd=place.work,
        env=place.environment,
        stdout=place.base / "stdout",
        stderr=place.base / "stderr",
        timeout=turn.timeout_seconds,
        output_cap=_STREAM_CAP,
        file_cap=_REPORT_CAP,
        watched=place.base,
        watched_cap=_FOLDER_CAP,
        cpus=turn.cpus,
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


def _refuse_full_disk(work: Path, repetition: Repetition) -> None:
    """A runner that could not write where nothing can be written tells of this machine, not of its revision."""
    failed = repetition.failure
    if failed is None or failed.kind != "io_error" or shutil.disk_usage(work).free >= _ROOM_FOR_A_REPORT:
        return
    raise InfrastructureError(
        f"the disk is full: {failed.message}",
        where=str(work),
        hint="free some space on that disk and run again; finished rows are kept",
    )


def _repetition(turn: Turn, place: Surroundings, ended: Completed) -> Repetition:
    ending = how_it_ended(place.report, ended, row_name=str(turn.config["row_name"]), identity=turn.runner.identity)
    return Repetition(
        side=turn.side,
        index=turn.index,
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
