"""A row's four processes: baseline and candidate, twice each, in separate surroundings (rules 9, 11, 12)."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from replay_parity.replay.placement import Placement
from replay_parity.replay.turn import SIDES, Repetition, Runner, Side, Turn, run_turns
from replay_parity.system.files import remove_tree
from replay_parity.system.interrupts import uninterrupted
from replay_parity.system.locks import cpu_leases, host_lock
from replay_parity.system.progress import Progress

__all__ = ["REPETITIONS", "SIDES", "Repetition", "ReplayJob", "Runner", "Side", "node_held", "replay_row"]

REPETITIONS = 2
_LOCK_WAIT_SECONDS = 4 * 3600.0


@dataclass(frozen=True)
class ReplayJob:
    """One row to replay: `config` is the runner's configuration, `work` an empty folder for everything it writes."""

    config: dict[str, Any]
    runners: Mapping[Side, Runner]
    timeout_seconds: float
    work: Path


def replay_row(
    job: ReplayJob, *, placement: Placement, locks: Path, progress: Progress
) -> dict[Side, tuple[Repetition, ...]]:
    """Run all repetitions of a row; what a process did wrong is in its `Repetition`, not raised.

    Holds the host's sample lock and the leases of the CPUs meanwhile: no build runs, no CPU serves another replay.
    Raises InfrastructureError when an artifact changed or nothing can be started; then, and on an interrupt, no process
    lives on and `job.work` is empty again.
    """
    try:
        with node_held(placement.reserved, locks, progress):
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
def node_held(reserved: frozenset[int], locks: Path, progress: Progress) -> Iterator[None]:
    """Meanwhile no build runs on this host, and the `reserved` CPUs serve no other replay (rule 9)."""
    with (
        host_lock(locks, "node", shared=True, timeout=_LOCK_WAIT_SECONDS, waiting=progress.notice),
        cpu_leases(locks, [reserved], timeout=_LOCK_WAIT_SECONDS, waiting=progress.notice),
    ):
        yield


def _run_group(
    job: ReplayJob, group: Sequence[Side], index: int, placement: Placement, progress: Progress
) -> list[Repetition]:
    turns = [
        Turn(
            side=side,
            index=index,
            runner=job.runners[side],
            config=job.config,
            cpus=placement.cpus(side),
            timeout_seconds=job.timeout_seconds,
            work=job.work,
        )
        for side in group
    ]
    return run_turns(turns, tick=_teller(index, group, progress))


def _teller(index: int, group: Sequence[Side], progress: Progress) -> Callable[[], None]:
    alone = f", {group[0]}" if len(group) == 1 else ""
    started = time.monotonic()

    def tick() -> None:
        progress.detail(f"repetition {index} of {REPETITIONS}{alone}, {time.monotonic() - started:.0f} s")

    return tick
