"""Where builds run: never below a folder that configures cargo (rule 8)."""

from __future__ import annotations

from pathlib import Path

import pytest

from replay_parity.errors import InfrastructureError
from replay_parity.pin.slot import Slot, choose_build_root, configuring_parent


@pytest.mark.parametrize("name", [".cargo", "rust-toolchain", "rust-toolchain.toml"])
def test_a_cache_below_configuration_is_not_used_for_builds(tmp_path: Path, name: str) -> None:
    cache = tmp_path / "home" / ".cache" / "replay-parity"
    cache.mkdir(parents=True)
    (tmp_path / "home" / name).mkdir()
    assert configuring_parent(cache) == tmp_path / "home" / name
    root = choose_build_root(None, cache=cache)
    assert not root.is_relative_to(tmp_path)
    assert configuring_parent(root) is None
    with pytest.raises(InfrastructureError, match="cargo would read it"):
        choose_build_root(cache / "build", cache=cache)


def test_a_configured_folder_is_used_and_private(tmp_path: Path) -> None:
    root = choose_build_root(tmp_path / "builds", cache=tmp_path / "cache")
    assert root == tmp_path / "builds"
    assert root.stat().st_mode & 0o777 == 0o700


def test_links_do_not_hide_a_parent(tmp_path: Path) -> None:
    (tmp_path / "real" / ".cargo").mkdir(parents=True)
    (tmp_path / "real" / "inside").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real" / "inside")
    assert configuring_parent(tmp_path / "link") == tmp_path / "real" / ".cargo"


def test_a_folder_that_others_write_to_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "shared"
    folder.mkdir()
    folder.chmod(0o777)
    with pytest.raises(InfrastructureError, match="only you can write"):
        choose_build_root(folder, cache=tmp_path)


def test_a_slot_is_cleared_of_whatever_was_left(tmp_path: Path) -> None:
    slot = Slot(tmp_path)
    (slot.path / "target" / "release").mkdir(parents=True)
    (slot.path / "checkout").mkdir()
    (slot.path / "checkout").chmod(0o000)
    slot.clear_sources()
    assert [entry.name for entry in slot.path.iterdir()] == ["target"]
    slot.clear()
    assert list(slot.path.iterdir()) == []
