"""Which elements of two arrays belong together (rule 19).

Requests are aligned by uuid, pressure records and admission histories by ordinal, every other array by index. Aligned
elements may stand at different positions; one that only one side has is a single difference, not a shift of all that
follow. Routing histories carry no ordinal: their position is it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

# Pattern of an array -> the field that identifies its elements, and the type that it must have.
_IDENTITIES: dict[str, tuple[str, type]] = {
    "/per_request": ("uuid", str),
    "/coverage/pressure/records": ("pressure_ordinal", int),
    "/per_request/*/admission_history": ("admission_ordinal", int),
}


class Pair(NamedTuple):
    """Positions of one element on both sides; None on the side that does not have it."""

    left: int | None
    right: int | None


def align(left: list[Any], right: list[Any], pattern: str) -> Iterator[Pair]:
    """Pairs in the order of the left side, then what only the right side has.

    When an identity is missing, of another type or not unique on either side, the array is aligned by index.
    """
    identity = _IDENTITIES.get(pattern)
    if identity is not None:
        one, other = _positions(left, *identity), _positions(right, *identity)
        if one is not None and other is not None:
            return _by_identity(one, other)
    return _by_index(len(left), len(right))


def _by_identity(left: dict[object, int], right: dict[object, int]) -> Iterator[Pair]:
    for identity, position in left.items():
        yield Pair(position, right.get(identity))
    for identity, position in right.items():
        if identity not in left:
            yield Pair(None, position)


def _by_index(left: int, right: int) -> Iterator[Pair]:
    for position in range(max(left, right)):
        yield Pair(position if position < left else None, position if position < right else None)


def _positions(elements: list[Any], field: str, kind: type) -> dict[object, int] | None:
    positions: dict[object, int] = {}
    for position, element in enumerate(elements):
        identity = element.get(field) if type(element) is dict else None
        # Exactly this type: 1, 1.0 and true are one key of a dict, but three identities.
        if type(identity) is not kind or identity in positions:
            return None
        positions[identity] = position
    return positions
