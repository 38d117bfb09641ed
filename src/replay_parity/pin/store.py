"""Artifacts and compiled layers in the cache, addressed by everything that went into them.

Nothing here is trusted for lying here: an entry that was damaged or edited is removed and made anew (threat 18).
"""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import orjson
from pydantic import ValidationError

from replay_parity.errors import BadInputError, InfrastructureError
from replay_parity.pin.keys import key_of
from replay_parity.pin.models import ArtifactRecord
from replay_parity.system.files import (
    copy_tree,
    private_folder,
    read_capped,
    remove_tree,
    scratch_folder,
    sha256_bytes,
    sha256_regular,
    sha256_tree,
    storage_errors,
    sweep,
    write_whole,
)

_DOCUMENT_CAP = 16 << 20
_RUNNER_CAP = 1 << 30
_DIGEST_FILE = "target.sha256"
# Each layer is a target folder of some hundred megabytes.
_LAYERS_KEPT = 10
_SCRATCH = "new-"
# Longer than any copy takes: what is older was left by a run that was killed.
_SCRATCH_SECONDS = 24 * 3600.0


def write_sealed(path: Path, document: Mapping[str, Any]) -> None:
    """Write a JSON document together with its own digest."""
    body = orjson.dumps(document, option=orjson.OPT_SORT_KEYS)
    write_whole(path, orjson.dumps({"document": document, "sha256": sha256_bytes(body)}, option=orjson.OPT_INDENT_2))


def read_sealed(path: Path) -> dict[str, Any] | None:
    """A document of `write_sealed`; None when there is none or when it is not what was written."""
    try:
        sealed = orjson.loads(read_capped(path, cap=_DOCUMENT_CAP))
        document = sealed["document"]
        intact = sealed["sha256"] == sha256_bytes(orjson.dumps(document, option=orjson.OPT_SORT_KEYS))
    except (BadInputError, orjson.JSONDecodeError, KeyError, TypeError):
        return None
    return document if intact and isinstance(document, dict) else None


class ArtifactStore:
    """`cache/artifacts/KEY/{runner, artifact.json, seal.json, build.log}`."""

    def __init__(self, cache: Path) -> None:
        self._root = private_folder(cache / "artifacts")

    def find(self, key: str) -> tuple[Path, ArtifactRecord] | None:
        """The runner and its record, re-hashed; a damaged entry is removed and None returned, so that it is rebuilt."""
        folder = self._root / key
        if not folder.exists() and not folder.is_symlink():
            return None
        record = self._intact(folder, key)
        if record is None:
            remove_tree(folder)
            return None
        return folder / "runner", record

    def add(self, record: ArtifactRecord, *, binary: Path, log: Path) -> Path:
        """Keep a built runner; returns its path. Unequal bytes from equal inputs are an alarm (rule 8)."""
        if self.find(record.key) is None:
            self._put(record, binary=binary, log=log)
        found = self.find(record.key)
        if found is None:
            raise InfrastructureError("the artifact that was just kept cannot be read back", where=str(self._root))
        path, kept = found
        if kept.sha256 != record.sha256:
            raise InfrastructureError(
                f"two builds of {record.revision.id} from equal inputs gave different runners: "
                f"{kept.sha256} and {record.sha256}",
                hint="the toolchain or the machine is not reproducible; do not trust either",
            )
        return path

    @staticmethod
    def _intact(folder: Path, key: str) -> ArtifactRecord | None:
        """The record of an entry whose record and runner are what they were when they were kept."""
        runner = folder / "runner"
        try:
            data = read_capped(folder / "artifact.json", cap=_DOCUMENT_CAP)
            seal = read_sealed(folder / "seal.json")
            record = ArtifactRecord.model_validate_json(data)
            whole = sha256_regular(runner, cap=_RUNNER_CAP) == record.sha256
        except (BadInputError, ValidationError):
            return None
        sealed = seal is not None and seal.get("record_sha256") == sha256_bytes(data)
        if not (whole and sealed and record.key == key == key_of(record)):
            return None
        if not os.access(runner, os.X_OK):
            # Some ways of keeping a cache lose the run bit; it is no part of the content.
            with storage_errors("make the runner executable", runner):
                runner.chmod(0o555)
        return record

    def _put(self, record: ArtifactRecord, *, binary: Path, log: Path) -> None:
        sweep(self._root, _SCRATCH, older_than=_SCRATCH_SECONDS)
        data = record.model_dump_json(indent=2).encode()
        with storage_errors("keep the artifact", self._root), scratch_folder(self._root, _SCRATCH) as fresh:
            shutil.copyfile(binary, fresh / "runner")
            (fresh / "runner").chmod(0o555)
            shutil.copyfile(log, fresh / "build.log")
            write_whole(fresh / "artifact.json", data)
            write_sealed(fresh / "seal.json", {"record_sha256": sha256_bytes(data)})
            _move_into_place(fresh, self._root / record.key)


