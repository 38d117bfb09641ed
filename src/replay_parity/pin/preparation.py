"""One side laid out in the slot: its files, its patch, one resolution, its packages proven (rules 4, 6, 7, 8)."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from replay_parity.campaign.models import Build
from replay_parity.campaign.sources import POLICY_FOLDER
from replay_parity.errors import ProcessError
from replay_parity.pin.cargo import Cargo
from replay_parity.pin.compile_failure import fetch_failure
from replay_parity.pin.crates import verify_vendored
from replay_parity.pin.lockfile import displaced, merge_locks, packages, parse_lock
from replay_parity.pin.models import LockedPackage, Revision
from replay_parity.pin.patch import apply_patch
from replay_parity.pin.release import PACKAGING_FILES
from replay_parity.pin.resolve import Sources
from replay_parity.pin.runner_source import shipped_lock
from replay_parity.pin.slot import PINNED_SECONDS, Slot
from replay_parity.system.files import (
    pin_times,
    read_capped,
    remove_tree,
    sha256_bytes,
    sha256_tree,
    storage_errors,
    write_whole,
)

Side = Literal["baseline", "candidate"]
SIDES: tuple[Side, Side] = ("baseline", "candidate")

_LOCK_CAP = 16 << 20


@dataclass(frozen=True)
class Prepared:
    """A side as it lies in the slot: what will be compiled, and how many packages their archives proved."""

    tree_sha256: str
    lock: bytes
    verified: int

    @property
    def lock_sha256(self) -> str:
        """Checksum of the resolution."""
        return sha256_bytes(self.lock)

    @property
    def packages(self) -> list[LockedPackage]:
        """The resolution."""
        return packages(parse_lock(self.lock, where="Cargo.lock"))


@dataclass(frozen=True)
class Preparation:
    """What decides about the contents of a slot."""

    build: Build
    cargo: Cargo
    sources: Sources
    cache: Path
    logs: Path
    patch: Path | None

    def check_out(self, slot: Slot, side: Side, revision: Revision) -> None:
        """The revision's files with the patch applied; BadInputError when it does not fit.

        The policy folder is left out, so that a policy edit neither reaches a build nor makes another engine of it.
        """
        slot.clear_sources()
        self.sources.lay_out(revision, slot.checkout)
        remove_tree(slot.checkout / POLICY_FOLDER)
        if self.build.patch is not None:
            apply_patch(
                self.patch or self.sources.base / self.build.patch.file,
                slot.checkout,
                sha256=self.build.patch.sha256,
                side=side,
                cache=self.cache,
                environment=self.sources.environment,
            )

    def prepare(self, slot: Slot, side: Side, revision: Revision, baseline: Prepared | None) -> Prepared:
        """Everything that a build of this side needs; BuildError when cargo cannot use the revision's manifest.

        `baseline` seeds the resolution of the candidate when the campaign shares one.
        """
        self.check_out(slot, side, revision)
        core = revision.core if revision.kind == "git" else "crates/core"
        own = _nearest_lock(slot.checkout, core)
        slot.lay_out(core=core, build=self.build)
        # Taken with the link to a crate elsewhere: one tree may hold two crates.
        tree = sha256_tree(slot.checkout, skip=frozenset(f"{core}/{name}" for name in PACKAGING_FILES))
        self._resolve(slot, side, self._seeds(own, baseline, side))
        prepared = Prepared(tree_sha256=tree, lock=read_capped(slot.lock, cap=_LOCK_CAP), verified=0)
        vendor = slot.path / "vendor"
        # Build scripts name vendored files as their inputs; a fresh time would compile the engine again.
        with storage_errors("pin the times of the vendored packages", vendor):
            pin_times(vendor, seconds=PINNED_SECONDS)
        verified = verify_vendored(vendor, prepared.packages, cargo_home=self.cargo.user_home)
        return Prepared(tree_sha256=tree, lock=prepared.lock, verified=verified)

    def _seeds(self, own: bytes | None, baseline: Prepared | None, side: Side) -> list[list[dict[str, Any]]]:
        """The locks that decide, first the one that decides most: the baseline's, the side's own, the runner's."""
        seeds = [parse_lock(own, where=f"Cargo.lock of the {side}")] if own else []
        if self.build.lock == "shared" and baseline is not None:
            seeds.insert(0, parse_lock(baseline.lock, where="Cargo.lock of the baseline"))
        return [*seeds, parse_lock(shipped_lock(), where="Cargo.lock of the runner")]

    def _resolve(self, slot: Slot, side: Side, seeds: list[list[dict[str, Any]]]) -> None:
        """Let cargo resolve and bring the packages, from a seed that it keeps as far as the manifests allow (rule 7).

        Where a manifest refuses the first lock's entry cargo would take the registry's newest, which is another one
        next week; the next lock that names the package is asked first.
        """
        log = self.logs / f"fetch-{side}.log"
        asked: frozenset[str] = frozenset()
        while True:
            # Of the packages that were refused from the first lock, the entries of the later ones go first.
            preferred = [[entry for entry in lock if entry["name"] in asked] for lock in seeds[1:]]
            seed = merge_locks([*preferred, *seeds])
            write_whole(slot.lock, seed)
            try:
                self.cargo.vendor(slot.path, log=log)
            except ProcessError as error:
                raise fetch_failure(error, side=side, log=log) from error
            resolved = packages(parse_lock(read_capped(slot.lock, cap=_LOCK_CAP), where="Cargo.lock"))
            refused = displaced(resolved, parse_lock(seed, where="Cargo.lock")) - asked
            known = {entry["name"] for lock in seeds[1:] for entry in lock}
            if not refused & known:
                return
            asked |= refused


def _nearest_lock(checkout: Path, core: str) -> bytes | None:
    """The nearest Cargo.lock at or above the engine crate, inside the checkout (rule 7)."""
    folder = checkout / core
    while folder.is_relative_to(checkout):
        if (folder / "Cargo.lock").is_file():
            # A link is followed: no link leaves a checkout.
            return read_capped((folder / "Cargo.lock").resolve(), cap=_LOCK_CAP)
        folder = folder.parent
    return None
