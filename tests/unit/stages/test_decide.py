"""What all jobs left to one verdict: fail closed, every file where the verdict says (rules 18 and 26)."""

from __future__ import annotations

import gzip
import itertools
import os
import shutil
from pathlib import Path
from typing import Any

import orjson
import pytest
from tests.support.run_folder import (
    OTHER_ROW,
    REPORTED,
    ROW,
    RunFolder,
    good_run,
    make_plan,
    planned_row,
    record_bytes,
    revision,
)

from replay_parity.errors import (
    EXIT_OK,
    BadInputError,
    BuildError,
    InfrastructureError,
    ReplayParityError,
    RevisionError,
)
from replay_parity.parity.result import Fault, Outcome
from replay_parity.parity.verdict import Verdict
from replay_parity.stages.decide import Left, decide_run
from replay_parity.stages.plan_folder import PlanFolder
from replay_parity.system.files import sha256_bytes

FAILING = {"mismatch", "baseline_unsupported", "unsupported", "unstable_baseline", "unstable_candidate", "unqualified"}


@pytest.fixture
def run(tmp_path: Path) -> RunFolder:
    return good_run(tmp_path)


def again(run: RunFolder, outcome: Outcome, **options: Any) -> None:
    """The first row once more, with another outcome."""
    shutil.rmtree(run.results / f"test~row~{ROW}~1")
    run.result(ROW, outcome, **options)


def kept(run: RunFolder) -> Verdict:
    """The verdict as it was written."""
    return Verdict.model_validate_json((run.output / "verdict.json").read_bytes())


def test_a_good_run_is_green(run: RunFolder) -> None:
    verdict = run.decide()
    assert (verdict.verdict, verdict.exit_code, verdict.problems) == ("PASS", 0, ())
    assert verdict.counts == {"match": 2}
    assert [row.id for row in verdict.rows] == [ROW, OTHER_ROW]
    assert verdict.plan_sha256 == run.plan.sha256
    assert [build.runner for build in verdict.builds] == ["default"]
    assert kept(run) == verdict


@pytest.mark.parametrize("outcome", REPORTED)
def test_every_outcome_that_a_row_job_leaves(run: RunFolder, outcome: Outcome) -> None:
    again(run, outcome)
    verdict = run.decide()
    assert verdict.rows[0].outcome == outcome
    assert verdict.problems == ()
    # The candidate alone is at fault in all of these.
    expected = ("PASS", 0) if outcome == "match" else ("FAIL", 1)
    assert (verdict.verdict, verdict.exit_code) == expected
    assert verdict.failed_rows == (() if outcome == "match" else (ROW,))


@pytest.mark.parametrize("fault", ["baseline", "both"])
@pytest.mark.parametrize("outcome", ["build_failed", "replay_failed", "timed_out", "invalid"])
def test_where_the_baseline_breaks_nothing_is_decided(run: RunFolder, outcome: Outcome, fault: Fault) -> None:
    again(run, outcome, fault=fault)
    verdict = run.decide()
    assert (verdict.verdict, verdict.exit_code, verdict.undecided_rows) == ("ERROR", 3, (ROW,))


# --- the plan


@pytest.mark.parametrize(
    ("error", "exit_code"),
    [
        (BadInputError("no such campaign", where="x"), 2),
        (RevisionError("no such commit", hint="look again"), 2),
        (InfrastructureError("the network is down"), 3),
        # An ERROR is never a plain difference.
        (BuildError("does not compile", kind="revision", side="baseline", log="", excerpt=""), 3),
    ],
)
def test_a_refusal_is_said_with_its_exit_code(run: RunFolder, error: ReplayParityError, exit_code: int) -> None:
    PlanFolder(run.root / "plan").write_refusal(error)
    verdict = run.decide(plan="failure", build="skipped", row="skipped")
    assert (verdict.verdict, verdict.exit_code) == ("ERROR", exit_code)
    assert verdict.problems == (f"{error.label}: {error}",)
    assert verdict.rows == ()
    assert kept(run) == verdict


def test_a_refusal_beats_a_plan_that_lies_beside_it(run: RunFolder) -> None:
    (run.root / "plan" / "refusal.json").write_bytes(
        orjson.dumps({"schema_version": 1, "label": "bad input", "message": "no", "exit_code": 0})
    )
    verdict = run.decide()
    assert (verdict.verdict, verdict.exit_code) == ("ERROR", 3)


