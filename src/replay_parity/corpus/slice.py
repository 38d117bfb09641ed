"""The store of verified slices: `corpora/SHA256/slice.jsonl` in the cache, read-only, whole or not there."""

from __future__ import annotations

import contextlib
import os
import secrets
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from replay_parity.campaign.corpus_file import Corpus
from replay_parity.errors import BadInputError
from replay_parity.system.files import open_regular, storage_errors

# Above any trace that a machine can replay; the real bound is the checksum.
FILE_CAP = 1 << 40
_READ_ONLY = 0o444


@dataclass(frozen=True)
class VerifiedSlice:
    """A slice on disk whose bytes were just proven: its checksum, its requests, and the corpus that names it."""

    path: Path
    sha256: str
    rows: int
    block_size: int
    format: str
    corpus: Corpus


class StagedSlice:
    """A slice on its way into the store; `keep` makes it visible, leaving it unkept removes it."""

    def __init__(self, part: Path, target: Path) -> None:
        self._part = part
        self._target = target
        self._file = part.open("xb")

    def write(self, line: bytes) -> None:
        """Append one line; InfrastructureError when the disk is full."""
        with storage_errors("write the slice", self._target):
            self._file.write(line)

    def keep(self) -> None:
        """Flush to disk, make read-only and rename into place."""
        with storage_errors("write the slice", self._target):
            self._file.flush()
            os.fsync(self._file.fileno())
            self._part.chmod(_READ_ONLY)
            self._part.replace(self._target)

    def flushed(self) -> Path:
        """The file with all that was written; it still goes away unless it is kept."""
        with storage_errors("write the slice", self._target):
            self._file.flush()
        return self._part

    def close(self) -> None:
        """Remove what was not kept. A buffer that cannot be flushed to a full disk is lost with its file."""
        with contextlib.suppress(OSError):
            self._file.close()
        self._part.unlink(missing_ok=True)


@contextlib.contextmanager
def staged_file(target: Path) -> Iterator[StagedSlice]:
    """A file beside `target`, on the same disk, that is removed unless it is kept."""
    with storage_errors("write the slice", target):
        target.parent.mkdir(parents=True, exist_ok=True)
        part = StagedSlice(target.with_name(f".{secrets.token_hex(8)}.part"), target)
    try:
        yield part
    finally:
        part.close()


class SliceStore:
    """The place of one slice in the cache, by its checksum."""

    def __init__(self, cache: Path, sha256: str) -> None:
        self.cache = cache
        self.path = cache / "corpora" / sha256 / "slice.jsonl"

    def staged(self) -> contextlib.AbstractContextManager[StagedSlice]:
        """A file beside the slice's place, on the same disk, that is removed unless it is kept."""
        return staged_file(self.path)

    def exists(self) -> bool:
        """Whether there is a regular file of ours; anything else in its place is removed."""
        if not self.path.exists() and not self.path.is_symlink():
            return False
        try:
            open_regular(self.path, cap=FILE_CAP).close()
        except BadInputError:
            self.discard()
            return False
        return True

    def discard(self) -> None:
        """Remove the slice: it is a copy of the cache's own, never a file of the user."""
        with storage_errors("remove a damaged slice from the cache", self.path):
            self.path.unlink(missing_ok=True)
