"""The evidence block: everything a reviewer asks for, short, and nothing that acts in a pull request's text."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from tests.support.hostile import INJECTIONS, SPICE, hostile_row, hostile_verdict
from tests.support.markdown import seen
from tests.support.verdicts import build, row, verdict

from replay_parity.parity.result import DifferenceSummary
from replay_parity.publish.evidence import LIMIT_BYTES, evidence

COMMAND = "replay-parity run pr --baseline main"


def test_a_pass_names_command_commits_digests_counts_and_what_it_does_not_say() -> None:
    text = seen(evidence(verdict(row(), builds=(build(),)), command=COMMAND)).text
    for words in (
        "Replay parity, PASS: the row matches",
        f"{COMMAND}\n",
        "d" * 40,
        "e" * 40,
        "relationship: said so",
        "rustc 1.95.0",
        "a" * 64,
        "1 row: 1 match",
        "2 preemptions",
        "no claim that the simulation is accurate",
        "Rows that are not listed were not compared.",
    ):
        assert words in text


def test_a_failure_shows_both_digests_and_the_differences() -> None:
    differences = DifferenceSummary(
        file="d.json", total=1, results=1, configuration=0, requests=1, top=("/summary/x: 1 -> 2",)
    )
    other = row().candidate.model_copy(update={"digests": ("b" * 64,)})
    red = [
        row(row=f"red{index}", outcome="mismatch", reason="differs", candidate=other, differences=differences)
        for index in range(5)
    ]
    text = seen(evidence(verdict(*red, verdict="FAIL", exit_code=1), command=COMMAND)).text
    assert f"{'a' * 64} ≠ {'b' * 64}" in text
    assert text.count("/summary/x: 1 -> 2") == 3
    assert "left out: the reasons of 2 rows" in text


@pytest.mark.parametrize("words", INJECTIONS)
def test_hostile_text_stays_text(words: str) -> None:
    reader = seen(evidence(hostile_verdict(words), command=f"run {words}"))
    assert set(reader.elements) <= {"p", "strong", "code", "pre", "ul", "li"}
    assert reader.acted_on == []


@given(SPICE)
@settings(max_examples=30)
def test_any_text_stays_text(words: str) -> None:
    reader = seen(evidence(hostile_verdict(words), command=COMMAND))
    assert set(reader.elements) <= {"p", "strong", "code", "pre", "ul", "li"}
    assert reader.acted_on == []


@pytest.mark.parametrize("filling", ["é", "\x00", "`", "@a "])
def test_it_stays_short(filling: str) -> None:
    rows = [hostile_row(filling * 5_000, row=f"r{index}") for index in range(300)]
    shown = evidence(verdict(*rows, verdict="FAIL", exit_code=1), command=filling * 90_000)
    assert len(shown.encode()) <= LIMIT_BYTES
    assert "more in `verdict.json`" in shown
