"""Rows of one revision, twice each in separate processes, on all cores: nothing is compared, so nothing is paired."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from replay_parity.replay.placement import Lanes
from replay_parity.replay.repetition import REPETITIONS, node_held
from replay_parity.replay.turn import Repetition, Runner, Side, Turn, run_turns
from replay_parity.system.files import remove_tree
from replay_parity.system.interrupts import uninterrupted
from replay_parity.system.progress import Progress

# Everything that is asked of a revision alone is asked of a baseline (rule 17: the bounds are the baseline's).
SIDE: Side = "baseline"


@dataclass(frozen=True)
class AloneJob:
    """One row on one artifact: `config` is the runner's configuration, `work` an empty folder for what it writes."""

    config: dict[str, Any]
    runner: Runner
    timeout_seconds: float
    work: Path


def replay_alone(
    jobs: Sequence[AloneJob], *, lanes: Lanes, locks: Path, progress: Progress
) -> list[tuple[Repetition, ...]]:
    """The repetitions of each job: two, or one when that was broken before the other began.

    As many processes at a time as there are lanes, each on a CPU of its own, the host's locks held meanwhile (rule 9).
    Raises InfrastructureError when an artifact changed or nothing can be started; then, and on an interrupt, no process
    lives on and the folders are empty again.
    """
    try:
        with node_held(lanes.reserved, locks, progress):
            return _run(jobs, lanes, progress)
    except BaseException:
        with uninterrupted():
            for job in jobs:
                for entry in job.work.iterdir():
                    remove_tree(entry)
        raise


def _run(jobs: Sequence[AloneJob], lanes: Lanes, progress: Progress) -> list[tuple[Repetition, ...]]:
    done: list[tuple[Repetition, ...]] = [()] * len(jobs)
    turns = [(number, index) for number in range(len(jobs)) for index in range(1, REPETITIONS + 1)]
    width = len(lanes.cpus)
    for start in range(0, len(turns), width):
        # What one process broke is told once; another of the same would only cost its time limit again.
        wave = [item for item in turns[start : start + width] if all(before.status == "ok" for before in done[item[0]])]
        made = [_turn(jobs[number], index, cpus) for (number, index), cpus in zip(wave, lanes.cpus, strict=False)]
        tick = _teller(start, len(turns), progress)
        for (number, _), repetition in zip(wave, run_turns(made, tick=tick), strict=True):
            done[number] += (repetition,)
    return done


def _turn(job: AloneJob, index: int, cpus: frozenset[int] | None) -> Turn:
    return Turn(
        side=SIDE,
        index=index,
        runner=job.runner,
        config=job.config,
        cpus=cpus,
        timeout_seconds=job.timeout_seconds,
        work=job.work,
    )


def _teller(before: int, number: int, progress: Progress) -> Callable[[], None]:
    started = time.monotonic()

    def tick() -> None:
        progress.detail(f"{before} of {number} replays done, {time.monotonic() - started:.0f} s")

    return tick