@pytest.mark.parametrize("text", ["", "{", "[]", '{"label": 1}'])
@pytest.mark.parametrize("name", ["refusal.json", "plan.json"])
def test_a_damaged_plan_or_refusal(run: RunFolder, name: str, text: str) -> None:
    (run.root / "plan" / name).write_text(text)
    verdict = run.decide()
    assert (verdict.verdict, verdict.exit_code) == ("ERROR", 3)
    (problem,) = verdict.problems
    assert problem.startswith("the plan cannot be read" if name == "plan.json" else "is damaged")


def test_no_plan_at_all(run: RunFolder) -> None:
    shutil.rmtree(run.root / "plan")
    verdict = run.decide(plan="failure", build="skipped", row="skipped")
    assert (verdict.verdict, verdict.exit_code) == ("ERROR", 3)
    assert verdict.problems == ("the job 'plan' ended as 'failure'; there is no plan",)
    assert run.decide(plan="cancelled").problems == ("the job 'plan' ended as 'cancelled'; there is no plan",)


def test_an_empty_plan_is_never_green(tmp_path: Path) -> None:
    run = RunFolder(tmp_path, make_plan())
    verdict = run.decide()
    assert (verdict.verdict, verdict.exit_code) == ("ERROR", 3)
    assert verdict.problems == ("the plan has no rows, so nothing was compared",)


def test_equal_trees_are_green_at_once(tmp_path: Path) -> None:
    plan = make_plan(planned_row(ROW), candidate=revision("a"), equal_trees=True)
    run = RunFolder(tmp_path, plan)
    verdict = run.decide(build="skipped", row="skipped")
    assert (verdict.verdict, verdict.exit_code, verdict.rows, verdict.builds) == ("PASS", 0, (), ())
    assert verdict.equal_trees


@pytest.mark.parametrize("left", ["a build", "a result", "a damaged result"])
def test_equal_trees_with_something_to_compare_are_a_contradiction(tmp_path: Path, left: str) -> None:
    run = RunFolder(tmp_path, make_plan(planned_row(ROW), candidate=revision("a"), equal_trees=True))
    if left == "a build":
        run.build()
    elif left == "a result":
        run.result(ROW)
    else:
        (run.results / "result.json").write_text("{")
    verdict = run.decide()
    assert (verdict.verdict, verdict.exit_code, verdict.rows) == ("ERROR", 3, ())
    assert len(verdict.problems) == 1


def test_a_self_comparison_needs_its_rows_although_the_trees_are_equal(tmp_path: Path) -> None:
    plan = make_plan(planned_row(ROW), candidate=revision("a"), equal_trees=True, self_compare=True)
    run = RunFolder(tmp_path, plan)
    assert run.decide().rows[0].outcome == "missing"
    one = run.artifact("baseline")
    run.build(baseline=one, candidate=one)
    run.result(ROW, artifacts={"baseline": one, "candidate": one})
    verdict = run.decide()
    assert (verdict.verdict, verdict.self_compare, len(verdict.rows)) == ("PASS", True, 1)


# --- how the jobs ended


_RESULTS = ("success", "failure", "cancelled", "skipped", "")


@pytest.mark.parametrize(("job", "result"), itertools.product(("plan", "build", "row"), _RESULTS))
def test_how_jobs_ended_although_all_rows_are_green(run: RunFolder, job: str, result: str) -> None:
    # A build that failed or was left out harms nothing when the rows built for themselves, as these here show.
    harmless = {"success", ""} | ({"failure", "skipped"} if job == "build" else set())
    harmless |= {"skipped"} if job == "row" else set()
    ended: dict[str, Any] = {job: result}
    verdict = run.decide(**ended)
    assert (verdict.exit_code == EXIT_OK) == (result in harmless)
    if result not in harmless:
        assert verdict.problems == (f"the job '{job}' ended as '{result}'",)
        assert (verdict.verdict, verdict.exit_code) == ("ERROR", 3)


def test_a_broken_job_does_not_hide_a_difference(run: RunFolder) -> None:
    again(run, "mismatch")
    verdict = run.decide(row="failure", build="cancelled")
    assert (verdict.verdict, verdict.exit_code) == ("FAIL", 1)
    assert len(verdict.problems) == 2


def test_rows_that_built_for_themselves_are_green(run: RunFolder) -> None:
    shutil.rmtree(run.builds)
    for row in (ROW, OTHER_ROW):
        run.build(root=run.results / f"test~row~{row}~1", name="own")
    verdict = run.decide(build="failure")
    assert (verdict.verdict, verdict.problems) == ("PASS", ())
    assert verdict.builds[0].candidate.artifact is not None


