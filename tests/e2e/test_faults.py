"""Interrupts and full disks: nothing lost, nothing half-written, the next run continues."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from tests.support.cli import run_campaign
from tests.support.files import DEMO_ROWS

pytestmark = pytest.mark.engine

_PATIENCE_SECONDS = 2400


@pytest.fixture(scope="module", autouse=True)
def built(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Engines of the demo are in the cache, so that what is interrupted are replays."""
    done = run_campaign("demo", tmp_path_factory.mktemp("built") / "results", "--row", DEMO_ROWS[1])
    assert done.code == 0, done.err


def runners(output: Path) -> list[psutil.Process]:
    """Runner processes that write below a folder."""
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            if process.cmdline()[:1] == ["replay-parity-runner"] and process.cwd().startswith(str(output)):
                found.append(process)
    return found


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_ends_everything_and_the_next_run_continues(number: signal.Signals, tmp_path: Path) -> None:
    output = tmp_path / "results"
    command = [sys.executable, "-m", "replay_parity", "run", "demo", "--output", str(output)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        deadline = time.monotonic() + _PATIENCE_SECONDS
        first = output / "rows" / DEMO_ROWS[0] / "attempt-1" / "result.json"
        while not (first.exists() and runners(output)) and process.poll() is None:
            assert time.monotonic() < deadline
            time.sleep(0.01)
        process.send_signal(number)
        out, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert "interrupted" in err
    assert "Traceback" not in err
    assert out == ""
    assert runners(output) == []
    assert not (output / "verdict.json").exists()
    kept = first.read_bytes()
    done = run_campaign("demo", output)
    assert done.code == 0, done.err
    assert f": {DEMO_ROWS[0]}" not in done.err, "a finished row is not replayed again"
    assert f": {DEMO_ROWS[-1]}" in done.err
    assert first.read_bytes() == kept
    assert not list(output.rglob("*.part"))
    assert not list(output.rglob("work"))


def test_a_run_that_was_killed_is_recovered_from(tmp_path: Path) -> None:
    output = tmp_path / "results"
    command = [sys.executable, "-m", "replay_parity", "run", "demo", "--output", str(output), "--row", DEMO_ROWS[0]]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL) as process:
        while not runners(output) and process.poll() is None:
            time.sleep(0.01)
        process.kill()
    done = run_campaign("demo", output, "--row", DEMO_ROWS[0])
    assert done.code == 0, done.err
    assert done.row(DEMO_ROWS[0])["outcome"] == "match"


@contextlib.contextmanager
def small_disk(folder: Path, size: str) -> Iterator[Path]:
    folder.mkdir()
    mount = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)], capture_output=True, check=False
    )
    if mount.returncode != 0:
        pytest.skip("a small file system cannot be mounted here")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


def test_a_disk_that_is_full_during_a_replay_is_an_error_and_no_verdict_on_parity(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", "6m") as disk:
        done = run_campaign("demo", disk / "results", "--row", DEMO_ROWS[0])
        assert done.code == 3, done.out + done.err
        assert "No space left on device" in done.err
        assert "free some space" in done.err
        assert not (disk / "results" / "verdict.json").exists()
        assert not list((disk / "results").rglob("work")), "what was half-written is gone"
    again = run_campaign("demo", tmp_path / "results", "--row", DEMO_ROWS[0])
    assert again.code == 0


def test_a_disk_that_is_full_from_the_start_is_one_clear_sentence(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", "8k") as disk:
        done = run_campaign("demo", disk / "results", "--row", DEMO_ROWS[0])
        assert done.code == 3, done.out + done.err
        assert "No space left on device" in done.err
        assert "free some space" in done.err
        assert "Traceback" not in done.err
        assert not (disk / "results" / "verdict.json").exists()


def test_two_runs_in_one_folder_do_not_mix(tmp_path: Path) -> None:
    output = tmp_path / "results"
    command = [sys.executable, "-m", "replay_parity", "run", "demo", "--output", str(output), "--row", DEMO_ROWS[0]]
    with subprocess.Popen(
        command, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=dict(os.environ)
    ) as one:
        while not runners(output) and one.poll() is None:
            time.sleep(0.01)
        other = run_campaign("demo", output, "--row", DEMO_ROWS[0])
        _, err = one.communicate(timeout=_PATIENCE_SECONDS)
    assert one.returncode == 0, err
    assert other.code == 3
    assert "another run" in other.err
    assert json.loads((output / "verdict.json").read_text())["verdict"] == "PASS"
