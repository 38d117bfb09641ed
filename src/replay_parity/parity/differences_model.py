"""The focused difference of two records as a document: `differences.json`."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from replay_parity.campaign.base import Model
from replay_parity.parity.differences_walk import Kind

Count = Annotated[int, Field(ge=0)]
NonNegative = Annotated[float, Field(ge=0)]


class Example(Model):
    """One difference in full: where it is and both values as JSON text, printable and cut; null where absent."""

    pointer: str
    request: str | None
    left: str | None
    right: str | None


class PatternGroup(Model):
    """All differences of one kind that share a pattern; the example is the first in document order.

    `requests` counts requests, so it is 0 outside of `per_request`. The largest changes are those of numbers, null
    when there is none: absolute in the field's own unit, relative to the left value (a left zero counts in none).
    """

    pattern: str
    kind: Kind
    count: Count
    requests: Count
    largest_absolute: NonNegative | None
    largest_relative: NonNegative | None
    example: Example


class Section(Model):
    """One section: all counts are complete, also when groups over the limit are left out of `groups`.

    Groups are sorted by count, largest first, then by pattern and kind. `first` is the first difference in document
    order: of two repetitions it names the first field that leaks.
    """

    count: Count
    requests: Count
    kinds: dict[Kind, Count]
    first: Example | None
    groups: tuple[PatternGroup, ...]
    groups_left_out: Count
    differences_left_out: Count


class Sections(Model):
    """Results are parity; configuration is `/metadata/engine`, shown apart; metadata should never differ (rule 16)."""

    results: Section
    configuration: Section
    metadata: Section


class Requests(Model):
    """Requests on either side, and how many of them only one side has or differ inside (by uuid)."""

    left: Count
    right: Count
    removed: Count
    added: Count
    changed: Count


class Differences(Model):
    """What differs between a left and a right record; `count` is 0 exactly when the records are the same bytes."""

    schema_version: Literal[1] = 1
    count: Count
    requests: Requests
    sections: Sections


def to_json(differences: Differences) -> bytes:
    """The bytes of `differences.json`: UTF-8, two spaces deep, a newline at the end."""
    return differences.model_dump_json(indent=2).encode() + b"\n"
