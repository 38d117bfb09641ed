"""Results and their attempts: by the numbers inside, fail closed, whatever the order of files (rule 26)."""

from __future__ import annotations

import itertools
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from replay_parity.parity.result import RETRIED, Outcome, RowResult, SideResult, planned_id, settle
from replay_parity.parity.verdict import is_green

# `excepted` is decided after the attempts are one.
OUTCOMES: tuple[Outcome, ...] = tuple(outcome for outcome in get_args(Outcome) if outcome != "excepted")


def result(attempt: int, outcome: Outcome, digests: str = "cc") -> RowResult:
    """`digests` has one letter for each side; a side without a record has none."""
    baseline, candidate = (SideResult(digests=() if letter == "-" else (letter * 64,) * 2) for letter in digests)
    return RowResult(
        plan_sha256="a" * 64,
        input_sha256="b" * 64,
        row="r",
        title="r",
        attempt=attempt,
        outcome=outcome,
        reason="because",
        baseline=baseline,
        candidate=candidate,
    )


def test_ids_of_planned_units_never_meet() -> None:
    assert planned_id("row", "default") == "row"
    assert planned_id("row", "large") == "row@large"
    with pytest.raises(ValidationError):
        RowResult.model_validate(result(1, "match").model_dump() | {"row": "row@large"})


@pytest.mark.parametrize(
    ("attempts", "outcome", "attempt"),
    [
        ([(1, "replay_failed", "--"), (2, "match", "cc")], "match", 2),
        ([(1, "missing", "--"), (2, "match", "cc")], "match", 2),
        ([(1, "invalid", "--"), (2, "match", "cc")], "match", 2),
        ([(1, "match", "cc"), (2, "replay_failed", "--")], "match", 1),
        ([(1, "match", "cc"), (2, "timed_out", "--"), (3, "build_failed", "--")], "match", 1),
        ([(1, "unstable_candidate", "c-"), (2, "match", "cc")], "unstable_candidate", 1),
        ([(1, "match", "cc"), (2, "match", "cd")], "unstable_candidate", 2),
        ([(1, "match", "cc"), (2, "match", "dd")], "unstable_baseline", 2),
        ([(1, "mismatch", "cd"), (2, "match", "cc")], "unstable_candidate", 2),
        # A refused result that is not older than the good one is never covered by it.
        ([(1, "match", "cc"), (2, "invalid", "--")], "invalid", 2),
        ([(1, "match", "cc"), (2, "invalid", "--"), (3, "replay_failed", "--")], "invalid", 2),
        ([(1, "match", "cc"), (1, "invalid", "--")], "invalid", 1),
        ([(1, "match", "cc"), (2, "invalid", "--"), (3, "match", "cc")], "match", 3),
        # What is red is decided for good.
        ([(1, "mismatch", "cd"), (2, "invalid", "--")], "mismatch", 1),
        ([(1, "unqualified", "cc"), (2, "match", "cc")], "unqualified", 1),
        ([(1, "match", "cc"), (2, "unqualified", "cc")], "unqualified", 2),
        ([(1, "baseline_unsupported", "-c"), (2, "match", "cc")], "baseline_unsupported", 1),
        ([(1, "mismatch", "cd"), (2, "mismatch", "cd")], "mismatch", 2),
        ([(1, "replay_failed", "--"), (2, "timed_out", "--")], "timed_out", 2),
        ([(1, "replay_failed", "--"), (1, "invalid", "--")], "invalid", 1),
    ],
)
def test_attempts_become_one(attempts: list[tuple[int, Outcome, str]], outcome: Outcome, attempt: int) -> None:
    for order in itertools.permutations(attempts):
        settled = settle([result(*item) for item in order])
        assert (settled.outcome, settled.attempt) == (outcome, attempt)


def test_two_digests_of_one_revision_are_told_with_whose() -> None:
    settled = settle([result(1, "match", "cc"), result(2, "match", "cd")])
    assert settled.fault == "candidate"
    assert settled.reason == f"attempts of one run gave 2 digests for the candidate: {'c' * 16}, {'d' * 16}"


_ATTEMPT = st.builds(
    result,
    attempt=st.integers(1, 4),
    outcome=st.sampled_from(OUTCOMES),
    digests=st.text(alphabet="cd-", min_size=2, max_size=2),
)


@given(attempts=st.lists(_ATTEMPT, min_size=1, max_size=5), data=st.data())
def test_the_order_of_files_never_matters(attempts: list[RowResult], data: st.DataObject) -> None:
    shuffled = data.draw(st.permutations(attempts))
    left, right = settle(attempts), settle(shuffled)
    assert is_green(left) == is_green(right)
    if len({item.attempt for item in attempts}) == len(attempts):
        # Two results for one attempt are refused before (stages.collect).
        assert left == right


@given(attempts=st.lists(_ATTEMPT, min_size=1, max_size=5), more=_ATTEMPT.filter(lambda item: item.outcome != "match"))
def test_no_attempt_that_is_not_green_makes_a_row_green(attempts: list[RowResult], more: RowResult) -> None:
    if not is_green(settle(attempts)):
        assert not is_green(settle([*attempts, more]))


@given(attempts=st.lists(_ATTEMPT, min_size=1, max_size=5))
def test_green_rests_on_a_match_and_on_nothing_that_speaks_against_it(attempts: list[RowResult]) -> None:
    settled = settle(attempts)
    if not is_green(settled):
        return
    assert settled in attempts
    assert {item.outcome for item in attempts} <= {"match", *RETRIED}
    matches = [item for item in attempts if item.outcome == "match"]
    assert settled.attempt == max(item.attempt for item in matches)
    assert len({item.baseline.digests for item in matches} - {()}) <= 1
    assert len({item.candidate.digests for item in matches} - {()}) <= 1
    assert all(item.attempt < settled.attempt for item in attempts if item.outcome == "invalid")


@given(attempts=st.lists(_ATTEMPT.filter(lambda item: item.outcome not in RETRIED), min_size=1, max_size=4))
def test_what_is_decided_red_stays_red(attempts: list[RowResult]) -> None:
    """No later attempt, whatever it says, turns a decided red row green."""
    if any(item.outcome != "match" for item in attempts):
        assert not is_green(settle([*attempts, result(9, "match", "cc")]))
