"""The check run: its limits are bytes, its conclusion follows the verdict."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.hostile import INJECTIONS, hostile_row, hostile_verdict
from tests.support.markdown import seen
from tests.support.verdicts import row, verdict

from replay_parity.parity.verdict import Verdict
from replay_parity.publish.check_text import LIMIT_BYTES, TITLE_CHARACTERS, check_text, conclusion


def test_title_summary_and_text() -> None:
    shown = check_text(
        verdict(row(), row(row="red", outcome="mismatch", reason="because"), verdict="FAIL", exit_code=1)
    )
    assert shown.title == "FAIL: 1 of 2 rows differs"
    assert "Old against new" in shown.summary
    assert "mismatch" in shown.summary
    assert "because" in shown.text
    assert "Reproduce" not in shown.text


def test_the_command_is_shown_where_it_is_known() -> None:
    shown = check_text(verdict(row(outcome="missing"), verdict="ERROR", exit_code=3), reproduce=lambda _: "do it")
    assert "do it" in shown.text


@pytest.mark.parametrize(
    ("changes", "title"),
    [
        ({}, "PASS: all 2 rows match"),
        ({"equal_trees": True, "rows": ()}, "PASS: nothing to compare, equal sources"),
        ({"verdict": "ERROR", "exit_code": 3, "problems": ("p",)}, "ERROR (infrastructure): 1 problem"),
        ({"verdict": "ERROR", "exit_code": 3, "rows": ()}, "ERROR (infrastructure): no rows"),
        ({"verdict": "ERROR", "exit_code": 2, "campaign": None}, "ERROR (bad input): no plan could be made"),
        ({"advisory": True}, "PASS: all 2 rows match; advisory: shown, stands in nobody's way"),
    ],
)
def test_titles(changes: dict[str, Any], title: str) -> None:
    document = verdict(row(), row(row="second")).model_copy(update=changes)
    assert check_text(document).title == title


def test_a_mixed_failure_counts_its_kinds() -> None:
    rows = [
        row(row="a", outcome="mismatch"),
        row(row="b", outcome="unstable_candidate"),
        row(row="c", outcome="missing"),
        row(row="d"),
    ]
    assert check_text(verdict(*rows, verdict="FAIL", exit_code=1)).title == (
        "FAIL: 2 of 4 rows fail (1 mismatch, 1 unstable_candidate); 1 of 4 rows is undecided (missing)"
    )


def test_without_a_plan_there_is_a_summary_still() -> None:
    assert check_text(Verdict(tool_version="0", verdict="ERROR", exit_code=3)).summary.strip()


@given(st.integers(0, 300), st.sampled_from(["é", "\x00", "`", "|", "\U0001f600", "@a "]))
@settings(max_examples=10)
def test_never_over_the_limits(number: int, filling: str) -> None:
    rows = [hostile_row(filling * 4_000, row=f"r{index}") for index in range(number)]
    shown = check_text(verdict(*rows, verdict="FAIL", exit_code=1, problems=(filling * 70_000,) * 3))
    assert len(shown.title) <= TITLE_CHARACTERS
    assert len(shown.summary.encode()) <= LIMIT_BYTES
    assert len(shown.text.encode()) <= LIMIT_BYTES


def test_every_red_row_is_told_or_counted_as_left_out() -> None:
    rows = [row(row=f"red{index}", outcome="mismatch", reason=f"{index} " + "x" * 300) for index in range(1_000)]
    shown = check_text(verdict(*rows, verdict="FAIL", exit_code=1), reproduce=lambda result: f"run {result.id}").text
    told = shown.count("\nrun red")
    assert 100 < told < 1_000
    assert f"details of {1_000 - told} rows" in shown


@pytest.mark.parametrize("words", INJECTIONS)
def test_hostile_text_stays_text(words: str) -> None:
    shown = check_text(hostile_verdict(words))
    assert "\n" not in shown.title
    for part in (shown.summary, shown.text):
        reader = seen(part)
        assert not {"h1", "img", "a", "script", "em", "del", "hr"} & set(reader.elements)
        assert reader.acted_on == []


@pytest.mark.parametrize(
    ("name", "exit_code", "advisory", "expected"),
    [
        ("PASS", 0, False, "success"),
        ("PASS", 0, True, "success"),
        ("PASS_WITH_SEMANTIC_EXCEPTIONS", 0, False, "success"),
        ("FAIL", 1, False, "failure"),
        ("FAIL", 1, True, "neutral"),
        ("ERROR", 2, False, "failure"),
        ("ERROR", 3, True, "neutral"),
        ("ERROR", 130, False, "cancelled"),
        ("ERROR", 130, True, "cancelled"),
    ],
)
def test_conclusion(name: str, exit_code: int, advisory: bool, expected: str) -> None:
    assert conclusion(verdict(row(), verdict=name, exit_code=exit_code, advisory=advisory)) == expected
