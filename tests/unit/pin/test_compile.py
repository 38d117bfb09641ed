"""What cargo compiled before and must not take again."""

from __future__ import annotations

from pathlib import Path

import pytest

from replay_parity.pin.compile import _restore, forget
from replay_parity.pin.slot import Slot
from replay_parity.pin.store import LayerStore

HASH = "0123456789abcdef"
OURS = [
    f".fingerprint/my-core-{HASH}/lib-my_core",
    f"build/my-core-{HASH}/build-script-build",
    f"deps/libmy_core-{HASH}.rlib",
    f"deps/libmy_core-{HASH}.so",
    f"deps/my_core-{HASH}.d",
    f"deps/my_core-{HASH}",
    f"deps/my_core-{HASH}.my_core.1234-cgu.0.rcgu.o",
]
OTHERS = [
    f".fingerprint/not-my-core-{HASH}/lib-not_my_core",
    f".fingerprint/my-core-extra-{HASH}/lib-my_core_extra",
    f"deps/libnot_my_core-{HASH}.rlib",
    f"deps/libmy_core_extra-{HASH}.rlib",
    f"deps/my_core_extra-{HASH}.d",
    f"build/core-{HASH}/out",
    f".fingerprint/libmy-core-{HASH}/lib-libmy_core",
    f"build/libmy-core-{HASH}/out",
    f"deps/other-{HASH}.my-core-{HASH}.o",
    f"deps/my-core-extra-{HASH}.my-core-{HASH}.rcgu.o",
    f"deps/my-core-{HASH}0.d",
    f"deps/my-core-{HASH[1:]}.d",
    f"deps/my-core-{HASH.upper()}.d",
    "deps/my_core",
    "loose-packages.txt",
]


@pytest.fixture
def profile(tmp_path: Path) -> Path:
    """A profile's folder of cargo's target folder."""
    for name in OURS + OTHERS:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    return tmp_path


def left(folder: Path) -> set[str]:
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}


def test_a_package_is_forgotten_and_no_other_of_a_similar_name(profile: Path) -> None:
    forget(profile, ["my-core"])
    assert left(profile) == set(OTHERS)


def test_nothing_is_forgotten_without_a_name_or_a_folder(profile: Path, tmp_path: Path) -> None:
    forget(profile, [])
    assert left(profile) == set(OURS + OTHERS)
    forget(tmp_path / "absent", ["my-core"])


@pytest.fixture
def built(tmp_path: Path) -> Slot:
    """A slot with what a build of another side left in it."""
    slot = Slot(tmp_path)
    profile = slot.target / "debug"
    for name in (f".fingerprint/serde-{HASH}", f".fingerprint/far-{HASH}", f".fingerprint/near-{HASH}"):
        (profile / name).mkdir(parents=True)
    (profile / "loose-packages.txt").write_text("far")
    return slot


def restore(slot: Slot) -> tuple[str, set[str]]:
    """What is reused for a side whose package 'near' is its own, in words and as fingerprints."""
    layers, profile = LayerStore(slot.path.parent / "cache"), slot.target / "debug"
    said = _restore(slot, layers, exact="0", base="1", profile_folder=profile, loose=frozenset({"near"}))
    return said, {path.name for path in profile.glob(".fingerprint/*")}


def test_loose_packages_of_both_sides_are_forgotten(built: Slot) -> None:
    assert restore(built) == ("dependencies", {f"serde-{HASH}"})
    assert set((built.target / "debug" / "loose-packages.txt").read_text().split()) >= {"far", "near"}


@pytest.mark.parametrize("content", [b"\xff\xfe", b"x" * (1 << 21), None])
def test_a_list_that_is_not_ours_costs_what_was_compiled(built: Slot, content: bytes | None) -> None:
    """A build script can write there."""
    listed = built.target / "debug" / "loose-packages.txt"
    listed.unlink()
    listed.mkdir() if content is None else listed.write_bytes(content)
    assert restore(built) == ("", set())


def test_a_target_folder_of_another_form_is_not_reused(built: Slot) -> None:
    """What a later cargo may make of it: no package could be forgotten there."""
    (built.target / "debug" / ".fingerprint").rename(built.target / "debug" / "fingerprints")
    assert restore(built) == ("", set())
    assert [path.name for path in (built.target / "debug").iterdir()] == ["loose-packages.txt"]
