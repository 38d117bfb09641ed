"""Two revisions to two artifacts: one slot, baseline first, one resolution, cache by content (rules 5 to 9)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from pydantic import ValidationError

from replay_parity.campaign.models import Build
from replay_parity.errors import BuildError
from replay_parity.pin.binary import neutral_sha256, text_size
from replay_parity.pin.cargo import Cargo
from replay_parity.pin.compile import compile_runner
from replay_parity.pin.identity import check_identity
from replay_parity.pin.keys import Keys
from replay_parity.pin.lockfile import compare_locks, unverifiable
from replay_parity.pin.models import ArtifactRecord, LockDifference, Revision
from replay_parity.pin.preparation import SIDES, Preparation, Prepared, Side
from replay_parity.pin.resolve import Sources
from replay_parity.pin.runner_source import runner_source_sha256
from replay_parity.pin.slot import Slot, require_clean_parents
from replay_parity.pin.store import ArtifactStore, LayerStore, read_sealed, write_sealed
from replay_parity.system.files import sha256_file, storage_errors
from replay_parity.system.locks import host_lock
from replay_parity.system.progress import Progress

__all__ = ["SIDES", "Artifact", "BuildOutcome", "Builder", "Side"]

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
        """Artifacts for the sides of `revisions`, compiled only where the cache has none.

        The baseline may come alone, so that its artifact exists before any candidate code is compiled; a candidate may
        not, since the baseline's lock seeds its own (rule 7). One revision on both sides is built once. A compile error
        of a side is returned, not raised; input and infrastructure errors are raised.
        """
        if len(_in_order(revisions)) == len(SIDES) and _are_one(revisions):
            alone = self.run({"baseline": revisions["baseline"]})
            return replace(alone, sides=dict.fromkeys(SIDES, alone.sides["baseline"]))
        with storage_errors("make the folder for logs", self.logs):
            self.logs.mkdir(parents=True, exist_ok=True)
        known = self._recall(revisions)
        if known is not None:
            return known
        with (
            host_lock(self.locks, "node", shared=False, timeout=_LOCK_WAIT_SECONDS, waiting=self.progress.notice),
            # Somebody may have set another folder for the locks of the host, but not for the builds.
            host_lock(self.cargo.root, "slot", shared=False, timeout=_LOCK_WAIT_SECONDS, waiting=self.progress.notice),
        ):
            return self._build_all(revisions)

    def _build_all(self, revisions: dict[Side, Revision]) -> BuildOutcome:
        require_clean_parents(self.cargo.root)
        slot = Slot(self.cargo.root)
        slot.clear()
        sides: dict[Side, Artifact | BuildError] = {}
        prepared: dict[Side, Prepared] = {}
        compiled: list[Side] = []
        try:
            self._try_patch(slot, revisions)
            for side in _in_order(revisions):
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
        if len(prepared) == len(revisions):
            if len(prepared) == len(SIDES):
                differences = tuple(compare_locks(*(prepared[side].packages for side in SIDES)))
            self._remember(revisions, prepared, differences)
        return BuildOutcome(sides=sides, lock_differences=differences, compiled=tuple(compiled))

    def _try_patch(self, slot: Slot, revisions: dict[Side, Revision]) -> None:
        """A patch that fits only one side stops the campaign before anything is compiled."""
        if self.build.patch is not None and len(revisions) > 1:
            for side in SIDES:
                self._preparation.check_out(slot, side, revisions[side])

    def _prepare(self, slot: Slot, side: Side, revision: Revision, baseline: Prepared | None) -> Prepared:
        self.progress.step(f"{side} {revision.short}: laying out sources")
        return self._preparation.prepare(slot, side, revision, baseline)

    @property
    def _preparation(self) -> Preparation:
        return Preparation(
            build=self.build,
            cargo=self.cargo,
            sources=self.sources,
            cache=self.cache,
            logs=self.logs,
            patch=self.patch,
        )

    def _artifact(
        self, slot: Slot, side: Side, revision: Revision, prepared: dict[Side, Prepared]
    ) -> tuple[Artifact, bool]:
        mine = prepared[side]
        key = self._keys().artifact(revision, mine.lock_sha256)
        found = self._find(key)
        if found is not None:
            return found, False
        log = self.logs / f"build-{side}.log"
        binary = compile_runner(
            slot,
            cargo=self.cargo,
            build=self.build,
            side=side,
            revision=revision,
            layers=LayerStore(self.cache),
            exact=self._layer_key(mine),
            base=self._layer_key(prepared.get("baseline", mine)),
            loose=unverifiable(mine.packages),
            log=log,
            progress=self.progress,
        )
        record = self._record(revision, mine, key, binary)
        check_identity(binary, record, scratch=slot.path / "tmp")
        return Artifact(ArtifactStore(self.cache).add(record, binary=binary, log=log), record), True

    def _find(self, key: str) -> Artifact | None:
        """A kept artifact, asked again who it is (rule 5)."""
        found = ArtifactStore(self.cache).find(key)
        if found is None:
            return None
        path, record = found
        check_identity(path, record, scratch=self.cargo.root)
        return Artifact(path, record)

    def _record(self, revision: Revision, mine: Prepared, key: str, binary: Path) -> ArtifactRecord:
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

    def _layer_key(self, prepared: Prepared) -> str:
        return self._keys().layer(prepared.tree_sha256, prepared.lock_sha256)

    def _resolution_path(self, revisions: dict[Side, Revision]) -> Path:
        key = self._keys().resolution([revisions[side] for side in _in_order(revisions)])
        return self.cache / "resolutions" / f"{key}.json"

    def _remember(
        self, revisions: dict[Side, Revision], prepared: dict[Side, Prepared], differences: tuple[LockDifference, ...]
    ) -> None:
        document = {
            "locks": {side: mine.lock_sha256 for side, mine in prepared.items()},
            "differences": [difference.model_dump() for difference in differences],
        }
        write_sealed(self._resolution_path(revisions), document)

    def _recall(self, revisions: dict[Side, Revision]) -> BuildOutcome | None:
        """All artifacts from the cache, without a checkout, when these revisions were resolved before."""
        document = read_sealed(self._resolution_path(revisions))
        try:
            locks = {side: str((document or {})["locks"][side]) for side in _in_order(revisions)}
            differences = tuple(LockDifference.model_validate(item) for item in (document or {})["differences"])
        except (KeyError, TypeError, ValidationError):
            return None
        sides: dict[Side, Artifact | BuildError] = {}
        for side, lock in locks.items():
            found = self._find(self._keys().artifact(revisions[side], lock))
            if found is None:
                return None
            sides[side] = found
        return BuildOutcome(sides=sides, lock_differences=differences, compiled=())


def _in_order(revisions: dict[Side, Revision]) -> list[Side]:
    """The sides that are asked for, the baseline first."""
    if "baseline" not in revisions:
        raise ValueError("a candidate is never built without its baseline")
    return [side for side in SIDES if side in revisions]


def _are_one(revisions: dict[Side, Revision]) -> bool:
    return len({(revision.id, revision.content) for revision in revisions.values()}) == 1
