from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from replay_parity.corpus.splitmix import SplitMix64

seeds = st.integers(0, 2**63 - 1)


def test_published_values() -> None:
    random = SplitMix64(1234567)
    assert [random.bits() for _ in range(5)] == [
        6457827717110365317,
        3203168211198807973,
        9817491932198370423,
        4593380528125082431,
        16408922859458223821,
    ]


@given(seeds, st.integers(1, 2**40))
def test_below_stays_below(seed: int, bound: int) -> None:
    random = SplitMix64(seed)
    assert all(0 <= random.below(bound) < bound for _ in range(20))


@given(seeds, st.integers(-100, 100), st.integers(0, 100))
def test_between_includes_both_ends(seed: int, low: int, width: int) -> None:
    random = SplitMix64(seed)
    assert all(low <= random.between(low, low + width) <= low + width for _ in range(20))


def test_all_values_of_a_small_range_appear_evenly() -> None:
    random = SplitMix64(7)
    counts = Counter(random.between(1, 4) for _ in range(8_000))
    assert sorted(counts) == [1, 2, 3, 4]
    assert all(1_800 < count < 2_200 for count in counts.values())


def test_positions_follow_their_weights() -> None:
    random = SplitMix64(7)
    counts = Counter(random.index([60, 0, 40]) for _ in range(10_000))
    assert sorted(counts) == [0, 2]
    assert 5_800 < counts[0] < 6_200


def test_a_table_draws_from_its_bands_only() -> None:
    random = SplitMix64(3)
    drawn = {random.draw(((1, 5, 6), (1, 100, 100))) for _ in range(200)}
    assert drawn == {5, 6, 100}


def test_chance() -> None:
    random = SplitMix64(3)
    assert not any(random.chance(0, 8) for _ in range(50))
    assert all(random.chance(8, 8) for _ in range(50))
