from __future__ import annotations

import json
from typing import Any

import pytest

from replay_parity.corpus.fields import RowError
from replay_parity.corpus.formats import Request
from replay_parity.corpus.mooncake import Mooncake

GOOD: dict[str, Any] = {"timestamp": 0, "input_length": 600, "output_length": 3, "hash_ids": [1, 2]}
MISSING = object()


def line(**changes: Any) -> bytes:
    row = GOOD | changes
    return json.dumps({key: value for key, value in row.items() if value is not MISSING}).encode() + b"\n"


def refusal(*lines: bytes) -> str:
    form = Mooncake(512)
    for good in lines[:-1]:
        form.request(good)
    with pytest.raises(RowError) as caught:
        form.request(lines[-1])
    return str(caught.value)


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"timestamp": 1.5},
        {"output_length": 0},
        {"hash_ids": [1, 2, 3]},
        {"hash_ids": [0, 2**64 - 1]},
        {"session_id": None},
        {"session_id": "a"},
        {"unknown": [1]},
        {"output_token_ids": [1, 2, 2**32 - 1]},
        {"output_token_ids": None},
        {"delay": 0},
        {"input_length": 1024},
    ],
)
def test_accepted(changes: dict[str, Any]) -> None:
    request = Mooncake(512).request(line(**changes))
    assert request.input_length == changes.get("input_length", 600)
    assert request.session == changes.get("session_id")


def test_other_names_of_fields() -> None:
    row = b'{"created_time": 0, "input_tokens": 5, "output_tokens": 7, "hash_ids": [1]}\n'
    assert Mooncake(512).request(row) == Request(5, 7, None)


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"timestamp": MISSING}, "has no timestamp"),
        ({"timestamp": None}, "has no timestamp"),
        ({"timestamp": -1}, "bad timestamp"),
        ({"timestamp": "0"}, "bad timestamp"),
        ({"timestamp": True}, "bad timestamp"),
        ({"input_length": MISSING}, "has no input_length"),
        ({"input_length": 0}, "bad input_length: it must be a whole number from 1"),
        ({"input_length": -1}, "bad input_length"),
        ({"input_length": 5.0}, "bad input_length"),
        ({"input_length": True}, "bad input_length"),
        ({"input_length": 2**53}, "bad input_length"),
        ({"input_length": 10**30}, "bad input_length"),
        ({"input_length": 1025}, "an input_length of 1025, but hash_ids for 1024 tokens in blocks of 512"),
        ({"input_tokens": 5}, "both input_length and input_tokens"),
        ({"output_length": MISSING}, "has no output_length"),
        ({"output_length": -1}, "bad output_length: it must be a whole number from 0"),
        ({"hash_ids": MISSING}, "has no hash_ids"),
        ({"hash_ids": []}, "bad hash_ids"),
        ({"hash_ids": 5}, "bad hash_ids"),
        ({"hash_ids": [1, "2"]}, "bad hash_ids"),
        ({"hash_ids": [1, -2]}, "bad hash_ids"),
        ({"hash_ids": [1, 2.0]}, "bad hash_ids"),
        ({"hash_ids": [1, 2**64]}, "bad hash_ids"),
        ({"session_id": ""}, "has no session_id"),
        ({"session_id": 5}, "has no session_id"),
        ({"delay": 5}, "the first turn of its session"),
        ({"delay": 5, "session_id": "a"}, "the first turn of its session"),
        ({"output_token_ids": [1]}, "has 1 output_token_ids for an output_length of 3"),
        ({"output_token_ids": [1, 2, 2**32]}, "bad output_token_ids"),
        ({"output_token_ids": "abc"}, "bad output_token_ids"),
    ],
)
def test_refused(changes: dict[str, Any], expected: str) -> None:
    assert expected in refusal(line(**changes))


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        (b"[1]\n", "is not a JSON object"),
        (b"{'a': 1}\n", "is not JSON"),
        (b'{"timestamp": NaN}\n', "is not JSON"),
        (b'{"timestamp": 1e999, "input_length": 1, "output_length": 1, "hash_ids": [1]}\n', ""),
        (b'{"a": "\xff"}\n', "is not JSON"),
        (b'{"timestamp": 0, "inp', "is cut off"),
        (b'{"timestamp": 0, "inp\n', "is not JSON"),
        (b"<html>\n", "is not JSON"),
    ],
)
def test_refused_bytes(row: bytes, expected: str) -> None:
    assert expected in refusal(row)


def test_turns_of_a_session_do_not_go_back_in_time() -> None:
    first = line(timestamp=9, session_id="a")
    assert "goes back in time: 8 ms after 9 ms in session 'a'" in refusal(first, line(timestamp=8, session_id="a"))
    form = Mooncake(512)
    for row in (first, line(timestamp=8, session_id="b"), line(timestamp=8), line(timestamp=9, session_id="a")):
        form.request(row)


def test_a_delay_stands_for_a_timestamp_after_the_first_turn() -> None:
    form = Mooncake(512)
    form.request(line(timestamp=9, session_id="a"))
    form.request(line(timestamp=MISSING, delay=0, session_id="a"))
    form.request(line(timestamp=1, delay_ms=5, session_id="a"))
    assert "goes back" in refusal(
        line(timestamp=9, session_id="a"),
        line(timestamp=MISSING, delay=1, session_id="a"),
        line(timestamp=8, session_id="a"),
    )
    assert "has no timestamp" in refusal(line(session_id="a"), line(timestamp=MISSING, session_id="a"))
