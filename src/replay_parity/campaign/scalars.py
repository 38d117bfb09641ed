"""Numbers as JSON writes them, and nothing that would lose a digit on its way to the engine."""

from __future__ import annotations

import math
import re

_WHOLE = re.compile(r"[-+]?(?:0|[1-9][0-9]*)")
_FLOATING = re.compile(r"[-+]?(?:\.[0-9]+|(?:0|[1-9][0-9]*)(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
# The engine reads integers into 64 bits; 20 digits and a sign are enough for those.
_LARGEST, _SMALLEST, _LONGEST = 2**64 - 1, -(2**63), 21
_SHOWN = 50


def parse_number(text: str) -> int | float | None:
    """The number that `text` spells, or None when it spells none.

    Leading zeros (`010` is 8 to some readers and 10 to others), `1_000`, `0x1f`, `1:30` and `.inf` spell none.
    ValueError, with a sentence that begins with "holds", when it spells one that cannot be kept exactly or finitely.
    """
    if _WHOLE.fullmatch(text):
        value = int(text) if len(text) <= _LONGEST else None
        if value is None or not _SMALLEST <= value <= _LARGEST:
            raise ValueError(f"holds the whole number {_cut(text)}, which does not fit into 64 bits")
        return value
    if _FLOATING.fullmatch(text):
        floating = float(text)
        if not math.isfinite(floating):
            raise ValueError(f"holds the number {_cut(text)}, which is too large")
        return floating
    return None


def _cut(text: str) -> str:
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."
