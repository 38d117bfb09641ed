"""The aggregate against a fold over the walk; its bounds; its renderings."""

from __future__ import annotations

from collections import Counter
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from replay_parity.parity.differences import Limits, compare
from replay_parity.parity.differences_model import Differences, to_json
from replay_parity.parity.differences_text import summary_lines
from replay_parity.parity.differences_walk import iter_differences
from replay_parity.parity.patterns import Pattern
from replay_parity.parity.sections import section_of

NUMBERS = st.sampled_from([0, 1, 2, 0.0, -0.0, 1.0, 0.5, -4.0, 1e308, -1e308, 5e-324, 2**64 - 1, True, None])


def records(size: int = 4) -> st.SearchStrategy[dict[str, Any]]:
    request: st.SearchStrategy[dict[str, Any]] = st.fixed_dictionaries(
        {"uuid": st.sampled_from("abcdef")},
        optional={"ms": NUMBERS, "steps": st.lists(NUMBERS, max_size=2)},
    )
    requests = st.lists(request, max_size=size, unique_by=lambda element: element["uuid"])
    return st.fixed_dictionaries(
        {
            "metadata": st.fixed_dictionaries({"engine": st.dictionaries(st.sampled_from("ab"), NUMBERS)}),
            "per_request": requests.map(lambda found: sorted(found, key=lambda element: str(element["uuid"]))),
            "summary": st.dictionaries(st.sampled_from("xyz"), NUMBERS),
        }
    )


@settings(max_examples=50)
@given(records(), records())
def test_the_aggregate_is_a_fold_over_the_walk(left: dict[str, Any], right: dict[str, Any]) -> None:
    found = list(iter_differences(left, right))
    differences = compare(left, right)
    assert differences.count == len(found)
    for name, section in differences.sections:
        here = [difference for difference in found if section_of(difference.pattern.text) == name]
        counts = Counter((difference.pattern.text, difference.kind) for difference in here)
        assert {(group.pattern, group.kind): group.count for group in section.groups} == counts
        assert [group.count for group in section.groups] == sorted(counts.values(), reverse=True)
        assert section.count == len(here) == sum(section.kinds.values())
        assert section.requests == len({difference.request for difference in here} - {None})
        assert (section.first.pointer if section.first else None) == (here[0].pointer if here else None)
        for group in section.groups:
            members = [item for item in here if (item.pattern.text, item.kind) == (group.pattern, group.kind)]
            assert group.requests == len({item.request for item in members} - {None})
            assert group.example.pointer == members[0].pointer
            pairs = [(item.left, item.right) for item in members if is_number(item.left) and is_number(item.right)]
            biggest = max((min(float(abs(one - other)), 1.7976931348623157e308) for one, other in pairs), default=None)
            assert group.largest_absolute == biggest
    requests = differences.requests
    assert (requests.left, requests.right) == (len(left["per_request"]), len(right["per_request"]))
    assert requests.removed + requests.added + requests.changed == differences.sections.results.requests
    assert Differences.model_validate_json(to_json(differences)) == differences


@settings(max_examples=50)
@given(records(), records(), st.integers(40, 100), st.integers(9, 30))
def test_the_summary_fits(left: dict[str, Any], right: dict[str, Any], width: int, height: int) -> None:
    lines = summary_lines(compare(left, right), width=width, height=height)
    assert 1 <= len(lines) <= height
    assert all(len(line) <= width and line.isascii() and line.isprintable() for line in lines)


def is_number(value: object) -> bool:
    return type(value) in {int, float}


def group_of(left: object, right: object) -> tuple[str, float | None, float | None]:
    differences = compare({"summary": {"x": left}}, {"summary": {"x": right}})
    (group,) = differences.sections.results.groups
    return group.kind, group.largest_absolute, group.largest_relative


@pytest.mark.parametrize(
    ("left", "right", "expected"),
    [
        (100.0, 125.0, ("changed", 25.0, 0.25)),
        (-4, 2, ("changed", 6.0, 1.5)),
        (0.0, 3.0, ("changed", 3.0, None)),
        (4, 4.0, ("type", 0.0, 0.0)),
        (1, True, ("type", None, None)),
        (0.0, -0.0, ("changed", 0.0, None)),
        (None, 1.0, ("type", None, None)),
        ("a", "b", ("changed", None, None)),
        (-1.7e308, 1.7e308, ("changed", 1.7976931348623157e308, 1.7976931348623157e308)),
        (5e-324, 1e308, ("changed", 1e308, 1.7976931348623157e308)),
        (0, 2**64 - 1, ("changed", float(2**64 - 1), None)),
    ],
)
def test_kind_and_largest_change(left: object, right: object, expected: tuple[str, float | None, float | None]) -> None:
    assert group_of(left, right) == expected


