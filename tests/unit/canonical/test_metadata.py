"""What a record says of itself, against the plan; whose requests it holds."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest

from replay_parity.canonical.metadata import check_identity_order, check_metadata
from replay_parity.errors import CanonicalFormError

EXPECTED: dict[str, Any] = {
    "campaign": "aisimulate.engine-replay-parity.v1",
    "composition": {"placement": "round_robin", "scaling": "none"},
    "owner": {"tags": ["a", 1, True, None]},
    "row_name": "vllm-aggregated",
    "topology": {"kind": "aggregated", "workers": {"initial_workers": 4}},
    "workload": {"arrival_speedup_ratio": 4, "rows": 5000, "slice": {"rows": 5000, "start_zero_based": 0}},
}


def record() -> dict[str, Any]:
    metadata = copy.deepcopy(EXPECTED)
    metadata["workload"]["arrival_speedup_ratio"] = 4.0
    metadata["topology"]["workers"]["startup_delay_ms"] = 0.0
    metadata |= {"engine": {"dp_size": 1}, "schema_version": "dynamo.offline-replay.v1", "result_exclusions": []}
    return {"metadata": metadata}


def mismatch(document: dict[str, Any]) -> str:
    with pytest.raises(CanonicalFormError) as caught:
        check_metadata(document, EXPECTED, where="record")
    assert caught.value.reason == "metadata_mismatch"
    return str(caught.value)


def test_metadata_of_the_plan_is_accepted() -> None:
    check_metadata(record(), EXPECTED, where="record")


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (
            lambda metadata: metadata.update(row_name="other"),
            'record, /metadata/row_name: is "other", where the plan has "vllm-aggregated"',
        ),
        (
            lambda metadata: metadata["workload"].update(arrival_speedup_ratio=2.0),
            "record, /metadata/workload/arrival_speedup_ratio: is 2.0, where the plan has 4",
        ),
        (
            lambda metadata: metadata["workload"].pop("rows"),
            "record, /metadata/workload/rows: is nothing, where the plan has 5000",
        ),
        (
            lambda metadata: metadata["workload"].update(admission=None),
            "record, /metadata/workload/admission: is null, where the plan has nothing",
        ),
        (
            lambda metadata: metadata["topology"]["workers"].update(startup_delay_ms=5.0),
            "record, /metadata/topology/workers/startup_delay_ms: is 5.0, where the plan has nothing",
        ),
        (
            lambda metadata: metadata["owner"]["tags"].__setitem__(1, True),
            "record, /metadata/owner/tags/1: is true, where the plan has 1",
        ),
        (
            lambda metadata: metadata["owner"]["tags"].__setitem__(2, 1),
            "record, /metadata/owner/tags/2: is 1, where the plan has true",
        ),
        (
            lambda metadata: metadata["owner"]["tags"].pop(),
            'record, /metadata/owner/tags: is ["a",1,true], where the plan has ["a",1,true,null]',
        ),
        (
            lambda metadata: metadata.update(composition="none"),
            'record, /metadata/composition: is "none", where the plan has {"placement":"round_robin","scaling":"none"}',
        ),
        (
            lambda metadata: metadata.pop("owner"),
            'record, /metadata/owner: is nothing, where the plan has {"tags":["a",1,true,null]}',
        ),
        (
            lambda metadata: metadata.pop("engine"),
            "record, /metadata/engine: is nothing, where the plan has the engine's configuration",
        ),
        (
            lambda metadata: metadata.update({"a/\x1b": 1}),
            "record, /metadata/a~1\\u001b: is 1, where the plan has nothing",
        ),
    ],
)
def test_other_metadata_is_refused(change: Callable[[dict[str, Any]], object], sentence: str) -> None:
    document = record()
    change(document["metadata"])
    assert mismatch(document) == sentence


def test_a_long_value_is_cut() -> None:
    document = record()
    document["metadata"]["row_name"] = "x" * 10_000
    assert len(mismatch(document)) < 300


def requests(*turns: tuple[str, int | None]) -> dict[str, Any]:
    return {
        "per_request": [
            {"uuid": f"00000000-0000-0000-0000-{number:012x}", "session_id": session, "turn_index": turn}
            for number, (session, turn) in enumerate(turns, start=1)
        ]
    }


@pytest.mark.parametrize(
    "turns",
    [
        [],
        [("a", 0), ("b", 0), ("c", 0)],
        [("a", 0), ("a", 1), ("b", 0), ("b", 1), ("b", 2)],
        # Agentic: every node is a turn 0 of its session on 0.12, and has no turn on 0.13.
        [("a", 0), ("a", 0), ("b", 0)],
        [("a", None), ("a", None)],
    ],
)
def test_authored_order_is_accepted(turns: list[tuple[str, int | None]]) -> None:
    check_identity_order(requests(*turns), where="record", authored=turns)
    check_identity_order(requests(*turns), where="record")


@pytest.mark.parametrize(
    "turns",
    [[("a", 1)], [("a", 0), ("a", 2)], [("a", 1), ("a", 0)], [("a", 0), ("b", 1)], [("a", 0), ("b", 0), ("b", 2)]],
)
def test_turns_out_of_order_are_refused(turns: list[tuple[str, int | None]]) -> None:
    assert "/turn_index" in identity_error(requests(*turns))


@pytest.mark.parametrize(
    "uuid",
    [
        "00000000-0000-0000-0000-000000000003",
        "7d444840-9dc0-11d1-b245-5ffdce74fad2",
        "2",
        "00000000-0000-0000-0000-00000000000\uff12",
        "00000000000000000000000000000002",
    ],
)
def test_uuids_that_are_not_the_number_of_their_place_are_refused(uuid: str) -> None:
    document = requests(("a", 0), ("b", 0))
    document["per_request"][1]["uuid"] = uuid
    assert "not the canonical number 2 of its place" in identity_error(document)


def test_another_trace_is_refused() -> None:
    document = requests(("a", 0), ("b", 0))
    assert "holds 2 requests, the trace has 1" in identity_error(document, [("a", 0)])
    sentence = 'record, /per_request/1: is session and turn ["b",0], the trace has ["c",0]'
    assert identity_error(document, [("a", 0), ("c", 0)]) == sentence


def identity_error(document: dict[str, Any], authored: list[tuple[str, int | None]] | None = None) -> str:
    with pytest.raises(CanonicalFormError) as caught:
        check_identity_order(document, where="record", authored=authored)
    assert caught.value.reason == "identity_order"
    return str(caught.value)
