"""A whole row beside the bare four processes on the same CPUs, and Python's own memory in a row that matches."""

from __future__ import annotations

import os
import re
import resource
import statistics
import subprocess
import sys
import time
from pathlib import Path

import orjson

from benchmarks.engines import Engines, engines
from benchmarks.model import Ratio, ratio_of
from replay_parity.pin.builder import Artifact
from replay_parity.replay.node import read_cores, usable_cpus
from replay_parity.replay.placement import Placement, place
from replay_parity.replay.repetition import REPETITIONS, SIDES, Side
from replay_parity.replay.row_config import runner_config
from replay_parity.stages.row import run_row

_ROUNDS = 5
_WALL_BOUND = 1.15
_MEMORY_BOUND = 1.0
_MEBIBYTE = 1 << 20
_ALLOWED_BYTES = 100 * _MEBIBYTE

# One matching row in a fresh interpreter that then tells its own peak, children not counted.
_MEMORY_PROBE = """
from benchmarks.engines import engines
from benchmarks.row import matching_row, peak_bytes
size = matching_row(engines(), "memory")
print(peak_bytes(), size)
"""


def run() -> list[Ratio]:
    """Both ratios; a row is the same revision on both sides, so that it matches."""
    built = engines()
    cores = read_cores(usable_cpus())
    placement = place(cores, pinning=hasattr(os, "sched_setaffinity"))
    ours, bare = [], []
    for number in range(_ROUNDS):
        ours.append(_timed_row(built, f"row-{number}"))
        bare.append(_timed_bare(built, placement, f"bare-{number}"))
    name = f"a row of {built.prepared.plan.rows[0].corpus.slice.rows:,} requests over its four bare processes"
    return [
        ratio_of(name, statistics.median(ours), statistics.median(bare), bound=_WALL_BOUND),
        _memory(),
    ]


def matching_row(built: Engines, name: str) -> int:
    """Run one row with the baseline's artifact on both sides; returns the size of its report in bytes."""
    artifact = built.artifact("baseline")
    result = run_row(built.inputs(name, dict.fromkeys(SIDES, artifact)), attempt=1)
    if result.outcome != "match":
        raise RuntimeError(f"the benchmark's row must match, it is {result.outcome}: {result.reason}")
    return result.baseline.repetitions[0].report_bytes or 0


def peak_bytes() -> int:
    """This process's own peak of resident memory."""
    status = Path("/proc/self/status")
    if status.is_file():
        # getrusage would tell the parent's peak, which a child inherits when it is forked.
        found = re.search(r"VmHWM:\s+(\d+) kB", status.read_text())
        return int(found.group(1)) * 1024 if found else 0
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def _timed_row(built: Engines, name: str) -> float:
    started = time.perf_counter()
    matching_row(built, name)
    return time.perf_counter() - started


def _timed_bare(built: Engines, placement: Placement, name: str) -> float:
    """What a user would type: two runners at a time, pinned, twice."""
    artifact = built.artifact("baseline")
    folders = {(side, index): built.folder / name / f"{side}-{index}" for side in SIDES for index in range(REPETITIONS)}
    planned = built.prepared.plan.rows[0]
    trace = built.prepared.slices[planned.corpus.name].path
    config = built.folder / name / "config.json"
    for folder in folders.values():
        folder.mkdir(parents=True)
    config.write_bytes(orjson.dumps(runner_config(planned.row, planned.corpus, trace=trace)))
    groups: list[tuple[Side, ...]] = [SIDES] if placement.together else [(side,) for side in SIDES]
    started = time.perf_counter()
    for index in range(REPETITIONS):
        for group in groups:
            running = [_bare(artifact, config, folders[side, index], placement.cpus(side)) for side in group]
            if any(process.wait() for process in running):
                raise RuntimeError("a bare replay failed")
    return time.perf_counter() - started


def _bare(artifact: Artifact, config: Path, folder: Path, cpus: frozenset[int] | None) -> subprocess.Popen[bytes]:
    argv = [str(artifact.path), "run", "--config", str(config), "--output", str(folder)]
    pinned = ["taskset", "--cpu-list", ",".join(map(str, sorted(cpus))), *argv] if cpus else argv
    return subprocess.Popen(pinned)


def _memory() -> Ratio:
    done = subprocess.run(
        [sys.executable, "-c", _MEMORY_PROBE], capture_output=True, text=True, check=True, cwd=Path(__file__).parents[1]
    )
    peak, size = (int(word) for word in done.stdout.split())
    allowed = _ALLOWED_BYTES + size
    what = "Python's peak memory in a matching row over 100 MiB + one report"
    return ratio_of(what, peak / _MEBIBYTE, allowed / _MEBIBYTE, bound=_MEMORY_BOUND, unit="MiB")
