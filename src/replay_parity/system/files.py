"""Whole files: every file appears whole or not at all, and is read only up to a cap."""

from __future__ import annotations

import contextlib
import errno
import gzip
import hashlib
import os
import shutil
import stat
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from replay_parity.errors import BadInputError, InfrastructureError

_CHUNK = 1 << 20


@contextlib.contextmanager
def storage_errors(doing: str, path: Path) -> Iterator[None]:
    """Turn a full or read-only disk into one clear sentence; `doing` completes "cannot ..."."""
    try:
        yield
    except OSError as error:
        hint = {
            errno.ENOSPC: "free some space on that disk and run again; finished work is kept",
            errno.EDQUOT: "free some of your quota and run again; finished work is kept",
            errno.EFBIG: "raise the limit on the size of files (ulimit -f) and run again; finished work is kept",
            errno.EROFS: "choose a writable folder",
            errno.EACCES: "choose a folder that you may write to",
        }.get(error.errno or 0)
        reason = error.strerror or str(error)
        raise InfrastructureError(f"cannot {doing}: {reason}", where=str(path), hint=hint) from error


def write_whole(path: Path, data: bytes, *, mode: int = 0o644) -> None:
    """Write `data` under a temporary name in the same folder, flush it to disk, then rename.

    Raises InfrastructureError when the disk is full or the folder is not writable; nothing is left behind then.
    """
    with storage_errors("write the file", path):
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor, name = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".part", dir=path.parent)
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            Path(name).chmod(mode)
            Path(name).replace(path)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise


def open_regular(path: Path, *, cap: int) -> BinaryIO:
    """Open a regular file of at most `cap` bytes without following a link (threat 6)."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        raise BadInputError("there is no such file", where=str(path)) from None
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise BadInputError("is a symbolic link; give the file itself", where=str(path)) from None
        raise BadInputError(f"cannot be read: {error.strerror}", where=str(path)) from None
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode):
        os.close(descriptor)
        raise BadInputError("is not a regular file", where=str(path))
    if status.st_size > cap:
        os.close(descriptor)
        raise BadInputError(f"is {status.st_size:,} bytes long, at most {cap:,} are read", where=str(path))
    return os.fdopen(descriptor, "rb")


def read_capped(path: Path, *, cap: int) -> bytes:
    """Read a regular file of at most `cap` bytes; BadInputError otherwise."""
    with open_regular(path, cap=cap) as file:
        # Python makes room for all that is asked for, so it is asked for what there is; /proc says 0 of everything.
        size = os.fstat(file.fileno()).st_size
        data = file.read(size + 1) if size else file.read(min(cap, _CHUNK) + 1)
        while len(data) <= cap and (more := file.read(_CHUNK)):
            data += more
    if len(data) > cap:
        raise BadInputError(f"grew over {cap:,} bytes while it was read", where=str(path))
    return data


def sha256_bytes(data: bytes) -> str:
    """SHA-256 in lower-case hex."""
    return hashlib.sha256(data).hexdigest()


def sha256_file(path: Path) -> str:
    """SHA-256 of a file's bytes in lower-case hex, in constant memory."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK):
            digest.update(chunk)
    return digest.hexdigest()


def sha256_regular(path: Path, *, cap: int) -> str:
    """SHA-256 of an untrusted file: regular, not a link, at most `cap` bytes; BadInputError otherwise."""
    digest = hashlib.sha256()
    with open_regular(path, cap=cap) as file:
        while chunk := file.read(_CHUNK):
            digest.update(chunk)
    return digest.hexdigest()


def compress(source: Path, target: Path) -> None:
    """Write a gzip copy of a regular file, whole or not at all; equal bytes give equal copies."""
    with storage_errors("compress the report", target):
        target.parent.mkdir(parents=True, exist_ok=True)
        part = target.with_name(f".{target.name}.part")
        try:
            with open_regular(source, cap=sys.maxsize) as file, part.open("wb") as raw:
                with gzip.GzipFile(filename="", mode="wb", fileobj=raw, mtime=0, compresslevel=6) as packed:
                    shutil.copyfileobj(file, packed, _CHUNK)
                raw.flush()
                os.fsync(raw.fileno())
            part.replace(target)
        finally:
            part.unlink(missing_ok=True)


