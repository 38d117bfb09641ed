"""Fixtures of the tests that run the whole product."""

from __future__ import annotations

import os
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def repository_root() -> Path:
    return Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def mooncake(repository_root: Path) -> Path:
    """Folder of the real Mooncake traces; they are not part of the project."""
    folder = Path(os.environ.get("REPLAY_PARITY_SHARED", repository_root.parent / "shared")) / "data" / "mooncake"
    if not (folder / "conversation_trace.jsonl").is_file():
        pytest.skip(f"the Mooncake traces are not at {folder}; set REPLAY_PARITY_SHARED")
    return folder
