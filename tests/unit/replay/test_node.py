"""The node record on machines that are folders."""

from __future__ import annotations

import os
import platform
from pathlib import Path
from typing import TYPE_CHECKING

import psutil
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from replay_parity.replay.node import (
    Core,
    NodeRecord,
    can_pin,
    format_cpu_list,
    parse_cpu_list,
    read_cores,
    record_node,
    usable_cpus,
)

if TYPE_CHECKING:
    from tests.unit.replay.conftest import LayOut


def shown(core: Core) -> tuple[str, str, int]:
    return format_cpu_list(core.cpus), format_cpu_list(core.whole), core.numa


def test_two_cpus_of_a_virtual_machine(machine: LayOut) -> None:
    found, root = machine("vm-2")
    cores = read_cores(found.cpus, root=root)
    assert [shown(core) for core in cores] == [("0", "0", 0), ("1", "1", 0)]
    record = record_node(cores, found.cpus, root=root)
    assert record.cpu_model == "Intel(R) Xeon(R) Processor"
    assert record.os_name == "Debian GNU/Linux 12 (bookworm)"
    assert (record.physical_cores, record.threads_per_core, record.smt) == (2, 1, False)
    assert (record.numa_nodes, record.numa_cpus) == (1, ("0-1",))
    assert (record.cpu_quota, record.memory_limit_bytes, record.container) == (None, None, False)


def test_siblings_are_one_core(machine: LayOut) -> None:
    found, root = machine("desktop-8-smt")
    cores = read_cores(found.cpus, root=root)
    assert len(cores) == 8
    assert cores[1].cpus == {2, 3}
    record = record_node(cores, found.cpus, root=root)
    assert (record.physical_cores, record.threads_per_core, record.smt) == (8, 2, True)
    assert record.cpu_model == "AMD Ryzen 7 5800X 8-Core Processor"


def test_two_numa_nodes(machine: LayOut) -> None:
    found, root = machine("server-2x32-smt")
    cores = read_cores(found.cpus, root=root)
    assert len(cores) == 64
    assert {core.numa for core in cores if min(core.cpus) < 32} == {0}
    assert {core.numa for core in cores if min(core.cpus) >= 32} == {1}
    record = record_node(cores, found.cpus, root=root)
    assert (record.numa_nodes, record.numa_cpus) == (2, ("0-31,64-95", "32-63,96-127"))


def test_arm64_says_numbers_and_has_no_numa_folder(machine: LayOut, monkeypatch: pytest.MonkeyPatch) -> None:
    found, root = machine("arm64-4")
    monkeypatch.setattr(platform, "libc_ver", lambda: ("", ""))
    record = record_node(read_cores(found.cpus, root=root), found.cpus, root=root)
    assert record.cpu_model == "implementer 0x41, part 0xd0c"
    assert (record.physical_cores, record.numa_nodes, record.libc) == (4, 1, "musl")


def test_only_what_we_may_use_counts_but_a_sibling_of_others_is_known(machine: LayOut) -> None:
    _, root = machine("server-2x32-smt")
    usable = frozenset({3, 64, 67, 100})
    cores = read_cores(usable, root=root)
    assert [shown(core) for core in cores] == [("3,67", "3,67", 0), ("64", "0,64", 0), ("100", "36,100", 1)]
    record = record_node(cores, usable, root=root)
    assert (record.usable_cpus, record.numa_cpus) == ((3, 64, 67, 100), ("3,64,67", "100"))


def test_the_newer_name_of_the_siblings_list(tmp_path: Path) -> None:
    folder = tmp_path / "sys/devices/system/cpu/cpu0/topology"
    folder.mkdir(parents=True)
    (folder / "core_cpus_list").write_text("0,2\n")
    assert read_cores(frozenset({0, 2}), root=tmp_path)[0].whole == {0, 2}


def test_a_system_that_shows_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # As on macOS: neither sysfs nor affinity.
    monkeypatch.delattr(os, "sched_setaffinity")
    monkeypatch.delattr(os, "sched_getaffinity")
    monkeypatch.setattr(platform, "system", lambda: "Darwin")
    monkeypatch.setattr(platform, "mac_ver", lambda: ("14.5", ("", "", ""), "arm64"))
    monkeypatch.setattr(platform, "processor", lambda: "arm")
    monkeypatch.setattr(platform, "libc_ver", lambda: ("", ""))
    monkeypatch.setattr(psutil, "cpu_count", lambda logical: None if logical else 6)
    usable = usable_cpus()
    record = record_node(read_cores(usable, root=tmp_path), usable, root=tmp_path)
    assert len(record.usable_cpus) == os.cpu_count()
    assert (record.pinning, record.physical_cores, record.smt) == (False, 6, False)
    assert (record.os_name, record.cpu_model, record.libc) == ("macOS 14.5", "arm", "unknown")


def test_a_sandbox_that_refuses_affinity(monkeypatch: pytest.MonkeyPatch) -> None:
    assert can_pin() is hasattr(os, "sched_setaffinity")

    def refuse(*_: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "sched_setaffinity", refuse, raising=False)
    assert not can_pin()


def test_this_machine() -> None:
    usable = usable_cpus()
    record = record_node(read_cores(usable), usable)
    assert record.memory_bytes > 1 << 20
    assert record.usable_cpus
    assert record.kernel == platform.release()
    assert NodeRecord.model_validate_json(record.model_dump_json()) == record
    with pytest.raises(ValidationError):
        NodeRecord.model_validate({**record.model_dump(), "token": "x"})


@given(st.frozensets(st.integers(0, 300)))
def test_the_kernels_lists_of_cpus(cpus: frozenset[int]) -> None:
    assert parse_cpu_list(format_cpu_list(cpus)) == cpus


@pytest.mark.parametrize(
    ("text", "cpus"),
    [("", set()), ("\n", set()), ("0\n", {0}), ("0-3,8, 10-11\n", {0, 1, 2, 3, 8, 10, 11}), ("a,1-b,-2,5-3", set())],
)
def test_odd_lists(text: str, cpus: set[int]) -> None:
    assert parse_cpu_list(text) == cpus
