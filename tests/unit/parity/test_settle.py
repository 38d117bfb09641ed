"""Attempts to one result (rule 26)."""

from __future__ import annotations

import pytest

from replay_parity.parity.result import RETRIED, Outcome, RowResult, SideResult, settle

PLAN = "a" * 64
INPUT = "b" * 64


def result(attempt: int, outcome: Outcome, *, baseline: str = "c", candidate: str = "c") -> RowResult:
    decided = outcome not in RETRIED
    return RowResult(
        plan_sha256=PLAN,
        input_sha256=INPUT,
        row="r",
        title="r",
        attempt=attempt,
        outcome=outcome,
        reason="because",
        baseline=SideResult(digests=(baseline * 64,) * 2 if decided else ()),
        candidate=SideResult(digests=(candidate * 64,) * 2 if decided else ()),
    )


@pytest.mark.parametrize("outcome", sorted(RETRIED))
def test_a_newer_attempt_replaces_an_undecided_one(outcome: Outcome) -> None:
    assert settle([result(1, outcome), result(2, "match")]).outcome == "match"


@pytest.mark.parametrize("outcome", sorted(RETRIED))
def test_an_undecided_attempt_does_not_replace_a_decided_one(outcome: Outcome) -> None:
    settled = settle([result(1, "mismatch", candidate="d"), result(2, outcome)])
    assert (settled.outcome, settled.attempt) == ("mismatch", 1)


@pytest.mark.parametrize("outcome", ["unstable_baseline", "unstable_candidate"])
def test_unstable_stays(outcome: Outcome) -> None:
    assert settle([result(1, outcome), result(2, "match")]).outcome == outcome
    assert settle([result(1, "match"), result(2, outcome)]).outcome == outcome


def test_two_decided_attempts_with_other_digests_are_unstable() -> None:
    settled = settle([result(1, "match", baseline="c"), result(2, "match", baseline="d")])
    assert settled.outcome == "unstable_baseline"
    assert "2 digests for the baseline" in settled.reason
    settled = settle([result(1, "match", candidate="c"), result(2, "mismatch", candidate="d")])
    assert settled.outcome == "unstable_candidate"


def test_a_decided_attempt_is_not_overruled_by_the_order_of_files() -> None:
    assert settle([result(3, "match"), result(1, "replay_failed"), result(2, "missing")]).attempt == 3
    assert settle([result(2, "timed_out"), result(1, "missing")]).attempt == 2
