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

_POLL_SECONDS = 0.2


@contextlib.contextmanager
def host_lock(
    folder: Path,
    name: str,
    *,
    shared: bool,
    timeout: float,
    waiting: Callable[[str], None] | None = None,
) -> Iterator[None]:
    """Hold the lock `name` of this host, shared (samples) or alone (build); `timeout` in seconds.

    Raises InfrastructureError when the lock is not free in time.
    """
    descriptor = _open_lock(folder, name)
    try:
        _acquire(descriptor, name, shared=shared, timeout=timeout, waiting=waiting)
        yield
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def cpu_leases(
    folder: Path,
    wanted: Sequence[frozenset[int]],
    *,
    timeout: float,
    waiting: Callable[[str], None] | None = None,
) -> Iterator[None]:
    """Hold every CPU of `wanted`; taken in rising order, so that two campaigns cannot block each other."""
    with contextlib.ExitStack() as stack:
        for cpu in sorted(frozenset().union(*wanted)):
            stack.enter_context(host_lock(folder, f"cpu-{cpu}", shared=False, timeout=timeout, waiting=waiting))
        yield


def _open_lock(folder: Path, name: str) -> int:
    # Everybody on the host must be able to take the lock; the sticky bit keeps others from removing it.
    old = os.umask(0)
    try:
        with contextlib.suppress(FileExistsError):
            folder.mkdir(mode=0o1777, parents=True)
        path = folder / f"{name}.lock"
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666)
    except OSError as error:
        raise InfrastructureError(
            f"cannot open the host lock: {error.strerror}",
            where=str(folder / name),
            hint="set REPLAY_PARITY_LOCK_DIR",
        ) from error
    finally:
        os.umask(old)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise InfrastructureError("the host lock is not a regular file", where=str(path))
    return descriptor


def _acquire(
    descriptor: int, name: str, *, shared: bool, timeout: float, waiting: Callable[[str], None] | None
) -> None:
    operation = (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB
    deadline = time.monotonic() + timeout
    told = False
    while True:
        try:
            fcntl.flock(descriptor, operation)
        except BlockingIOError:
            if time.monotonic() > deadline:
                raise InfrastructureError(
                    f"the host lock '{name}' was not free within {timeout:.0f} s",
                    hint="another build or replay runs on this machine; try again later",
                ) from None
            if waiting is not None and not told:
                waiting(f"waiting for another build or replay on this machine (lock '{name}')")
                told = True
            time.sleep(_POLL_SECONDS)
        else:
            return
