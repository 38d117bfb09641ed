"""A seal shows every edit of a document by somebody who does not seal again (threat 3)."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from replay_parity.campaign.sealed import Sealed

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


class Letter(Sealed):
    """A document with a free part."""

    words: str
    number: float = 0.0
    free: Any = None


@given(words=st.text(max_size=10), number=st.floats(allow_nan=False, allow_infinity=False), free=JSON)
def test_a_seal_survives_the_way_through_a_file(words: str, number: float, free: Any) -> None:
    sealed = Letter(words=words, number=number, free=free).sealed()
    assert sealed.seal_holds
    read = Letter.model_validate_json(sealed.model_dump_json(indent=2), strict=True)
    assert read.seal_holds
    assert read.seal == sealed.seal


@given(free=JSON, other=JSON)
def test_another_content_is_another_seal(free: Any, other: Any) -> None:
    sealed = Letter(words="w", free=free).sealed()
    same = orjson.dumps(free, option=orjson.OPT_SORT_KEYS) == orjson.dumps(other, option=orjson.OPT_SORT_KEYS)
    assert sealed.model_copy(update={"free": other}).seal_holds == same


def test_a_document_that_was_never_sealed_does_not_hold() -> None:
    letter = Letter(words="w")
    assert letter.seal == ""
    assert not letter.seal_holds
    assert not letter.sealed().model_copy(update={"seal": "0" * 64}).seal_holds


def test_sealing_twice_changes_nothing() -> None:
    sealed = Letter(words="w").sealed()
    assert sealed.sealed() == sealed


def test_the_order_of_keys_does_not_count() -> None:
    left, right = Letter(words="w", free={"a": 1, "b": 2}), Letter(words="w", free={"b": 2, "a": 1})
    assert left.sealed().seal == right.sealed().seal


@pytest.mark.parametrize("number", [2**64, -(2**63) - 1, 10**4000])
def test_a_number_that_no_writer_of_ours_can_seal_is_no_traceback(number: int) -> None:
    text = f'{{"seal": "{"0" * 64}", "words": "w", "free": {{"count": {number}}}}}'
    assert not Letter.model_validate_json(text).seal_holds