def test_rows_that_built_something_else_are_not(run: RunFolder) -> None:
    other = run.artifact("candidate", flavour="other")
    run.build(root=run.results / f"test~row~{ROW}~1", name="own", candidate=other)
    verdict = run.decide()
    assert (verdict.verdict, verdict.exit_code) == ("ERROR", 3)
    words = "2 different artifacts were built of the candidate on default: equal inputs must give one"
    assert verdict.problems == (words,)


def test_no_build_at_all_makes_every_result_worthless(run: RunFolder) -> None:
    shutil.rmtree(run.builds)
    verdict = run.decide()
    assert [row.outcome for row in verdict.rows] == ["invalid", "invalid"]
    assert verdict.rows[0].reason == "the result names an artifact of the baseline that no build made"


def test_a_baseline_that_does_not_compile_is_a_wrong_input(run: RunFolder) -> None:
    shutil.rmtree(run.builds)
    run.builds.mkdir()
    run.build(baseline=run.error("baseline"))
    for row in (ROW, OTHER_ROW):
        shutil.rmtree(run.results / f"test~row~{row}~1")
        run.result(row, "build_failed", fault="baseline")
    verdict = run.decide(row="failure")
    assert (verdict.verdict, verdict.exit_code) == ("ERROR", 2)


# --- attempts


@pytest.mark.parametrize(
    ("first", "second", "outcome"),
    [
        ("replay_failed", "match", "match"),
        ("timed_out", "match", "match"),
        ("invalid", "match", "match"),
        (None, "match", "match"),
        ("match", "replay_failed", "match"),
        ("match", None, "match"),
        ("unstable_candidate", "match", "unstable_candidate"),
        ("unstable_baseline", "match", "unstable_baseline"),
        ("match", "unstable_candidate", "unstable_candidate"),
        ("match", "mismatch", "unstable_candidate"),
        ("mismatch", "match", "unstable_candidate"),
        ("match", "invalid", "invalid"),
        ("unqualified", "match", "unqualified"),
        ("match", "unqualified", "unqualified"),
    ],
)
def test_attempts_of_a_run(run: RunFolder, first: Outcome | None, second: Outcome | None, outcome: Outcome) -> None:
    shutil.rmtree(run.results / f"test~row~{ROW}~1")
    for attempt, given in ((1, first), (2, second)):
        if given is not None:
            run.result(ROW, given, attempt=attempt)
    verdict = run.decide(attempt=2)
    assert verdict.rows[0].outcome == outcome
    assert (verdict.exit_code == EXIT_OK) == (outcome == "match")
    # What was accepted of every attempt lies side by side.
    for attempt, given in ((1, first), (2, second)):
        folder = run.output / "rows" / ROW / f"attempt-{attempt}"
        assert folder.exists() == (given is not None)
        if given in {"mismatch", "unstable_candidate", "unstable_baseline"}:
            assert (folder / "differences.json").is_file()
            assert len(list((folder / "reports").iterdir())) == 2


def test_another_digest_of_one_side_in_a_later_attempt(run: RunFolder) -> None:
    run.result(ROW, "match", attempt=2, variant=1)
    verdict = run.decide(attempt=2)
    assert verdict.rows[0].outcome == "unstable_baseline"
    assert "attempts of one run gave 2 digests for the baseline" in verdict.rows[0].reason


def test_a_forged_later_attempt_is_not_covered_by_the_good_first_one(run: RunFolder) -> None:
    path = run.result(ROW, attempt=2) / "result.json"
    assert run.decide(attempt=2).exit_code == EXIT_OK
    path.write_bytes(path.read_bytes().replace(b"one core each", b"two core each"))
    verdict = run.decide(attempt=2)
    assert (verdict.rows[0].outcome, verdict.rows[0].attempt) == ("invalid", 2)
    assert verdict.rows[0].reason == "the result was edited after it was sealed"
    assert (verdict.verdict, verdict.exit_code) == ("ERROR", 3)
    # What was refused is nowhere shown as if it were right.
    assert not (run.output / "rows" / ROW / "attempt-2").exists()


def test_the_number_is_in_the_file_not_in_the_order_of_folders(run: RunFolder) -> None:
    shutil.rmtree(run.results / f"test~row~{ROW}~1")
    run.result(ROW, "replay_failed", attempt=9)
    run.result(ROW, "match", attempt=10)
    for first, second in (("a", "z"), ("z", "a")):
        for name, attempt in ((first, 9), (second, 10)):
            shutil.copytree(run.results / f"test~row~{ROW}~{attempt}", run.root / "sorted" / name)
        left = Left(PlanFolder(run.root / "plan"), run.builds, run.root / "sorted", {}, 10)
        assert decide_run(left, run.output).rows[0].outcome == "match"
        shutil.rmtree(run.root / "sorted")


