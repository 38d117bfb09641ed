"""Ratios as one table of text."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.model import Ratio

_HEAD = ("what", "measured", "against", "ratio", "bound", "met")


def table(ratios: Sequence[Ratio]) -> list[str]:
    """The table as lines of text."""
    rows = [_HEAD, *(_cells(ratio) for ratio in ratios)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(_HEAD))]
    return [
        "  ".join(
            [row[0].ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True))]
        )
        for row in rows
    ]


def _cells(ratio: Ratio) -> tuple[str, ...]:
    bound = "-" if ratio.bound is None else f"<= {ratio.bound:g}"
    met = "-" if ratio.bound is None else ("yes" if ratio.met else "NO")
    numbers = (f"{ratio.measured:.4g} {ratio.unit}", f"{ratio.against:.4g} {ratio.unit}", f"{ratio.ratio:.3g}")
    return (ratio.what, *numbers, bound, met)
