"""What a killed run left working is found by our marker and its folder, and nothing else is."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from replay_parity.system.orphans import end_orphans_in


def test_only_our_own_processes_are_ended_in_a_slot(tmp_path: Path) -> None:
    slot, beside = tmp_path / "slot", tmp_path / "slot-2"
    for folder in (slot / "deep", beside):
        folder.mkdir(parents=True)
    ours = {**os.environ, "REPLAY_PARITY_CHILD": "x"}
    sleep = ["sleep", "600"]
    started = [
        subprocess.Popen(sleep, cwd=slot / "deep", env=ours),
        subprocess.Popen(sleep, cwd=slot),
        subprocess.Popen(sleep, cwd=beside, env=ours),
    ]
    try:
        assert end_orphans_in(slot) == 1
        # It was our child, and waited for there: how it ended is not known any more.
        assert started[0].wait(timeout=10) is not None
        assert [process.poll() for process in started[1:]] == [None, None]
        assert end_orphans_in(tmp_path / "absent") == 0
    finally:
        for process in started:
            process.kill()
            process.wait()
