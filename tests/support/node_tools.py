"""What tests use of the npm registry: installed once, by its lock, into the user's cache and never into the checkout.

The cache and the environment are taken when this module is imported: unit tests replace HOME later.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
from pathlib import Path

import platformdirs
import pytest

_TOOLS = Path(__file__).resolve().parents[1] / "tools"
_LOCK = _TOOLS / "package-lock.json"
_CACHE = Path(platformdirs.user_cache_dir("replay-parity-tools"))
_ENVIRONMENT = dict(os.environ)
_NPM = shutil.which("npm")
_TIMEOUT_SECONDS = 900
# GitHub's descriptions of products that no test reads: nine tenths of the disk space.
_UNUSED = ("@octokit/openapi/generated/*.deref.json", "@octokit/openapi/generated/gh*.json")


def node_tools() -> Path:
    """The folder `node_modules` with everything that tests/tools/package-lock.json names.

    Skips the test when npm is missing or cannot install; in CI both are failures.
    """
    folder = _CACHE / hashlib.sha256(_LOCK.read_bytes()).hexdigest()
    ready = folder / ".ready"
    if not ready.is_file():
        _CACHE.mkdir(parents=True, exist_ok=True)
        with (_CACHE / f"{folder.name}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not ready.is_file():
                _install(folder)
                ready.touch()
    return folder / "node_modules"


def _install(folder: Path) -> None:
    if _NPM is None:
        _give_up("npm is not installed")
        return
    folder.mkdir(exist_ok=True)
    for name in ("package.json", "package-lock.json"):
        shutil.copyfile(_TOOLS / name, folder / name)
    done = subprocess.run(
        [_NPM, "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--no-update-notifier"],
        cwd=folder,
        env=_ENVIRONMENT,
        capture_output=True,
        text=True,
        timeout=_TIMEOUT_SECONDS,
        check=False,
    )
    if done.returncode != 0:
        _give_up(f"npm could not install the tools of tests: {done.stderr[-2000:]}")
    for pattern in _UNUSED:
        for path in (folder / "node_modules").glob(pattern):
            path.unlink()


def _give_up(reason: str) -> None:
    if os.environ.get("CI"):
        pytest.fail(reason)
    pytest.skip(reason)
