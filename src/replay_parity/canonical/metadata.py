"""What a record says of itself against what the plan knows: two sides that are equally wrong are not green (rule 15).

The runner writes the row's free metadata plus `campaign`, `row_name`, `composition`, `workload`, `topology` and
`engine`; the engine adds `schema_version` and `result_exclusions` (proven by `rules`). Python cannot know the engine
as a revision normalises it, so `/metadata/engine` must exist and is judged by the difference of the two sides only.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from replay_parity.canonical.rules import refuse
from replay_parity.canonical.shown import json_pointer, printable, shown

_ADDED_BY_ENGINE = frozenset({"engine", "schema_version", "result_exclusions"})
_LIMIT = 120
# In CanonicalV1 a request's uuid is its number in authored order, from 1.
_CANONICAL_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")

Path = tuple[str | int, ...]


def check_metadata(document: Mapping[str, Any], expected: Mapping[str, object], *, where: str) -> None:
    """Raise CanonicalFormError("metadata_mismatch") at the first place that differs from `expected`.

    `expected` is the whole of the record's metadata without what the engine adds. Numbers compare by value (4 is 4.0:
    the engine reads some of them as doubles), everything else exactly. A revision writes the topology with its
    defaults: there, and only there, a key that the plan does not name may hold null, false, zero or nothing.
    """
    metadata = document["metadata"]
    for key in sorted(metadata.keys() - expected.keys() - _ADDED_BY_ENGINE):
        _mismatch(("metadata", key), "nothing", shown(metadata[key], _LIMIT), where)
    if "engine" not in metadata:
        _mismatch(("metadata", "engine"), "the engine's configuration", "nothing", where)
    for key in sorted(expected):
        path: Path = ("metadata", key)
        if key not in metadata:
            _mismatch(path, shown(expected[key], _LIMIT), "nothing", where)
        _compare(expected[key], metadata[key], path, where)


def check_identity_order(
    document: Mapping[str, Any], *, where: str, authored: Iterable[tuple[str, int | None]] | None = None
) -> None:
    """Raise CanonicalFormError("identity_order") unless the requests are the trace's, in authored order (rule 13).

    Uuids are the numbers 1, 2, 3 … without a gap, and within one session every turn follows the turn before it. With
    `authored`, the pairs of session id and turn index in authored order (sessions in order of first appearance, each
    with its turns), the record must hold exactly these. A build without determinism has random uuids and is refused.
    """
    turns: dict[object, object] = {}
    requests = document["per_request"]
    for index, request in enumerate(requests):
        _check_ordinal(request["uuid"], index, where)
        session, turn = request.get("session_id"), request.get("turn_index")
        if type(turn) is int and turn > 0 and turns.get(session) != turn - 1:
            place = f"{where}, /per_request/{index}/turn_index"
            refuse("identity_order", f"is {turn}, but the turn before it is not its session's last", place)
        turns[session] = turn
    if authored is not None:
        _check_authored(requests, authored, where)


def _check_ordinal(uuid: str, index: int, where: str) -> None:
    ordinal = int(uuid.replace("-", ""), 16) if _CANONICAL_UUID.fullmatch(uuid) else None
    if ordinal != index + 1:
        message = f"is {shown(uuid, _LIMIT)}, not the canonical number {index + 1} of its place"
        refuse("identity_order", message, f"{where}, /per_request/{index}/uuid")


def _check_authored(
    requests: Sequence[Mapping[str, Any]], authored: Iterable[tuple[str, int | None]], where: str
) -> None:
    expected = list(authored)
    if len(requests) != len(expected):
        message = f"holds {len(requests):,} requests, the trace has {len(expected):,}"
        refuse("identity_order", message, f"{where}, /per_request")
    for index, (request, pair) in enumerate(zip(requests, expected, strict=True)):
        found = (request.get("session_id"), request.get("turn_index"))
        if found != pair:
            message = f"is session and turn {shown(found, _LIMIT)}, the trace has {shown(pair, _LIMIT)}"
            refuse("identity_order", message, f"{where}, /per_request/{index}")


def _compare(expected: object, found: object, path: Path, where: str) -> None:
    if isinstance(expected, Mapping) and isinstance(found, dict):
        _compare_objects(expected, found, path, where)
    elif isinstance(expected, list | tuple) and isinstance(found, list):
        if len(expected) != len(found):
            _mismatch(path, shown(expected, _LIMIT), shown(found, _LIMIT), where)
        for index, (one, other) in enumerate(zip(expected, found, strict=True)):
            _compare(one, other, (*path, index), where)
    elif not _equal(expected, found):
        _mismatch(path, shown(expected, _LIMIT), shown(found, _LIMIT), where)


def _compare_objects(expected: Mapping[str, object], found: dict[str, object], path: Path, where: str) -> None:
    for key in sorted(expected.keys() | found.keys()):
        if key not in found:
            _mismatch((*path, key), shown(expected[key], _LIMIT), "nothing", where)
        elif key in expected:
            _compare(expected[key], found[key], (*path, key), where)
        elif found[key] or path[:2] != ("metadata", "topology"):
            _mismatch((*path, key), "nothing", shown(found[key], _LIMIT), where)


def _equal(expected: object, found: object) -> bool:
    numbers = (int, float)
    if type(expected) in numbers and type(found) in numbers:
        return expected == found
    return type(expected) is type(found) and expected == found


def _mismatch(path: Path, expected: str, found: str, where: str) -> None:
    pointer = printable(json_pointer(path), 2 * _LIMIT)
    refuse("metadata_mismatch", f"is {found}, where the plan has {expected}", f"{where}, {pointer}")