# --- what is kept


def test_kept_files_are_where_the_verdict_says(run: RunFolder) -> None:
    again(run, "mismatch")
    verdict = run.decide()
    row = verdict.rows[0]
    assert row.differences is not None
    for name in (*row.reports, row.differences.file):
        assert (run.output / name).is_file(), name
    digests = {sha256_bytes(gzip.decompress((run.output / name).read_bytes())) for name in row.reports}
    assert digests == {row.baseline.digests[0], row.candidate.digests[0]}
    assert sha256_bytes(record_bytes(ROW)) in digests
    names = sorted(path.relative_to(run.output).as_posix() for path in run.output.rglob("*") if path.is_file())
    first, other = f"rows/{ROW}/attempt-1", f"rows/{OTHER_ROW}/attempt-1"
    assert names == [
        f"{first}/differences.json",
        f"{first}/reports/baseline.jsonl.gz",
        f"{first}/reports/candidate.jsonl.gz",
        f"{first}/result.json",
        f"{other}/result.json",
        "verdict.json",
    ]


def test_what_no_result_names_is_not_kept(run: RunFolder) -> None:
    folder = run.results / f"test~row~{ROW}~1" / "rows" / ROW / "attempt-1"
    (folder / "verdict.json").write_text("{}")
    (folder / os.fsdecode(b"\xff")).write_text("x")
    (folder / "..x").mkdir()
    (folder / "locked").mkdir(mode=0)
    os.mkfifo(folder / "pipe")
    verdict = run.decide()
    (folder / "locked").chmod(0o700)
    assert verdict.exit_code == EXIT_OK
    assert [path.name for path in (run.output / "rows" / ROW / "attempt-1").iterdir()] == ["result.json"]


def test_the_folder_of_the_verdict_is_replaced_whole(run: RunFolder) -> None:
    (run.output / "rows" / "old").mkdir(parents=True)
    (run.output / "rows" / "old" / "result.json").write_text("{}")
    (run.output / "verdict.json").write_text("old")
    run.decide()
    assert not (run.output / "rows" / "old").exists()
    assert kept(run).verdict == "PASS"
    # A link in its place is replaced, and what it led to is left alone.
    precious = run.root / "precious"
    shutil.move(run.output, precious)
    run.output.symlink_to(precious)
    run.decide()
    assert not run.output.is_symlink()
    assert (precious / "verdict.json").is_file()


@pytest.mark.parametrize("runner", ["default", "large"])
def test_the_log_of_a_failed_build_is_where_its_error_says(tmp_path: Path, runner: str) -> None:
    run = RunFolder(tmp_path, make_plan(planned_row(ROW, runner=runner)))
    run.build(runner=runner, candidate=run.error("candidate"))
    path = run.result(run.plan.rows[0].id, "build_failed")
    verdict = run.decide(row="failure")
    assert (verdict.verdict, verdict.exit_code) == ("FAIL", 1)
    error = str(verdict.builds[0].candidate.error)
    place = "logs/build-candidate.log" if runner == "default" else "logs/large/build-candidate.log"
    assert error.splitlines()[0] == f"the candidate does not compile (log: {place})"
    assert error.splitlines()[1] == "error[E0308]: mismatched types"
    assert (run.output / place).read_text() == "error[E0308]: mismatched types, candidate\n"
    assert path.exists()


def test_a_log_that_is_no_file_is_left_out(run: RunFolder) -> None:
    folder = run.build(candidate=run.error("candidate"), attempt=2)
    log = folder / "logs" / "build-candidate.log"
    log.unlink()
    os.mkfifo(log)
    run.decide(attempt=2)
    assert not (run.output / "logs").exists()


@pytest.mark.parametrize("row", ["match", "mismatch"])
def test_advisory_changes_no_verdict(run: RunFolder, row: Outcome) -> None:
    again(run, row)
    strict, mild = run.decide(), run.decide(advisory=True)
    assert not strict.advisory
    assert mild == strict.model_copy(update={"advisory": True, "seconds": mild.seconds})
    assert kept(run).advisory
    shutil.rmtree(run.root / "plan")
    assert run.decide(advisory=True).advisory


def test_an_advisory_plan_says_so_itself(tmp_path: Path) -> None:
    verdict = good_run(tmp_path, advisory=True).decide()
    assert verdict.advisory
