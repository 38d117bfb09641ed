from __future__ import annotations

from pathlib import Path

import pytest

from replay_parity.campaign.builtin import builtin_configs
from replay_parity.errors import InfrastructureError


def _package(root: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    package = root / "src" / "replay_parity"
    package.mkdir(parents=True)
    monkeypatch.setattr("importlib.resources.files", lambda _: package)
    return package


def test_the_source_tree_serves_a_checkout() -> None:
    assert builtin_configs() == Path(__file__).parents[3] / "configs"


def test_an_installation_has_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own = _package(tmp_path, monkeypatch) / "builtin" / "configs"
    for folder in (own, tmp_path / "configs"):
        (folder / "campaigns").mkdir(parents=True)
    assert builtin_configs() == own


def test_a_broken_installation_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _package(tmp_path, monkeypatch)
    with pytest.raises(InfrastructureError, match="install replay-parity again"):
        builtin_configs()
