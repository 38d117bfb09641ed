"""Artifacts and compiled layers in the cache, addressed by everything that went into them."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from pathlib import Path

from pydantic import ValidationError

from replay_parity.errors import InfrastructureError
from replay_parity.pin.models import ArtifactRecord
from replay_parity.system.files import (
    private_folder,
    read_capped,
    remove_tree,
    sha256_file,
    sha256_tree,
    storage_errors,
    write_whole,
)

_RECORD_CAP = 4 << 20
# Each layer is a target folder of some hundred megabytes.
_LAYERS_KEPT = 10
_DIGEST_FILE = "target.sha256"


class ArtifactStore:
    """`cache/artifacts/KEY/{runner, artifact.json, build.log}`."""

    def __init__(self, cache: Path) -> None:
        self._root = private_folder(cache / "artifacts")

    def find(self, key: str) -> tuple[Path, ArtifactRecord] | None:
        """The runner and its record, re-hashed; a damaged entry is removed and None returned, so that it is rebuilt."""
        folder = self._root / key
        if not (folder / "artifact.json").is_file():
            return None
        try:
            record = ArtifactRecord.model_validate_json(read_capped(folder / "artifact.json", cap=_RECORD_CAP))
        except ValidationError:
            record = None
        runner = folder / "runner"
        if record is None or record.key != key or not runner.is_file() or sha256_file(runner) != record.sha256:
            remove_tree(folder)
            return None
        return runner, record

    def add(self, record: ArtifactRecord, *, binary: Path, log: Path) -> Path:
        """Keep a built runner; returns its path. Unequal bytes from equal inputs are an alarm (rule 8)."""
        existing = self.find(record.key)
        if existing is not None:
            if existing[1].sha256 != record.sha256:
                raise InfrastructureError(
                    f"two builds of {record.revision.id} from equal inputs gave different runners: "
                    f"{existing[1].sha256} and {record.sha256}",
                    hint="the toolchain or the machine is not reproducible; do not trust either",
                )
            return existing[0]
        with storage_errors("keep the artifact", self._root):
            fresh = Path(tempfile.mkdtemp(prefix="new-", dir=self._root))
            shutil.copy2(binary, fresh / "runner")
            (fresh / "runner").chmod(0o555)
            shutil.copyfile(log, fresh / "build.log")
            write_whole(fresh / "artifact.json", record.model_dump_json(indent=2).encode())
            with contextlib.suppress(OSError):
                fresh.rename(self._root / record.key)
            remove_tree(fresh)
        found = self.find(record.key)
        if found is None:
            raise InfrastructureError("the artifact that was just kept cannot be read back", where=str(self._root))
        return found[0]


class LayerStore:
    """Compiled target folders, keyed by the content that was compiled into them.

    A layer is only ever restored for a build of the tree that it was made from, or, its path packages removed, under a
    candidate of the baseline that it was made from: no candidate's output reaches another tree (rule 6).
    """

    def __init__(self, cache: Path) -> None:
        self._root = private_folder(cache / "layers")

    def restore(self, key: str, target: Path) -> bool:
        """Copy a layer to `target`; False when there is none, or when it is damaged and therefore removed."""
        folder = self._root / key
        if not self.has(key):
            return False
        os.utime(folder)
        with storage_errors("restore compiled dependencies", target):
            remove_tree(target)
            shutil.copytree(folder / "target", target, symlinks=True)
        # Judged on the copy: what is compiled with must be what was saved.
        if sha256_tree(target) != (folder / _DIGEST_FILE).read_text():
            remove_tree(target)
            remove_tree(folder)
            return False
        return True

    def has(self, key: str) -> bool:
        """Whether there is such a layer."""
        return (self._root / key / "target").is_dir() and (self._root / key / _DIGEST_FILE).is_file()

    def save(self, key: str, target: Path) -> None:
        """Keep a copy of `target`; the oldest layers beyond a fixed number go."""
        if self.has(key):
            return
        with storage_errors("keep compiled dependencies", self._root):
            fresh = Path(tempfile.mkdtemp(prefix="new-", dir=self._root))
            shutil.copytree(target, fresh / "target", symlinks=True)
            write_whole(fresh / _DIGEST_FILE, sha256_tree(target).encode())
            with contextlib.suppress(OSError):
                fresh.rename(self._root / key)
            remove_tree(fresh)
        self._prune()

    def _prune(self) -> None:
        layers = [entry for entry in self._root.iterdir() if not entry.name.startswith("new-")]
        for old in sorted(layers, key=lambda entry: entry.stat().st_mtime, reverse=True)[_LAYERS_KEPT:]:
            remove_tree(old)
