"""Which CPUs a row's processes run on (rule 11): a pure function of the node's cores."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from replay_parity.replay.node import Core, format_cpu_list

_SIDES = 2


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


def place(cores: Sequence[Core], *, pinning: bool, quota: float | None = None) -> Placement:
    """One physical core for each side, on one NUMA node when it has two to give.

    A replay has one thread; the siblings of its CPU stay idle, so one CPU of a core is enough. With less than two CPUs'
    worth of time (`quota`) one side would only slow the other down, so they take turns.
    """
    if not pinning:
        return Placement(
            None, None, frozenset(), together=False, words="not pinned (impossible here), one process at a time"
        )
    pair = _pair(cores) if quota is None or quota >= _SIDES else None
    if pair is None:
        core = (_without_first_cpu(cores) or cores)[0]
        cpu = min(core.cpus)
        words = f"one core (CPU {cpu}), one process at a time{_idle(core)}"
        return Placement(frozenset({cpu}), frozenset({cpu}), core.whole, together=False, words=words)
    first, second = pair
    left, right = min(first.cpus), min(second.cpus)
    where = f"NUMA node {first.numa}" if first.numa == second.numa else f"NUMA nodes {first.numa} and {second.numa}"
    return Placement(
        frozenset({left}),
        frozenset({right}),
        first.whole | second.whole,
        together=True,
        words=f"baseline on CPU {left}, candidate on CPU {right}, {where}, two at a time{_idle(first, second)}",
    )


def _pair(cores: Sequence[Core]) -> tuple[Core, Core] | None:
    """Two cores: of one node before CPU 0 left free, that before any."""
    spare = _without_first_cpu(cores)
    for choice in (_neighbours(spare), _neighbours(cores), spare[:_SIDES], cores[:_SIDES]):
        if len(choice) == _SIDES:
            return choice[0], choice[1]
    return None


def _without_first_cpu(cores: Sequence[Core]) -> list[Core]:
    # CPU 0 serves interrupts and the system's own work.
    return [core for core in cores if 0 not in core.whole]


def _neighbours(cores: Sequence[Core]) -> Sequence[Core]:
    by_node: dict[int, list[Core]] = {}
    for core in cores:
        by_node.setdefault(core.numa, []).append(core)
    return next((by_node[node][:_SIDES] for node in sorted(by_node) if len(by_node[node]) >= _SIDES), [])


def _idle(*cores: Core) -> str:
    siblings = frozenset(cpu for core in cores for cpu in core.whole - {min(core.cpus)})
    return f", SMT siblings {format_cpu_list(siblings)} kept idle" if siblings else ""


@dataclass(frozen=True)
class Lanes:
    """One CPU set for each process that may run at a time, when no sides are compared; `reserved` as in a placement."""

    cpus: tuple[frozenset[int] | None, ...]
    reserved: frozenset[int]


def lanes(cores: Sequence[Core], *, pinning: bool, quota: float | None = None) -> Lanes:
    """Every physical core, as far as the quota of CPU time goes; one process at a time where pinning is impossible."""
    if not pinning:
        return Lanes((None,), frozenset())
    number = len(cores) if quota is None else max(1, min(len(cores), int(quota)))
    # CPU 0 comes last: it serves interrupts and the system's own work.
    chosen = [*_without_first_cpu(cores), *(core for core in cores if 0 in core.whole)][:number]
    reserved = frozenset().union(*(core.whole for core in chosen))
    return Lanes(tuple(frozenset({min(core.cpus)}) for core in chosen), reserved)
