"""CPU sets out of topologies: a pure decision."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.unit.replay.conftest import LayOut


import pytest
from hypothesis import given
from hypothesis import strategies as st

from replay_parity.replay.node import Core, format_cpu_list, read_cores
from replay_parity.replay.placement import Placement, lanes, place


def chosen(placement: Placement) -> tuple[str, str, str]:
    """Both sets and what is reserved, in the kernel's form."""
    sets = (placement.baseline or frozenset(), placement.candidate or frozenset(), placement.reserved)
    return format_cpu_list(sets[0]), format_cpu_list(sets[1]), format_cpu_list(sets[2])


@pytest.mark.parametrize(
    ("name", "baseline", "candidate", "reserved", "words"),
    [
        ("vm-2", "0", "1", "0-1", "baseline on CPU 0, candidate on CPU 1, NUMA node 0, two at a time"),
        (
            "desktop-8-smt",
            "2",
            "4",
            "2-5",
            "baseline on CPU 2, candidate on CPU 4, NUMA node 0, two at a time, SMT siblings 3,5 kept idle",
        ),
        (
            "server-2x32-smt",
            "1",
            "2",
            "1-2,65-66",
            "baseline on CPU 1, candidate on CPU 2, NUMA node 0, two at a time, SMT siblings 65-66 kept idle",
        ),
        ("arm64-4", "1", "2", "1-2", "baseline on CPU 1, candidate on CPU 2, NUMA node 0, two at a time"),
    ],
)
def test_known_machines(machine: LayOut, name: str, baseline: str, candidate: str, reserved: str, words: str) -> None:
    found, root = machine(name)
    placement = place(read_cores(found.cpus, root=root), pinning=True)
    assert chosen(placement) == (baseline, candidate, reserved)
    assert placement.together
    assert placement.words == words
    assert placement.cpus("baseline") is placement.baseline
    assert placement.cpus("candidate") is placement.candidate


def test_one_core_takes_turns_even_with_two_threads(machine: LayOut) -> None:
    _, root = machine("desktop-8-smt")
    placement = place(read_cores(frozenset({6, 7}), root=root), pinning=True)
    assert chosen(placement) == ("6", "6", "6-7")
    assert not placement.together
    assert placement.words == "one core (CPU 6), one process at a time, SMT siblings 7 kept idle"


def test_a_sibling_that_others_may_use_is_reserved_too(machine: LayOut) -> None:
    _, root = machine("server-2x32-smt")
    # Two agents with one half of each core: they must not meet on a core.
    first = place(read_cores(frozenset({1, 2}), root=root), pinning=True)
    second = place(read_cores(frozenset({65, 66}), root=root), pinning=True)
    assert chosen(first) == ("1", "2", "1-2,65-66")
    assert chosen(second) == ("65", "66", "1-2,65-66")


def test_one_node_is_worth_more_than_a_free_cpu_0() -> None:
    cores = [Core(frozenset({0}), 0), Core(frozenset({1}), 0), Core(frozenset({2}), 1)]
    placement = place(cores, pinning=True)
    assert chosen(placement) == ("0", "1", "0-1")


def test_two_nodes_when_no_node_has_two_cores() -> None:
    placement = place([Core(frozenset({0}), 0), Core(frozenset({1}), 1)], pinning=True)
    assert placement.together
    assert "NUMA nodes 0 and 1" in placement.words
    spare = place([Core(frozenset({0}), 0), Core(frozenset({1}), 1), Core(frozenset({2}), 2)], pinning=True)
    assert chosen(spare) == ("1", "2", "1-2")


def test_without_pinning_nothing_is_reserved_and_the_words_say_so() -> None:
    placement = place([Core(frozenset({0}), 0), Core(frozenset({1}), 0)], pinning=False)
    assert (placement.baseline, placement.candidate, placement.reserved) == (None, None, frozenset())
    assert not placement.together
    assert "not pinned" in placement.words


@pytest.mark.parametrize(("quota", "together"), [(None, True), (2.0, True), (1.5, False)])
def test_a_quota_below_two_cpus_takes_turns(quota: float | None, together: bool) -> None:
    cores = [Core(frozenset({cpu}), 0) for cpu in range(4)]
    placement = place(cores, pinning=True, quota=quota)
    assert placement.together is together
    assert chosen(placement)[0] == "1"


@st.composite
def topologies(draw: st.DrawFn) -> list[Core]:
    threads = draw(st.integers(1, 4))
    count = draw(st.integers(1, 12))
    nodes = draw(st.integers(1, 3))
    cores = []
    for number in range(count):
        whole = frozenset(range(number * threads, (number + 1) * threads))
        usable = draw(st.frozensets(st.sampled_from(sorted(whole)), min_size=1))
        cores.append(Core(usable, draw(st.integers(0, nodes - 1)), whole))
    return cores


@given(topologies())
def test_sets_are_equal_disjoint_usable_and_of_different_cores(cores: list[Core]) -> None:
    placement = place(cores, pinning=True)
    assert placement.baseline is not None
    assert placement.candidate is not None
    assert len(placement.baseline) == len(placement.candidate) == 1
    usable = frozenset().union(*(core.cpus for core in cores))
    assert placement.baseline | placement.candidate <= usable & placement.reserved
    owners = [core for core in cores if core.whole & (placement.baseline | placement.candidate)]
    assert placement.reserved == frozenset().union(*(core.whole for core in owners))
    assert placement.together is (len(cores) > 1)
    assert len(owners) == (2 if placement.together else 1)
    by_node = [core.numa for core in cores]
    if any(by_node.count(node) > 1 for node in by_node):
        assert len({core.numa for core in owners}) == 1
    if len([core for core in cores if 0 not in core.whole]) > 1 and len({*by_node}) == 1:
        assert 0 not in placement.reserved


@pytest.mark.parametrize(
    ("name", "quota", "sets", "reserved"),
    [
        ("vm-2", None, "1 0", "0-1"),
        ("vm-2", 1.5, "1", "1"),
        ("vm-2", 0.5, "1", "1"),
        ("arm64-4", None, "1 2 3 0", "0-3"),
        ("desktop-8-smt", 3.0, "2 4 6", "2-7"),
    ],
)
def test_lanes_are_cores_cpu_0_last_as_far_as_the_quota_goes(
    machine: LayOut, name: str, quota: float | None, sets: str, reserved: str
) -> None:
    found, root = machine(name)
    made = lanes(read_cores(found.cpus, root=root), pinning=True, quota=quota)
    assert " ".join(format_cpu_list(cpus or frozenset()) for cpus in made.cpus) == sets
    assert format_cpu_list(made.reserved) == reserved


def test_without_pinning_there_is_one_lane(machine: LayOut) -> None:
    found, root = machine("vm-2")
    made = lanes(read_cores(found.cpus, root=root), pinning=False)
    assert made.cpus == (None,)
    assert not made.reserved
