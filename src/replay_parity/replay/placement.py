"""Which CPUs a row's processes run on (rule 11): a pure function of the node's cores."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from replay_parity.replay.node import Core

# From this many cores on, the first one is left to the system's own work.
_PLENTY = 4


@dataclass(frozen=True)
class Placement:
    """CPU sets of equal size for the two sides; None where pinning is impossible.

    `together` says whether baseline and candidate of a repetition run at the same time, `words` what a result says.
    `reserved` are all CPUs that must stay free meanwhile: the sets and their SMT siblings.
    """

    baseline: frozenset[int] | None
    candidate: frozenset[int] | None
    reserved: frozenset[int]
    together: bool
    words: str

    def cpus(self, side: str) -> frozenset[int] | None:
        """The CPU set of a side."""
        return self.baseline if side == "baseline" else self.candidate


def place(cores: Sequence[Core], *, pinning: bool) -> Placement:
    """One physical core for each side, on one NUMA node when it has two to give.

    A replay has one thread; the sibling of its CPU stays idle, so one CPU of a core is enough.
    """
    if not pinning:
        return Placement(None, None, frozenset(), together=False, words="not pinned: this system cannot choose CPUs")
    spare = list(cores[1:]) if len(cores) >= _PLENTY else list(cores)
    pair = _pair(spare)
    if pair is None:
        only = cores[0]
        cpu = frozenset({min(only.cpus)})
        return Placement(
            cpu, cpu, only.cpus, together=False, words=f"one core (CPU {min(only.cpus)}), one process at a time"
        )
    first, second = pair
    left, right = min(first.cpus), min(second.cpus)
    where = f"NUMA node {first.numa}" if first.numa == second.numa else f"NUMA nodes {first.numa} and {second.numa}"
    return Placement(
        frozenset({left}),
        frozenset({right}),
        first.cpus | second.cpus,
        together=True,
        words=f"baseline on CPU {left}, candidate on CPU {right}, {where}, two at a time",
    )


def _pair(cores: Sequence[Core]) -> tuple[Core, Core] | None:
    by_node: dict[int, list[Core]] = {}
    for core in cores:
        by_node.setdefault(core.numa, []).append(core)
    for node in sorted(by_node):
        if len(by_node[node]) > 1:
            return by_node[node][0], by_node[node][1]
    return (cores[0], cores[1]) if len(cores) > 1 else None
