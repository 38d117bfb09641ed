"""Proof that vendored packages are what the lock says (threat 18: unpacked sources are not verified again)."""

from __future__ import annotations

import gzip
import hashlib
import tarfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from replay_parity.errors import InfrastructureError
from replay_parity.pin.models import LockedPackage
from replay_parity.system.files import sha256_file, walk_sorted

# Cargo writes this file; it was never in the package.
CHECKSUM_FILE = ".cargo-checksum.json"
# What cargo leaves out when it vendors (cargo's own `vendor` operation): nothing of it is ever compiled.
_LEFT_OUT = frozenset({".gitattributes", ".gitignore", ".git", ".cargo-ok"})
_LEFT_OUT_SUFFIXES = (".orig", ".rej")
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
        archive = find_archive(cargo_home, name=package.name, version=package.version, checksum=package.checksum)
        if archive is None:
            continue
        compare_with_archive(folder, archive, name=package.name, version=package.version)
        verified += 1
    return verified


def find_archive(cargo_home: Path, *, name: str, version: str, checksum: str) -> Path | None:
    """The downloaded archive of a package; None when cargo keeps none of it.

    Raises InfrastructureError when there are some but none has the checksum.
    """
    file_name = f"{name}-{version}.crate"
    candidates = sorted((cargo_home / "registry" / "cache").glob(f"*/{file_name}"))
    if not candidates:
        return None
    for candidate in candidates:
        if sha256_file(candidate) == checksum:
            return candidate
    raise InfrastructureError(
        f"the downloaded package {file_name} does not have the checksum {checksum} of the lock",
        where=str(candidates[0]),
        hint="remove that file and run again",
    )


def compare_with_archive(folder: Path, archive: Path, *, name: str, version: str) -> None:
    """Raise InfrastructureError unless the files of `folder` are those of the archive, byte for byte.

    Files that cargo leaves out of a vendored folder may be missing; none may be added.
    """
    members = _members(archive, prefix=f"{name}-{version}/")
    present = _files(folder)
    for relative, digest in sorted(present.items()):
        if relative != CHECKSUM_FILE and members.get(relative) != digest:
            raise _not_the_package(relative, name, version)
    for relative in sorted(members.keys() - present.keys()):
        last = relative.rsplit("/", 1)[-1]
        if last not in _LEFT_OUT and not last.endswith(_LEFT_OUT_SUFFIXES):
            raise _not_the_package(relative, name, version)


def _not_the_package(relative: str, name: str, version: str) -> InfrastructureError:
    return InfrastructureError(
        f"'{relative}' of {name} {version} is not what the registry checksum names",
        hint="remove cargo's unpacked sources of that package and run again",
    )


def _files(folder: Path) -> Mapping[str, str]:
    """SHA-256 of every file by its relative name; a link, which no package may hold, has none."""
    return {
        path.relative_to(folder).as_posix(): "" if path.is_symlink() else sha256_file(path)
        for path in walk_sorted(folder)
        if path.is_symlink() or not path.is_dir()
    }


def _members(archive: Path, *, prefix: str) -> Mapping[str, str]:
    try:
        with tarfile.open(archive, "r:gz") as tar:
            return dict(_digests(tar, archive, prefix=prefix))
    except (tarfile.TarError, EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise InfrastructureError(f"is not a package archive: {error}", where=str(archive)) from None


def _digests(tar: tarfile.TarFile, archive: Path, *, prefix: str) -> Iterator[tuple[str, str]]:
    total = 0
    for member in tar:
        total += member.size
        if total > _PACKAGE_CAP:
            raise InfrastructureError(f"the package unpacks to more than {_PACKAGE_CAP:,} bytes", where=str(archive))
        stream = tar.extractfile(member) if member.isreg() else None
        if stream is not None:
            digest = hashlib.sha256()
            while chunk := stream.read(1 << 20):
                digest.update(chunk)
            yield member.name.removeprefix(prefix), digest.hexdigest()
