"""The node that collects samples: processors, memory, kernel, C library (rule 11).

Everything is read below a given root folder, so that recorded machines are tests.
"""

from __future__ import annotations

import os
import platform
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from replay_parity.campaign.base import Model
from replay_parity.replay.cgroup import cpu_quota, in_container, memory_limit

_ROOT = Path("/")
_SYSFS_CPU = Path("sys/devices/system/cpu")
_SYSFS_NODE = Path("sys/devices/system/node")


class NodeRecord(Model):
    """What a result says of its node.

    `logical_cpus` and `memory_bytes` are the machine's; `usable_cpus`, `physical_cores`, `threads_per_core` and
    `numa_nodes` are of the CPUs that this process may use, `cpu_quota` (in CPUs) and `memory_limit_bytes` are limits of
    its control group. `numa_cpus` lists the usable CPUs of each NUMA node in the kernel's form (`0-3,8`). `pinning`
    tells whether CPUs can be chosen.
    """

    system: str
    os_name: str
    kernel: str
    architecture: str
    cpu_model: str
    logical_cpus: int
    usable_cpus: tuple[int, ...]
    cpu_quota: float | None
    physical_cores: int
    threads_per_core: int
    smt: bool
    numa_nodes: int
    numa_cpus: tuple[str, ...]
    memory_bytes: int
    memory_limit_bytes: int | None
    libc: str
    container: bool
    pinning: bool


@dataclass(frozen=True)
class Core:
    """One physical core: its usable logical CPUs, its NUMA node, and all its CPUs (SMT siblings are one core)."""

    cpus: frozenset[int]
    numa: int
    siblings: frozenset[int] = field(default=frozenset())

    @property
    def whole(self) -> frozenset[int]:
        """All CPUs of the core, those that somebody else may use included."""
        return self.cpus | self.siblings


def read_cores(usable: frozenset[int], *, root: Path = _ROOT) -> list[Core]:
    """Physical cores of which at least one CPU is usable, in the order of their first usable CPU.

    Read from sysfs below `root`; where it says nothing, every CPU counts as a core of node 0.
    """
    numa = _numa_nodes(root)
    cores: dict[frozenset[int], Core] = {}
    for cpu in sorted(usable):
        siblings = _siblings(root, cpu) | {cpu}
        cores.setdefault(siblings, Core(cpus=siblings & usable, numa=numa.get(cpu, 0), siblings=siblings))
    return list(cores.values())


def parse_cpu_list(text: str) -> frozenset[int]:
    """The kernel's list form, `0-3,8,10-11`; what is no number is left out."""
    cpus: set[int] = set()
    for part in text.strip().split(","):
        first, _, last = part.strip().partition("-")
        if first.isdecimal() and (last or first).isdecimal():
            cpus.update(range(int(first), int(last or first) + 1))
    return frozenset(cpus)


def format_cpu_list(cpus: frozenset[int]) -> str:
    """The inverse of `parse_cpu_list`."""
    ranges: list[list[int]] = []
    for cpu in sorted(cpus):
        if ranges and ranges[-1][1] == cpu - 1:
            ranges[-1][1] = cpu
        else:
            ranges.append([cpu, cpu])
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in ranges)


def usable_cpus() -> frozenset[int]:
    """Logical CPUs that this process may run on (affinity and cpuset); all of them where that cannot be asked."""
    if hasattr(os, "sched_getaffinity"):
        return frozenset(os.sched_getaffinity(0))
    return frozenset(range(os.cpu_count() or 1))


def can_pin() -> bool:
    """Whether this system lets a process choose its CPUs: macOS has no such call, some sandboxes refuse it."""
    if not hasattr(os, "sched_setaffinity"):
        return False
    try:
        os.sched_setaffinity(0, os.sched_getaffinity(0))
    except OSError:
        return False
    return True


def record_node(cores: list[Core], usable: frozenset[int], *, root: Path = _ROOT) -> NodeRecord:
    """The record of this node."""
    numa = sorted({core.numa for core in cores})
    widest = max((len(core.whole) for core in cores), default=1)
    return NodeRecord(
        system=platform.system(),
        os_name=_os_name(root),
        kernel=platform.release(),
        architecture=platform.machine(),
        cpu_model=_cpu_model(root),
        logical_cpus=os.cpu_count() or 1,
        usable_cpus=tuple(sorted(usable)),
        cpu_quota=cpu_quota(root),
        physical_cores=_physical_cores(cores, root),
        threads_per_core=widest,
        smt=widest > 1,
        numa_nodes=len(numa) or 1,
        numa_cpus=tuple(
            format_cpu_list(frozenset().union(*(core.cpus for core in cores if core.numa == node))) for node in numa
        ),
        memory_bytes=psutil.virtual_memory().total,
        memory_limit_bytes=memory_limit(root),
        libc=_libc(root),
        container=in_container(root),
        pinning=can_pin(),
    )


def _physical_cores(cores: list[Core], root: Path) -> int:
    if (root / _SYSFS_CPU).is_dir():
        return len(cores)
    return psutil.cpu_count(logical=False) or len(cores)


def _siblings(root: Path, cpu: int) -> frozenset[int]:
    folder = root / _SYSFS_CPU / f"cpu{cpu}" / "topology"
    # The newer name first.
    for name in ("core_cpus_list", "thread_siblings_list"):
        text = _read(folder / name)
        if text:
            return parse_cpu_list(text)
    return frozenset()


def _numa_nodes(root: Path) -> dict[int, int]:
    nodes: dict[int, int] = {}
    for path in sorted((root / _SYSFS_NODE).glob("node[0-9]*/cpulist")):
        number = int(path.parent.name.removeprefix("node"))
        for cpu in parse_cpu_list(_read(path) or ""):
            nodes[cpu] = number
    return nodes


def _cpu_model(root: Path) -> str:
    """The name of the processor; on ARM, where the kernel gives numbers only, those."""
    fields = _fields(_read(root / "proc/cpuinfo") or "", separator=":")
    for name in ("model name", "Model", "cpu"):
        if fields.get(name):
            return fields[name]
    if "CPU part" in fields:
        return f"implementer {fields.get('CPU implementer', '?')}, part {fields['CPU part']}"
    return platform.processor() or platform.machine()


def _os_name(root: Path) -> str:
    name = _fields(_read(root / "etc/os-release") or "", separator="=").get("PRETTY_NAME", "").strip("\"'")
    if name:
        return name
    return f"macOS {platform.mac_ver()[0]}" if platform.mac_ver()[0] else platform.platform()


def _libc(root: Path) -> str:
    musl = sorted((root / "lib").glob("ld-musl-*.so.1"))
    name, version = platform.libc_ver()
    if name:
        return f"{name} {version}".strip()
    return "musl" if musl else "unknown"


def _fields(text: str, *, separator: str) -> Mapping[str, str]:
    """Lines of the form `name : value`; the first of each name counts."""
    found: dict[str, str] = {}
    for line in text.splitlines():
        name, sign, value = line.partition(separator)
        if sign:
            found.setdefault(name.strip(), re.sub(r"\s+", " ", value).strip())
    return found


def _read(path: Path) -> str | None:
    try:
        return path.read_text("utf-8", "replace")
    except OSError:
        return None
