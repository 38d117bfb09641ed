"""What is seen of a running process: threads, memory, CPUs; a look is cheap, since replays share the CPUs with it."""

from __future__ import annotations

import contextlib
import os
import re
import sys
from dataclasses import dataclass, field
from pathlib import Path

import psutil

_LINUX = sys.platform == "linux"
_KIB = 1024
_STATUS = re.compile(rb"^(Threads|VmHWM):\s*(\d+)", re.MULTILINE)
# What an entry of a folder counts at least: an empty file takes room too, and it bounds the entries that are looked at.
_ENTRY_BYTES = 4096


@dataclass
class Observation:
    """Peaks over all looks; memory in bytes, of the process itself.

    `peak_threads` counts the threads of the process and its descendants, `peak_runnable` those of them that wanted a
    CPU at the same moment (0 where the system does not tell). `cpus` are the CPUs that any of them could run on.
    """

    peak_threads: int = 0
    peak_runnable: int = 0
    peak_rss: int = 0
    cpus: frozenset[int] = frozenset()
    seen: dict[int, float] = field(default_factory=dict)

    def look(self, pid: int) -> None:
        """Take one look; a process that just ended is no error."""
        with contextlib.suppress(psutil.Error, OSError):
            if _LINUX:
                self._look_at_proc(pid)
            else:
                self._look_with_psutil(pid)

    def _look_at_proc(self, pid: int) -> None:
        threads = runnable = 0
        for member in [pid, *_descendants(pid)]:
            status = dict(_STATUS.findall(Path(f"/proc/{member}/status").read_bytes()))
            count = int(status.get(b"Threads", 0))
            threads += count
            runnable += _runnable(member)
            if member == pid:
                self.peak_rss = max(self.peak_rss, int(status.get(b"VmHWM", 0)) * _KIB)
            self.cpus |= os.sched_getaffinity(member)
        self.peak_threads = max(self.peak_threads, threads)
        self.peak_runnable = max(self.peak_runnable, runnable)

    def _look_with_psutil(self, pid: int) -> None:
        process = psutil.Process(pid)
        children = process.children(recursive=True)
        threads = process.num_threads()
        for child in children:
            # Orphans cannot be adopted here, so what was seen is what can be ended.
            self.seen[child.pid] = child.create_time()
            with contextlib.suppress(psutil.Error):
                threads += child.num_threads()
        self.peak_threads = max(self.peak_threads, threads)
        self.peak_rss = max(self.peak_rss, process.memory_info().rss)


def children_of(pid: int) -> list[int]:
    """Direct children of a process, ended ones included."""
    try:
        lists = [path.read_bytes() for path in Path(f"/proc/{pid}/task").glob("*/children")]
    except OSError:
        lists = []
    if lists:
        return [int(child) for line in lists for child in line.split()]
    # Not Linux, or a kernel that does not list children: look at every process of the machine.
    with contextlib.suppress(psutil.Error):
        return [child.pid for child in psutil.Process(pid).children()]
    return []


def _descendants(pid: int) -> list[int]:
    found = children_of(pid)
    for child in found:
        found.extend(children_of(child))
    return found


def _runnable(pid: int) -> int:
    count = 0
    for path in Path(f"/proc/{pid}/task").glob("*/stat"):
        with contextlib.suppress(OSError):
            # The state follows the name, which is in parentheses and may hold anything.
            count += path.read_bytes().rpartition(b")")[2].split()[0] == b"R"
    return count


def size_of_tree(root: Path, *, limit: int) -> int:
    """Bytes of everything below `root`, links not followed; counting stops above `limit`."""
    total = 0
    folders = [str(root)]
    while folders:
        with contextlib.suppress(OSError), os.scandir(folders.pop()) as entries:
            for entry in entries:
                with contextlib.suppress(OSError):
                    if entry.is_dir(follow_symlinks=False):
                        folders.append(entry.path)
                    total += max(_ENTRY_BYTES, entry.stat(follow_symlinks=False).st_size)
                if total > limit:
                    return total
    return total


def size_of_file(path: Path) -> int:
    """Bytes of a file; 0 when there is none."""
    try:
        return path.stat().st_size
    except OSError:
        return 0
