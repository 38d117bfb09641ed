"""Unit tests never touch the real home, the real cache or the host's locks; tests of whole campaigns do."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import settings

# A loaded machine is no fault of the code; the nightly run looks longer.
settings.register_profile("default", deadline=None, print_blob=True)
settings.register_profile("nightly", parent=settings.get_profile("default"), max_examples=2_000)
settings.load_profile("nightly" if os.environ.get("REPLAY_PARITY_NIGHTLY") else "default")

_UNIT = Path(__file__).parent / "unit"


@pytest.fixture(autouse=True)
def _fence(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    if not request.path.is_relative_to(_UNIT) or request.node.get_closest_marker("engine"):
        return
    home = tmp_path_factory.mktemp("home")
    # Toolchains and downloaded packages are read where they are; nothing else of the user is.
    real = Path(os.environ["HOME"])
    for name, folder in (("CARGO_HOME", ".cargo"), ("RUSTUP_HOME", ".rustup")):
        monkeypatch.setenv(name, os.environ.get(name) or str(real / folder))
    monkeypatch.setenv("HOME", str(home))
    for name in ("XDG_CACHE_HOME", "XDG_CONFIG_HOME", "REPLAY_PARITY_CACHE", "REPLAY_PARITY_LOCK_DIR"):
        monkeypatch.setenv(name, str(home / name.lower()))
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
