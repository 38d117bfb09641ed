"""Locks as data: read, merged into a seed, compared."""

from __future__ import annotations

import tomllib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from replay_parity.errors import BadInputError
from replay_parity.pin.lockfile import (
    compare_locks,
    compatibility,
    merge_locks,
    packages,
    parse_lock,
    unverifiable,
)
from replay_parity.pin.models import LockedPackage
from replay_parity.pin.runner_source import shipped_lock

REGISTRY = "registry+https://example.invalid/index"
OTHER = "sparse+https://other.invalid/index/"
GIT = "git+https://example.invalid/x?branch=main"


def entry(
    name: str, version: str, *edges: str, source: str | None = REGISTRY, checksum: str | None = "c"
) -> dict[str, Any]:
    found: dict[str, Any] = {"name": name, "version": version}
    if source is not None:
        found["source"] = source
        if checksum is not None and not source.startswith("git+"):
            found["checksum"] = f"{checksum}-{name}-{version}"
    if edges:
        found["dependencies"] = list(edges)
    return found


def merged(*locks: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return parse_lock(merge_locks(locks), where="merged")


def named(lock: list[dict[str, Any]]) -> list[str]:
    return [f"{item['name']} {item['version']}" for item in lock]


@pytest.mark.parametrize(
    ("version", "part"),
    [
        ("1.2.3", "1"),
        ("12.0.0", "12"),
        ("0.23.4", "0.23"),
        ("0.0.5", "0.0.5"),
        ("1.2.3+build.7", "1"),
        ("2.0.16+zstd.1.5.7", "2"),
        ("1.0.0-rc.1", "1.0.0-rc.1"),
        ("1.0.0-rc.1+b", "1.0.0-rc.1+b"),
        ("0", "0.0.0"),
        ("1", "1"),
    ],
)
def test_the_compatible_part_of_a_version(version: str, part: str) -> None:
    assert compatibility(version) == part


def test_the_first_lock_wins_and_later_ones_fill_in() -> None:
    first = [entry("a", "1.0.1"), entry("b", "0.3.0")]
    second = [entry("a", "1.9.0"), entry("a", "2.0.0"), entry("b", "0.4.0"), entry("c", "1.0.0")]
    assert named(merged(first, second)) == ["a 1.0.1", "a 2.0.0", "b 0.3.0", "b 0.4.0", "c 1.0.0"]
    assert named(merged(second, first)) == ["a 1.9.0", "a 2.0.0", "b 0.3.0", "b 0.4.0", "c 1.0.0"]


def test_path_packages_are_left_to_cargo() -> None:
    lock = [entry("aisimulate-core", "0.12.0", "a", source=None), entry("a", "1.0.0")]
    assert named(merged(lock)) == ["a 1.0.0"]


def test_equal_names_of_other_places_do_not_exclude_each_other() -> None:
    lock = [entry("a", "1.0.0"), entry("a", "1.1.0", source=OTHER), entry("a", "1.2.0", source=f"{GIT}#{'1' * 40}")]
    assert named(merged(lock)) == ["a 1.0.0", "a 1.1.0", "a 1.2.0"]


def test_a_git_source_keeps_the_commit_of_the_first_lock() -> None:
    (kept,) = merged(
        [entry("a", "1.0.0", source=f"{GIT}#{'1' * 40}")], [entry("a", "1.0.0", source=f"{GIT}#{'2' * 40}")]
    )
    assert kept["source"] == f"{GIT}#{'1' * 40}"


def test_edges_name_version_and_source_and_lost_ones_are_dropped() -> None:
    first = [entry("a", "1.0.0", "b"), entry("b", "2.0.0")]
    second = [entry("b", "1.0.0"), entry("b", "2.1.0"), entry("c", "1.0.0", "b 1.0.0", "b 2.1.0", "a")]
    found = {item["name"]: item.get("dependencies") for item in merged(first, second)}
    assert found["a"] == [f"b 2.0.0 ({REGISTRY})"]
    # b 2.1.0 lost against 2.0.0, and the second lock's edge to "a" names a package that it does not hold.
    assert found["c"] == [f"b 1.0.0 ({REGISTRY})"]


def test_an_edge_may_name_its_source() -> None:
    lock = [
        entry("a", "1.0.0", f"b 1.0.0 ({OTHER})"),
        entry("b", "1.0.0"),
        entry("b", "1.0.0", source=OTHER),
    ]
    assert merged(lock)[0]["dependencies"] == [f"b 1.0.0 ({OTHER})"]


def test_a_lock_of_version_one_keeps_its_checksums_apart() -> None:
    text = f"""
[[package]]
name = "a"
version = "1.0.0"
source = "{REGISTRY}"

[metadata]
"checksum a 1.0.0 ({REGISTRY})" = "abc"
"""
    (found,) = packages(parse_lock(text.encode(), where="x"))
    assert found.checksum == "abc"


@pytest.mark.parametrize("version", [1, 2, 3, 4, 5])
def test_the_version_of_the_form_does_not_matter(version: int) -> None:
    text = f'version = {version}\n[[package]]\nname = "a"\nversion = "1.0.0"\nsource = "{REGISTRY}"\nchecksum = "x"\n'
    assert tomllib.loads(merge_locks([parse_lock(text.encode(), where="x")]).decode())["version"] == 4


@pytest.mark.parametrize(
    "text",
    [
        b"\xff",
        b"[[package",
        b"package = 3",
        b"package = [1]",
        b"[[package]]\nname = 'a'",
        b"[[package]]\nname = 'a'\nversion = 1",
        b"[[package]]\nname = 'a'\nversion = '1.0.0'\nsource = 7",
        b"[[package]]\nname = 'a'\nversion = '1.0.0'\nchecksum = []",
        b"[[package]]\nname = 'a'\nversion = '1.0.0'\ndependencies = 'b'",
        b"[[package]]\nname = 'a'\nversion = '1.0.0'\ndependencies = [1]",
        b"a = " + b"[" * 100_000,
    ],
)
def test_what_is_no_lock_is_one_sentence(text: bytes) -> None:
    with pytest.raises(BadInputError, match=r"is not a Cargo\.lock") as caught:
        parse_lock(text, where="Cargo.lock of the candidate")
    assert str(caught.value).startswith("Cargo.lock of the candidate: ")
    assert len(str(caught.value).splitlines()) == 1


def test_an_empty_lock_is_a_lock() -> None:
    assert parse_lock(b"", where="x") == []
    assert tomllib.loads(merge_locks([]).decode()) == {"version": 4, "package": []}


def package(name: str, version: str, source: str | None = REGISTRY, checksum: str | None = "c") -> LockedPackage:
    return LockedPackage(name=name, version=version, source=source, checksum=checksum)


def test_every_difference_of_two_locks_is_listed() -> None:
    left = [package("same", "1.0.0"), package("moved", "1.0.0"), package("gone", "1.0.0"), package("two", "1.0.0")]
    right = [
        package("same", "1.0.0"),
        package("moved", "1.1.0"),
        package("new", "1.0.0"),
        package("two", "1.0.0"),
        package("two", "2.0.0"),
    ]
    found = {item.name: (item.baseline, item.candidate) for item in compare_locks(left, right)}
    assert found == {
        "moved": (("1.0.0",), ("1.1.0",)),
        "gone": (("1.0.0",), ()),
        "new": ((), ("1.0.0",)),
        "two": (("1.0.0",), ("1.0.0", "2.0.0")),
    }
    assert compare_locks(left, left) == []


def test_equal_versions_of_other_content_are_told_apart() -> None:
    left = [package("hash", "1.0.0", checksum="x"), package("rev", "1.0.0", f"{GIT}#{'1' * 40}", None)]
    right = [package("hash", "1.0.0", checksum="y"), package("rev", "1.0.0", f"{GIT}#{'2' * 40}", None)]
    found = {item.name: (item.baseline, item.candidate) for item in compare_locks(left, right)}
    assert found["hash"] == ((f"1.0.0 ({REGISTRY}, sha256 x)",), (f"1.0.0 ({REGISTRY}, sha256 y)",))
    assert found["rev"] == ((f"1.0.0 ({GIT}#{'1' * 40})",), (f"1.0.0 ({GIT}#{'2' * 40})",))


def test_packages_from_folders_and_from_git_are_not_fixed_by_their_version() -> None:
    lock = [package("a", "1.0.0"), package("b", "1.0.0", None, None), package("c", "1.0.0", f"{GIT}#1", None)]
    assert unverifiable(lock) == {"b", "c"}


def test_the_shipped_lock_names_what_runner_and_engine_need() -> None:
    found = {package.name for package in packages(parse_lock(shipped_lock(), where="shipped"))}
    assert {"replay-parity-runner", "anyhow", "serde", "serde_json", "sha2", "parquet"} <= found


names = st.sampled_from(["a", "b", "c", "d-e"])
versions = st.builds("{}.{}.{}".format, *[st.integers(0, 2)] * 3)
sources = st.sampled_from([REGISTRY, OTHER, f"{GIT}#{'1' * 40}", f"{GIT}#{'2' * 40}", None])


@st.composite
def locks(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Locks as cargo writes them: unique entries whose edges lead to entries."""
    chosen = draw(st.lists(st.tuples(names, versions, sources), unique=True, max_size=6))
    lock = []
    for name, version, place in chosen:
        edges = draw(st.lists(st.sampled_from(chosen), unique=True, max_size=3)) if chosen else []
        lock.append(entry(name, version, *(f"{n} {v}" + (f" ({s})" if s else "") for n, v, s in edges), source=place))
    return lock


@given(st.lists(locks(), max_size=4))
def test_a_merge_holds_what_every_lock_needs_and_nothing_else(given_locks: list[list[dict[str, Any]]]) -> None:
    seed = merge_locks(given_locks)
    found = parse_lock(seed, where="merged")
    known = {
        (item["name"], item["version"], item["source"]) for lock in given_locks for item in lock if "source" in item
    }
    assert {(item["name"], item["version"], item["source"]) for item in found} <= known
    # Whatever a lock names can be had, by itself or by a compatible entry of the same place.
    places = {(item["name"], item["source"].split("#")[0], compatibility(item["version"])) for item in found}
    assert places == {(name, source.split("#")[0], compatibility(version)) for name, version, source in known}
    assert len(places) == len(found)
    # Every edge leads to an entry.
    labels = {f"{item['name']} {item['version']} ({item['source']})" for item in found}
    assert all(edge in labels for item in found for edge in item.get("dependencies", []))
    # Merging the result again, or in front of everything, changes nothing.
    assert merge_locks([found]) == seed
    assert {str(item["version"]) for item in parse_lock(merge_locks([found, *given_locks]), where="again")} == {
        str(item["version"]) for item in found
    }


@given(locks(), locks())
def test_the_first_lock_keeps_every_place_that_it_fills(
    first: list[dict[str, Any]], second: list[dict[str, Any]]
) -> None:
    alone = {(item["name"], item["version"], item["source"]) for item in merged(first)}
    both = {(item["name"], item["version"], item["source"]) for item in merged(first, second)}
    assert alone <= both


@given(locks(), locks())
def test_a_comparison_is_the_same_from_both_sides(first: list[dict[str, Any]], second: list[dict[str, Any]]) -> None:
    there, back = (compare_locks(packages(a), packages(b)) for a, b in ((first, second), (second, first)))
    assert [(item.name, item.baseline, item.candidate) for item in there] == [
        (item.name, item.candidate, item.baseline) for item in back
    ]
    assert compare_locks(packages(first), packages(first)) == []
