"""What a killed run left working: its children outlive it, and the kernel has freed its locks already."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

import psutil

from replay_parity.system.descendants import MARKER

_WAIT_SECONDS = 10.0


def end_orphans_in(folder: Path) -> int:
    """End every process that some run of ours started and that works at or below `folder`; returns how many.

    Only for a folder whose lock the caller holds: the build of a run that was killed must not write into the slot of
    the next one. A process that does not carry our marker, such as a shell that stands there, is left alone.
    """
    root = os.path.realpath(folder)
    found = [process for process in psutil.process_iter() if _is_ours_in(process, root)]
    for process in found:
        with contextlib.suppress(psutil.Error):
            process.kill()
    psutil.wait_procs(found, timeout=_WAIT_SECONDS)
    return len(found)


def _is_ours_in(process: psutil.Process, root: str) -> bool:
    # A process of somebody else or one that just ended cannot be asked, and is not ours.
    with contextlib.suppress(psutil.Error, OSError):
        where = process.cwd().removesuffix(" (deleted)")
        return (where == root or where.startswith(f"{root}{os.sep}")) and MARKER in process.environ()
    return False
