"""Rows to jobs of a matrix: each once, never too many jobs, one runner a job, work in equal shares."""

from __future__ import annotations

import re
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.planned import planned_row

from replay_parity.errors import BadInputError
from replay_parity.stages.plan import PlannedRow
from replay_parity.stages.shards import MATRIX_LIMIT, Shard, pack

# What an artifact's name and a job's output hold unharmed (GITHUB.md, limits).
SAFE = re.compile(r"[a-z0-9._@-]+")


def rows(count: int, *runners: str) -> list[PlannedRow]:
    """Rows of equal cost, in turn on each of the runners."""
    names = runners or ("default",)
    made = planned_row()
    return [
        made.model_copy(
            update={
                "row": made.row.model_copy(update={"name": f"row-{number:05}"}),
                "runner": names[number % len(names)],
            }
        )
        for number in range(count)
    ]


def check(planned: list[PlannedRow], shards: tuple[Shard, ...], limit: int = MATRIX_LIMIT) -> None:
    """What holds for any rows."""
    by_id = {item.id: item for item in planned}
    assert Counter(row for shard in shards for row in shard.rows) == Counter([item.id for item in planned])
    assert len(shards) <= limit
    assert all(shard.rows for shard in shards)
    assert all(by_id[row].runner == shard.runner for shard in shards for row in shard.rows)
    assert len({shard.id for shard in shards}) == len(shards)
    assert all(SAFE.fullmatch(shard.id) for shard in shards)


@pytest.mark.parametrize("count", [0, 1, 255, 256, 257, 1_000, 10_000])
@pytest.mark.parametrize("runners", [(), ("default", "arm64"), ("a", "b", "c", "d", "e")])
def test_rows_of_equal_cost(count: int, runners: tuple[str, ...]) -> None:
    planned = rows(count, *runners)
    shards = pack(planned)
    check(planned, shards)
    if count <= MATRIX_LIMIT:
        assert [shard.rows for shard in shards] == [(item.id,) for item in planned], "one row a job, in order"
        return
    sizes = [len(shard.rows) for shard in shards]
    assert max(sizes) - min(sizes) <= 2
    assert len(shards) > MATRIX_LIMIT - 5, "no job is left unused"
    assert max(sizes) <= -(-count // MATRIX_LIMIT) + 1


def test_a_single_rows_shard_is_called_like_the_row() -> None:
    shards = pack([planned_row("red"), planned_row("red", runner="arm64")])
    assert [(shard.id, shard.runner) for shard in shards] == [("red", "default"), ("red@arm64", "arm64")]


def test_several_rows_have_a_number_of_their_runner() -> None:
    shards = pack(rows(300, "default", "arm64"))
    assert shards[0].id == "shard-001@default"
    assert {shard.id.split("@")[1] for shard in shards} == {"default", "arm64"}


def test_the_costliest_rows_are_dealt_first() -> None:
    planned = [planned_row(f"row-{number}", requests=cost) for number, cost in enumerate([1, 1, 1, 9, 5, 5])]
    shards = pack(planned, limit=3)
    check(planned, shards, 3)
    costs = {item.id: item.corpus.slice.rows for item in planned}
    assert sorted(sum(costs[row] for row in shard.rows) for shard in shards) == [6, 7, 9]


@pytest.mark.parametrize("lone", [1, 2, 15, 200, 255])
def test_runners_with_one_row_get_a_job_each_beside_one_with_thousands(lone: int) -> None:
    planned = [*rows(9_000), *(planned_row("lone", runner=f"runner-{number}") for number in range(lone))]
    shards = pack(planned)
    check(planned, shards)
    assert len([shard for shard in shards if shard.runner != "default"]) == lone
    assert len(shards) == MATRIX_LIMIT


def test_the_same_plan_gives_the_same_shards() -> None:
    """The row job finds its rows by packing the plan again."""
    planned = rows(1_000, "a", "b", "c")
    assert pack(planned) == pack(list(planned))
    assert pack(planned)[0] != pack(planned[1:])[0]


def test_more_runners_than_jobs() -> None:
    planned = [planned_row(runner=f"runner-{number}") for number in range(MATRIX_LIMIT + 1)]
    with pytest.raises(BadInputError, match="257 runners, a matrix has at most 256 jobs"):
        pack(planned)
    check(planned[1:], pack(planned[1:]))


@given(
    st.lists(st.tuples(st.sampled_from("abcde"), st.integers(1, 1000)), max_size=60),
    st.integers(5, 12),
)
def test_any_rows(kinds: list[tuple[str, int]], limit: int) -> None:
    planned = [
        planned_row(f"row-{number}", runner=runner, requests=cost) for number, (runner, cost) in enumerate(kinds)
    ]
    shards = pack(planned, limit=limit)
    check(planned, shards, limit)
    costs = {item.id: item.corpus.slice.rows for item in planned}
    for runner in {item.runner for item in planned}:
        loads = sorted(sum(costs[row] for row in shard.rows) for shard in shards if shard.runner == runner)
        # Dealt to whoever has least: a share is never ahead of another by more than one row.
        largest = max(costs[item.id] for item in planned if item.runner == runner)
        assert loads[-1] - loads[0] <= largest
