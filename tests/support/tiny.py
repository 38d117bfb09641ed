"""Tiny engines and a tiny runner: real git, real cargo, builds of a second or two."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from replay_parity.campaign.models import Build
from replay_parity.campaign.sources import GitSource
from replay_parity.pin.builder import Artifact, Builder, BuildOutcome, Side
from replay_parity.pin.cargo import Cargo
from replay_parity.pin.models import Revision, Toolchain
from replay_parity.pin.resolve import Sources
from tests.support.scratch import Scratch

ENGINE_MANIFEST = """\
[package]
name = "aisimulate-core"
version = "{version}"
edition = "2021"

[features]
extra = []
{more}
"""
ANSWERS = "pub fn answer() -> u64 {{ {0} }}\n"

_RUNNER_MANIFEST = """\
[package]
name = "replay-parity-runner"
version = "0.1.0"
edition = "2021"
publish = false

[features]
determinism-off = []

[dependencies]
aisimulate-core = { path = "../checkout/crates/core", default-features = false }
"""
# Tells the engine's answer beside the identity, so that a test sees which engine is inside.
_RUNNER_MAIN = r"""
fn main() {
    let features: Vec<String> = env!("REPLAY_PARITY_FEATURES")
        .split(',')
        .filter(|name| !name.is_empty())
        .map(|name| format!("\"{name}\""))
        .collect();
    println!(
        "{{\"revision\":\"{}\",\"runner_source_sha256\":\"{}\",\"features\":[{}],\"toolchain\":\"{}\",\"profile\":\"{}\",\
         \"determinism\":\"{}\",\"answer\":{}}}",
        env!("REPLAY_PARITY_REVISION"),
        env!("REPLAY_PARITY_RUNNER_SOURCE_SHA256"),
        features.join(","),
        env!("REPLAY_PARITY_TOOLCHAIN"),
        env!("REPLAY_PARITY_PROFILE"),
        if cfg!(feature = "determinism-off") { "random" } else { "canonical_v1" },
        aisimulate_core::answer()
    );
}
"""


def write_runner(folder: Path) -> Path:
    """A runner crate without dependencies that knows its identity and nothing else."""
    (folder / "src").mkdir(parents=True)
    (folder / "Cargo.toml").write_text(_RUNNER_MANIFEST)
    (folder / "Cargo.lock").write_text("version = 4\n")
    (folder / "src" / "main.rs").write_text(_RUNNER_MAIN)
    return folder


def write_engine(core: Path, source: str, *, version: str = "9.0.0", more: str = "") -> None:
    """An engine crate; `more` is added to its manifest."""
    (core / "src").mkdir(parents=True, exist_ok=True)
    (core / "Cargo.toml").write_text(ENGINE_MANIFEST.format(version=version, more=more))
    (core / "src" / "lib.rs").write_text(source)


class Engines(Scratch):
    """A git repository whose commits are tiny engines."""

    def engine(self, answer: int, *, version: str = "9.0.0", more: str = "") -> str:
        """Commit an engine that gives this answer."""
        write_engine(self.core, ANSWERS.format(answer), version=version, more=more)
        return self.commit(f"{version} answers {answer}")

    def broken(self, source: str, *, more: str = "") -> str:
        """Commit an engine of this source."""
        write_engine(self.core, source, more=more)
        return self.commit("broken")


@dataclass
class Told:
    """Keeps what a stage tells."""

    steps: list[str] = field(default_factory=list)
    notices: list[str] = field(default_factory=list)

    def step(self, text: str) -> None:
        self.steps.append(text)

    def detail(self, text: str) -> None:
        pass

    def notice(self, text: str) -> None:
        self.notices.append(text)


@dataclass
class Workshop:
    """A cache, a build root and everything that building needs, below one folder."""

    folder: Path
    toolchain: Toolchain
    environment: Mapping[str, str]
    told: Told = field(default_factory=Told)

    @property
    def cache(self) -> Path:
        return self.folder / "cache"

    @property
    def root(self) -> Path:
        return self.folder / "build"

    @property
    def logs(self) -> Path:
        return self.folder / "logs"

    @property
    def cargo(self) -> Cargo:
        self.root.mkdir(parents=True, exist_ok=True, mode=0o700)
        return Cargo(self.toolchain, self.root, self.environment)

    @property
    def sources(self) -> Sources:
        return Sources(self.cache, self.folder, self.environment, lambda: self.cargo)

    def builder(self, **build: Any) -> Builder:
        return Builder(
            build=build_of(**build),
            cargo=self.cargo,
            sources=self.sources,
            cache=self.cache,
            locks=self.folder / "locks",
            logs=self.logs,
            progress=self.told,
        )

    def pin(self, repository: Path, revision: str, *, core: str = "crates/core") -> Revision:
        return self.sources.resolve(GitSource(git=str(repository), revision=revision, core=core))

    def pair(self, repository: Path, baseline: str, candidate: str, **options: Any) -> BuildOutcome:
        revisions: dict[Side, Revision] = {
            "baseline": self.pin(repository, baseline),
            "candidate": self.pin(repository, candidate),
        }
        return self.builder(**options).run(revisions)


def build_of(**changed: Any) -> Build:
    """Build options: the dev profile, which is quicker, unless said otherwise."""
    timeout = changed.pop("timeout_minutes", None)
    build = Build(**{"toolchain": "path", "profile": "dev", "flags": (), "features": (), **changed})
    # A test has no minute to wait for a time limit.
    return build if timeout is None else build.model_copy(update={"timeout_minutes": timeout})


def artifact(outcome: BuildOutcome, side: Side) -> Artifact:
    """The artifact of a side that must have been built."""
    built = outcome.sides[side]
    assert isinstance(built, Artifact), f"{built}: {getattr(built, 'excerpt', '')}"
    return built


def identity(built: Artifact) -> dict[str, Any]:
    """What a built runner says about itself, the engine's answer included."""
    done = subprocess.run([str(built.path), "identity"], capture_output=True, check=True)
    found: dict[str, Any] = json.loads(done.stdout)
    return found