def test_groups_over_the_limit_are_counted() -> None:
    left = {"summary": {f"k{index:03}": 0 for index in range(50)}, "per_request": []}
    right = {"summary": {f"k{index:03}": 1 for index in range(50)}, "per_request": []}
    section = compare(left, right, limits=Limits(groups=20)).sections.results
    assert (section.count, section.kinds["changed"]) == (50, 50)
    assert [group.pattern for group in section.groups] == [f"/summary/k{index:03}" for index in range(20)]
    assert (section.groups_left_out, section.differences_left_out) == (30, 30)
    lines = summary_lines(compare(left, right, limits=Limits(groups=20)), height=24)
    assert lines[-1].strip() == "... and 30 differences in 30 more patterns"


def test_long_and_hostile_text_is_cut_and_escaped() -> None:
    left = {"summary": {"\x1b[2J" * 500: "\u202e" * 500}}
    right = {"summary": {"\x1b[2J" * 500: ["x" * 10_000]}}
    data = to_json(compare(left, right))
    assert len(data) < 4000
    assert b"\x1b" not in data
    assert "\u202e" not in data.decode()


def test_the_same_inputs_give_the_same_bytes_whatever_the_order_of_keys() -> None:
    left: dict[str, Any] = {"summary": {"a": 1, "b": 2, "c": 3}, "per_request": [{"uuid": "a", "x": 1}]}
    right: dict[str, Any] = {"summary": {"a": 2, "b": 3, "d": 4}, "per_request": [{"uuid": "a", "y": 1}]}
    backwards = [
        {key: dict(reversed(value.items())) if isinstance(value, dict) else value for key, value in side.items()}
        for side in (left, right)
    ]
    assert to_json(compare(*backwards)) == to_json(compare(left, right))


def test_results_get_the_room_that_the_others_leave() -> None:
    engine = {f"e{index}": 0 for index in range(30)}
    left = {"metadata": {"engine": engine}, "summary": {"x": 1}, "per_request": []}
    right = {"metadata": {"engine": {}}, "summary": {"x": 2}, "per_request": []}
    lines = summary_lines(compare(left, right), height=24)
    assert len(lines) in {23, 24}
    assert any("/summary/x" in line for line in lines)


def test_left_and_right_have_names() -> None:
    left: dict[str, Any] = {"per_request": [{"uuid": "a"}]}
    right: dict[str, Any] = {"per_request": []}
    assert summary_lines(compare(left, right), left="first", right="second")[0] == (
        "1 difference first -> second; requests: 1 only in first of 1"
    )
    assert summary_lines(compare(left, left), left="first", right="second") == [
        "no differences between first and second"
    ]


def test_memory_of_the_walk_is_that_of_one_request() -> None:
    requests = [{"uuid": f"{index:05}", "a": 0, "b": 0} for index in range(1000)]
    moved = [dict(request, a=1, b=1) for request in requests]
    walk = iter_differences({"per_request": requests}, {"per_request": moved})
    assert next(walk).request == "00000"
    moved[999]["a"] = 0
    assert sum(1 for _ in walk) == 1998


def test_patterns() -> None:
    root = Pattern()
    assert root.child("per_request").elements().child("a/b~c").text == "/per_request/*/a~1b~0c"
    assert root.child("*").text == "/~2"
    assert root.child("x") is root.child("x")
    assert repr(root.child("x")) == "Pattern('/x')"


@pytest.mark.parametrize(
    ("pattern", "section"),
    [
        ("/summary/duration_ms", "results"),
        ("/coverage", "results"),
        ("/per_request/*", "results"),
        ("/planner", "results"),
        ("/metadatax", "results"),
        ("/metadata", "metadata"),
        ("/metadata/engines", "metadata"),
        ("/metadata/row_name", "metadata"),
        ("/metadata/engine", "configuration"),
        ("/metadata/engine/rank/block_size", "configuration"),
    ],
)
def test_sections(pattern: str, section: str) -> None:
    assert section_of(pattern) == section


def test_a_difference_that_is_json_is_read_back() -> None:
    document = orjson.loads(to_json(compare({"summary": {"x": 1}}, {"summary": {"x": 2}})))
    assert document["schema_version"] == 1
    assert document["sections"]["results"]["groups"][0]["example"]["right"] == "2"
