"""A pseudo-random generator in integer arithmetic: the same numbers on every Python, machine and libm."""

from __future__ import annotations

from collections.abc import Sequence

_MASK = (1 << 64) - 1

# One line of a table: its weight, the smallest and the largest value that it draws.
Band = tuple[int, int, int]


class SplitMix64:
    """SplitMix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators, 2014), 64 bits a draw."""

    def __init__(self, seed: int) -> None:
        self._state = seed & _MASK

    def bits(self) -> int:
        """The next 64 bits."""
        self._state = (self._state + 0x9E3779B97F4A7C15) & _MASK
        mixed = self._state
        mixed = ((mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
        mixed = ((mixed ^ (mixed >> 27)) * 0x94D049BB133111EB) & _MASK
        return mixed ^ (mixed >> 31)

    def below(self, bound: int) -> int:
        """An integer in [0, bound), by multiply and shift: `bound` is far below 2**64, so the bias is nothing."""
        return (self.bits() * bound) >> 64

    def between(self, low: int, high: int) -> int:
        """An integer in [low, high], both included."""
        return low + self.below(high - low + 1)

    def chance(self, numerator: int, denominator: int) -> bool:
        """True in `numerator` of `denominator` cases."""
        return self.below(denominator) < numerator

    def index(self, weights: Sequence[int]) -> int:
        """A position in `weights`, each as often as its weight."""
        point = self.below(sum(weights))
        for position, weight in enumerate(weights):
            point -= weight
            if point < 0:
                return position
        raise AssertionError("the weights are not positive")

    def draw(self, table: Sequence[Band]) -> int:
        """A value of a table: a band by weight, then evenly inside it."""
        _, low, high = table[self.index([weight for weight, _, _ in table])]
        return self.between(low, high)
