"""Programs in Go that tests and linters use: act, the workflow engine, and actionlint; built once into the cache.

`python -m tests.support.go_tools actionlint` runs one of them; it is passed over when Go is missing, except in CI.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
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
_IN_CI = bool(os.environ.get("CI"))
_TIMEOUT_SECONDS = 1800


class ToolMissingError(Exception):
    """Why there is no such program on this machine."""


def go_tool(name: str) -> Path:
    """Path of the program; the test is skipped when Go is missing, which in CI is a failure."""
    try:
        return built(name)
    except ToolMissingError as error:
        if _IN_CI:
            pytest.fail(str(error))
        pytest.skip(str(error))


def built(name: str) -> Path:
    """Path of the program, built first when it is not in the cache; ToolMissingError when that cannot be."""
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
        raise ToolMissingError("go is not installed")
    done = subprocess.run(
        [_GO, "install", module],
        env={**_ENVIRONMENT, "GOBIN": str(place), "GOFLAGS": "-modcacherw"},
        capture_output=True,
        text=True,
        timeout=_TIMEOUT_SECONDS,
        check=False,
    )
    if done.returncode != 0:
        raise ToolMissingError(f"go could not install {module}: {done.stderr[-2000:]}")


def main(arguments: Sequence[str]) -> int:
    """Run a program with its arguments; its exit code."""
    name, *rest = arguments
    try:
        program = built(name)
    except ToolMissingError as error:
        sys.stderr.write(f"{name} was {'needed, but' if _IN_CI else 'passed over:'} {error}\n")
        return 1 if _IN_CI else 0
    return subprocess.run([program, *rest], check=False).returncode


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
