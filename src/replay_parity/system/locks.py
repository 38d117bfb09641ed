"""Locks of the host: no build runs while samples are collected, no CPU serves two replays (rule 9).

The locks are per host, not per user or cache: two runner agents may share a machine. They live in one folder of the
system's temporary space, are released by the kernel when their holder dies, and are waited for with a limit.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import stat
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from replay_parity.errors import InfrastructureError
from replay_parity.system.files import storage_errors

_POLL_SECONDS = 0.1
_FOLDER_MODE = 0o1777
_FILE_MODE = 0o666


@contextlib.contextmanager
def host_lock(
    folder: Path,
    name: str,
    *,
    shared: bool,
    timeout: float,
    waiting: Callable[[str], None] | None = None,
) -> Iterator[None]:
    """Hold the lock `name` of this host, shared (samples) or alone (build); `timeout` in seconds, 0 for one try.

    Who wants it alone gets it after those who hold it now: later sharers wait behind a gate. `waiting` is told once,
    when the lock is not free at once. Raises InfrastructureError when it is not free in time.
    """
    deadline = time.monotonic() + timeout
    tell = _once(waiting)
    with _opened(folder, f"{name}.gate") as gate, _opened(folder, f"{name}.lock") as lock:
        _acquire(gate, name, shared=shared, deadline=deadline, timeout=timeout, tell=tell)
        _acquire(lock, name, shared=shared, deadline=deadline, timeout=timeout, tell=tell)
        fcntl.flock(gate, fcntl.LOCK_UN)
        yield


@contextlib.contextmanager
def cpu_leases(
    folder: Path,
    wanted: Sequence[frozenset[int]],
    *,
    timeout: float,
    waiting: Callable[[str], None] | None = None,
) -> Iterator[None]:
    """Hold every CPU of `wanted`; taken in rising order, so that two campaigns cannot block each other.

    `timeout` is for all of them together, in seconds.
    """
    deadline = time.monotonic() + timeout
    with contextlib.ExitStack() as stack:
        for cpu in sorted(frozenset().union(*wanted)):
            left = max(0.0, deadline - time.monotonic())
            stack.enter_context(host_lock(folder, f"cpu-{cpu}", shared=False, timeout=left, waiting=waiting))
        yield


@contextlib.contextmanager
def _opened(folder: Path, file: str) -> Iterator[int]:
    _make_folder(folder)
    path = folder / file
    try:
        descriptor = _open(path)
    except OSError as error:
        raise InfrastructureError(
            f"cannot open the host lock: {error.strerror}",
            where=str(path),
            hint="set REPLAY_PARITY_LOCK_DIR to a folder that all users of this machine may write to",
        ) from error
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise InfrastructureError("the host lock is not a regular file", where=str(path))
        yield descriptor
    finally:
        # Closing gives the lock back; children do not inherit it.
        os.close(descriptor)


def _make_folder(folder: Path) -> None:
    with storage_errors("make the folder for host locks", folder):
        folder.parent.mkdir(parents=True, exist_ok=True)
        with contextlib.suppress(FileExistsError):
            folder.mkdir()
            # Everybody on the host must be able to take a lock; the sticky bit keeps others from removing it.
            folder.chmod(_FOLDER_MODE)


def _open(path: Path) -> int:
    """Open the lock file of whoever made it, or make it.

    The two are apart since Linux refuses O_CREAT on somebody else's file in a sticky folder (`fs.protected_regular`).
    """
    flags = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    while True:
        try:
            return os.open(path, os.O_RDWR | flags)
        except PermissionError:
            return os.open(path, os.O_RDONLY | flags)
        except FileNotFoundError:
            pass
        with contextlib.suppress(FileExistsError):
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | flags, _FILE_MODE)
            # The umask may have taken what the others need.
            os.fchmod(descriptor, _FILE_MODE)
            return descriptor


def _acquire(
    descriptor: int, name: str, *, shared: bool, deadline: float, timeout: float, tell: Callable[[str], None]
) -> None:
    operation = (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB
    while True:
        try:
            fcntl.flock(descriptor, operation)
        except BlockingIOError:
            if time.monotonic() >= deadline:
                raise InfrastructureError(
                    f"the host lock '{name}' was not free within {timeout:.0f} s",
                    hint="another build or replay runs on this machine; try again later",
                ) from None
            tell(f"waiting for another build or replay on this machine (lock '{name}')")
            time.sleep(_POLL_SECONDS)
        else:
            return


def _once(waiting: Callable[[str], None] | None) -> Callable[[str], None]:
    told: list[str] = []

    def tell(text: str) -> None:
        if waiting is not None and not told:
            waiting(text)
        told.append(text)

    return tell
