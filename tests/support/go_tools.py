"""Programs in Go that tests use: act, the workflow engine, and actionlint; built once into the cache."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
from pathlib import Path

import platformdirs
import pytest

_MODULES = {
    "act": "github.com/nektos/act@v0.2.89",
    "actionlint": "github.com/rhysd/actionlint/cmd/actionlint@v1.7.12",
}
_CACHE = Path(platformdirs.user_cache_dir("replay-parity-tools")) / "go"
_ENVIRONMENT = dict(os.environ)
_GO = shutil.which("go")
_TIMEOUT_SECONDS = 1800


def go_tool(name: str) -> Path:
    """Path of the program; the test is skipped when Go is missing, which in CI is a failure."""
    module = _MODULES[name]
    place = _CACHE / module.rpartition("@")[2]
    program = place / name
    if not program.is_file():
        place.mkdir(parents=True, exist_ok=True)
        with (place / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not program.is_file():
                _install(module, place)
    return program


def _install(module: str, place: Path) -> None:
    if _GO is None:
        _give_up("go is not installed")
        return
    done = subprocess.run(
        [_GO, "install", module],
        env={**_ENVIRONMENT, "GOBIN": str(place), "GOFLAGS": "-modcacherw"},
        capture_output=True,
        text=True,
        timeout=_TIMEOUT_SECONDS,
        check=False,
    )
    if done.returncode != 0:
        _give_up(f"go could not install {module}: {done.stderr[-2000:]}")


def _give_up(reason: str) -> None:
    if os.environ.get("CI"):
        pytest.fail(reason)
    pytest.skip(reason)
