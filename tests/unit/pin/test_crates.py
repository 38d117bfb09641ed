"""Vendored packages are what the lock's checksums say, or nothing is built (threat 18)."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path

import pytest

from replay_parity.errors import InfrastructureError
from replay_parity.pin.crates import verify_vendored
from replay_parity.pin.models import LockedPackage
from replay_parity.system.files import sha256_file


@pytest.fixture
def package(tmp_path: Path) -> LockedPackage:
    """A downloaded archive in a cargo home, and its files as vendored."""
    files = {"Cargo.toml": b"[package]", "src/lib.rs": b"// code"}
    archive = tmp_path / "home" / "registry" / "cache" / "some-index" / "a-1.0.0.crate"
    archive.parent.mkdir(parents=True)
    with tarfile.open(archive, "w:gz") as tar:
        for name, data in files.items():
            info = tarfile.TarInfo(f"a-1.0.0/{name}")
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
            path = tmp_path / "vendor" / "a-1.0.0" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
    (tmp_path / "vendor" / "a-1.0.0" / ".cargo-checksum.json").write_text("{}")
    return LockedPackage(name="a", version="1.0.0", source="registry+x", checksum=sha256_file(archive))


def verify(folder: Path, *locked: LockedPackage) -> int:
    return verify_vendored(folder / "vendor", locked, cargo_home=folder / "home")


def test_untouched_packages_are_counted(tmp_path: Path, package: LockedPackage) -> None:
    path_package = LockedPackage(name="own", version="1.0.0")
    elsewhere = LockedPackage(name="b", version="1.0.0", source="registry+x", checksum="0" * 64)
    assert verify(tmp_path, package, path_package, elsewhere) == 1


@pytest.mark.parametrize("change", ["edited", "added", "linked"])
def test_a_changed_source_is_found(tmp_path: Path, package: LockedPackage, change: str) -> None:
    folder = tmp_path / "vendor" / "a-1.0.0" / "src"
    if change == "edited":
        (folder / "lib.rs").write_bytes(b"// c0de")
    elif change == "added":
        (folder / "more.rs").write_bytes(b"")
    else:
        (folder / "lib.rs").unlink()
        (folder / "lib.rs").symlink_to("/etc/passwd")
    with pytest.raises(InfrastructureError, match=r"of a 1\.0\.0 is not what the registry checksum names"):
        verify(tmp_path, package)


def test_a_changed_archive_is_found(tmp_path: Path, package: LockedPackage) -> None:
    archive = next((tmp_path / "home").rglob("*.crate"))
    archive.write_bytes(archive.read_bytes() + b"x")
    with pytest.raises(InfrastructureError, match="does not have the checksum"):
        verify(tmp_path, package)
