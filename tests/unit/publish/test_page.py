"""A page never gets longer than its limit, and tells what it left out."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from replay_parity.publish.page import SMALLEST, Page, fitted, size

# Characters of one to four bytes: limits are bytes.
PARTS = st.builds(lambda character, number: character * number, st.sampled_from("aé€\U0001f600"), st.integers(0, 3_000))


@given(st.lists(PARTS, max_size=8), st.integers(SMALLEST, 8_000))
def test_never_over_the_limit(parts: list[str], limit: int) -> None:
    page = Page(limit)
    taken = [part for part in parts if page.add(part, "a part") and part]
    assert size(page.text()) <= limit
    assert ("left out: a part." in page.text()) == (len(taken) < sum(map(bool, parts)))
    assert all(part in page.text() for part in taken)


def test_what_was_left_out_is_told_once_below_the_heading() -> None:
    page = Page(SMALLEST)
    page.add("## head", "head")
    for _ in range(2):
        page.add("x" * SMALLEST, "rows")
    page.add("last", "last")
    assert page.text() == (
        "## head\n\nCut to GitHub's limit, left out: rows. `verdict.json` holds all of it.\n\nlast\n"
    )


def test_a_page_that_holds_no_verdict_is_refused() -> None:
    with pytest.raises(ValueError, match="at least 4096"):
        Page(100)


def test_bytes_are_counted() -> None:
    page = Page(SMALLEST)
    assert not page.add("é" * (SMALLEST // 2), "rows")
    assert page.add("e" * (SMALLEST // 2), "rows")


@given(st.lists(st.text(max_size=40), max_size=30), st.integers(-5, 400))
def test_lines_are_fitted_and_the_rest_is_counted(lines: list[str], room: int) -> None:
    kept = fitted(lines, room, lambda number: f"and {number} more")
    assert sum(size(line) + 1 for line in kept) <= max(room, 0)
    if kept != lines and kept:
        assert kept[-1] == f"and {len(lines) - len(kept) + 1} more"
        assert kept[:-1] == lines[: len(kept) - 1]
