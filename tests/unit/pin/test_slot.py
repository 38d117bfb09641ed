"""The slot: where builds may run, and how it is laid out."""

from __future__ import annotations

import os
import tempfile
import tomllib
from collections.abc import Callable
from importlib import resources
from pathlib import Path

import pytest

from replay_parity.errors import InfrastructureError, RevisionError
from replay_parity.pin import slot
from replay_parity.pin.runner_source import copy_runner_source, runner_folder, runner_source_sha256, shipped_lock
from replay_parity.pin.slot import PINNED_SECONDS, Slot, choose_build_root, configuring_parent
from replay_parity.system.files import sha256_tree
from tests.support.tiny import build_of


@pytest.mark.parametrize("name", [".cargo", "rust-toolchain", "rust-toolchain.toml"])
@pytest.mark.parametrize("make", [Path.mkdir, Path.touch, lambda path: path.symlink_to("nowhere")])
def test_a_configured_root_below_a_configuring_folder_is_refused(
    tmp_path: Path, name: str, make: Callable[[Path], None]
) -> None:
    make(tmp_path / name)
    root = tmp_path / "deep" / "root"
    with pytest.raises(InfrastructureError, match="builds cannot run below") as caught:
        choose_build_root(root, cache=tmp_path / "cache")
    assert str(tmp_path / name) in str(caught.value)
    assert "REPLAY_PARITY_BUILD_ROOT" in str(caught.value)
    assert not root.exists()


def test_a_link_does_not_hide_the_real_parents(tmp_path: Path) -> None:
    (tmp_path / "real" / ".cargo").mkdir(parents=True)
    (tmp_path / "link").symlink_to("real")
    assert configuring_parent(tmp_path / "link" / "root") == tmp_path / "real" / ".cargo"


def test_a_clean_configured_root_is_made_private(tmp_path: Path) -> None:
    root = choose_build_root(tmp_path / "a" / "root", cache=tmp_path / "cache")
    assert root == tmp_path / "a" / "root"
    assert root.stat().st_mode & 0o777 == 0o700


def test_a_clean_place_is_chosen_and_the_cache_is_the_last_of_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A home folder gets its `.cargo` when cargo is used for the first time."""
    home = tmp_path / "home"
    cache = home / ".cache" / "replay-parity"
    (home / ".cargo").mkdir(parents=True)
    elsewhere = choose_build_root(None, cache=cache)
    assert not elsewhere.is_relative_to(home)
    assert configuring_parent(elsewhere) is None
    temporary = [Path("/var/tmp"), Path(tempfile.gettempdir())]

    def blocked(*places: Path) -> Callable[[Path], Path | None]:
        return lambda folder: folder / ".cargo" if folder.parent in places else None

    monkeypatch.setattr(slot, "configuring_parent", blocked(*temporary))
    assert choose_build_root(None, cache=cache) == cache / "build"
    monkeypatch.setattr(slot, "configuring_parent", blocked(*temporary, cache))
    with pytest.raises(InfrastructureError, match="no folder for builds was found"):
        choose_build_root(None, cache=cache)


def test_a_root_that_others_can_write_to_is_refused(tmp_path: Path) -> None:
    (tmp_path / "root").mkdir()
    (tmp_path / "root").chmod(0o777)
    with pytest.raises(InfrastructureError, match="is not a folder that only you can write to"):
        choose_build_root(tmp_path / "root", cache=tmp_path / "cache")


@pytest.fixture
def laid_out(tmp_path: Path, tiny_runner: Path) -> Slot:
    found = Slot(tmp_path)
    found.clear()
    found.checkout.mkdir()
    return found


def test_the_layout_is_the_one_that_makes_builds_reproducible(laid_out: Slot) -> None:
    (laid_out.checkout / "crates" / "core").mkdir(parents=True)
    (laid_out.checkout / "crates" / "core" / "Cargo.toml").write_text("")
    laid_out.lay_out(core="crates/core", build=build_of(profile="release"))
    manifest = tomllib.loads((laid_out.path / "Cargo.toml").read_text())
    assert manifest["workspace"] == {"members": ["runner"], "exclude": ["checkout"], "resolver": "3"}
    assert list(manifest["profile"]) == ["release"]
    assert manifest["profile"]["release"]["incremental"] is False
    assert sha256_tree(laid_out.path / "runner") == runner_source_sha256()
    times = {path.lstat().st_mtime for folder in ("runner", "checkout") for path in (laid_out.path / folder).rglob("*")}
    assert times == {PINNED_SECONDS}


@pytest.mark.parametrize("core", ["engine", "core", "rust/engine", "rust/core", "crates/engine", "a/b/c/engine"])
def test_a_crate_elsewhere_is_reached_as_crates_core_with_its_neighbours(laid_out: Slot, core: str) -> None:
    home = laid_out.checkout / core
    home.mkdir(parents=True)
    (home / "Cargo.toml").write_text("here")
    (home.parent / "neighbour").mkdir()
    laid_out.lay_out(core=core, build=build_of())
    reached = laid_out.checkout / "crates" / "core"
    assert (reached / "Cargo.toml").read_text() == "here"
    # As cargo goes up: by name, not through the link.
    assert Path(os.path.normpath(reached / ".." / "neighbour")).is_dir()


@pytest.mark.parametrize("taken", ["crates", "crates/core"])
def test_a_crate_elsewhere_does_not_replace_what_is_there(laid_out: Slot, taken: str) -> None:
    (laid_out.checkout / "crates" / "core").mkdir(parents=True)
    core = "engine" if taken == "crates" else "crates/engine"
    (laid_out.checkout / core).mkdir()
    with pytest.raises(RevisionError, match=f"the revision has something else at '{taken}'"):
        laid_out.lay_out(core=core, build=build_of())


def test_clearing_keeps_only_what_was_compiled(laid_out: Slot) -> None:
    for name in ("target", "vendor", "runner"):
        (laid_out.path / name).mkdir()
    laid_out.lock.write_text("")
    laid_out.checkout.chmod(0o000)
    laid_out.clear_sources()
    assert [entry.name for entry in laid_out.path.iterdir()] == ["target"]
    laid_out.clear()
    assert list(laid_out.path.iterdir()) == []


def test_the_shipped_runner_is_complete(tmp_path: Path) -> None:
    assert b'name = "replay-parity-runner"' in shipped_lock()
    copy_runner_source(tmp_path / "copy")
    assert sha256_tree(tmp_path / "copy") == runner_source_sha256()
    assert not (tmp_path / "copy" / "Cargo.lock").exists()


def test_an_installation_without_the_runner_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resources, "files", lambda _: tmp_path)
    with pytest.raises(InfrastructureError, match="the runner's source is missing from this installation"):
        runner_folder()


def test_a_runner_that_is_edited_meanwhile_is_not_built(tmp_path: Path, tiny_runner: Path) -> None:
    runner_source_sha256()
    (tiny_runner / "src" / "main.rs").write_text("fn main() {}")
    with pytest.raises(InfrastructureError, match="the runner's source changed while replay-parity ran"):
        copy_runner_source(tmp_path / "copy")
