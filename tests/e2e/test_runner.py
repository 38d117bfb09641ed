"""The runner's own Rust tests, on each release that differs, in a slot where the engine is already compiled."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from replay_parity.campaign.models import Build
from replay_parity.campaign.sources import CrateSource
from replay_parity.pin.builder import Builder
from replay_parity.pin.cargo import Cargo
from replay_parity.pin.compile import forget
from replay_parity.pin.resolve import Sources
from replay_parity.pin.slot import Slot
from replay_parity.pin.store import LayerStore
from replay_parity.system.locks import host_lock
from replay_parity.system.process import tail_of
from replay_parity.system.progress import Silent
from tests.support.scratch import cargo, settings

pytestmark = pytest.mark.engine

RUNNER = "replay-parity-runner"


@dataclass(frozen=True)
class Laid:
    """A slot with one release laid out and its engine compiled."""

    slot: Slot
    cargo: Cargo
    logs: Path

    def run(self, *arguments: str) -> tuple[int, str, str]:
        """Run cargo in the slot as a build does; returns exit status, output and log."""
        done = self.cargo.build(
            self.slot.path,
            arguments,
            # Cargo looks for its subcommands on PATH; those of a rustup proxy would ask for another home.
            variables={"PATH": f"{self.cargo.toolchain.sysroot}/bin:{os.environ['PATH']}"},
            flags=(),
            messages=self.logs / "out",
            log=self.logs / "log",
            timeout=1200,
            tick=None,
        )
        return done.returncode, (self.logs / "out").read_text(), tail_of(self.logs / "log", size=1 << 20)


@contextlib.contextmanager
def laid_out(version: str, folder: Path) -> Iterator[Laid]:
    found, tool = settings(), cargo()
    sources = Sources(found.cache, folder, found.tool_environment, lambda: tool)
    builder = Builder(
        build=Build(toolchain="path", profile="release", flags=(), features=()),
        cargo=tool,
        sources=sources,
        cache=found.cache,
        locks=found.locks,
        logs=folder,
        progress=Silent(),
    )
    revision = sources.resolve(CrateSource(version=version, dirty=True))
    # Builds the engine where no test did so before.
    builder.run({"baseline": revision, "candidate": revision})
    with host_lock(found.locks, "node", shared=False, timeout=3000):
        slot = Slot(tool.root)
        slot.clear()
        prepared = builder._prepare(slot, "baseline", revision, None)
        assert LayerStore(found.cache).restore(
            builder._keys().layer(prepared.tree_sha256, prepared.lock_sha256), slot.target
        )
        forget(slot.target / "release", [RUNNER])
        yield Laid(slot, tool, folder)
        slot.clear()


@pytest.mark.parametrize(
    ("version", "features"),
    [("0.1.0-dev.2", ()), ("0.12.1", ()), ("0.12.1", ("determinism-off",)), ("0.13.0", ())],
)
def test_the_rust_tests_pass(version: str, features: tuple[str, ...], tmp_path: Path) -> None:
    arguments = ["test", "--release", "--package", RUNNER]
    if features:
        arguments += ["--features", ",".join(f"{RUNNER}/{name}" for name in features)]
    with laid_out(version, tmp_path) as laid:
        code, output, log = laid.run(*arguments)
    assert code == 0, output[-4000:] + log
    assert "Compiling aisimulate-core" not in log, "the engine was compiled again"
    assert output.count("test result: ok") >= 5


@pytest.mark.skipif("REPLAY_PARITY_NIGHTLY" not in os.environ, reason="checks the engine too; `make nightly` runs it")
def test_clippy_is_silent(tmp_path: Path) -> None:
    with laid_out("0.12.1", tmp_path) as laid:
        code, output, log = laid.run("clippy", "--release", "--package", RUNNER, "--all-targets", "--no-deps")
    assert code == 0, output[-4000:] + log
    assert "warning" not in log
