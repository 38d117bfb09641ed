"""Fail closed: what becomes of a campaign (rule 26, outcomes and exit codes)."""

from __future__ import annotations

import itertools
from typing import get_args

import pytest
from tests.support.verdicts import build, verdict

from replay_parity.parity.result import Fault, Outcome, RowResult
from replay_parity.parity.verdict import absent, complete, count, decide, is_failing, is_green
from replay_parity.pin.models import LockDifference

PLAN = "a" * 64
OUTCOMES: tuple[Outcome, ...] = get_args(Outcome)


def row(outcome: Outcome, *, fault: Fault | None = None, name: str = "r", plan: str = PLAN) -> RowResult:
    return RowResult(
        plan_sha256=plan,
        input_sha256="b" * 64,
        row=name,
        title=name,
        attempt=1,
        outcome=outcome,
        reason="because",
        fault=fault,
    )


def test_no_rows_are_never_green() -> None:
    assert decide([], equal_trees=False) == ("ERROR", 3)


def test_equal_trees_are_green_at_once() -> None:
    assert decide([], equal_trees=True) == ("PASS", 0)


def test_only_match_and_excepted_are_green() -> None:
    green = {outcome for outcome in OUTCOMES if decide([row(outcome)], equal_trees=False)[1] == 0}
    assert green == {"match", "excepted"}
    assert decide([row("match"), row("excepted")], equal_trees=False) == ("PASS_WITH_SEMANTIC_EXCEPTIONS", 0)


@pytest.mark.parametrize(
    "outcome",
    ["mismatch", "baseline_unsupported", "unsupported", "unstable_baseline", "unstable_candidate", "unqualified"],
)
def test_these_fail(outcome: Outcome) -> None:
    assert decide([row(outcome)], equal_trees=False) == ("FAIL", 1)


@pytest.mark.parametrize("outcome", ["build_failed", "replay_failed", "timed_out", "invalid"])
def test_a_candidate_that_alone_breaks_fails_and_a_baseline_does_not(outcome: Outcome) -> None:
    assert decide([row(outcome, fault="candidate")], equal_trees=False) == ("FAIL", 1)
    undecided: tuple[Fault, ...] = ("baseline", "both")
    for fault in undecided:
        assert decide([row(outcome, fault=fault)], equal_trees=False) == ("ERROR", 3)
    assert decide([row(outcome)], equal_trees=False) == ("ERROR", 3)


def test_a_baseline_that_does_not_compile_is_a_wrong_input() -> None:
    rows = [row("build_failed", fault="baseline")]
    assert decide(rows, equal_trees=False, baseline_unbuildable=True) == ("ERROR", 2)
    assert decide([*rows, row("mismatch")], equal_trees=False, baseline_unbuildable=True) == ("FAIL", 1)
    assert decide([row("match")], equal_trees=False, baseline_unbuildable=True) == ("PASS", 0)


def test_fail_beats_error_and_error_beats_pass() -> None:
    assert decide([row("match"), row("missing"), row("mismatch")], equal_trees=False) == ("FAIL", 1)
    assert decide([row("match"), row("missing")], equal_trees=False) == ("ERROR", 3)


def test_no_order_of_rows_changes_the_verdict() -> None:
    rows = [row("match"), row("missing"), row("mismatch"), row("excepted")]
    assert {decide(order, equal_trees=False) for order in itertools.permutations(rows)} == {("FAIL", 1)}


def test_every_outcome_is_green_failing_or_undecided_but_never_two() -> None:
    faults: tuple[Fault | None, ...] = (None, "baseline", "candidate", "both")
    for outcome, fault in itertools.product(OUTCOMES, faults):
        assert not (is_green(row(outcome, fault=fault)) and is_failing(row(outcome, fault=fault)))


def test_exactly_the_planned_rows() -> None:
    results = {"a": row("match", name="a"), "x": row("match", name="x"), "c": row("match", name="c", plan="f" * 64)}
    rows = complete([("a", "default"), ("b", "default"), ("c", "default")], results, plan_sha256=PLAN)
    assert [(item.row, item.outcome) for item in rows] == [("a", "match"), ("b", "missing"), ("c", "invalid")]
    assert decide(rows, equal_trees=False) == ("ERROR", 3)
    assert count(rows) == {"match": 1, "missing": 1, "invalid": 1}


def test_problems_of_the_campaign_stand_in_the_way_of_any_green() -> None:
    assert decide([row("match")], equal_trees=False, problems=True) == ("ERROR", 3)
    assert decide([row("excepted")], equal_trees=False, problems=True) == ("ERROR", 3)
    assert decide([], equal_trees=True, problems=True) == ("ERROR", 3)
    assert decide([row("mismatch")], equal_trees=False, problems=True) == ("FAIL", 1)


def test_equal_trees_do_not_excuse_a_row_that_is_there() -> None:
    assert decide([row("missing")], equal_trees=True) == ("ERROR", 3)
    assert decide([row("mismatch")], equal_trees=True) == ("FAIL", 1)


def test_a_row_on_two_runners_is_planned_twice() -> None:
    large = row("match", name="a").model_copy(update={"runner": "large"})
    rows = complete([("a", "default"), ("a", "large")], {"a@large": large}, plan_sha256=PLAN)
    assert [(item.id, item.outcome) for item in rows] == [("a", "missing"), ("a@large", "match")]


def test_what_stands_for_a_result_is_nobodys_alone() -> None:
    found = absent("r", "large", plan_sha256=PLAN, outcome="invalid", reason="because")
    assert (found.id, found.fault, found.attempt, found.reason) == ("r@large", "both", 1, "because")
    assert not is_green(found)
    assert not is_failing(found)


def test_dependencies_that_differ_are_told_once_for_all_runners() -> None:
    one, two = (LockDifference(name=name, baseline=("1",), candidate=("2",)) for name in ("one", "two"))
    found = verdict(builds=(build(differences=(one, two)), build(differences=(two,))))
    assert found.lock_differences == (one, two)
