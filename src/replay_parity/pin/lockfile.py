"""One resolution for both sides (rule 7): locks are merged, seeded and compared as data; cargo does the resolving."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from typing import Any

import tomli_w

from replay_parity.errors import BadInputError
from replay_parity.pin.models import LockDifference, LockedPackage

_Entry = dict[str, Any]


def parse_lock(data: bytes, *, where: str) -> list[_Entry]:
    """Entries of a Cargo.lock; BadInputError when it is not one."""
    try:
        document = tomllib.loads(data.decode("utf-8"))
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise BadInputError(f"is not a Cargo.lock: {error}", where=where) from None
    entries = document.get("package", [])
    if not isinstance(entries, list) or not all(
        isinstance(entry, dict) and isinstance(entry.get("name"), str) and isinstance(entry.get("version"), str)
        for entry in entries
    ):
        raise BadInputError("is not a Cargo.lock: [[package]] entries need a name and a version", where=where)
    return entries


def merge_locks(locks: Sequence[list[_Entry]]) -> bytes:
    """A seed for cargo: entries of the first lock win, later ones fill in what is missing.

    Two entries exclude each other when they share a name and are semver-compatible, since cargo would pick between
    them. Entries without a source are path packages and left out: cargo adds its own.
    """
    chosen: dict[tuple[str, str], _Entry] = {}
    for lock in locks:
        qualified = _qualified(lock)
        for entry in qualified:
            if entry.get("source") is not None:
                chosen.setdefault((entry["name"], compatibility(entry["version"])), entry)
    entries = sorted(chosen.values(), key=lambda entry: (entry["name"], entry["version"]))
    known = {_label(entry) for entry in entries}
    for entry in entries:
        # An edge to an entry that lost against a compatible one is dropped: cargo resolves it to the winner.
        edges = [edge for edge in entry.get("dependencies", []) if edge in known]
        entry["dependencies"] = edges
        if not edges:
            del entry["dependencies"]
    return tomli_w.dumps({"version": 4, "package": entries}).encode()


def compatibility(version: str) -> str:
    """The part of a version that semver holds stable: '1', '0.23', '0.0.5'; pre-releases stand alone."""
    core, _, pre = version.split("+", 1)[0].partition("-")
    if pre:
        return version
    major, minor, patch = ([*core.split("."), "0", "0"])[:3]
    if major != "0":
        return major
    return f"0.{minor}" if minor != "0" else f"0.0.{patch}"


def packages(entries: list[_Entry]) -> list[LockedPackage]:
    """Entries as models, in the lock's order."""
    return [
        LockedPackage(
            name=entry["name"],
            version=entry["version"],
            source=entry.get("source"),
            checksum=entry.get("checksum"),
        )
        for entry in entries
    ]


def compare_locks(baseline: list[LockedPackage], candidate: list[LockedPackage]) -> list[LockDifference]:
    """Every package whose set of versions or checksums differs; the engine's own entry always may."""

    def versions(lock: list[LockedPackage]) -> dict[str, set[tuple[str, str | None]]]:
        found: dict[str, set[tuple[str, str | None]]] = {}
        for package in lock:
            found.setdefault(package.name, set()).add((package.version, package.checksum))
        return found

    left, right = versions(baseline), versions(candidate)
    return [
        LockDifference(
            name=name,
            baseline=tuple(sorted(version for version, _ in left.get(name, set()))),
            candidate=tuple(sorted(version for version, _ in right.get(name, set()))),
        )
        for name in sorted(left.keys() | right.keys())
        if left.get(name) != right.get(name)
    ]


def _label(entry: _Entry) -> str:
    return f"{entry['name']} {entry['version']} ({entry['source']})"


def _qualified(entries: list[_Entry]) -> list[_Entry]:
    """Copies whose dependency edges carry version and source, so that edges stay unambiguous after a merge."""
    by_name: dict[str, list[_Entry]] = {}
    for entry in entries:
        by_name.setdefault(entry["name"], []).append(entry)

    def edge(text: str) -> str | None:
        name, _, rest = text.partition(" ")
        version = rest.split(" ", 1)[0]
        for candidate in by_name.get(name, []):
            if candidate.get("source") is not None and (not version or candidate["version"] == version):
                return _label(candidate)
        return None

    copies: list[_Entry] = []
    for entry in entries:
        copy = dict(entry)
        edges = [edge(text) for text in entry.get("dependencies", [])]
        copy["dependencies"] = [text for text in edges if text is not None]
        copies.append(copy)
    return copies
