"""Vendored packages against their archives."""

from __future__ import annotations

import hashlib
import io
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

from replay_parity.errors import InfrastructureError
from replay_parity.pin import crates
from replay_parity.pin.crates import find_archive, verify_vendored
from replay_parity.pin.models import LockedPackage

FILES = {
    "Cargo.toml": b"[package]",
    "src/lib.rs": b"pub fn x() {}",
    ".gitignore": b"target",
    "tests/.gitattributes": b"*",
    "Cargo.toml.orig": b"#",
    ".cargo_vcs_info.json": b"{}",
}
LEFT_OUT = {".gitignore", "tests/.gitattributes", "Cargo.toml.orig"}


def pack(path: Path, files: dict[str, bytes], prefix: str = "tiny-1.0.0") -> str:
    """A package archive; returns its SHA-256."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with tarfile.open(path, "w:gz") as tar:
        for name, data in files.items():
            member = tarfile.TarInfo(f"{prefix}/{name}")
            member.size = len(data)
            tar.addfile(member, io.BytesIO(data))
    return hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "cargo-home"


@pytest.fixture
def vendor(tmp_path: Path) -> Path:
    for name, data in FILES.items():
        if name not in LEFT_OUT:
            path = tmp_path / "vendor" / "tiny-1.0.0" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
    (tmp_path / "vendor" / "tiny-1.0.0" / ".cargo-checksum.json").write_text("{}")
    return tmp_path / "vendor"


@pytest.fixture
def locked(home: Path) -> LockedPackage:
    checksum = pack(home / "registry" / "cache" / "one" / "tiny-1.0.0.crate", FILES)
    return LockedPackage(name="tiny", version="1.0.0", source="registry+x", checksum=checksum)


def test_a_vendored_package_is_its_archive(vendor: Path, locked: LockedPackage, home: Path) -> None:
    assert verify_vendored(vendor, [locked], cargo_home=home) == 1


@pytest.mark.parametrize(
    ("change", "what"),
    [
        (lambda folder: (folder / "src" / "lib.rs").write_text("pub fn y() {}"), "src/lib.rs"),
        (lambda folder: (folder / "src" / "lib.rs").unlink(), "src/lib.rs"),
        (lambda folder: (folder / "build.rs").write_text("fn main() {}"), "build.rs"),
        (lambda folder: (folder / ".cargo").mkdir() or (folder / ".cargo" / "config.toml").touch(), r"\.cargo/config"),
        (lambda folder: (folder / "src" / ".cargo-checksum.json").touch(), r"src/\.cargo-checksum"),
        (lambda folder: (folder / "src" / "more.rs").symlink_to("lib.rs"), "src/more.rs"),
        (lambda folder: (folder / "more").symlink_to("src"), "more"),
    ],
)
def test_an_edited_missing_or_added_file_is_noticed(
    vendor: Path, locked: LockedPackage, home: Path, change: Callable[[Path], object], what: str
) -> None:
    change(vendor / "tiny-1.0.0")
    with pytest.raises(InfrastructureError, match=f"'{what}.*' of tiny 1.0.0 is not what the registry checksum names"):
        verify_vendored(vendor, [locked], cargo_home=home)


def test_an_archive_that_was_exchanged_is_noticed(vendor: Path, locked: LockedPackage, home: Path) -> None:
    archive = home / "registry" / "cache" / "one" / "tiny-1.0.0.crate"
    archive.write_bytes(archive.read_bytes() + b"\0")
    with pytest.raises(InfrastructureError, match="does not have the checksum") as caught:
        verify_vendored(vendor, [locked], cargo_home=home)
    assert str(archive) in str(caught.value)


def test_the_archive_with_the_checksum_is_taken_when_registries_share_a_name(
    vendor: Path, locked: LockedPackage, home: Path
) -> None:
    pack(home / "registry" / "cache" / "another" / "tiny-1.0.0.crate", {"other": b""})
    assert verify_vendored(vendor, [locked], cargo_home=home) == 1


def test_packages_without_archive_checksum_or_folder_do_not_count(
    vendor: Path, locked: LockedPackage, home: Path, tmp_path: Path
) -> None:
    without = [
        locked.model_copy(update={"source": None}),
        locked.model_copy(update={"checksum": None}),
        locked.model_copy(update={"name": "absent"}),
    ]
    assert verify_vendored(vendor, without, cargo_home=home) == 0
    assert verify_vendored(vendor, [locked], cargo_home=tmp_path / "empty") == 0
    assert find_archive(tmp_path / "empty", name="tiny", version="1.0.0", checksum="0") is None


def test_an_archive_that_unpacks_to_too_much_is_refused(
    vendor: Path, locked: LockedPackage, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(crates, "_PACKAGE_CAP", 10)
    with pytest.raises(InfrastructureError, match="unpacks to more than"):
        verify_vendored(vendor, [locked], cargo_home=home)


@pytest.mark.parametrize("cut", [0, 1, 40, 200])
def test_an_archive_that_is_none_is_one_sentence(vendor: Path, locked: LockedPackage, home: Path, cut: int) -> None:
    """With a checksum that fits: a record in the cache may claim anything."""
    archive = home / "registry" / "cache" / "one" / "tiny-1.0.0.crate"
    archive.write_bytes(archive.read_bytes()[:cut] if cut else b"no archive")
    fits = locked.model_copy(update={"checksum": hashlib.sha256(archive.read_bytes()).hexdigest()})
    with pytest.raises(InfrastructureError, match="is not a package archive") as caught:
        verify_vendored(vendor, [fits], cargo_home=home)
    assert len(str(caught.value).splitlines()) == 1
