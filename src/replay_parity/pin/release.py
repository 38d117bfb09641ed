"""Crate releases: brought by cargo from the registry that it is set up with, kept with checksum and recorded commit.

A kept release is proven again at each use: by its package archive, whose SHA-256 is the registry checksum, where cargo
keeps archives, and by the digest taken when it was brought otherwise (threat 18).
"""

from __future__ import annotations

import contextlib
import re
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import orjson
import tomli_w
from pydantic import ValidationError

from replay_parity.campaign.sources import CrateSource
from replay_parity.errors import BadInputError, InfrastructureError, ProcessError, RevisionError
from replay_parity.pin.cargo import Cargo
from replay_parity.pin.cargo_words import reason
from replay_parity.pin.crates import CHECKSUM_FILE, compare_with_archive, find_archive, verify_vendored
from replay_parity.pin.lockfile import packages, parse_lock
from replay_parity.pin.models import CrateRevision, LockedPackage
from replay_parity.pin.store import read_sealed, write_sealed
from replay_parity.system.files import (
    copy_tree,
    private_folder,
    read_capped,
    remove_tree,
    scratch_folder,
    sha256_file,
    sha256_tree,
    storage_errors,
    sweep,
    write_whole,
)

_VCS_INFO = ".cargo_vcs_info.json"
# Cargo's own bookkeeping beside the sources; no part of what a commit holds and never compiled.
PACKAGING_FILES = frozenset({_VCS_INFO, ".cargo-ok", CHECKSUM_FILE})
_EXACT = re.compile(r"[0-9]+\.[0-9]+\.[0-9]+(?:[-+].*)?")
_CAP = 16 << 20
_SCRATCH_SECONDS = 24 * 3600.0
# Cargo's words when the registry has answered and has nothing that fits, or when the campaign's version means nothing.
_UNKNOWN_WORDS = ("no matching package", "failed to select a version", "is yanked")
_MEANINGLESS_WORDS = ("failed to parse the version requirement",)
_OFFLINE_WORDS = "you're using offline mode"


