"""A download that is not whole yet: its bytes and what is needed to continue it, in the cache."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

import orjson

from replay_parity.errors import BadInputError
from replay_parity.system.files import open_regular, read_capped, storage_errors, write_whole

_NOTE_CAP = 1 << 16


class Partial:
    """`downloads/SHA256.part`, and `SHA256.json` with the address and the entity tag that its bytes belong to."""

    def __init__(self, folder: Path, sha256: str) -> None:
        self.folder = folder
        self.path = folder / f"{sha256}.part"
        self._note = folder / f"{sha256}.json"
        # Whether any byte is from an earlier answer than the last: then a wrong checksum may be the joint's fault.
        self.joined = False

    def url(self) -> str | None:
        """The address that its bytes are from; None when there are none."""
        return self._read().get("url")

    def size(self) -> int:
        """Bytes that are there; anything but a regular file of ours is removed and counts as nothing."""
        try:
            with open_regular(self.path, cap=1 << 62) as file:
                return os.fstat(file.fileno()).st_size
        except BadInputError:
            with storage_errors("remove what is not a download", self.path):
                self.path.unlink(missing_ok=True)
            return 0

    def offer(self, url: str) -> int:
        """How many bytes to continue after; 0 when what is there belongs to another address."""
        with storage_errors("make the folder for downloads", self.folder):
            self.folder.mkdir(parents=True, exist_ok=True)
        if self._read().get("url") != url:
            self.restart()
        size = self.size()
        self.joined = self.joined or size > 0
        return size

    def conditions(self, start: int) -> dict[str, str]:
        """Headers that ask for the rest, of the same version of the file where the server told one."""
        if not start:
            return {}
        etag = self._read().get("etag", "")
        # A weak tag must not be used with ranges (RFC 9110, 13.1.5); then the checksum alone decides.
        same = {} if not etag or etag.startswith("W/") else {"If-Range": etag}
        return {"Range": f"bytes={start}-", **same}

    @contextlib.contextmanager
    def opened(self, url: str, etag: str | None, start: int) -> Iterator[BinaryIO]:
        """The file at byte `start`, for writing; the note is written first, so bytes never go without it."""
        self.joined = start > 0
        write_whole(self._note, orjson.dumps({"url": url, "etag": etag or ""}))
        with storage_errors("write the download", self.path):
            flags = os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
            descriptor = os.open(self.path, flags, 0o600)
            file = os.fdopen(descriptor, "wb")
        try:
            file.truncate(start)
            file.seek(start)
            yield file
        finally:
            with storage_errors("write the download", self.path):
                file.close()

    def restart(self) -> None:
        """Remove all that has come."""
        self.joined = False
        with storage_errors("remove a download", self.path):
            self.path.unlink(missing_ok=True)
            self._note.unlink(missing_ok=True)

    def keep(self, target: Path, *, mode: int) -> None:
        """Flush the whole file to disk and rename it to `target`."""
        with storage_errors("keep the download", target):
            target.parent.mkdir(parents=True, exist_ok=True)
            descriptor = os.open(self.path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
            try:
                os.fchmod(descriptor, mode)
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
            self.path.replace(target)
            self._note.unlink(missing_ok=True)

    def _read(self) -> dict[str, str]:
        try:
            note = orjson.loads(read_capped(self._note, cap=_NOTE_CAP))
        except (BadInputError, orjson.JSONDecodeError):
            return {}
        return {key: value for key, value in note.items() if isinstance(value, str)} if isinstance(note, dict) else {}
