from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from replay_parity.corpus.facts import Facing
from replay_parity.corpus.formats import Request


@given(st.lists(st.integers(1, 50), min_size=1, max_size=200))
def test_percentiles_are_those_of_the_sorted_lengths(lengths: list[int]) -> None:
    facing = Facing()
    for length in lengths:
        facing.add(Request(length, 2 * length, None))
    facts = facing.facts()
    assert facts is not None
    ordered = sorted(lengths)
    found = facts.input_tokens
    assert (found.total, found.smallest, found.largest) == (sum(lengths), ordered[0], ordered[-1])
    for name, value in found.percentiles.items():
        rank = math.ceil(int(name[1:]) * len(ordered) / 100)
        assert value == ordered[rank - 1]
    assert facts.output_tokens.total == 2 * sum(lengths)
    assert facts.sessions == facts.requests == len(lengths)


def test_sessions_and_times() -> None:
    facing = Facing()
    assert facing.facts() is None
    for session, at_ms in [("a", 5.0), ("a", None), (None, 2_000.0), ("b", 10.0)]:
        facing.add(Request(1, 1, session, at_ms))
    facts = facing.facts()
    assert facts is not None
    assert (facts.requests, facts.sessions) == (4, 3)
    assert facts.seconds == pytest.approx(1.995)
