"""A result's outcome follows from its other fields: what the real judge writes passes, anything else is refused."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.run_folder import REPORTED, ROW, Ended, RunFolder, endings, make_plan, planned_row

from replay_parity.parity.consistency import contradiction
from replay_parity.parity.result import Fault, Outcome, RowResult
from replay_parity.replay.ending import Status
from replay_parity.replay.repetition import SIDES, Side

OUTCOMES: tuple[Outcome, ...] = get_args(Outcome)
FAULTS: tuple[Fault | None, ...] = (None, *get_args(Fault))


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> RunFolder:
    return RunFolder(tmp_path_factory.mktemp("run"), make_plan(planned_row(ROW)))


@pytest.fixture(scope="module")
def results(run: RunFolder) -> dict[Outcome, RowResult]:
    """One result of every outcome, as the real judge writes it."""
    judged = [outcome for outcome in REPORTED if outcome != "build_failed"]
    found: dict[Outcome, RowResult] = {outcome: run.judged(ROW, endings(outcome)) for outcome in judged}
    path = run.result(ROW, "build_failed") / "result.json"
    return found | {"build_failed": RowResult.model_validate_json(path.read_bytes())}


def changed(result: RowResult, side: Side, change: Callable[[dict[str, Any]], object]) -> RowResult:
    """The same result with another side."""
    document = result.model_dump(mode="json")
    change(document[side])
    return RowResult.model_validate(document)


@pytest.mark.parametrize("outcome", REPORTED)
def test_what_the_judge_writes_is_consistent(results: dict[Outcome, RowResult], outcome: Outcome) -> None:
    assert results[outcome].outcome == outcome
    assert contradiction(results[outcome]) is None


_ENDED = st.builds(
    Ended,
    status=st.sampled_from(get_args(Status)),
    variant=st.integers(0, 1),
    counted=st.booleans(),
    broken=st.booleans(),
)


@given(pairs=st.tuples(_ENDED, _ENDED, _ENDED, _ENDED))
def test_whatever_the_processes_do_the_judge_and_the_verdict_agree(run: RunFolder, pairs: tuple[Ended, ...]) -> None:
    # The second repetition is made where the first gave a record, and never after a crash or a hang.
    crashed = any(item.status not in {"ok", "refused"} for item in pairs[:2])
    ended: dict[Side, tuple[Ended, ...]] = {
        side: (first,) if crashed or first.status != "ok" else (first, second)
        for side, first, second in zip(SIDES, pairs[:2], pairs[2:], strict=True)
    }
    result = run.judged(ROW, ended)
    assert contradiction(result) is None, (result.outcome, result.reason)


@pytest.mark.parametrize("outcome", REPORTED)
def test_no_other_outcome_or_fault_fits_the_same_fields(results: dict[Outcome, RowResult], outcome: Outcome) -> None:
    good = results[outcome]
    accepted = {
        (other, fault)
        for other, fault in itertools.product(OUTCOMES, FAULTS)
        if contradiction(good.model_copy(update={"outcome": other, "fault": fault})) is None
    }
    # A refused record cannot be looked at again, so it is believed; it is never green.
    believed = {("invalid", fault) for fault in FAULTS if fault is not None}
    if outcome in {"build_failed", "mismatch", "unstable_baseline", "unstable_candidate"}:
        # These never come without their differences, or with artifacts.
        believed = set()
    assert accepted == {(good.outcome, good.fault)} | believed


@pytest.mark.parametrize("outcome", ["excepted", "missing"])
def test_the_verdict_alone_decides_these(results: dict[Outcome, RowResult], outcome: Outcome) -> None:
    sentence = contradiction(results["match"].model_copy(update={"outcome": outcome}))
    assert sentence == f"no row reports the outcome '{outcome}' itself"


def _drop(key: str) -> Callable[[dict[str, Any]], object]:
    return lambda side: side["repetitions"][1].update({key: None})


_SPOILED: list[tuple[Callable[[dict[str, Any]], object], str]] = [
    (lambda side: side.update(digests=["9" * 64] * 2), "other digests than its repetitions"),
    (lambda side: side["digests"].pop(), "other digests than its repetitions"),
    (lambda side: side.update(results_digests=["9" * 64] * 2), "other digests of its results than its repetitions"),
    (lambda side: side["repetitions"][1].update(index=3), "not numbered one by one"),
    (lambda side: side["repetitions"].reverse(), "not numbered one by one"),
    (lambda side: side["repetitions"][0].update(status="refused"), "digest of a repetition that gave no record"),
    (_drop("canonical_sha256"), "one of its two digests"),
    (_drop("results_sha256"), "one of its two digests"),
    (lambda side: side.update(artifact_sha256=None), "no artifact"),
    (lambda side: side.update(qualification=None), "no counters to be qualified by"),
    (lambda side: side.update(evidence_problems=["one request was lost"]), "'unqualified'"),
    (lambda side: side.update(repetitions=[], digests=[], results_digests=[]), "no repetition"),
]


@pytest.mark.parametrize(("spoil", "words"), _SPOILED)
@pytest.mark.parametrize("side", ["baseline", "candidate"])
def test_each_field_of_a_match_is_needed(
    results: dict[Outcome, RowResult], side: Side, spoil: Callable[[dict[str, Any]], object], words: str
) -> None:
    sentence = contradiction(changed(results["match"], side, spoil))
    assert sentence is not None
    assert words in sentence


def _one_repetition(side: dict[str, Any]) -> None:
    for key in ("repetitions", "digests", "results_digests"):
        side[key].pop()


def _third(side: dict[str, Any]) -> None:
    side["repetitions"].append(side["repetitions"][0] | {"index": 3})
    for key in ("digests", "results_digests"):
        side[key].append(side[key][0])


def _other_results(side: dict[str, Any]) -> None:
    side["results_digests"] = ["9" * 64] * 2
    for item in side["repetitions"]:
        item["results_sha256"] = "9" * 64


def _no_digest(side: dict[str, Any]) -> None:
    side["repetitions"][1].update(canonical_sha256=None, results_sha256=None)
    side["digests"].pop()
    side["results_digests"].pop()


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (_one_repetition, "not the digests of two whole repetitions"),
        (_third, "more than 2 repetitions"),
        (_other_results, "equal records have different digests of their results"),
        (_no_digest, "not the digests of two whole repetitions"),
    ],
)
def test_a_match_rests_on_two_whole_repetitions_of_each_side(
    results: dict[Outcome, RowResult], spoil: Callable[[dict[str, Any]], object], words: str
) -> None:
    for side in SIDES:
        sentence = contradiction(changed(results["match"], side, spoil))
        assert sentence is not None
        assert words in sentence


def test_a_baseline_that_refuses_leaves_the_candidate_to_be_whole(results: dict[Outcome, RowResult]) -> None:
    alone = changed(results["baseline_unsupported"], "candidate", _one_repetition)
    assert contradiction(alone) == "the candidate has not the digests of two whole repetitions"


def test_two_refusals_are_alike_only_in_every_word(results: dict[Outcome, RowResult]) -> None:
    for key, value in {"message": "another", "variant": None, "phase": "new", "kind": "bad_config"}.items():
        other = changed(
            results["unsupported"],
            "candidate",
            lambda side, key=key, value=value: side["repetitions"][0]["refusal"].update({key: value}),  # type: ignore[misc]
        )
        assert "'replay_failed' (both)" in str(contradiction(other))
    wordless = results["unsupported"]
    for side in SIDES:
        wordless = changed(wordless, side, lambda item: item["repetitions"][0].update(refusal=None))
    assert "'replay_failed' (both)" in str(contradiction(wordless))
    for side in SIDES:
        nothing = changed(results["unsupported"], side, lambda item: item["repetitions"][0].update(refusal=None))
        assert contradiction(nothing) is not None


def test_a_failed_build_has_no_replays_and_names_who_is_at_fault(run: RunFolder) -> None:
    for fault in get_args(Fault):
        path = run.result(ROW, "build_failed", fault=fault, attempt=2) / "result.json"
        result = RowResult.model_validate_json(path.read_bytes())
        assert contradiction(result) is None
        for other in FAULTS:
            refused = contradiction(result.model_copy(update={"fault": other})) is not None
            assert refused == (other != fault)
    match = run.judged(ROW, endings("match"))
    both = match.model_copy(update={"outcome": "build_failed", "fault": "candidate"})
    assert contradiction(both) == "it says that a build failed, and names both artifacts"
    replayed = both.model_copy(update={"candidate": both.candidate.model_copy(update={"artifact_sha256": None})})
    assert contradiction(replayed) == "it says that a build failed, and has repetitions"


def test_only_what_must_be_explained_is_kept(results: dict[Outcome, RowResult]) -> None:
    mismatch = results["mismatch"]
    for outcome, result in results.items():
        explains = outcome in {"mismatch", "unstable_baseline", "unstable_candidate"}
        other = None if explains else mismatch.differences
        assert "differences" in str(contradiction(result.model_copy(update={"differences": other})))
        reports = contradiction(result.model_copy(update={"reports": mismatch.reports}))
        assert (reports is None) == (explains or outcome == "invalid")


def test_a_refused_record_is_somebodys(results: dict[Outcome, RowResult]) -> None:
    nobody = results["invalid"].model_copy(update={"fault": None})
    assert contradiction(nobody) == "it says that a record is refused, and not whose"
