"""Limits of control groups, as containers and services show them."""

from __future__ import annotations

from pathlib import Path

import pytest

from replay_parity.replay.cgroup import cpu_quota, in_container, memory_limit


def lay_out(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


def test_version_2_takes_the_tightest_of_all_levels(tmp_path: Path) -> None:
    root = lay_out(
        tmp_path,
        {
            "proc/self/cgroup": "0::/system.slice/runner.service\n",
            "sys/fs/cgroup/system.slice/runner.service/cpu.max": "max 100000\n",
            "sys/fs/cgroup/system.slice/cpu.max": "150000 100000\n",
            "sys/fs/cgroup/system.slice/runner.service/memory.max": "8589934592\n",
            "sys/fs/cgroup/system.slice/memory.max": "max\n",
        },
    )
    assert cpu_quota(root) == 1.5
    assert memory_limit(root) == 8 << 30
    assert not in_container(root)


@pytest.mark.parametrize("path", ["/", "/../../other"])
def test_version_2_inside_a_namespace(tmp_path: Path, path: str) -> None:
    files = {"proc/self/cgroup": f"0::{path}\n", "sys/fs/cgroup/cpu.max": "400000 100000\n"}
    assert cpu_quota(lay_out(tmp_path, files)) == 4.0


def test_version_1(tmp_path: Path) -> None:
    root = lay_out(
        tmp_path,
        {
            "proc/self/cgroup": "5:memory:/docker/abc\n4:cpu,cpuacct:/docker/abc\n1:name=systemd:/docker/abc\n",
            "sys/fs/cgroup/cpu,cpuacct/docker/abc/cpu.cfs_quota_us": "250000\n",
            "sys/fs/cgroup/cpu,cpuacct/docker/abc/cpu.cfs_period_us": "100000\n",
            "sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us": "-1\n",
            "sys/fs/cgroup/memory/docker/abc/memory.limit_in_bytes": "1073741824\n",
            "sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n",
        },
    )
    assert cpu_quota(root) == 2.5
    assert memory_limit(root) == 1 << 30
    assert in_container(root)


def test_none_and_nonsense(tmp_path: Path) -> None:
    assert (cpu_quota(tmp_path), memory_limit(tmp_path), in_container(tmp_path)) == (None, None, False)
    files = {"proc/self/cgroup": "nonsense\n0::/\n", "sys/fs/cgroup/cpu.max": "1 0\n", "sys/fs/cgroup/memory.max": "?"}
    root = lay_out(tmp_path, files)
    assert (cpu_quota(root), memory_limit(root)) == (None, None)


@pytest.mark.parametrize("mark", [".dockerenv", "run/.containerenv"])
def test_marks_of_containers(tmp_path: Path, mark: str) -> None:
    assert in_container(lay_out(tmp_path, {mark: ""}))
