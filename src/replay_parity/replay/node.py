"""The node that collects samples: processors, memory, kernel, C library (rule 11)."""

from __future__ import annotations

import os
import platform
import re
from dataclasses import dataclass
from pathlib import Path

import psutil

from replay_parity.campaign.base import Model

_SYSFS_CPU = Path("sys/devices/system/cpu")
_SYSFS_NODE = Path("sys/devices/system/node")


class NodeRecord(Model):
    """What a result says of its node; `memory_bytes` is the machine's, `pinning` tells whether CPUs can be chosen."""

    system: str
    kernel: str
    architecture: str
    cpu_model: str
    logical_cpus: int
    usable_cpus: tuple[int, ...]
    physical_cores: int
    smt: bool
    numa_nodes: int
    memory_bytes: int
    libc: str
    pinning: bool


@dataclass(frozen=True)
class Core:
    """One physical core: its logical CPUs (SMT siblings are one core) and its NUMA node."""

    cpus: frozenset[int]
    numa: int


def read_cores(usable: frozenset[int], *, root: Path = Path("/")) -> list[Core]:
    """Physical cores of which at least one CPU is usable, in the order of their first CPU.

    Read from sysfs below `root`; where it says nothing, every CPU counts as a core of node 0.
    """
    numa = _numa_nodes(root)
    cores: dict[frozenset[int], Core] = {}
    for cpu in sorted(usable):
        text = _read(root / _SYSFS_CPU / f"cpu{cpu}" / "topology" / "thread_siblings_list")
        siblings = parse_cpu_list(text) if text else frozenset({cpu})
        cores.setdefault(siblings, Core(cpus=siblings & usable, numa=numa.get(cpu, 0)))
    return list(cores.values())


def parse_cpu_list(text: str) -> frozenset[int]:
    """The kernel's list form: `0-3,8,10-11`."""
    cpus: set[int] = set()
    for part in text.strip().split(","):
        first, _, last = part.partition("-")
        if first.isdigit():
            cpus.update(range(int(first), int(last or first) + 1))
    return frozenset(cpus)


def usable_cpus() -> frozenset[int]:
    """Logical CPUs that this process may run on; all of them where that cannot be asked."""
    if hasattr(os, "sched_getaffinity"):
        return frozenset(os.sched_getaffinity(0))
    return frozenset(range(os.cpu_count() or 1))


def record_node(cores: list[Core], usable: frozenset[int], *, root: Path = Path("/")) -> NodeRecord:
    """The record of this node."""
    libc = " ".join(part for part in platform.libc_ver() if part) or "unknown"
    return NodeRecord(
        system=platform.system(),
        kernel=platform.release(),
        architecture=platform.machine(),
        cpu_model=_cpu_model(root),
        logical_cpus=os.cpu_count() or 1,
        usable_cpus=tuple(sorted(usable)),
        physical_cores=len(cores),
        smt=any(len(core.cpus) > 1 for core in cores),
        numa_nodes=len({core.numa for core in cores}) or 1,
        memory_bytes=psutil.virtual_memory().total,
        libc=libc,
        pinning=hasattr(os, "sched_setaffinity"),
    )


def _cpu_model(root: Path) -> str:
    text = _read(root / "proc" / "cpuinfo") or ""
    found = re.search(r"^(?:model name|Hardware|Model)\s*:\s*(.+)$", text, re.MULTILINE)
    return found.group(1).strip() if found else platform.processor() or platform.machine()


def _numa_nodes(root: Path) -> dict[int, int]:
    nodes: dict[int, int] = {}
    for path in sorted((root / _SYSFS_NODE).glob("node[0-9]*/cpulist")):
        number = int(path.parent.name.removeprefix("node"))
        for cpu in parse_cpu_list(_read(path) or ""):
            nodes[cpu] = number
    return nodes


def _read(path: Path) -> str | None:
    try:
        return path.read_text("utf-8", "replace")
    except OSError:
        return None