class LayerStore:
    """Compiled target folders, keyed by the content that was compiled into them: `layers/KEY/{target, target.sha256}`.

    A layer is only ever restored for a build of the tree that it was made from, or, its path packages removed, under a
    candidate of the baseline that it was made from: no candidate's output reaches another tree (rule 6).
    """

    def __init__(self, cache: Path) -> None:
        self._root = private_folder(cache / "layers")

    def restore(self, key: str, target: Path) -> bool:
        """Copy a layer to `target`; False, and no target, when there is none that is intact."""
        folder = self._root / key
        remove_tree(target)
        # Judged on the copy: what is compiled with must be what was saved.
        if self.has(key) and self._copy(folder / "target", target) and sha256_tree(target) == self._digest(key):
            with contextlib.suppress(OSError):
                os.utime(folder)  # the least recently used one goes first
            return True
        remove_tree(target)
        remove_tree(folder)
        return False

    def has(self, key: str) -> bool:
        """Whether there is such a layer."""
        return (self._root / key / "target").is_dir() and (self._root / key / _DIGEST_FILE).is_file()

    def save(self, key: str, target: Path) -> None:
        """Keep a copy of `target`; the oldest layers beyond a fixed number go."""
        if self.has(key):
            return
        sweep(self._root, _SCRATCH, older_than=_SCRATCH_SECONDS)
        with storage_errors("keep compiled dependencies", self._root), scratch_folder(self._root, _SCRATCH) as fresh:
            copy_tree(target, fresh / "target")
            write_whole(fresh / _DIGEST_FILE, sha256_tree(fresh / "target").encode())
            _move_into_place(fresh, self._root / key)
        self._prune()

    def _digest(self, key: str) -> str | None:
        try:
            return read_capped(self._root / key / _DIGEST_FILE, cap=_DOCUMENT_CAP).decode("ascii", "replace")
        except BadInputError:
            return None

    @staticmethod
    def _copy(source: Path, target: Path) -> bool:
        """Copy a layer; False when it vanishes meanwhile, since another run may prune."""
        with storage_errors("restore compiled dependencies", target):
            try:
                copy_tree(source, target)
            except FileNotFoundError:
                return False
        return True

    def _prune(self) -> None:
        layers: list[tuple[float, Path]] = []
        for entry in self._root.iterdir():
            with contextlib.suppress(FileNotFoundError):
                if not entry.name.startswith(_SCRATCH):
                    layers.append((entry.lstat().st_mtime, entry))
        for _, old in sorted(layers, reverse=True)[_LAYERS_KEPT:]:
            remove_tree(old)


def _move_into_place(fresh: Path, place: Path) -> None:
    """Give a finished entry its name; another run of ours may have been faster, then its entry stays."""
    try:
        fresh.rename(place)
    except OSError:
        if not place.is_dir():
            raise
