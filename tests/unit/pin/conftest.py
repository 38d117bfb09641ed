"""Tiny engines: real git, real cargo, a crate of the engine's name and a runner that only tells its identity."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from replay_parity.campaign.models import Build, GitSource
from replay_parity.pin import runner_source
from replay_parity.pin.builder import Builder, BuildOutcome
from replay_parity.pin.cargo import Cargo
from replay_parity.pin.resolve import Sources
from replay_parity.pin.toolchain import resolve_toolchain
from replay_parity.settings import Settings
from replay_parity.system.files import private_folder
from tests.support.scratch import Scratch

RUNNER_MANIFEST = """\
[package]
name = "replay-parity-runner"
version = "0.1.0"
edition = "2024"

[features]
determinism-off = []

[dependencies]
aisimulate-core = { path = "../checkout/crates/core", default-features = false }
"""
RUNNER_MAIN = """\
fn main() {
    let features: Vec<String> = env!("REPLAY_PARITY_FEATURES").split(',').filter(|f| !f.is_empty())
        .map(|f| format!("{f:?}")).collect();
    println!(
        "{{\\"revision\\":{:?},\\"runner_source_sha256\\":{:?},\\"features\\":[{}],\\"toolchain\\":{:?},\\"profile\\":{:?},\
\\"determinism\\":{:?},\\"answer\\":{}}}",
        env!("REPLAY_PARITY_REVISION"), env!("REPLAY_PARITY_RUNNER_SOURCE_SHA256"), features.join(","),
        env!("REPLAY_PARITY_TOOLCHAIN"), env!("REPLAY_PARITY_PROFILE"),
        if cfg!(feature = "determinism-off") { "random" } else { "canonical_v1" },
        aisimulate_core::answer(),
    );
}
"""
LOCK = 'version = 4\n\n[[package]]\nname = "replay-parity-runner"\nversion = "0.1.0"\n'


class Told:
    """A progress that remembers."""

    def __init__(self) -> None:
        self.steps: list[str] = []
        self.notices: list[str] = []

    def step(self, text: str) -> None:
        self.steps.append(text)

    def detail(self, text: str) -> None:
        """Details are not kept."""

    def notice(self, text: str) -> None:
        self.notices.append(text)


@dataclass
class Workshop:
    """Builds pairs of revisions of one scratch repository with caches of its own."""

    folder: Path
    scratch: Scratch

    def cargo(self, root: Path | None = None) -> Cargo:
        found = Settings.from_environment(os.environ)
        place = private_folder(root or self.folder / "root")
        toolchain = resolve_toolchain("path", environment=found.tool_environment, folder=place)
        return Cargo(toolchain, place, found.tool_environment)

    def sources(self, *, cache: str = "cache", root: Path | None = None) -> Sources:
        cargo = self.cargo(root)
        return Sources(self.folder / cache, self.folder, cargo.user_environment, cargo)

    def build(
        self,
        baseline: str,
        candidate: str,
        *,
        cache: str = "cache",
        root: Path | None = None,
        build: Build | None = None,
        patch: Path | None = None,
    ) -> tuple[BuildOutcome, Told]:
        sources = self.sources(cache=cache, root=root)
        told = Told()
        logs = self.folder / "logs"
        logs.mkdir(exist_ok=True)
        builder = Builder(
            build=build or Build(toolchain="path", profile="dev", flags=(), features=()),
            cargo=sources.cargo,
            sources=sources,
            cache=self.folder / cache,
            locks=self.folder / "locks",
            logs=logs,
            progress=told,
            patch=patch,
        )
        sides = {"baseline": baseline, "candidate": candidate}
        git = str(self.scratch.folder)
        return (
            builder.run(
                {
                    "baseline": sources.resolve(GitSource(git=git, revision=sides["baseline"])),
                    "candidate": sources.resolve(GitSource(git=git, revision=sides["candidate"])),
                }
            ),
            told,
        )


@pytest.fixture
def workshop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Workshop]:
    runner = tmp_path / "runner-source"
    (runner / "src").mkdir(parents=True)
    (runner / "Cargo.toml").write_text(RUNNER_MANIFEST)
    (runner / "src" / "main.rs").write_text(RUNNER_MAIN)
    (runner / "Cargo.lock").write_text(LOCK)
    monkeypatch.setattr(runner_source, "runner_folder", lambda: runner)
    runner_source.runner_source_sha256.cache_clear()
    yield Workshop(tmp_path, Scratch(tmp_path / "repository"))
    runner_source.runner_source_sha256.cache_clear()