class Releases:
    """Published releases in the cache: `releases/CRATE-VERSION-CHECKSUM/{source/, package.crate, release.json}`."""

    def __init__(self, *, cache: Path, environment: Mapping[str, str]) -> None:
        self._root = private_folder(cache / "releases")
        self._environment = environment

    def resolve(self, source: CrateSource, *, cargo: Cargo) -> CrateRevision:
        """Resolve a version to a release in the cache, asking cargo when it is not there yet.

        Raises RevisionError for an unknown version, another checksum, or a dirty release without the campaign's word.
        """
        revision = self._cached(source) or self._bring(source, cargo)
        if source.checksum is not None and source.checksum != revision.checksum:
            raise RevisionError(
                f"{source.crate} {revision.version} has registry checksum {revision.checksum}, "
                f"the campaign demands {source.checksum}"
            )
        if revision.dirty and not source.dirty:
            raise RevisionError(
                f"{source.crate} {revision.version} was cut from a dirty tree, so no commit describes it",
                hint="write 'dirty: true' beside its version to use it all the same",
            )
        return revision

    def folder(self, revision: CrateRevision) -> Path:
        """Folder of the unpacked sources, proven to be those of the release.

        Raises InfrastructureError when they are not; they are removed then, and brought anew by the next run.
        """
        folder = self._folder(revision)
        if not self._is_intact(folder, revision):
            remove_tree(folder)
            raise InfrastructureError(
                f"the cached sources of {revision.crate} {revision.version} were changed and have been removed",
                hint="run again: they are brought anew",
            )
        return folder / "source"

    def lay_out(self, revision: CrateRevision, target: Path) -> None:
        """Copy the proven sources to the folder `target`, which must not exist."""
        source = self.folder(revision)
        with storage_errors("lay out the release", target):
            copy_tree(source, target)
        if sha256_tree(target) != sha256_tree(source):
            raise InfrastructureError(
                f"the cached sources of {revision.crate} {revision.version} changed while they were copied",
                hint="run again, and find out what writes to the cache",
            )

    def _folder(self, revision: CrateRevision) -> Path:
        return self._root / f"{revision.crate}-{revision.version}-{revision.checksum[:16]}"

    def _cached(self, source: CrateSource) -> CrateRevision | None:
        """The one kept release of an exact version; its record is only believed when its sources prove it."""
        if not _EXACT.fullmatch(source.version):
            return None
        found: list[CrateRevision] = []
        for path in sorted(self._root.glob(f"{source.crate}-{source.version}-*/release.json")):
            revision = _recorded(read_sealed(path), asked=source.version)
            if revision is None or path.parent != self._folder(revision) or not self._is_intact(path.parent, revision):
                remove_tree(path.parent)
            elif revision.version == source.version and source.checksum in {None, revision.checksum}:
                found.append(revision)
        return found[0] if len(found) == 1 else None

    @staticmethod
    def _is_intact(folder: Path, revision: CrateRevision) -> bool:
        document = read_sealed(folder / "release.json")
        source, archive = folder / "source", folder / "package.crate"
        if document is None or _recorded(document, asked=revision.asked) != revision:
            return False
        is_kept = source.is_dir() and sha256_tree(source) == document.get("tree_sha256")
        if not is_kept or _vcs(source) != (revision.commit, revision.dirty):
            return False
        if document.get("has_archive") is not True:
            return document.get("has_archive") is False and not archive.exists()
        try:
            if sha256_file(archive) != revision.checksum:
                return False
            compare_with_archive(source, archive, name=revision.crate, version=revision.version)
        except (InfrastructureError, OSError):
            return False
        return True

    def _bring(self, source: CrateSource, cargo: Cargo) -> CrateRevision:
        sweep(cargo.root, "probe-", older_than=_SCRATCH_SECONDS)
        with scratch_folder(cargo.root, "probe-") as probe:
            exact = f"={source.version}" if _EXACT.fullmatch(source.version) else source.version
            manifest = {
                "package": {"name": "replay-parity-probe", "version": "0.0.0", "edition": "2021"},
                "lib": {"path": "lib.rs"},
                "dependencies": {source.crate: {"version": exact, "default-features": False}},
                "workspace": {},
            }
            write_whole(probe / "Cargo.toml", tomli_w.dumps(manifest).encode())
            write_whole(probe / "lib.rs", b"")
            try:
                cargo.vendor(probe, log=probe / "vendor.log")
            except ProcessError as error:
                raise _unknown(source, error) from error
            lock = packages(parse_lock(read_capped(probe / "Cargo.lock", cap=_CAP), where="Cargo.lock"))
            locked = next(package for package in lock if package.name == source.crate and package.source is not None)
            verify_vendored(probe / "vendor", [locked], cargo_home=cargo.user_home)
            return self._keep(source, probe / "vendor" / f"{locked.name}-{locked.version}", locked, cargo)

    def _keep(self, source: CrateSource, vendored: Path, locked: LockedPackage, cargo: Cargo) -> CrateRevision:
        if locked.checksum is None:
            raise RevisionError(f"the registry gives no checksum for {source.crate} {locked.version}")
        commit, dirty = _vcs(vendored)
        revision = CrateRevision(
            crate=source.crate,
            asked=source.version,
            version=locked.version,
            checksum=locked.checksum,
            commit=commit,
            dirty=dirty,
        )
        archive = find_archive(cargo.user_home, name=locked.name, version=locked.version, checksum=locked.checksum)
        sweep(self._root, "new-", older_than=_SCRATCH_SECONDS)
        with storage_errors("keep the release", self._root), scratch_folder(self._root, "new-") as fresh:
            copy_tree(vendored, fresh / "source")
            (fresh / "source" / CHECKSUM_FILE).unlink(missing_ok=True)
            if archive is not None:
                shutil.copyfile(archive, fresh / "package.crate")
            document = {
                "revision": revision.model_dump(),
                "tree_sha256": sha256_tree(fresh / "source"),
                "has_archive": archive is not None,
            }
            write_sealed(fresh / "release.json", document)
            place = self._folder(revision)
            if not self._is_intact(place, revision):
                remove_tree(place)
                # Another run of ours may be faster; then its copy of the same package stays.
                with contextlib.suppress(OSError):
                    fresh.rename(place)
        self.folder(revision)
        return revision


def _recorded(document: Mapping[str, Any] | None, *, asked: str) -> CrateRevision | None:
    try:
        return CrateRevision.model_validate({**(document or {})["revision"], "asked": asked})
    except (KeyError, TypeError, ValidationError):
        return None


def _vcs(source: Path) -> tuple[str | None, bool]:
    """The commit that a package records, and whether its tree was dirty when it was cut."""
    try:
        document: Any = orjson.loads(read_capped(source / _VCS_INFO, cap=_CAP))
        git = document["git"]
        commit, dirty = git.get("sha1"), git.get("dirty") is True
    except (BadInputError, orjson.JSONDecodeError, KeyError, TypeError, AttributeError):
        return None, False
    return (commit if isinstance(commit, str) else None), dirty


def _unknown(source: CrateSource, error: ProcessError) -> RevisionError | InfrastructureError:
    text = error.tail
    if any(words in text for words in _MEANINGLESS_WORDS):
        return RevisionError(f"'{source.version}' is not a version or a range that cargo understands")
    if _OFFLINE_WORDS not in text and any(words in text for words in _UNKNOWN_WORDS):
        return RevisionError(f"the registry has no usable release {source.crate} {source.version}: {reason(text)}")
    return InfrastructureError(
        f"cargo cannot bring {source.crate} {source.version}: {reason(text)}",
        hint="check the registry and the network, then run again",
    )