def sha256_tree(root: Path, *, skip: frozenset[str] = frozenset()) -> str:
    """Digest of a folder: relative POSIX paths, kinds, run bits and contents, in sorted order; no times, no owners.

    `skip` names top-level-relative paths (files or folders) that do not count.
    """
    digest = hashlib.sha256()
    for path in walk_sorted(root):
        relative = path.relative_to(root).as_posix()
        if relative in skip or any(relative.startswith(f"{name}/") for name in skip):
            continue
        if path.is_symlink():
            entry = f"link\0{relative}\0{path.readlink()}"
        elif path.is_file():
            run = "x" if path.stat().st_mode & stat.S_IXUSR else "-"
            entry = f"file\0{relative}\0{run}\0{sha256_file(path)}"
        else:
            continue
        digest.update(entry.encode("utf-8", "surrogateescape") + b"\n")
    return digest.hexdigest()


def walk_sorted(root: Path) -> Iterator[Path]:
    """All entries below `root`, links not followed, in an order that does not depend on the file system."""
    for entry in sorted(root.iterdir(), key=lambda item: item.name):
        yield entry
        if entry.is_dir() and not entry.is_symlink():
            yield from walk_sorted(entry)


def copy_tree(source: Path, target: Path) -> None:
    """Copy a folder to `target`, which must not exist: contents, modes, times and links as they are.

    Raises OSError at the first entry that cannot be copied; `shutil.copytree` would go on through all of them and
    then name every one.
    """
    target.mkdir(parents=True)
    for entry in sorted(os.scandir(source), key=lambda item: item.name):
        copy = target / entry.name
        if entry.is_symlink():
            copy.symlink_to(os.readlink(entry.path))  # noqa: PTH115 (the link's own text, not a path made from it)
        elif entry.is_dir():
            copy_tree(Path(entry.path), copy)
        else:
            shutil.copy2(entry.path, copy)
    shutil.copystat(source, target)


@contextlib.contextmanager
def scratch_folder(parent: Path, prefix: str) -> Iterator[Path]:
    """A new private folder in `parent`, removed at the end whatever happens; renaming it keeps it."""
    with storage_errors("make a folder for passing work", parent):
        folder = Path(tempfile.mkdtemp(prefix=prefix, dir=parent))
    try:
        yield folder
    finally:
        remove_tree(folder)


def sweep(parent: Path, prefix: str, *, older_than: float) -> None:
    """Remove scratch folders of runs that were killed: those that nobody has touched for `older_than` seconds."""
    limit = time.time() - older_than
    for folder in parent.glob(f"{prefix}*"):
        with contextlib.suppress(OSError, InfrastructureError):
            if folder.lstat().st_mtime < limit:
                remove_tree(folder)


def pin_times(root: Path, *, seconds: int) -> None:
    """Give every entry below `root` one modification time, so that cargo sees content, not checkout time."""
    for path in walk_sorted(root):
        os.utime(path, (seconds, seconds), follow_symlinks=False)


def private_folder(path: Path) -> Path:
    """Make a folder that only this user may enter, and refuse one that belongs to somebody else."""
    with storage_errors("make the folder", path):
        path.mkdir(parents=True, exist_ok=True, mode=0o700)
    status = path.lstat()
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.getuid() or status.st_mode & 0o022:
        raise InfrastructureError(
            "is not a folder that only you can write to",
            where=str(path),
            hint="remove it or choose another folder",
        )
    return path


def remove_tree(path: Path) -> None:
    """Remove a folder that may hold read-only entries; a missing one is fine, a link or a file is only unlinked."""
    with storage_errors("remove the folder", path):
        try:
            is_folder = stat.S_ISDIR(path.lstat().st_mode)
        except FileNotFoundError:
            return
        if not is_folder:
            path.unlink(missing_ok=True)
            return
        _open_up(path)
        # Somebody else may remove the same folder at the same time; then there is nothing left to do.
        with contextlib.suppress(FileNotFoundError):
            shutil.rmtree(path)


def _open_up(folder: Path) -> None:
    """Let the owner into every folder below: one that cannot be listed or written to cannot be emptied."""
    with contextlib.suppress(OSError):
        folder.chmod(0o700)
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                _open_up(Path(entry.path))
