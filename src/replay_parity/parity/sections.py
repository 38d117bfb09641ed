"""The three sections of a record, which mean different things when they differ (rule 16).

`results` are what was simulated: parity is about them. `configuration` is how a revision describes its own engine
(`/metadata/engine`): shown apart, never parity. `metadata` is the rest of the metadata, which both sides get from one
plan and which therefore never should differ.
"""

from __future__ import annotations

from typing import Literal

SectionName = Literal["results", "configuration", "metadata"]
SECTIONS: tuple[SectionName, ...] = ("results", "configuration", "metadata")

_ENGINE = "/metadata/engine"
_METADATA = "/metadata"


def section_of(pattern: str) -> SectionName:
    """The section of a pattern or pointer. What no rule names counts as a result: nothing is ever hidden."""
    if pattern == _ENGINE or pattern.startswith(f"{_ENGINE}/"):
        return "configuration"
    if pattern == _METADATA or pattern.startswith(f"{_METADATA}/"):
        return "metadata"
    return "results"
