"""Proof that vendored packages are what the lock says (threat 18: unpacked sources are not verified again)."""

from __future__ import annotations

import hashlib
import tarfile
from collections.abc import Sequence
from pathlib import Path

from replay_parity.errors import InfrastructureError
from replay_parity.pin.models import LockedPackage
from replay_parity.system.files import sha256_file, walk_sorted

_CHECKSUM_FILE = ".cargo-checksum.json"
_PACKAGE_CAP = 512 << 20


def verify_vendored(vendor: Path, locked: Sequence[LockedPackage], *, cargo_home: Path) -> int:
    """Compare every vendored file with the package archive whose SHA-256 the lock names; returns how many packages.

    A registry that keeps no archives (a directory source) is verified by cargo itself, file by file, at build time;
    such packages do not count. Raises InfrastructureError on any difference.
    """
    verified = 0
    for package in locked:
        folder = vendor / f"{package.name}-{package.version}"
        if package.source is None or package.checksum is None or not folder.is_dir():
            continue
        archive = _archive(cargo_home, package)
        if archive is None:
            continue
        _compare(folder, archive, package)
        verified += 1
    return verified


def _archive(cargo_home: Path, package: LockedPackage) -> Path | None:
    name = f"{package.name}-{package.version}.crate"
    candidates = sorted((cargo_home / "registry" / "cache").glob(f"*/{name}"))
    if not candidates:
        return None
    for candidate in candidates:
        if sha256_file(candidate) == package.checksum:
            return candidate
    raise InfrastructureError(
        f"the downloaded package {name} does not have the checksum {package.checksum} of the lock",
        where=str(candidates[0]),
        hint="remove that file and run again",
    )


def _compare(folder: Path, archive: Path, package: LockedPackage) -> None:
    members = _members(archive, prefix=f"{package.name}-{package.version}/")
    for path in walk_sorted(folder):
        relative = path.relative_to(folder).as_posix()
        if relative == _CHECKSUM_FILE or (path.is_dir() and not path.is_symlink()):
            continue
        if path.is_symlink() or members.get(relative) != sha256_file(path):
            raise InfrastructureError(
                f"'{relative}' of {package.name} {package.version} is not what the registry checksum names",
                hint="remove cargo's unpacked sources of that package and run again",
            )


def _members(archive: Path, *, prefix: str) -> dict[str, str]:
    found: dict[str, str] = {}
    total = 0
    with tarfile.open(archive, "r:gz") as tar:
        for member in tar:
            total += member.size
            if total > _PACKAGE_CAP:
                raise InfrastructureError(
                    f"the package unpacks to more than {_PACKAGE_CAP:,} bytes", where=str(archive)
                )
            stream = tar.extractfile(member) if member.isreg() else None
            if stream is not None:
                digest = hashlib.sha256()
                while chunk := stream.read(1 << 20):
                    digest.update(chunk)
                found[member.name.removeprefix(prefix)] = digest.hexdigest()
    return found
