"""Every single difference between two records, in document order; all that counts or judges differences walks here.

Two values are equal when their canonical serialisations are. Python's `==` is not that: it takes 1, 1.0 and true for
one value, and 0.0 for -0.0. But it never calls two values unequal that serialise alike (there is no NaN in a record),
so it serves as a quick "no", and its "yes" is checked by type or by comparing the serialised bytes.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal, NamedTuple

import orjson

from replay_parity.canonical.shown import json_pointer
from replay_parity.parity.differences_align import align
from replay_parity.parity.patterns import Pattern

Kind = Literal["added", "removed", "changed", "type", "reordered"]
KINDS: tuple[Kind, ...] = ("added", "removed", "changed", "type", "reordered")

_REQUESTS = "/per_request"
# Of one type and equal by `==` means equal bytes for these; a float is one of them unless it is a zero.
_EXACT = frozenset({str, int, bool, type(None)})


class Place(NamedTuple):
    """A link of the way down from the root: key or position on either side, the same unless elements moved."""

    parent: Place | None
    left: str | int | None
    right: str | int | None


class _Absent:
    """The value on the side that does not have one."""

    def __repr__(self) -> str:
        return "ABSENT"


ABSENT = _Absent()


class Difference(NamedTuple):
    """One difference.

    `changed`: two values of one JSON type, or two arrays or objects that could not be walked; `type`: another JSON
    type, integer and double being two; `added`, `removed`: only the right or the left side has the value, which may
    be a whole request; `reordered`: the aligned elements of an array stand in another order, left and right are the
    whole arrays. An absent value is `ABSENT`. `request` is the uuid of the request, "#position" of one
    that has none, None outside of requests.
    """

    pattern: Pattern
    kind: Kind
    left: Any
    right: Any
    place: Place | None
    request: str | None

    @property
    def left_pointer(self) -> str | None:
        """JSON Pointer of the value in the left record, None when it was added."""
        return None if self.left is ABSENT else json_pointer(_keys(self.place, left=True))

    @property
    def right_pointer(self) -> str | None:
        """JSON Pointer of the value in the right record, None when it was removed."""
        return None if self.right is ABSENT else json_pointer(_keys(self.place, left=False))

    @property
    def pointer(self) -> str:
        """The pointer that is shown: the left record's where it has the value, else the right record's."""
        left = self.left_pointer
        return json_pointer(_keys(self.place, left=False)) if left is None else left


def iter_differences(left: dict[str, Any], right: dict[str, Any]) -> Iterator[Difference]:
    """Every difference of two documents as orjson read them; empty exactly when their serialisations are equal.

    Order: keys sorted, array elements in the left record's order, what is only on the right last. Memory is that of
    the differences of one request at a time.
    """
    walk = _Walk()
    root = Pattern()
    for key in sorted(left.keys() | right.keys()):
        pattern, place = root.child(key), Place(None, key, key)
        one, other = left.get(key, ABSENT), right.get(key, ABSENT)
        if pattern.text == _REQUESTS and type(one) is list and type(other) is list:
            yield from _iter_requests(walk, one, other, pattern, place)
        elif not same(one, other):
            walk.value(one, other, pattern, place)
            yield from walk.taken()


def same(left: Any, right: Any) -> bool:
    """Whether two values serialise to the same canonical bytes."""
    kind = type(left)
    if kind is not type(right) or left != right:
        return False
    if kind in _EXACT or (kind is float and left) or left is ABSENT:
        return True
    return orjson.dumps(left, option=orjson.OPT_SORT_KEYS) == orjson.dumps(right, option=orjson.OPT_SORT_KEYS)


def _iter_requests(
    walk: _Walk, left: list[Any], right: list[Any], pattern: Pattern, place: Place
) -> Iterator[Difference]:
    for _ in walk.elements(left, right, pattern, place):
        if walk.found:
            yield from walk.taken()


class _Walk:
    """Collects the differences below one value; `found` is emptied by whoever drives the walk."""

    __slots__ = ("found", "request")

    def __init__(self) -> None:
        self.found: list[Difference] = []
        self.request: str | None = None

    def taken(self) -> list[Difference]:
        """What was found since the last time."""
        found, self.found = self.found, []
        return found

    def value(self, left: Any, right: Any, pattern: Pattern, place: Place) -> None:
        """Record what differs between two values that are not the same."""
        kind: Kind = "changed"
        if type(left) is type(right):
            if type(left) is dict:
                self._object(left, right, pattern, place)
                return
            if type(left) is list:
                for _ in self.elements(left, right, pattern, place):
                    pass
                return
        elif left is ABSENT:
            kind = "added"
        elif right is ABSENT:
            kind = "removed"
        else:
            kind = "type"
        self.found.append(Difference(pattern, kind, left, right, place, self.request))

    def _object(self, left: dict[str, Any], right: dict[str, Any], pattern: Pattern, place: Place) -> None:
        if left.keys() == right.keys():
            for key, one in left.items():
                other = right[key]
                if not same(one, other):
                    self.value(one, other, pattern.child(key), Place(place, key, key))
            return
        for key in sorted(left.keys() | right.keys()):
            one, other = left.get(key, ABSENT), right.get(key, ABSENT)
            if not same(one, other):
                self.value(one, other, pattern.child(key), Place(place, key, key))

    def elements(self, left: list[Any], right: list[Any], pattern: Pattern, place: Place) -> Iterator[None]:
        """Walk two arrays; yields after each element, so that differences can be taken in between."""
        of_requests = pattern.text == _REQUESTS
        last = -1
        ordered = True
        for at_left, at_right in align(left, right, pattern.text):
            one = ABSENT if at_left is None else left[at_left]
            other = ABSENT if at_right is None else right[at_right]
            if at_left is not None and at_right is not None:
                ordered = ordered and at_right > last
                last = at_right
            if same(one, other):
                continue
            if of_requests:
                self.request = _request_name(one, other, at_left, at_right)
            self.value(one, other, pattern.elements(), Place(place, at_left, at_right))
            yield
        if of_requests:
            self.request = None
        if not ordered:
            self.found.append(Difference(pattern, "reordered", left, right, place, self.request))
            yield


def _request_name(left: Any, right: Any, at_left: int | None, at_right: int | None) -> str:
    element = right if left is ABSENT else left
    uuid = element.get("uuid") if type(element) is dict else None
    return uuid if type(uuid) is str else f"#{at_right if at_left is None else at_left}"


def _keys(place: Place | None, *, left: bool) -> list[str | int]:
    keys: list[str | int] = []
    while place is not None:
        key = place.left if left else place.right
        # None stands only on the side that lacks the value, and that side is never pointed at.
        if key is not None:
            keys.append(key)
        place = place.parent
    return keys[::-1]
