"""Real git and real cargo on tiny repositories."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from replay_parity.pin import runner_source
from replay_parity.pin.models import Toolchain
from replay_parity.pin.toolchain import resolve_toolchain
from replay_parity.settings import Settings
from tests.conftest import fenced_environment
from tests.support.tiny import Engines, Workshop, write_runner


@pytest.fixture
def environment() -> Mapping[str, str]:
    """The tool environment of a fenced test."""
    return Settings.from_environment(os.environ).tool_environment


@pytest.fixture(scope="session")
def toolchain(tmp_path_factory: pytest.TempPathFactory) -> Toolchain:
    """The toolchain that PATH finds."""
    ground = tmp_path_factory.mktemp("toolchain")
    settings = Settings.from_environment({"PATH": os.environ["PATH"], **fenced_environment(ground)})
    return resolve_toolchain("path", environment=settings.tool_environment, folder=ground)


@pytest.fixture
def tiny_runner(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The tiny runner in place of the shipped one."""
    folder = write_runner(tmp_path / "runner-source")
    monkeypatch.setattr(runner_source, "runner_folder", lambda: folder)
    runner_source.runner_source_sha256.cache_clear()
    yield folder
    runner_source.runner_source_sha256.cache_clear()


@pytest.fixture
def engines(tmp_path: Path) -> Engines:
    """An empty git repository for tiny engines."""
    return Engines(tmp_path / "repository")


@pytest.fixture
def make_workshop(toolchain: Toolchain, environment: Mapping[str, str], tmp_path: Path) -> Callable[[str], Workshop]:
    """Workshops below the test's folder, each with a cache and a build root of its own."""
    return lambda name: Workshop(tmp_path / name, toolchain, environment)


@pytest.fixture
def workshop(tiny_runner: Path, make_workshop: Callable[[str], Workshop]) -> Workshop:
    """One workshop with the tiny runner."""
    return make_workshop("workshop")
