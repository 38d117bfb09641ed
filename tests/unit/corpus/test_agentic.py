from __future__ import annotations

import json
from typing import Any

import pytest

from replay_parity.corpus.agentic import AgenticMooncake
from replay_parity.corpus.fields import RowError
from replay_parity.corpus.formats import Request

HEADER: dict[str, Any] = {
    "schema": "dynamo.agentic_mooncake",
    "version": 2,
    "block_size": 512,
    "hash_id_scope": "local",
    "source": {"format": "made", "digest": "1"},
}
GOOD: dict[str, Any] = {
    "request_id": "r0",
    "play_id": "p0",
    "session_id": "s0",
    "model": "m",
    "input_length": 600,
    "output_length": 3,
    "hash_ids": [1, 2],
    "not_before_ms": 0.0,
    "dependencies": [],
}
WAITS: dict[str, Any] = {"request_id": "r0", "trigger": "completion", "delay_ms": 5, "relation": "sequence"}
MISSING = object()


def line(row: dict[str, Any], **changes: Any) -> bytes:
    changed = row | changes
    return json.dumps({key: value for key, value in changed.items() if value is not MISSING}).encode() + b"\n"


def test_accepted() -> None:
    form = AgenticMooncake(512)
    form.header(line(HEADER))
    assert form.request(line(GOOD)) == Request(600, 3, "s0")
    form.request(line(GOOD, request_id="r1", dependencies=[WAITS]))
    spawned = WAITS | {"trigger": "dispatch", "relation": "spawn"}
    form.request(line(GOOD, request_id="r2", dependencies=[WAITS | {"relation": "join"}, spawned]))
    form.request(line(GOOD, request_id="r3", dependencies=MISSING))
    form.finish()


def test_a_dependency_may_come_later_in_the_slice() -> None:
    form = AgenticMooncake(512)
    form.request(line(GOOD, request_id="r1", dependencies=[WAITS]))
    with pytest.raises(RowError, match="without request 'r0', for which 'r1' waits"):
        form.finish()
    form.request(line(GOOD))
    form.finish()


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"schema": "other"}, "is not the header"),
        ({"schema": MISSING}, "is not the header"),
        ({"version": 1}, "another version than 2"),
        ({"version": 2.0}, "bad version"),
        ({"block_size": 64}, "has blocks of 64 tokens, but the corpus file says 512"),
        ({"block_size": 0}, "bad block_size"),
        ({"hash_id_scope": "global"}, "another hash_id_scope"),
        ({"source": None}, "has no source"),
        ({"source": {"format": "made"}}, "has no digest"),
        ({"source": {"format": " ", "digest": "1"}}, "has no format"),
    ],
)
def test_refused_headers(changes: dict[str, Any], expected: str) -> None:
    with pytest.raises(RowError, match=expected):
        AgenticMooncake(512).header(line(HEADER, **changes))


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"request_id": MISSING}, "has no request_id"),
        ({"play_id": ""}, "has no play_id"),
        ({"session_id": None}, "has no session_id"),
        ({"model": "  "}, "has no model"),
        ({"input_length": 0}, "bad input_length"),
        ({"output_length": MISSING}, "has no output_length"),
        ({"hash_ids": [1]}, "has 1 hash_ids, but an input_length of 600 needs 2 in blocks of 512"),
        ({"hash_ids": [1, 2, 3]}, "has 3 hash_ids"),
        ({"not_before_ms": MISSING}, "has no not_before_ms"),
        ({"not_before_ms": -1}, "bad not_before_ms"),
        ({"output_token_ids": [1]}, "has 1 output_token_ids"),
        ({"dependencies": None}, "bad dependencies"),
        ({"dependencies": ["r1"]}, "not a JSON object"),
        ({"dependencies": [WAITS]}, "waits for itself"),
        ({"dependencies": [{**WAITS, "request_id": ""}]}, "has no request_id"),
        ({"dependencies": [{**WAITS, "request_id": "r1", "delay_ms": None}]}, "without delay_ms"),
        ({"dependencies": [{**WAITS, "request_id": "r1", "delay_ms": -1}]}, "bad delay_ms"),
        ({"dependencies": [{**WAITS, "request_id": "r1", "relation": "other"}]}, "unknown relation"),
        ({"dependencies": [{**WAITS, "request_id": "r1", "trigger": "other"}]}, "unknown relation or trigger"),
        ({"dependencies": [{**WAITS, "request_id": "r1", "trigger": "dispatch"}]}, "only spawn"),
    ],
)
def test_refused_requests(changes: dict[str, Any], expected: str) -> None:
    with pytest.raises(RowError, match=expected):
        AgenticMooncake(512).request(line(GOOD, **changes))


def test_a_request_id_is_used_once() -> None:
    form = AgenticMooncake(512)
    form.request(line(GOOD))
    with pytest.raises(RowError, match="has the request_id 'r0' of an earlier line"):
        form.request(line(GOOD))
