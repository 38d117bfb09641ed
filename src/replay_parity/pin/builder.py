"""Two revisions to two artifacts: one slot, baseline first, one resolution, cache by content (rules 5 to 9)."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import orjson
from pydantic import ValidationError

from replay_parity.campaign.models import Build
from replay_parity.errors import BuildError, ProcessError
from replay_parity.pin.binary import neutral_sha256, text_size
from replay_parity.pin.cargo import Cargo
from replay_parity.pin.compile import compile_runner, fetch_failure
from replay_parity.pin.crates import verify_vendored
from replay_parity.pin.identity import check_identity
from replay_parity.pin.keys import Keys
from replay_parity.pin.lockfile import compare_locks, merge_locks, packages, parse_lock
from replay_parity.pin.models import ArtifactRecord, LockDifference, LockedPackage, Revision
from replay_parity.pin.patch import apply_patch
from replay_parity.pin.release import PACKAGING_FILES
from replay_parity.pin.resolve import Sources
from replay_parity.pin.runner_source import runner_source_sha256, shipped_lock
from replay_parity.pin.slot import PINNED_SECONDS, Slot
from replay_parity.pin.store import ArtifactStore, LayerStore
from replay_parity.system.files import pin_times, read_capped, sha256_bytes, sha256_file, sha256_tree, write_whole
from replay_parity.system.locks import host_lock
from replay_parity.system.progress import Progress

Side = Literal["baseline", "candidate"]
SIDES: tuple[Side, Side] = ("baseline", "candidate")

_LOCK_CAP = 16 << 20
_LOCK_WAIT_SECONDS = 4 * 3600.0


@dataclass(frozen=True)
class Artifact:
    """A runner that is ready for use: its path and its record."""

    path: Path
    record: ArtifactRecord


@dataclass(frozen=True)
class BuildOutcome:
    """Per side the artifact or the error, and every dependency whose lock entry differs."""

    sides: dict[Side, Artifact | BuildError]
    lock_differences: tuple[LockDifference, ...]
    compiled: tuple[Side, ...]


@dataclass(frozen=True)
class _Prepared:
    """A side laid out in the slot: digests of what will be compiled."""

    tree_sha256: str
    lock: bytes
    verified: int

    @property
    def lock_sha256(self) -> str:
        return sha256_bytes(self.lock)


@dataclass
class Builder:
    """Builds the runner against revisions; every field is an input of the artifacts."""

    build: Build
    cargo: Cargo
    sources: Sources
    cache: Path
    locks: Path
    logs: Path
    progress: Progress
    patch: Path | None = None

    def run(self, revisions: dict[Side, Revision]) -> BuildOutcome:
        """Artifacts for both sides, compiled only where the cache has none.

        A compile error of a side is returned, not raised; input and infrastructure errors are raised.
        """
        known = self._recall(revisions)
        if known is not None:
            return known
        with host_lock(self.locks, "node", shared=False, timeout=_LOCK_WAIT_SECONDS, waiting=self.progress.notice):
            return self._build_both(revisions)

    def _build_both(self, revisions: dict[Side, Revision]) -> BuildOutcome:
        slot = Slot(self.cargo.root)
        slot.clear()
        sides: dict[Side, Artifact | BuildError] = {}
        prepared: dict[Side, _Prepared] = {}
        compiled: list[Side] = []
        try:
            for side in SIDES:
                try:
                    prepared[side] = self._prepare(slot, side, revisions[side], prepared.get("baseline"))
                    artifact, fresh = self._artifact(slot, side, revisions[side], prepared)
                except BuildError as error:
                    sides[side] = error
                    continue
                sides[side] = artifact
                compiled += [side] if fresh else []
        finally:
            slot.clear()
        differences: tuple[LockDifference, ...] = ()
        if len(prepared) == len(SIDES):
            differences = tuple(compare_locks(*(_packages(prepared[side].lock) for side in SIDES)))
            self._remember(revisions, prepared, differences)
        return BuildOutcome(sides=sides, lock_differences=differences, compiled=tuple(compiled))

    def _prepare(self, slot: Slot, side: Side, revision: Revision, baseline: _Prepared | None) -> _Prepared:
        self.progress.step(f"{side} {revision.short}: laying out sources")
        slot.clear_sources()
        self.sources.lay_out(revision, slot.checkout)
        if self.patch is not None:
            apply_patch(self.patch, slot.checkout, side=side, cache=self.cache, environment=self.sources.environment)
        core = revision.core if revision.kind == "git" else "crates/core"
        skip = frozenset(f"{core}/{name}" for name in PACKAGING_FILES)
        tree = sha256_tree(slot.checkout, skip=skip)
        own = _nearest_lock(slot.checkout, core)
        slot.lay_out(core=core, build=self.build)
        seeds = [parse_lock(own, where=f"Cargo.lock of the {side}")] if own else []
        if self.build.lock == "shared" and baseline is not None:
            seeds.insert(0, parse_lock(baseline.lock, where="Cargo.lock of the baseline"))
        seeds.append(parse_lock(shipped_lock(), where="Cargo.lock of the runner"))
        write_whole(slot.lock, merge_locks(seeds))
        log = self.logs / f"fetch-{side}.log"
        try:
            self.cargo.vendor(slot.path, log=log)
        except ProcessError as error:
            raise fetch_failure(error, side=side, log=log) from error
        lock = read_capped(slot.lock, cap=_LOCK_CAP)
        # Build scripts name vendored files as their inputs; a fresh time would compile the engine again.
        # Without any dependency cargo makes no folder.
        vendored = slot.path / "vendor"
        vendored.mkdir(exist_ok=True)
        pin_times(vendored, seconds=PINNED_SECONDS)
        verified = verify_vendored(vendored, _packages(lock), cargo_home=self.cargo.user_home)
        return _Prepared(tree_sha256=tree, lock=lock, verified=verified)

    def _artifact(
        self, slot: Slot, side: Side, revision: Revision, prepared: dict[Side, _Prepared]
    ) -> tuple[Artifact, bool]:
        mine = prepared[side]
        store = ArtifactStore(self.cache)
        key = self._keys().artifact(revision, mine.lock_sha256)
        found = store.find(key)
        if found is not None:
            return Artifact(*found), False
        layers = LayerStore(self.cache)
        exact = self._keys().layer(mine.tree_sha256, mine.lock_sha256)
        under = prepared.get("baseline", mine)
        base = self._keys().layer(under.tree_sha256, under.lock_sha256)
        log = self.logs / f"build-{side}.log"
        binary = compile_runner(
            slot,
            cargo=self.cargo,
            build=self.build,
            side=side,
            revision=revision,
            layers=layers,
            exact=exact,
            base=base,
            log=log,
            progress=self.progress,
        )
        record = self._record(revision, mine, key, binary)
        check_identity(binary, record, scratch=slot.path / "tmp")
        path = store.add(record, binary=binary, log=log)
        return Artifact(path, record), True

    def _record(self, revision: Revision, mine: _Prepared, key: str, binary: Path) -> ArtifactRecord:
        return ArtifactRecord(
            key=key,
            revision=revision,
            tree_sha256=mine.tree_sha256,
            runner_source_sha256=runner_source_sha256(),
            lock_sha256=mine.lock_sha256,
            patch_sha256=self.build.patch.sha256 if self.build.patch else None,
            toolchain=self.cargo.toolchain,
            profile=self.build.profile,
            flags=self.build.flags,
            features=self.build.features,
            negative_control=self.build.negative_control,
            sha256=sha256_file(binary),
            neutral_sha256=neutral_sha256(binary, revision=revision.id),
            size_bytes=binary.stat().st_size,
            text_bytes=text_size(binary),
            packages_verified=mine.verified,
        )

    def _keys(self) -> Keys:
        return Keys(self.build, self.cargo.toolchain)

    def _resolution_path(self, revisions: dict[Side, Revision]) -> Path:
        key = self._keys().resolution([revisions[side] for side in SIDES])
        return self.cache / "resolutions" / f"{key}.json"

    def _remember(
        self, revisions: dict[Side, Revision], prepared: dict[Side, _Prepared], differences: tuple[LockDifference, ...]
    ) -> None:
        document = {
            "locks": {side: prepared[side].lock_sha256 for side in SIDES},
            "differences": [difference.model_dump() for difference in differences],
        }
        write_whole(self._resolution_path(revisions), orjson.dumps(document))

    def _recall(self, revisions: dict[Side, Revision]) -> BuildOutcome | None:
        """Both artifacts from the cache, without a checkout, when this pair was resolved before."""
        path = self._resolution_path(revisions)
        if not path.is_file():
            return None
        try:
            document = orjson.loads(read_capped(path, cap=_LOCK_CAP))
            locks = {side: str(document["locks"][side]) for side in SIDES}
            differences = tuple(LockDifference.model_validate(item) for item in document["differences"])
        except (orjson.JSONDecodeError, KeyError, TypeError, ValidationError):
            # A damaged memory costs a resolution, nothing more.
            return None
        store = ArtifactStore(self.cache)
        sides: dict[Side, Artifact | BuildError] = {}
        for side in SIDES:
            found = store.find(self._keys().artifact(revisions[side], locks[side]))
            if found is None:
                return None
            sides[side] = Artifact(*found)
        return BuildOutcome(sides=sides, lock_differences=differences, compiled=())


def _packages(lock: bytes) -> list[LockedPackage]:
    return packages(parse_lock(lock, where="Cargo.lock"))


def _nearest_lock(checkout: Path, core: str) -> bytes | None:
    """The nearest Cargo.lock at or above the engine crate, inside the checkout (rule 7)."""
    folder = checkout / core
    while folder.is_relative_to(checkout):
        if (folder / "Cargo.lock").is_file():
            return read_capped(folder / "Cargo.lock", cap=_LOCK_CAP)
        folder = folder.parent
    return None
