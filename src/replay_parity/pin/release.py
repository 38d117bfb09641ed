"""Crate releases: brought by cargo from the registry that it is set up with, kept with checksum and recorded commit."""

from __future__ import annotations

import re
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path

import orjson
import tomli_w

from replay_parity.campaign.models import CrateSource
from replay_parity.errors import InfrastructureError, ProcessError, RevisionError
from replay_parity.pin.cargo import Cargo
from replay_parity.pin.crates import verify_vendored
from replay_parity.pin.lockfile import packages, parse_lock
from replay_parity.pin.models import CrateRevision
from replay_parity.system.files import (
    private_folder,
    read_capped,
    remove_tree,
    sha256_tree,
    storage_errors,
    write_whole,
)

_VCS_INFO = ".cargo_vcs_info.json"
# Cargo's own bookkeeping beside the sources; no part of what a commit holds and never compiled.
PACKAGING_FILES = frozenset({_VCS_INFO, ".cargo-ok", ".cargo-checksum.json"})
_EXACT = re.compile(r"^[0-9]+\.[0-9]+\.[0-9]+(?:[-+].*)?$")
_CAP = 16 << 20


class Releases:
    """Published releases in the cache, each in a folder named by version and checksum."""

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
        """Folder of the unpacked sources, verified against the digest taken when they were brought."""
        folder = self._root / f"{revision.crate}-{revision.version}-{revision.checksum[:16]}"
        record = orjson.loads(read_capped(folder / "release.json", cap=_CAP))
        if sha256_tree(folder / "source") != record["tree_sha256"]:
            remove_tree(folder)
            raise InfrastructureError(
                f"the cached sources of {revision.crate} {revision.version} were changed and have been removed",
                hint="run again: they are brought anew",
            )
        return folder / "source"

    def lay_out(self, revision: CrateRevision, target: Path) -> None:
        """Copy the verified sources to the folder `target`, which must not exist."""
        source = self.folder(revision)
        with storage_errors("lay out the release", target):
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copytree(source, target, symlinks=True)

    def _cached(self, source: CrateSource) -> CrateRevision | None:
        if not _EXACT.match(source.version):
            return None
        found = [
            CrateRevision.model_validate({**orjson.loads(path.read_bytes())["revision"], "asked": source.version})
            for path in sorted(self._root.glob(f"{source.crate}-{source.version}-*/release.json"))
        ]
        found = [revision for revision in found if revision.version == source.version]
        if source.checksum is not None:
            found = [revision for revision in found if revision.checksum == source.checksum]
        return found[0] if len(found) == 1 else None

    def _bring(self, source: CrateSource, cargo: Cargo) -> CrateRevision:
        with tempfile.TemporaryDirectory(prefix="probe-", dir=cargo.root) as scratch:
            probe = Path(scratch)
            exact = f"={source.version}" if _EXACT.match(source.version) else source.version
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
            locked = next(package for package in lock if package.name == source.crate)
            verify_vendored(probe / "vendor", [locked], cargo_home=cargo.user_home)
            return self._keep(source, probe / "vendor" / f"{locked.name}-{locked.version}", locked.checksum)

    def _keep(self, source: CrateSource, vendored: Path, checksum: str | None) -> CrateRevision:
        if checksum is None:
            raise RevisionError(f"the registry gives no checksum for {source.crate} {source.version}")
        vcs = orjson.loads(read_capped(vendored / _VCS_INFO, cap=_CAP)) if (vendored / _VCS_INFO).is_file() else {}
        git = vcs.get("git", {}) if isinstance(vcs, dict) else {}
        revision = CrateRevision(
            crate=source.crate,
            asked=source.version,
            version=vendored.name.removeprefix(f"{source.crate}-"),
            checksum=checksum,
            commit=git.get("sha1"),
            dirty=git.get("dirty") is True,
        )
        folder = self._root / f"{revision.crate}-{revision.version}-{checksum[:16]}"
        fresh = Path(tempfile.mkdtemp(prefix="new-", dir=self._root))
        shutil.copytree(vendored, fresh / "source", symlinks=True)
        for name in PACKAGING_FILES:
            (fresh / "source" / name).unlink(missing_ok=True)
        record = {"revision": revision.model_dump(), "tree_sha256": sha256_tree(fresh / "source")}
        write_whole(fresh / "release.json", orjson.dumps(record, option=orjson.OPT_INDENT_2))
        remove_tree(folder)
        fresh.rename(folder)
        return revision


def _unknown(source: CrateSource, error: ProcessError) -> RevisionError | InfrastructureError:
    text = error.tail
    if any(words in text for words in ("no matching package", "failed to select a version", "is yanked")):
        return RevisionError(f"the registry has no usable release {source.crate} {source.version}: {_reason(text)}")
    return InfrastructureError(
        f"cargo cannot bring {source.crate} {source.version}: {_reason(text)}",
        hint="check the registry and the network, then run again",
    )


def _reason(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip() and not line.lstrip().startswith("Updating")]
    return " / ".join(lines[:4]) or "it printed nothing"
