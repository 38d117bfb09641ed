"""The plan of a pull request with 256 rows in one process, from a real clone, beside a plain load of its row files."""

from __future__ import annotations

import os
import statistics
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import yaml
from tests.support.policy_repository import POLICY, Consumer, Desk, clone, pull_request

from benchmarks.model import Ratio, ratio_of
from replay_parity.settings import Settings
from replay_parity.stages.plan_folder import PlanFolder
from replay_parity.stages.shards import MATRIX_LIMIT, pack

_ROUNDS = 5
# The one bound of DESIGN.md that is a time: that of the machine which measures.
_SECONDS = 1.0


def run() -> list[Ratio]:
    """Both ratios; rounds take turns, so that a slow moment of the machine meets both."""
    with tempfile.TemporaryDirectory(prefix="replay-parity-benchmark-") as name:
        ground = Path(name)
        repository = Consumer(ground / "repository")
        rows = [f"row-{number:03}" for number in range(MATRIX_LIMIT)]
        for row in rows:
            repository.row(row)
        repository.campaign(*rows)
        base, head = repository.tiny(source="// base"), repository.tiny(source="// head")
        checkout = clone(repository, ground / "checkout", commit=head).folder
        files = [checkout / POLICY / "rows" / f"{row}.yaml" for row in rows]
        ours, plain = [], []
        for number in range(_ROUNDS):
            ours.append(_seconds(partial(_plan, ground / f"round-{number}", checkout, base, head)))
            plain.append(_seconds(lambda: [yaml.safe_load(file.read_bytes()) for file in files]))
    measured = statistics.median(ours)
    return [
        ratio_of("plan of 256 rows under 1 s", measured, _SECONDS, bound=1.0),
        ratio_of("plan of 256 rows over yaml.safe_load of the row files", measured, statistics.median(plain)),
    ]


def _plan(folder: Path, checkout: Path, base: str, head: str) -> None:
    """As the job of a hosted runner does it: nothing is in the cache, the matrix is made and the plan is kept."""
    folder.mkdir()
    settings = Settings.from_environment({**os.environ, "REPLAY_PARITY_CACHE": str(folder / "cache")})
    planned = Desk(settings, checkout, folder / "policy").plan(pull_request(head, base))
    if len(pack(planned.plan.rows)) != MATRIX_LIMIT:
        raise RuntimeError("not every row has a job")
    planned.keep(PlanFolder(folder / "plan"))


def _seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start
