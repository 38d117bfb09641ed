"""Limits of the control group that this process runs in; version 2, version 1, or none."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

_MOUNT = Path("sys/fs/cgroup")
_CONTAINER_WORDS = ("docker", "kubepods", "containerd", "lxc", "libpod", "actions_job")
# Version 1 writes "no limit" as the largest multiple of a page.
_UNLIMITED = 1 << 60


def cpu_quota(root: Path) -> float | None:
    """How many CPUs' worth of time this process may use; None without a limit."""
    quotas = []
    for folder in _folders(root, "cpu"):
        quota, period = _words(folder / "cpu.max", 2) or (
            *(_words(folder / "cpu.cfs_quota_us", 1) or ("max",)),
            *(_words(folder / "cpu.cfs_period_us", 1) or ("100000",)),
        )
        if quota.isdecimal() and period.isdecimal() and int(period) > 0:
            quotas.append(int(quota) / int(period))
    return min(quotas, default=None)


def memory_limit(root: Path) -> int | None:
    """Bytes of memory that this process may use; None without a limit."""
    limits = []
    for folder in _folders(root, "memory"):
        (limit,) = _words(folder / "memory.max", 1) or _words(folder / "memory.limit_in_bytes", 1) or ("max",)
        if limit.isdecimal() and int(limit) < _UNLIMITED:
            limits.append(int(limit))
    return min(limits, default=None)


def in_container(root: Path) -> bool:
    """Whether this looks like the inside of a container."""
    if any((root / mark).exists() for mark in (".dockerenv", "run/.containerenv")):
        return True
    text = _text(root / "proc/self/cgroup") + _text(root / "proc/1/cgroup")
    return any(word in text for word in _CONTAINER_WORDS)


def _folders(root: Path, controller: str) -> Iterator[Path]:
    """The folder of our group and those above it: the tightest limit counts."""
    for line in _text(root / "proc/self/cgroup").splitlines():
        _, _, rest = line.partition(":")
        names, _, path = rest.partition(":")
        if names and controller not in names.split(","):
            continue
        top = root / _MOUNT / names if names else root / _MOUNT
        # Inside a namespace the path can begin with "..": what is above is not visible then.
        parts = [part for part in path.split("/") if part not in {"", ".."}]
        for depth in range(len(parts), -1, -1):
            yield top.joinpath(*parts[:depth])


def _words(path: Path, count: int) -> list[str] | None:
    words = _text(path).split()
    return words if len(words) == count else None


def _text(path: Path) -> str:
    try:
        return path.read_text("utf-8", "replace")
    except OSError:
        return ""
