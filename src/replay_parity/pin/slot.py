"""The slot: one fixed layout in which baseline and candidate are built one after the other (rules 5, 6, 8)."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import tomli_w

from replay_parity.campaign.models import Build
from replay_parity.errors import InfrastructureError
from replay_parity.pin.runner_source import copy_runner_source
from replay_parity.system.files import pin_times, private_folder, remove_tree, write_whole

# Any fixed moment in the past: cargo must see content, which decides about the layer's key, not the time of a checkout.
PINNED_SECONDS = 946_684_800
_CONFIGURING = (".cargo", "rust-toolchain", "rust-toolchain.toml")


def choose_build_root(configured: Path | None, *, cache: Path) -> Path:
    """A private folder none of whose parents has a `.cargo` or a toolchain file: cargo reads every parent (rule 8).

    The configured folder must be clean; otherwise the system's temporary space is taken when it is, then the cache.
    """
    if configured is not None:
        culprit = configuring_parent(configured)
        if culprit is not None:
            raise InfrastructureError(
                f"builds cannot run below {culprit}: cargo would read it",
                where=str(configured),
                hint="set REPLAY_PARITY_BUILD_ROOT to a folder elsewhere",
            )
        return private_folder(configured)
    name = f"replay-parity-{os.getuid()}"
    # The cache comes last: a home folder gets its `.cargo` when cargo is used for the first time.
    for candidate in (Path("/var/tmp") / name, Path(tempfile.gettempdir()) / name, cache / "build"):  # noqa: S108
        if configuring_parent(candidate) is None and os.access(_existing(candidate), os.W_OK):
            return private_folder(candidate)
    raise InfrastructureError(
        "no folder for builds was found outside of folders that configure cargo",
        hint="set REPLAY_PARITY_BUILD_ROOT to a folder without '.cargo' or a toolchain file in any parent",
    )


def configuring_parent(folder: Path) -> Path | None:
    """The first entry in `folder` or a parent of it that cargo or rustup would read, or None."""
    absolute = Path(os.path.realpath(folder))
    for parent in (absolute, *absolute.parents):
        for name in _CONFIGURING:
            if (parent / name).exists() or (parent / name).is_symlink():
                return parent / name
    return None


def _existing(folder: Path) -> Path:
    return next(parent for parent in (folder, *folder.parents) if parent.exists())


class Slot:
    """`SLOT/{Cargo.toml, Cargo.lock, runner/, checkout/, vendor/, target/}`; only one build uses it at a time."""

    def __init__(self, root: Path) -> None:
        self.path = root / "slot"

    @property
    def checkout(self) -> Path:
        """Where the revision's files go."""
        return self.path / "checkout"

    @property
    def target(self) -> Path:
        """Cargo's target folder."""
        return self.path / "target"

    @property
    def lock(self) -> Path:
        """The Cargo.lock that cargo resolves and builds with."""
        return self.path / "Cargo.lock"

    def clear(self) -> None:
        """An empty slot, whatever an interrupted run left there."""
        remove_tree(self.path)
        private_folder(self.path)

    def clear_sources(self) -> None:
        """Remove everything but the target folder, before the next side is laid out."""
        for entry in self.path.iterdir():
            if entry != self.target:
                remove_tree(entry)

    def lay_out(self, *, core: str, build: Build) -> None:
        """Write the workspace manifest and the runner; the checkout must be there already.

        The workspace manifest puts the path dependency inside the workspace, so that cargo hashes a relative path and
        the same revision gives the same bytes in every folder (rule 6). A crate elsewhere than `crates/core` is
        reached by a link of that name, so that the runner's manifest stays byte-identical (rule 5).
        """
        manifest = {
            "workspace": {"members": ["runner"], "exclude": ["checkout"], "resolver": "3"},
            "profile": {build.profile: _PROFILES[build.profile]},
        }
        write_whole(self.path / "Cargo.toml", tomli_w.dumps(manifest).encode())
        copy_runner_source(self.path / "runner")
        expected = self.checkout / "crates" / "core"
        if core != "crates/core":
            expected.parent.mkdir(parents=True, exist_ok=True)
            expected.symlink_to(Path(os.path.relpath(self.checkout / core, expected.parent)), target_is_directory=True)
        for folder in (self.checkout, self.path / "runner"):
            pin_times(folder, seconds=PINNED_SECONDS)


# Written out so that the environment's defaults never decide: cargo's own values, incremental off.
_PROFILES: dict[str, dict[str, object]] = {
    "release": {"opt-level": 3, "debug": False, "codegen-units": 16, "incremental": False, "panic": "unwind"},
    "dev": {"opt-level": 1, "debug": False, "codegen-units": 16, "incremental": False, "panic": "unwind"},
}
