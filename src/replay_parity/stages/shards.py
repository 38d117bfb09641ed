"""Planned rows to jobs of a matrix: one row a job while GitHub allows it, several rows of equal total cost beyond."""

from __future__ import annotations

import heapq
from collections.abc import Sequence

from replay_parity.campaign.base import Identifier, Model
from replay_parity.errors import BadInputError
from replay_parity.stages.plan import PlannedRow

# GitHub runs at most so many jobs of one matrix (GITHUB.md, limits).
MATRIX_LIMIT = 256


class Shard(Model):
    """One job: its id, the class of machines that it runs on, and the planned ids of its rows."""

    id: str
    runner: Identifier
    rows: tuple[str, ...]


def pack(rows: Sequence[PlannedRow], *, limit: int = MATRIX_LIMIT) -> tuple[Shard, ...]:
    """All rows in at most `limit` shards, each on one runner; the costliest rows are dealt first.

    The cost of a row is the number of its requests: replays take time in proportion to it. BadInputError when there
    are more runners than jobs.
    """
    if len(rows) <= limit:
        return tuple(Shard(id=planned.id, runner=planned.runner, rows=(planned.id,)) for planned in rows)
    shards: list[Shard] = []
    by_runner: dict[str, list[PlannedRow]] = {}
    for planned in rows:
        by_runner.setdefault(planned.runner, []).append(planned)
    if len(by_runner) > limit:
        raise BadInputError(f"the plan needs {len(by_runner):,} runners, a matrix has at most {limit} jobs")
    for (runner, mine), jobs in zip(by_runner.items(), _share(list(map(len, by_runner.values())), limit), strict=True):
        shards += _deal(mine, runner, jobs)
    return tuple(shards)


def _share(sizes: Sequence[int], limit: int) -> list[int]:
    """Jobs for each runner, in proportion to its rows, at least one each and `limit` in all."""
    total = sum(sizes)
    jobs = [max(1, size * limit // total) for size in sizes]
    while sum(jobs) > limit:
        jobs[jobs.index(max(jobs))] -= 1
    return jobs


def _deal(rows: Sequence[PlannedRow], runner: str, jobs: int) -> list[Shard]:
    jobs = min(jobs, len(rows))
    heap: list[tuple[int, int]] = [(0, number) for number in range(jobs)]
    hands: list[list[str]] = [[] for _ in range(jobs)]
    # Python's sort is stable: rows of equal cost keep the plan's order, so the same plan gives the same shards.
    for planned in sorted(rows, key=_cost, reverse=True):
        cost, number = heapq.heappop(heap)
        hands[number].append(planned.id)
        heapq.heappush(heap, (cost + _cost(planned), number))
    return [
        Shard(id=f"shard-{number:03}@{runner}", runner=runner, rows=tuple(hand))
        for number, hand in enumerate(hands, start=1)
    ]


def _cost(planned: PlannedRow) -> int:
    return planned.corpus.slice.rows
