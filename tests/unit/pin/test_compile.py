"""What cargo compiled before and must not take again."""

from __future__ import annotations

from pathlib import Path

import pytest

from replay_parity.pin.compile import forget

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
