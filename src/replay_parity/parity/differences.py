"""The focused difference of two records: every difference counted under its pattern, with one example of each."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Any

from replay_parity.canonical.shown import printable, shown
from replay_parity.parity.differences_model import (
    Differences,
    Example,
    PatternGroup,
    Requests,
    Section,
    Sections,
)
from replay_parity.parity.differences_walk import ABSENT, KINDS, Difference, Kind, iter_differences
from replay_parity.parity.patterns import Pattern
from replay_parity.parity.sections import SECTIONS, SectionName, section_of

_REQUEST_PATTERN = "/per_request/*"
_NUMBERS = frozenset({int, float})


@dataclass(frozen=True, slots=True)
class Limits:
    """What bounds the document: characters of a value and of a pattern or pointer, and groups in a section.

    Groups over the limit are those whose first difference comes last in document order; they stay in every count.
    """

    value: int = 200
    path: int = 400
    groups: int = 1000


DEFAULT_LIMITS = Limits()


def compare(left: dict[str, Any], right: dict[str, Any], *, limits: Limits = DEFAULT_LIMITS) -> Differences:
    """Compare two proven records. Linear in their size; `iter_differences` gives every difference itself."""
    tallies = {name: _SectionTally(limits) for name in SECTIONS}
    sections: dict[Pattern, _SectionTally] = {}
    requests = _RequestTally()
    for difference in iter_differences(left, right):
        pattern = difference.pattern
        section = sections.get(pattern)
        if section is None:
            section = sections[pattern] = tallies[section_of(pattern.text)]
        section.add(difference)
        if difference.request is not None:
            requests.add(difference)
    closed = {name: tally.closed() for name, tally in tallies.items()}
    return Differences(
        count=sum(section.count for section in closed.values()),
        requests=requests.closed(_length(left), _length(right)),
        sections=_sections(closed),
    )


def _sections(closed: dict[SectionName, Section]) -> Sections:
    return Sections(results=closed["results"], configuration=closed["configuration"], metadata=closed["metadata"])


def _length(document: dict[str, Any]) -> int:
    requests = document.get("per_request")
    return len(requests) if isinstance(requests, list) else 0


class _RequestTally:
    """Requests come one after the other, so a new name is a new request."""

    def __init__(self) -> None:
        self.removed = self.added = self.touched = 0
        self._last: str | None = None

    def add(self, difference: Difference) -> None:
        if difference.request == self._last:
            return
        self._last = difference.request
        self.touched += 1
        if difference.pattern.text == _REQUEST_PATTERN:
            self.removed += difference.kind == "removed"
            self.added += difference.kind == "added"

    def closed(self, left: int, right: int) -> Requests:
        changed = self.touched - self.removed - self.added
        return Requests(left=left, right=right, removed=self.removed, added=self.added, changed=changed)


class _SectionTally:
    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._groups: dict[tuple[Pattern, Kind], _GroupTally] = {}
        self._beyond: dict[tuple[Pattern, Kind], int] = {}
        self._first: Difference | None = None
        self._last_request: str | None = None
        self._requests = 0

    def add(self, difference: Difference) -> None:
        key = (difference.pattern, difference.kind)
        group = self._groups.get(key)
        if group is None:
            if self._first is None:
                self._first = difference
            if len(self._groups) < self._limits.groups:
                group = self._groups[key] = _GroupTally(difference)
        if group is None:
            self._beyond[key] = self._beyond.get(key, 0) + 1
        else:
            group.add(difference)
        if difference.request != self._last_request:
            self._last_request = difference.request
            self._requests += difference.request is not None

    def closed(self) -> Section:
        groups = sorted(self._groups.values(), key=lambda group: (-group.count, group.pattern, group.kind))
        kinds = dict.fromkeys(KINDS, 0)
        for (_, kind), group in self._groups.items():
            kinds[kind] += group.count
        for (_, kind), count in self._beyond.items():
            kinds[kind] += count
        return Section(
            count=sum(kinds.values()),
            requests=self._requests,
            kinds=kinds,
            first=None if self._first is None else _example(self._first, self._limits),
            groups=tuple(group.closed(self._limits) for group in groups),
            groups_left_out=len(self._beyond),
            differences_left_out=sum(self._beyond.values()),
        )


class _GroupTally:
    __slots__ = ("_absolute", "_first", "_last_request", "_relative", "_requests", "count", "kind", "pattern")

    def __init__(self, first: Difference) -> None:
        self._first = first
        self.pattern = first.pattern.text
        self.kind = first.kind
        self.count = 0
        self._requests = 0
        self._last_request: str | None = None
        self._absolute: float | None = None
        self._relative: float | None = None

    def add(self, difference: Difference) -> None:
        self.count += 1
        if difference.request != self._last_request:
            self._last_request = difference.request
            self._requests += 1
        left, right = difference.left, difference.right
        if type(left) in _NUMBERS and type(right) in _NUMBERS:
            change = abs(right - left)
            if self._absolute is None or change > self._absolute:
                self._absolute = change
            if left:
                relative = change / abs(left)
                if self._relative is None or relative > self._relative:
                    self._relative = relative

    def closed(self, limits: Limits) -> PatternGroup:
        return PatternGroup(
            pattern=printable(self.pattern, limits.path),
            kind=self.kind,
            count=self.count,
            requests=self._requests,
            largest_absolute=_finite(self._absolute),
            largest_relative=_finite(self._relative),
            example=_example(self._first, limits),
        )


def _example(difference: Difference, limits: Limits) -> Example:
    request = difference.request
    return Example(
        pointer=printable(difference.pointer, limits.path),
        request=None if request is None else printable(request, limits.path),
        left=None if difference.left is ABSENT else shown(difference.left, limits.value),
        right=None if difference.right is ABSENT else shown(difference.right, limits.value),
    )


def _finite(value: float | None) -> float | None:
    # Two doubles can be further apart than any double is large; JSON has no infinity.
    return None if value is None else min(float(value), sys.float_info.max)
