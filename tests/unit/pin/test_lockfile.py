"""Locks as data: seeds for cargo, and what differs between two sides (rule 7)."""

from __future__ import annotations

import tomllib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from replay_parity.errors import BadInputError
from replay_parity.pin.lockfile import compare_locks, compatibility, merge_locks, packages, parse_lock
from replay_parity.pin.runner_source import shipped_lock

REGISTRY = "registry+https://example.invalid/index"


def entry(name: str, version: str, *needs: str, source: str | None = REGISTRY) -> dict[str, Any]:
    found: dict[str, Any] = {"name": name, "version": version}
    if source is not None:
        found |= {"source": source, "checksum": f"{name}-{version}"}
    if needs:
        found["dependencies"] = list(needs)
    return found


def merged(*locks: list[dict[str, Any]]) -> dict[tuple[str, str], dict[str, Any]]:
    document = tomllib.loads(merge_locks(list(locks)).decode())
    return {(item["name"], item["version"]): item for item in document["package"]}


@pytest.mark.parametrize(
    ("version", "stable"),
    [
        ("1.2.3", "1"),
        ("10.0.0", "10"),
        ("0.23.4", "0.23"),
        ("0.0.5", "0.0.5"),
        ("1.0.0-rc.1", "1.0.0-rc.1"),
        ("2.0.16+zstd.1.5.7", "2"),
        ("0.1.0-dev.2", "0.1.0-dev.2"),
    ],
)
def test_what_semver_holds_stable(version: str, stable: str) -> None:
    assert compatibility(version) == stable


def test_the_first_lock_wins_and_later_ones_fill_in() -> None:
    found = merged(
        [entry("a", "1.0.0"), entry("b", "2.0.0")], [entry("a", "1.9.0"), entry("a", "2.1.0"), entry("c", "0.1.0")]
    )
    assert set(found) == {("a", "1.0.0"), ("b", "2.0.0"), ("a", "2.1.0"), ("c", "0.1.0")}


def test_edges_are_unambiguous_and_point_to_what_is_there() -> None:
    found = merged(
        [entry("x", "1.0.0", "a"), entry("a", "1.0.0")],
        [entry("y", "1.0.0", "a 2.0.0", "gone"), entry("a", "2.0.0"), entry("a", "1.5.0")],
    )
    assert found["x", "1.0.0"]["dependencies"] == [f"a 1.0.0 ({REGISTRY})"]
    assert found["y", "1.0.0"]["dependencies"] == [f"a 2.0.0 ({REGISTRY})"]


def test_path_packages_are_left_to_cargo() -> None:
    assert merged([entry("aisimulate-core", "0.12.1", source=None), entry("a", "1.0.0")]).keys() == {("a", "1.0.0")}


NAMES = st.sampled_from(["a", "b", "c"])
VERSIONS = st.builds("{}.{}.{}".format, st.integers(0, 3), st.integers(0, 3), st.integers(0, 3))
LOCKS = st.lists(st.builds(entry, NAMES, VERSIONS), max_size=8)


@given(LOCKS, LOCKS)
def test_a_seed_never_offers_two_compatible_versions(first: list[dict[str, Any]], second: list[dict[str, Any]]) -> None:
    found = merged(first, second)
    keys = [(name, compatibility(version)) for name, version in found]
    assert len(keys) == len(set(keys))
    wanted = {(item["name"], compatibility(item["version"])) for item in first + second}
    assert set(keys) == wanted


@given(LOCKS)
def test_merging_is_idempotent(lock: list[dict[str, Any]]) -> None:
    once = merge_locks([lock])
    assert merge_locks([parse_lock(once, where="x")]) == once


@given(LOCKS)
def test_a_lock_does_not_differ_from_itself(lock: list[dict[str, Any]]) -> None:
    assert compare_locks(packages(lock), packages(list(reversed(lock)))) == []


def test_every_entry_that_differs_is_named() -> None:
    left = packages([entry("a", "1.0.0"), entry("b", "1.0.0"), entry("c", "1.0.0"), entry("c", "2.0.0")])
    changed = entry("b", "1.0.0") | {"checksum": "another"}
    right = packages([entry("a", "1.1.0"), changed, entry("c", "2.0.0"), entry("d", "1.0.0")])
    found = {item.name: (item.baseline, item.candidate) for item in compare_locks(left, right)}
    assert found == {
        "a": (("1.0.0",), ("1.1.0",)),
        "b": (("1.0.0",), ("1.0.0",)),
        "c": (("1.0.0", "2.0.0"), ("2.0.0",)),
        "d": ((), ("1.0.0",)),
    }


@pytest.mark.parametrize("data", [b"\xff", b"[[package]", b'package = "x"', b'[[package]]\nname = "a"\n'])
def test_what_is_no_lock_is_refused(data: bytes) -> None:
    with pytest.raises(BadInputError, match=r"is not a Cargo\.lock"):
        parse_lock(data, where="here")


def test_the_shipped_lock_names_the_engines_dependencies() -> None:
    found = {package.name for package in packages(parse_lock(shipped_lock(), where="shipped"))}
    assert {"anyhow", "serde", "serde_json", "sha2", "parquet"} <= found
