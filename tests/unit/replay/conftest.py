"""Machines as folders, runners as scripts, and records that a real runner (0.12.1) wrote for the preflight rows."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import orjson
import pytest
import yaml

from replay_parity.campaign.builtin import builtin_configs
from replay_parity.campaign.corpus_file import Corpus
from replay_parity.campaign.row import Row
from replay_parity.corpus.provide import provide
from replay_parity.corpus.slice import VerifiedSlice
from replay_parity.replay.node import format_cpu_list
from replay_parity.replay.qualification import Qualification, read_qualification
from replay_parity.replay.repetition import Runner
from replay_parity.system.files import sha256_file

RECORDS = Path(__file__).parent / "records"


@dataclass(frozen=True)
class Machine:
    """What a kernel shows of a machine: its cores as sets of CPUs, its NUMA nodes, and files besides."""

    cores: tuple[frozenset[int], ...]
    numa: tuple[frozenset[int], ...] = ()
    files: Mapping[str, str] = field(default_factory=dict)

    @property
    def cpus(self) -> frozenset[int]:
        return frozenset().union(*self.cores)

    def lay_out(self, root: Path) -> Path:
        for core in self.cores:
            for cpu in core:
                _write(root / f"sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list", format_cpu_list(core))
        for number, cpus in enumerate(self.numa):
            _write(root / f"sys/devices/system/node/node{number}/cpulist", format_cpu_list(cpus))
        for name, text in self.files.items():
            _write(root / name, text)
        return root


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text + "\n")


def _span(first: int, last: int) -> frozenset[int]:
    return frozenset(range(first, last + 1))


MACHINES = {
    "vm-2": Machine(
        cores=(frozenset({0}), frozenset({1})),
        numa=(frozenset({0, 1}),),
        files={
            "proc/cpuinfo": "processor\t: 0\nvendor_id\t: GenuineIntel\nmodel name\t: Intel(R) Xeon(R) Processor",
            "etc/os-release": 'NAME="Debian GNU/Linux"\nPRETTY_NAME="Debian GNU/Linux 12 (bookworm)"',
        },
    ),
    "desktop-8-smt": Machine(
        # Siblings are neighbours here.
        cores=tuple(frozenset({2 * core, 2 * core + 1}) for core in range(8)),
        numa=(_span(0, 15),),
        files={"proc/cpuinfo": "processor\t: 0\nmodel name\t: AMD Ryzen 7   5800X 8-Core Processor"},
    ),
    "server-2x32-smt": Machine(
        # Siblings are 64 apart here.
        cores=tuple(frozenset({core, core + 64}) for core in range(64)),
        numa=(_span(0, 31) | _span(64, 95), _span(32, 63) | _span(96, 127)),
        files={"proc/cpuinfo": "processor\t: 0\nmodel name\t: Intel(R) Xeon(R) Platinum 8358 CPU @ 2.60GHz"},
    ),
    "arm64-4": Machine(
        cores=tuple(frozenset({core}) for core in range(4)),
        files={
            "proc/cpuinfo": "processor\t: 0\nBogoMIPS\t: 243.75\nCPU implementer\t: 0x41\nCPU part\t: 0xd0c",
            "lib/ld-musl-aarch64.so.1": "",
        },
    ),
}


LayOut = Callable[[str], tuple[Machine, Path]]


@pytest.fixture
def machine(tmp_path: Path) -> LayOut:
    """Lay out a machine by its name; returns it with its root folder."""

    def lay_out(name: str) -> tuple[Machine, Path]:
        return MACHINES[name], MACHINES[name].lay_out(tmp_path / name)

    return lay_out


# A runner in Python: `act` is what it does, with `config`, `output` (a Path) and `good(...)` at hand.
_RUNNER = """#!{python} -IS
import hashlib, json, os, signal, sys, time
from pathlib import Path
assert sys.argv[1:4] == ["run", "--config", "config.json"] and sys.argv[4] == "--output", sys.argv
config = json.loads(Path("config.json").read_text())
output = Path(sys.argv[5])
def good(record=b'{{"record":1}}\\n', **changes):
    document = {{
        "schema": "replay-parity.qualification.v1", "row_name": config["row_name"],
        "canonical_sha256": hashlib.sha256(record).hexdigest(), "canonical_bytes": len(record),
        "timing_ms": {{"load": 1.0, "replay": 1.0, "serialise": 1.0}}, "identity": {{"revision": "a" * 40}},
    }}
    (output / "canonical.jsonl").write_bytes(record)
    (output / "qualification.json").write_text(json.dumps(document | changes))
def error(status, **document):
    schema = "replay-parity.runner-error.v1"
    (output / "error.json").write_text(json.dumps({{"schema": schema, "phase": None, "variant": None}} | document))
    sys.exit(status)
{act}
"""


class MakeRunner(Protocol):
    """Makes a runner that does `act`."""

    def __call__(self, act: str = ..., *, identity: Mapping[str, Any] | None = ...) -> Runner: ...


@pytest.fixture
def runner(tmp_path: Path) -> MakeRunner:
    """Make a runner that does `act`."""

    def make(act: str = "good()", *, identity: Mapping[str, Any] | None = None) -> Runner:
        folder = tmp_path / "artifacts"
        folder.mkdir(exist_ok=True)
        path = folder / f"runner-{len(list(folder.iterdir()))}"
        path.write_text(_RUNNER.format(python=sys.executable, act=act))
        path.chmod(0o755)
        return Runner(path, sha256_file(path), identity)

    return make


@dataclass(frozen=True)
class Preflight:
    """A shipped preflight row with what a real runner wrote for it."""

    name: str
    row: Row
    corpus: Corpus
    slice: VerifiedSlice

    def record(self) -> dict[str, Any]:
        """The record, to be spoiled."""
        document: dict[str, Any] = orjson.loads((RECORDS / self.name / "canonical.jsonl").read_bytes())
        return document

    def qualification(self) -> Qualification:
        """The runner's own counters."""
        return read_qualification(RECORDS / self.name)


LoadPreflight = Callable[[str], Preflight]


@pytest.fixture
def preflight(tmp_path: Path) -> LoadPreflight:
    """Load a preflight row by its name without `preflight-`."""

    def load(short: str) -> Preflight:
        name = f"preflight-{short}"
        row = Row.model_validate_json(_yaml(builtin_configs() / "rows" / f"{name}.yaml"))
        corpus = Corpus.model_validate_json(_yaml(builtin_configs() / "corpora" / f"{row.corpus}.yaml"))
        return Preflight(name, row, corpus, provide(corpus, folders=[], cache=tmp_path / "cache"))

    return load


def _yaml(path: Path) -> str:
    return json.dumps(yaml.safe_load(path.read_text("utf-8")))
