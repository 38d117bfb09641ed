"""The table of rows: urgent ones first, none lost without being counted."""

from __future__ import annotations

import pytest
from tests.support.markdown import seen
from tests.support.verdicts import row

from replay_parity.publish.row_table import row_table

ROWS = [
    *(row(row=f"green{index}") for index in range(30)),
    *(row(row=f"lost{index}", outcome="missing") for index in range(3)),
    row(row="ex", outcome="excepted"),
    *(row(row=f"red{index}", outcome="mismatch") for index in range(3)),
]


def test_failing_then_undecided_then_excepted_then_the_rest() -> None:
    text = seen(row_table(ROWS, 100_000)).text
    order = ["red0", "red2", "lost0", "lost2", "ex", "30 rows that match", "green0", "green29"]
    assert [text.index(name) for name in order] == sorted(text.index(name) for name in order)
    assert "more" not in text


@pytest.mark.parametrize("room", range(0, 6_000, 250))
def test_rows_that_do_not_fit_are_counted(room: int) -> None:
    shown = row_table(ROWS, room)
    assert len(shown.encode()) <= max(room, 500)
    reader = seen(shown)
    told = sum(name.removesuffix(" ").startswith(("red", "lost", "ex", "green")) for name in reader.code)
    counted = sum(
        int(number)
        for line in reader.text.splitlines()
        if ": " in line and ("match" in line or "missing" in line or "mismatch" in line) and "row" in line
        for number in (part.split()[0] for part in line.rstrip(".").split(": ")[1].split(", "))
    )
    assert told + counted == len(ROWS)


def test_digests_are_as_long_as_it_takes_to_tell_them_apart() -> None:
    side = row().candidate
    alike = row(
        baseline=side.model_copy(update={"digests": ("a" * 64,)}),
        candidate=side.model_copy(update={"digests": ("a" * 20 + "b" * 44,)}),
    )
    assert f"{'a' * 21} ≠ {'a' * 20}b" in seen(row_table([alike], 10_000)).text
