"""Scratch git repositories: successive releases as commits under `crates/core`, or a tiny crate that is no engine."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from replay_parity.campaign.sources import CrateSource
from replay_parity.pin.cargo import Cargo
from replay_parity.pin.release import Releases
from replay_parity.pin.slot import choose_build_root
from replay_parity.pin.toolchain import resolve_toolchain
from replay_parity.settings import Settings

_IDENTITY = {
    "GIT_AUTHOR_NAME": "t",
    "GIT_AUTHOR_EMAIL": "t@example.invalid",
    "GIT_AUTHOR_DATE": "2026-01-01T00:00:00Z",
    "GIT_COMMITTER_NAME": "t",
    "GIT_COMMITTER_EMAIL": "t@example.invalid",
    "GIT_COMMITTER_DATE": "2026-01-01T00:00:00Z",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
}


class Scratch:
    """A git repository of a test."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True)
        self.git("init", "--quiet", "--initial-branch=main")

    @property
    def core(self) -> Path:
        return self.folder / "crates" / "core"

    def git(self, *arguments: str) -> str:
        done = subprocess.run(
            ["git", *arguments],
            cwd=self.folder,
            env={**os.environ, **_IDENTITY},
            capture_output=True,
            text=True,
            check=True,
        )
        return done.stdout.strip()

    def commit(self, message: str) -> str:
        self.git("add", "--all", "--force")
        self.git("commit", "--quiet", "--allow-empty", "--message", message)
        return self.git("rev-parse", "HEAD")

    def release(self, version: str) -> str:
        """Commit the unpacked sources of a release."""
        shutil.rmtree(self.core, ignore_errors=True)
        shutil.copytree(release_sources(version), self.core)
        return self.commit(version)

    def tiny(self, *, version: str = "9.0.0", source: str = "") -> str:
        """Commit a crate of the engine's name that the runner cannot use."""
        (self.core / "src").mkdir(parents=True, exist_ok=True)
        manifest = f'[package]\nname = "aisimulate-core"\nversion = "{version}"\nedition = "2024"\n\n[workspace]\n'
        (self.core / "Cargo.toml").write_text(manifest)
        (self.core / "src" / "lib.rs").write_text(source)
        return self.commit(f"{version} {source}")


def settings() -> Settings:
    """The settings of this user: engines are built into the real cache once."""
    return Settings.from_environment(os.environ)


def cargo() -> Cargo:
    """Cargo of the toolchain that PATH finds."""
    found = settings()
    root = choose_build_root(found.build_root, cache=found.cache)
    return Cargo(
        resolve_toolchain("path", environment=found.tool_environment, folder=root), root, found.tool_environment
    )


def release_sources(version: str) -> Path:
    """Unpacked sources of a release, brought by cargo."""
    found = settings()
    releases = Releases(cache=found.cache, environment=found.tool_environment)
    return releases.folder(releases.resolve(CrateSource(version=version, dirty=True), cargo=cargo()))
