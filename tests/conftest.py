"""The tests' common ground: unit tests are fenced off the real home, the real cache and the network.

Real programs do run (git, cargo), so the fence is made of the environment that they get, and of a socket that reaches
this machine only. Tests elsewhere run the product as its users do.
"""

from __future__ import annotations

import itertools
import os
import socket
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

# A loaded machine is no fault of the code; the nightly run looks longer.
settings.register_profile("default", deadline=None, print_blob=True)
settings.register_profile("nightly", parent=settings.get_profile("default"), max_examples=2_000)
settings.load_profile("nightly" if os.environ.get("REPLAY_PARITY_NIGHTLY") else "default")

_UNIT = Path(__file__).resolve().parent / "unit"
_NUMBERS = itertools.count()
# Nobody listens there: a program that wants to leave this machine fails at once.
_NOWHERE = "http://127.0.0.1:9"
_PROXIES = ("http_proxy", "https_proxy", "all_proxy", "HTTPS_PROXY", "ALL_PROXY")
_DROPPED = ("GIT_", "CARGO_", "RUST", "GITHUB_", "ACTIONS_")
_REAL_ENVIRONMENT = dict(os.environ)


@pytest.fixture(scope="session")
def user_environment() -> Mapping[str, str]:
    """The environment of whoever runs the tests: for tests marked `engine`, which need the user's own registry."""
    return _REAL_ENVIRONMENT


@pytest.fixture(scope="session")
def _fenced_ground(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("fenced")


@pytest.fixture(autouse=True)
def _fence(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every unit test gets a home, caches and locks of its own, and no way out."""
    if not request.path.is_relative_to(_UNIT):
        return
    ground: Path = request.getfixturevalue("_fenced_ground") / str(next(_NUMBERS))
    for name in _REAL_ENVIRONMENT:
        if name.startswith(_DROPPED):
            monkeypatch.delenv(name, raising=False)
    for name, value in fenced_environment(ground).items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(socket.socket, "connect", _connect_here(socket.socket.connect))


def fenced_environment(ground: Path) -> dict[str, str]:
    """Where a fenced test lives: everything below `ground`, whose home exists."""
    home = ground / "home"
    home.mkdir(parents=True)
    return {
        "HOME": str(home),
        "XDG_CACHE_HOME": str(home / ".cache"),
        "XDG_CONFIG_HOME": str(home / ".config"),
        "XDG_DATA_HOME": str(home / ".local" / "share"),
        "XDG_STATE_HOME": str(home / ".local" / "state"),
        "CARGO_HOME": str(home / ".cargo"),
        "CARGO_NET_OFFLINE": "true",
        # The compilers lie there; they are only read.
        "RUSTUP_HOME": _REAL_ENVIRONMENT.get("RUSTUP_HOME") or str(Path("~/.rustup").expanduser()),
        "RUSTUP_AUTO_INSTALL": "0",
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_TERMINAL_PROMPT": "0",
        "REPLAY_PARITY_CACHE": str(ground / "cache"),
        "REPLAY_PARITY_LOCK_DIR": str(ground / "locks"),
        "REPLAY_PARITY_BUILD_ROOT": str(ground / "build"),
        **dict.fromkeys(_PROXIES, _NOWHERE),
        "no_proxy": "localhost,127.0.0.1,::1",
    }


def _connect_here(connect: Any) -> Any:
    def guarded(self: socket.socket, address: Any) -> None:
        host = address[0] if isinstance(address, tuple) else ""
        if self.family in {socket.AF_INET, socket.AF_INET6} and host not in {"127.0.0.1", "::1", "localhost"}:
            raise AssertionError(f"a unit test wanted to reach {address!r}")
        connect(self, address)

    return guarded
