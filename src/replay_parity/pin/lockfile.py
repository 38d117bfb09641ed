"""One resolution for both sides (rule 7): locks are merged, seeded and compared as data; cargo does the resolving."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Sequence
from typing import Any

import tomli_w

from replay_parity.errors import BadInputError
from replay_parity.pin.models import LockDifference, LockedPackage

_Entry = dict[str, Any]


def parse_lock(data: bytes, *, where: str) -> list[_Entry]:
    """Entries of a Cargo.lock of any version; BadInputError when it is not one."""
    try:
        document = tomllib.loads(data.decode("utf-8"))
    except (UnicodeDecodeError, tomllib.TOMLDecodeError, RecursionError) as error:
        raise BadInputError(f"is not a Cargo.lock: {error}", where=where) from None
    entries = document.get("package", [])
    if not isinstance(entries, list) or not all(_is_entry(entry) for entry in entries):
        raise BadInputError(
            "is not a Cargo.lock: [[package]] entries hold a name, a version, a source and a checksum as text, "
            "and dependencies as a list of texts",
            where=where,
        )
    return _with_checksums(entries, document.get("metadata"))


def merge_locks(locks: Sequence[list[_Entry]]) -> bytes:
    """A seed for cargo: entries of the first lock win, later ones fill in what is missing.

    Two entries exclude each other when they share a name and a source and are semver-compatible, since cargo would
    pick between them. Entries without a source are path packages and left out: cargo adds its own.
    """
    chosen: dict[tuple[str, str, str], _Entry] = {}
    for lock in locks:
        for entry in _qualified(lock):
            if entry.get("source") is not None:
                chosen.setdefault((entry["name"], _place(entry["source"]), compatibility(entry["version"])), entry)
    entries = sorted(chosen.values(), key=lambda entry: (entry["name"], entry["version"], entry["source"]))
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


def displaced(resolved: Iterable[LockedPackage], seed: list[_Entry]) -> frozenset[str]:
    """Names for which cargo took another entry than the seed held: a manifest forced it, and it took the newest."""
    seeded = {(entry["name"], entry["version"], entry.get("source")) for entry in seed}
    return frozenset(
        package.name
        for package in resolved
        if package.source is not None and (package.name, package.version, package.source) not in seeded
    )


def unverifiable(locked: Iterable[LockedPackage]) -> frozenset[str]:
    """Names of the packages whose version does not fix their content: from folders and from git, not from a registry.

    File times are pinned and cargo knows a vendored package by its version alone, so compiled outputs of these must
    never serve another revision.
    """
    return frozenset(package.name for package in locked if package.source is None or package.checksum is None)


def compare_locks(baseline: list[LockedPackage], candidate: list[LockedPackage]) -> list[LockDifference]:
    """Every package whose set of versions, sources or checksums differs; the engine's own entry always may.

    Where the versions alone would look equal, the source and the checksum are shown with them.
    """
    left, right = _by_name(baseline), _by_name(candidate)
    differences: list[LockDifference] = []
    for name in sorted(left.keys() | right.keys()):
        ours, theirs = left.get(name, set()), right.get(name, set())
        if ours != theirs:
            versions = [tuple(sorted(package.version for package in side)) for side in (ours, theirs)]
            if versions[0] == versions[1]:
                versions = [tuple(sorted(_with_origin(package) for package in side)) for side in (ours, theirs)]
            differences.append(LockDifference(name=name, baseline=versions[0], candidate=versions[1]))
    return differences


def _by_name(lock: list[LockedPackage]) -> dict[str, set[LockedPackage]]:
    found: dict[str, set[LockedPackage]] = {}
    for package in lock:
        found.setdefault(package.name, set()).add(package)
    return found


def _with_origin(package: LockedPackage) -> str:
    origin = package.source or "a folder"
    return f"{package.version} ({origin}{f', sha256 {package.checksum}' if package.checksum else ''})"


def _is_entry(entry: Any) -> bool:
    if not isinstance(entry, dict):
        return False
    named = isinstance(entry.get("name"), str) and isinstance(entry.get("version"), str)
    texts = all(isinstance(entry.get(key, ""), str) for key in ("source", "checksum"))
    edges = entry.get("dependencies", [])
    return named and texts and isinstance(edges, list) and all(isinstance(edge, str) for edge in edges)


def _with_checksums(entries: list[_Entry], metadata: Any) -> list[_Entry]:
    """Locks of version 1 keep the checksums apart: `"checksum NAME VERSION (SOURCE)" = "…"`."""
    if not isinstance(metadata, dict):
        return entries
    return [
        {**entry, "checksum": checksum}
        if isinstance(checksum := metadata.get(f"checksum {_label(entry)}"), str) and "checksum" not in entry
        else entry
        for entry in entries
    ]


def _place(source: str) -> str:
    """Where a package comes from, without the commit that a git source was locked to."""
    return source.split("#", 1)[0] if source.startswith("git+") else source


def _label(entry: _Entry) -> str:
    return f"{entry['name']} {entry['version']} ({entry.get('source')})"


def _qualified(entries: list[_Entry]) -> list[_Entry]:
    """Copies whose dependency edges carry version and source, so that edges stay unambiguous after a merge."""
    by_name: dict[str, list[_Entry]] = {}
    for entry in entries:
        if entry.get("source") is not None:
            by_name.setdefault(entry["name"], []).append(entry)

    def edge(text: str) -> str | None:
        name, _, rest = text.partition(" ")
        version, _, source = rest.partition(" ")
        for candidate in by_name.get(name, []):
            if version in {"", candidate["version"]} and source in {"", f"({candidate['source']})"}:
                return _label(candidate)
        return None

    copies: list[_Entry] = []
    for entry in entries:
        copy = dict(entry)
        edges = [edge(text) for text in entry.get("dependencies", [])]
        copy["dependencies"] = [text for text in edges if text is not None]
        copies.append(copy)
    return copies
