"""The slot: one fixed layout in which baseline and candidate are built one after the other (rules 5, 6, 8)."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import tomli_w

from replay_parity.campaign.models import Build
from replay_parity.errors import InfrastructureError, RevisionError
from replay_parity.pin.runner_source import copy_runner_source
from replay_parity.system.files import pin_times, private_folder, remove_tree, storage_errors, write_whole
from replay_parity.system.orphans import end_orphans_in

# Any fixed moment in the past: cargo must see content, which decides about the layer's key, not the time of a checkout.
PINNED_SECONDS = 946_684_800
_CONFIGURING = (".cargo", "rust-toolchain", "rust-toolchain.toml")


def choose_build_root(configured: Path | None, *, cache: Path) -> Path:
    """A private folder none of whose parents has a `.cargo` or a toolchain file: cargo reads every parent (rule 8).

    The configured folder must be clean; otherwise the system's temporary space is taken when it is, then the cache.
    """
    if configured is not None:
        require_clean_parents(configured)
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


def require_clean_parents(folder: Path) -> None:
    """Raise InfrastructureError when cargo or rustup would read a file in `folder` or a parent of it."""
    culprit = configuring_parent(folder)
    if culprit is not None:
        raise InfrastructureError(
            f"builds cannot run below {culprit}: cargo would read it",
            where=str(folder),
            hint="remove it, or set REPLAY_PARITY_BUILD_ROOT to a folder elsewhere",
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
        """An empty slot, whatever an interrupted run left there, its compilers included."""
        end_orphans_in(self.path)
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
        the same revision gives the same bytes in every folder (rule 6). Raises RevisionError when a crate elsewhere
        cannot be reached as `crates/core`.
        """
        manifest = {
            "workspace": {"members": ["runner"], "exclude": ["checkout"], "resolver": "3"},
            "profile": {build.profile: _PROFILES[build.profile]},
        }
        write_whole(self.path / "Cargo.toml", tomli_w.dumps(manifest).encode())
        with storage_errors("lay out the slot", self.path):
            copy_runner_source(self.path / "runner")
            if core != "crates/core":
                self._link(core)
            for folder in (self.checkout, self.path / "runner"):
                pin_times(folder, seconds=PINNED_SECONDS)

    def _link(self, core: str) -> None:
        """Let `crates/core` lead to the crate, so that the runner's manifest stays byte-identical (rule 5).

        The folder above the crate becomes `crates`, and the crate becomes `core` in it: cargo goes up by name, so the
        crate's neighbours and its workspace are found as in the repository itself.
        """
        parent, _, name = core.rpartition("/")
        links = []
        if parent != "crates":
            links.append((self.checkout / "crates", parent or "."))
        if name != "core":
            links.append((self.checkout / parent / "core", name))
        for link, leads_to in links:
            if link.exists() or link.is_symlink():
                raise RevisionError(
                    f"the crate at '{core}' cannot be reached: the revision has something else at "
                    f"'{link.relative_to(self.checkout)}'",
                    hint="only a repository without it, or with its crate at crates/core, can be built",
                )
            link.symlink_to(leads_to, target_is_directory=True)


# Written out so that the environment's defaults never decide: cargo's own values, incremental off.
_PROFILES: dict[str, dict[str, object]] = {
    "release": {"opt-level": 3, "debug": False, "codegen-units": 16, "incremental": False, "panic": "unwind"},
    "dev": {"opt-level": 1, "debug": False, "codegen-units": 16, "incremental": False, "panic": "unwind"},
}
