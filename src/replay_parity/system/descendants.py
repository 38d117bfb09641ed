"""Ending what a process started: its group, its descendants, and orphans that forked away (threat 15).

On Linux this process is a subreaper: whoever loses its parent below us becomes our child, whatever it did to hide. All
our processes live in sessions of their own, so a child of ours in another session than ours that we did not start
ourselves is such an orphan. Elsewhere descendants are known when they were seen, or when they carry the marker.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Protocol, TypeVar

import psutil

from replay_parity.errors import InfrastructureError
from replay_parity.system.observe import children_of

# Names who started a process, for orphans; a process may drop it, and is found by its session then.
MARKER = "REPLAY_PARITY_CHILD"
_PR_SET_CHILD_SUBREAPER = 36
_PATIENCE_SECONDS = 10.0
_PAUSE_SECONDS = 0.005
_SAME_MOMENT_SECONDS = 1e-3
_LINUX = sys.platform == "linux"


class _Started(Protocol):
    """Anything with a process id."""

    @property
    def pid(self) -> int: ...


_S = TypeVar("_S", bound=_Started)


class Family:
    """The processes that we started and that have not ended, by process id, with their markers.

    Whatever else in this Python process starts children in sessions of their own must do so while none of ours lives.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._live: dict[int, str] = {}
        self._strangers: frozenset[int] = frozenset()

    def born(self, marker: str, start: Callable[[], _S]) -> _S:
        """Start a process and take it in; `start` returns something with its `pid`."""
        with self._lock:
            if _LINUX:
                ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
            if not self._live:
                # Children of others in this Python process; nothing of ours lives now.
                self._strangers = frozenset(children_of(os.getpid()))
            started = start()
            self._live[started.pid] = marker
        return started

    def ended(self, pid: int, marker: str, seen: Mapping[int, float]) -> int:
        """A process was waited for: end whatever it left behind; returns how many processes lived on.

        Raises InfrastructureError when they come back faster than they can be ended.
        """
        with self._lock:
            self._live.pop(pid, None)
            if not _LINUX:
                signal_group(pid, signal.SIGKILL)
            lived: set[int] = set()
            deadline = time.monotonic() + _PATIENCE_SECONDS
            while strays := self._orphans(marker) if _LINUX else _carriers(marker, seen):
                if time.monotonic() > deadline:
                    raise InfrastructureError(
                        f"{len(strays)} processes that a child left behind cannot be ended",
                        hint="look for them with ps, end them by hand, and do not trust this node's results",
                    )
                lived.update(stray for stray in strays if not _is_zombie(stray))
                _kill(strays)
                time.sleep(_PAUSE_SECONDS)
        return len(lived)

    def _orphans(self, marker: str) -> list[int]:
        others = set(self._live.values())
        return [
            pid
            for pid in children_of(os.getpid())
            if pid not in self._live
            and pid not in self._strangers
            and _session(pid) not in {None, os.getsid(0)}
            # One that says whose it is waits for its turn; one that hides it goes at once.
            and _marker(pid) not in others - {marker}
        ]


def signal_group(pid: int, number: signal.Signals) -> None:
    """Send a signal to the group that a started process leads."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, number)


def _session(pid: int) -> int | None:
    try:
        return os.getsid(pid)
    except OSError:
        return None


def _marker(pid: int) -> str | None:
    with contextlib.suppress(psutil.Error, OSError):
        return psutil.Process(pid).environ().get(MARKER)
    return None


def _is_zombie(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.Error:
        return True


def _kill(pids: Iterable[int]) -> None:
    for pid in pids:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            group = os.getpgid(pid)
            if group != os.getpgid(0):
                os.killpg(group, signal.SIGKILL)
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signal.SIGKILL)
        # An orphan that came to us is waited for here; elsewhere it is nobody's child of ours.
        with contextlib.suppress(ChildProcessError):
            os.waitpid(pid, os.WNOHANG)


def _carriers(marker: str, seen: Mapping[int, float]) -> list[int]:
    found: set[int] = set()
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error, OSError):
            if process.status() == psutil.STATUS_ZOMBIE:
                continue  # its parent waits for it
            known = seen.get(process.pid)
            same = known is not None and abs(process.create_time() - known) < _SAME_MOMENT_SECONDS
            if same or (process.ppid() in {1, os.getpid()} and process.environ().get(MARKER) == marker):
                found.add(process.pid)
    return sorted(found)
