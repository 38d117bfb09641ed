"""The walk against naive references: equality of bytes, injected changes, and rebuilding one side from the other."""

from __future__ import annotations

import copy
from typing import Any

import orjson
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from replay_parity.parity.differences_walk import ABSENT, Difference, iter_differences, same

# Few values, many of which Python calls equal though their bytes differ.
SCALARS = st.sampled_from([None, True, False, 0, 1, 0.0, -0.0, 1.0, 2**64 - 1, 1.8446744073709552e19, "", "1", "é"])
KEYS = st.sampled_from(["", "*", "a/b", "a~0", "m", "z"])
VALUES = st.recursive(SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3))


def elements(field: str, identities: st.SearchStrategy[Any], **more: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Arrays in ascending order of an identity, as records have them."""
    one = st.fixed_dictionaries({field: identities}, optional={"value": VALUES, "other": SCALARS, **more})
    unique = st.lists(one, max_size=4, unique_by=lambda element: element[field])
    return unique.map(lambda found: sorted(found, key=lambda element: element[field]))


UUIDS = st.integers(1, 6).map(lambda number: f"00000000-0000-0000-0000-{number:012x}")
ADMISSIONS = elements("admission_ordinal", st.integers(0, 4))
REQUESTS = elements("uuid", UUIDS, admission_history=ADMISSIONS, routing_history=st.lists(VALUES, max_size=3))
RECORDS = st.fixed_dictionaries(
    {
        "coverage": st.fixed_dictionaries(
            {"pressure": st.fixed_dictionaries({"records": elements("pressure_ordinal", st.integers(0, 4))})}
        ),
        "metadata": st.dictionaries(st.sampled_from(["engine", "row_name"]), VALUES),
        "per_request": REQUESTS,
        "planner": st.none(),
        "summary": st.dictionaries(KEYS, VALUES, max_size=3),
    }
)


def line(document: object) -> bytes:
    return orjson.dumps(document, option=orjson.OPT_SORT_KEYS)


def read(document: object) -> Any:
    """The document as orjson reads it from a canonical line, sharing nothing with its origin."""
    return orjson.loads(line(document))


@given(VALUES, VALUES)
@example(0.0, -0.0)
@example(1, True)
@example(1, 1.0)
@example([0.0], [-0.0])
@example([1], [True])
@example({"a": [1]}, {"a": [1.0]})
def test_same_means_same_bytes(left: Any, right: Any) -> None:
    assert same(left, right) == (line(left) == line(right))
    assert same(left, read(left))


@given(st.dictionaries(KEYS, VALUES), st.dictionaries(KEYS, VALUES))
def test_no_difference_means_same_bytes(left: dict[str, Any], right: dict[str, Any]) -> None:
    left, right = read(left), read(right)
    assert (not list(iter_differences(left, right))) == (line(left) == line(right))


@given(RECORDS)
def test_a_record_does_not_differ_from_itself(record: dict[str, Any]) -> None:
    assert list(iter_differences(read(record), read(record))) == []


@settings(max_examples=100)
@given(RECORDS, RECORDS)
def test_the_differences_rebuild_the_right_record(left: dict[str, Any], right: dict[str, Any]) -> None:
    left, right = read(left), read(right)
    assert line(rebuilt(left, list(iter_differences(left, right)))) == line(right)


@settings(max_examples=50)
@given(RECORDS, RECORDS)
def test_the_other_way_round_everything_is_mirrored(left: dict[str, Any], right: dict[str, Any]) -> None:
    mirror = {"added": "removed", "removed": "added"}
    forth = iter_differences(read(left), read(right))
    back = iter_differences(read(right), read(left))
    assert sorted((d.pattern.text, d.kind, line_of(d.left), line_of(d.right)) for d in forth) == sorted(
        (d.pattern.text, mirror.get(d.kind, d.kind), line_of(d.right), line_of(d.left)) for d in back
    )


@given(RECORDS, st.data())
def test_exactly_the_injected_change_is_found(record: dict[str, Any], data: st.DataObject) -> None:
    left, right = read(record), read(record)
    places = list(leaves(left))
    if not places:
        return
    path = data.draw(st.sampled_from(places))
    old = value_at(left, path)
    new = data.draw(SCALARS.filter(lambda value: line(value) != line(old)))
    set_at(right, path, new)
    (found,) = iter_differences(left, right)
    assert tokens(found.left_pointer) == tokens(found.right_pointer) == [str(key) for key in path]
    assert (line(found.left), line(found.right)) == (line(old), line(new))
    assert found.kind == ("changed" if type(old) is type(new) else "type")
    in_request = path[0] == "per_request" and len(path) > 1
    assert found.request == (left["per_request"][path[1]]["uuid"] if in_request else None)


@settings(max_examples=50)
@given(REQUESTS, st.data())
def test_a_missing_request_is_one_difference(requests: list[dict[str, Any]], data: st.DataObject) -> None:
    if not requests:
        return
    index = data.draw(st.integers(0, len(requests) - 1))
    left = read({"per_request": requests})
    right = read({"per_request": requests[:index] + requests[index + 1 :]})
    (removed,) = iter_differences(left, right)
    assert (removed.pattern.text, removed.kind) == ("/per_request/*", "removed")
    assert (removed.left_pointer, removed.right_pointer) == (f"/per_request/{index}", None)
    (added,) = iter_differences(right, left)
    assert (added.kind, added.pointer, added.request) == ("added", f"/per_request/{index}", removed.request)


def test_moved_elements_have_a_pointer_on_either_side() -> None:
    left = {"per_request": [{"uuid": "a"}, {"uuid": "b", "ms": 1.0}]}
    right = {"per_request": [{"uuid": "b", "ms": 2.0}, {"uuid": "c"}]}
    removed, changed, added = iter_differences(left, right)
    assert (removed.left_pointer, removed.right_pointer) == ("/per_request/0", None)
    assert (changed.left_pointer, changed.right_pointer) == ("/per_request/1/ms", "/per_request/0/ms")
    assert (added.left_pointer, added.right_pointer) == (None, "/per_request/1")
    assert [difference.request for difference in (removed, changed, added)] == ["a", "b", "c"]


@pytest.mark.parametrize("broken", [7, {"uuid": 3}, {"uuid": "a"}, {}])
def test_requests_that_cannot_be_told_apart_are_compared_by_index(broken: object) -> None:
    left = {"per_request": [{"uuid": "a"}, broken, {"uuid": "c", "ms": 1.0}]}
    right = {"per_request": [{"uuid": "a"}, {"uuid": "b"}, {"uuid": "c", "ms": 2.0}]}
    places = {difference.pointer.split("/")[2] for difference in iter_differences(left, right)}
    assert places == {"1", "2"}


def test_ordinals_of_another_type_are_no_identity() -> None:
    left = {"coverage": {"pressure": {"records": [{"pressure_ordinal": 1.0}, {"pressure_ordinal": 2}]}}}
    right = {"coverage": {"pressure": {"records": [{"pressure_ordinal": 2}]}}}
    found = [(difference.kind, difference.pointer) for difference in iter_differences(left, right)]
    place = "/coverage/pressure/records"
    assert found == [("type", f"{place}/0/pressure_ordinal"), ("removed", f"{place}/1")]


def test_deep_documents_are_walked() -> None:
    def nested(value: object) -> Any:
        for _ in range(30):
            value = {"a": [value]}
        return value

    (found,) = iter_differences(nested(1), nested(2))
    assert found.pattern.text == "/a/*" * 30


# The reference: paths and values by hand.


def line_of(value: object) -> bytes | None:
    return None if value is ABSENT else line(value)


def leaves(value: Any, path: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    """Paths of all scalars but identities, whose change is a request that goes and another that comes."""
    if isinstance(value, dict):
        return [
            leaf
            for key, inner in value.items()
            if key not in {"uuid", "pressure_ordinal", "admission_ordinal"}
            for leaf in leaves(inner, (*path, key))
        ]
    if isinstance(value, list):
        return [leaf for index, inner in enumerate(value) for leaf in leaves(inner, (*path, index))]
    return [path]


def value_at(document: Any, path: tuple[str | int, ...]) -> Any:
    for key in path:
        document = document[key]
    return document


def set_at(document: Any, path: tuple[str | int, ...], value: object) -> None:
    value_at(document, path[:-1])[path[-1]] = value


def tokens(pointer: str | None) -> list[str]:
    assert pointer is not None
    return [token.replace("~1", "/").replace("~0", "~") for token in pointer.split("/")[1:]]


def rebuilt(left: dict[str, Any], differences: list[Difference]) -> dict[str, Any]:
    """The left record with every difference applied: values set, then removals from the end, then additions."""
    document = copy.deepcopy(left)
    assert all(difference.kind != "reordered" for difference in differences)
    for difference in differences:
        if difference.kind in {"changed", "type"}:
            parent, key = located(document, difference.left_pointer)
            parent[key] = difference.right
    removed = [difference.left_pointer for difference in differences if difference.kind == "removed"]
    for pointer in sorted(removed, key=position, reverse=True):
        parent, key = located(document, pointer)
        del parent[key]
    added = [(difference.right_pointer, difference.right) for difference in differences if difference.kind == "added"]
    for pointer, value in sorted(added, key=lambda pair: position(pair[0])):
        parent, key = located(document, pointer)
        if isinstance(parent, list):
            parent.insert(int(key), value)
        else:
            parent[key] = value
    return document


def position(pointer: str | None) -> list[tuple[int, str]]:
    return [(int(token) if token.isdigit() else -1, token) for token in tokens(pointer)]


def located(document: Any, pointer: str | None) -> tuple[Any, Any]:
    *path, last = tokens(pointer)
    for token in path:
        document = document[int(token) if isinstance(document, list) else token]
    return document, int(last) if isinstance(document, list) else last
