"""Artifacts that other jobs built: checked against the plan and their bytes, one for each side (threats 2, 3)."""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson
import pytest
from tests.support.run_folder import ROW, RunFolder, make_plan, planned_row, reseal, revision
from tests.support.verdicts import TOOLCHAIN

from replay_parity.campaign.models import Build, Patch
from replay_parity.errors import BuildError, InfrastructureError
from replay_parity.pin.builder import SIDES, Artifact, Side
from replay_parity.stages.builds import Builds, find_builds, usable
from replay_parity.system.files import sha256_bytes, sha256_file


@pytest.fixture
def run(tmp_path: Path) -> RunFolder:
    return RunFolder(tmp_path, make_plan(planned_row(ROW)))


def found(run: RunFolder, *, newest: int = 1) -> Builds:
    return find_builds(run.builds, run.plan, newest=newest)


def sides(**made: Artifact) -> dict[str, Any]:
    return made


def problem(run: RunFolder) -> str:
    """What is wrong with the one build that is there; nothing of it is used."""
    builds = found(run)
    assert builds.found == []
    # A link is told on its own too.
    (sentence,) = (words for words in builds.problems if words.startswith("build "))
    assert len(sentence.splitlines()) == 1
    assert run.decide().exit_code != 0
    return sentence


def test_a_good_build(run: RunFolder) -> None:
    run.build()
    builds = found(run)
    assert builds.problems == []
    summary = builds.of("default")
    assert summary.toolchain == TOOLCHAIN
    for side in SIDES:
        assert builds.artifacts("default", side) == {run.artifact(side).record.sha256}
    assert builds.of("other").baseline.artifact is None
    assert builds.artifacts("other", "baseline") == set()


def test_runners_are_copied_with_their_run_bit_and_asked_who_they_are(run: RunFolder) -> None:
    folder = run.build()
    assert not (folder / "baseline.runner").stat().st_mode & stat.S_IXUSR
    ready = usable(found(run), "default", scratch=run.scratch)
    assert ready is not None
    for side in SIDES:
        taken = ready[side]
        assert isinstance(taken, Artifact)
        assert taken.path.stat().st_mode & stat.S_IXUSR
        assert not taken.path.is_relative_to(run.builds)
        assert sha256_file(taken.path) == taken.record.sha256 == run.artifact(side).record.sha256


# --- what one build must be


_OTHER: list[tuple[dict[str, Any], str]] = [
    ({"revision": revision("c")}, "revision"),
    ({"runner_source_sha256": "6" * 64}, "runner_source_sha256"),
    ({"profile": "dev"}, "profile"),
    ({"flags": ()}, "flags"),
    ({"flags": ("-Cdebuginfo=0", "-Copt-level=0")}, "flags"),
    ({"features": ()}, "features"),
    ({"features": ("one", "two")}, "features"),
    ({"negative_control": "determinism-off"}, "negative_control"),
    ({"patch_sha256": "7" * 64}, "patch_sha256"),
    ({"toolchain": TOOLCHAIN.model_copy(update={"rustc": "rustc 1.96.0"})}, "toolchain"),
]


@pytest.mark.parametrize(("change", "name"), _OTHER)
@pytest.mark.parametrize("side", SIDES)
def test_an_artifact_of_something_else(run: RunFolder, side: Side, change: dict[str, Any], name: str) -> None:
    run.build(**sides(**{side: run.artifact(side, **change)}))
    assert problem(run).endswith(f"the artifact of the {side} has another {name} than the plan demands")


def test_swapped_sides(run: RunFolder) -> None:
    run.build(baseline=run.artifact("candidate"), candidate=run.artifact("baseline"))
    assert "the artifact of the baseline has another revision" in problem(run)


def test_a_patch_that_was_left_out(tmp_path: Path) -> None:
    build = Build(
        toolchain="path", profile="release", flags=(), features=(), patch=Patch(file="p.diff", sha256="7" * 64)
    )
    run = RunFolder(tmp_path, make_plan(planned_row(ROW), build=build))
    run.build()
    assert found(run).problems == []
    run.build(candidate=run.artifact("candidate", patch_sha256=None))
    assert "another patch_sha256" in problem(run)


def test_another_toolchain_on_both_sides_and_in_the_document(tmp_path: Path) -> None:
    other = TOOLCHAIN.model_copy(update={"asked": "nightly"})
    run = RunFolder(tmp_path, make_plan(planned_row(ROW)), toolchain=other)
    run.build()
    assert "was built with another toolchain than the plan asks for" in problem(run)


def test_toolchains_that_differ_between_attempts(run: RunFolder) -> None:
    """The baseline of one attempt and the candidate of another are no pair when their compilers differ."""
    run.build(candidate=None)
    other = RunFolder(
        run.root / "other", run.plan, toolchain=TOOLCHAIN.model_copy(update={"rustc": "rustc 1.96.0", "sysroot": "/y"})
    )
    shutil.copytree(other.build(attempt=2, baseline=None), run.builds / "second")
    assert found(run, newest=2).problems == ["the artifacts on default were built with different toolchains"]
    # Where a toolchain lies does not count.
    shutil.rmtree(run.builds / "second")
    moved = RunFolder(
        run.root / "moved", run.plan, toolchain=TOOLCHAIN.model_copy(update={"sysroot": "/y", "release": "?"})
    )
    shutil.copytree(moved.build(attempt=2, baseline=None), run.builds / "second")
    assert found(run, newest=2).problems == []


def _edit_runner(folder: Path) -> None:
    with (folder / "candidate.runner").open("ab") as file:
        file.write(b"# edited\n")


def _link_runner(folder: Path) -> None:
    (folder / "candidate.runner").rename(folder / "moved")
    (folder / "candidate.runner").symlink_to("moved")


def _fifo_runner(folder: Path) -> None:
    (folder / "candidate.runner").unlink()
    os.mkfifo(folder / "candidate.runner")


def _edit_record(folder: Path) -> None:
    path = folder / "build.json"
    path.write_bytes(path.read_bytes().replace(b'"packages_verified": 1', b'"packages_verified": 2'))


def _nested(folder: Path, pointer: str, value: Any) -> None:
    """Edit one value and seal again."""
    path = folder / "build.json"
    document = orjson.loads(path.read_bytes())
    place = document
    *parts, last = pointer.split("/")
    for part in parts:
        place = place[part]
    place[last] = value
    path.write_bytes(orjson.dumps(document))
    reseal(path)


_SPOILED: list[tuple[Callable[[Path], object], str]] = [
    (_edit_runner, "the runner of the candidate is not the one that its record names"),
    (lambda folder: (folder / "candidate.runner").unlink(), "candidate cannot be used: there is no such file"),
    (_link_runner, "the runner of the candidate cannot be used: is a symbolic link"),
    (_fifo_runner, "the runner of the candidate cannot be used: is not a regular file"),
    (_edit_record, "was edited after it was sealed"),
    (lambda folder: _nested(folder, "build/candidate/artifact/sha256", "8" * 64), "not the one that its record names"),
    (lambda folder: _nested(folder, "plan_sha256", "8" * 64), "belongs to another plan"),
    (lambda folder: _nested(folder, "attempt", 2), "claims attempt 2 in attempt 1 of the run"),
    (lambda folder: _nested(folder, "build/runner", "other"), "on the runner 'other', which the plan does not name"),
    (lambda folder: _nested(folder, "build/toolchain", None), "another toolchain than the plan demands"),
    (lambda folder: _nested(folder, "attempt", 0), "cannot be read: /attempt"),
    (lambda folder: _nested(folder, "attempt", "1"), "cannot be read: /attempt"),
    (lambda folder: _nested(folder, "schema_version", True), "cannot be read: /schema_version"),
    (lambda folder: _nested(folder, "build/candidate/artifact/more", 1), "cannot be read: /build/candidate/artifact"),
    (lambda folder: (folder / "build.json").write_bytes(b""), "cannot be read: Invalid JSON"),
    (lambda folder: (folder / "build.json").write_bytes(b"\xff"), "cannot be read: Invalid JSON"),
    (lambda folder: os.truncate(folder / "build.json", 100 << 20), "at most 16,777,216 are read"),
    (
        lambda folder: (folder / "build.json").write_bytes(
            (folder / "build.json").read_bytes().replace(b'"size_bytes": ', b'"size_bytes": ' + b"9" * 30)
        ),
        "was edited after it was sealed",
    ),
]


@pytest.mark.parametrize(("spoil", "words"), _SPOILED, ids=range(len(_SPOILED)))
def test_a_build_that_is_not_what_it_says(run: RunFolder, spoil: Callable[[Path], object], words: str) -> None:
    spoil(run.build())
    assert words in problem(run)


def test_a_linked_build_is_told(run: RunFolder) -> None:
    run.build().rename(run.root / "moved")
    (run.builds / "link").symlink_to(run.root / "moved")
    builds = found(run)
    assert (builds.found, builds.problems) == ([], ["link is a symbolic link"])


# --- several builds


def test_the_baseline_alone_and_then_both(run: RunFolder) -> None:
    run.build(name="build-baseline", candidate=None)
    assert usable(found(run), "default", scratch=run.scratch) is None
    run.build()
    builds = found(run)
    assert (len(builds.found), builds.problems) == (2, [])
    assert usable(builds, "default", scratch=run.scratch) is not None


def test_a_baseline_that_changed_once_the_candidate_was_compiled(run: RunFolder) -> None:
    """The candidate's build script may write what it likes; the baseline was put away before."""
    run.build(name="build-baseline", candidate=None)
    run.build(baseline=run.artifact("baseline", flavour="changed"))
    words = "2 different artifacts were built of the baseline on default: equal inputs must give one"
    assert found(run).problems == [words]


@pytest.mark.parametrize("side", SIDES)
def test_two_artifacts_of_two_attempts(run: RunFolder, side: Side) -> None:
    run.build()
    run.build(attempt=2, **sides(**{side: run.artifact(side, flavour="changed")}))
    assert len(found(run, newest=2).problems) == 1
    assert side in found(run, newest=2).problems[0]
    run.build(attempt=2)
    assert found(run, newest=2).problems == []


def test_each_class_of_machines_has_its_own(tmp_path: Path) -> None:
    run = RunFolder(tmp_path, make_plan(planned_row(ROW), planned_row(ROW, runner="large")))
    run.build()
    other = {side: run.artifact(side, flavour="large") for side in SIDES}
    run.build(runner="large", **sides(**other))
    builds = found(run)
    assert builds.problems == []
    for runner, artifacts in (("default", {side: run.artifact(side) for side in SIDES}), ("large", other)):
        ready = usable(builds, runner, scratch=run.scratch / runner)
        assert ready is not None
        for side in SIDES:
            taken = ready[side]
            assert isinstance(taken, Artifact)
            assert taken.record == artifacts[side].record


def test_a_row_builds_for_itself_when_a_side_is_missing(run: RunFolder) -> None:
    assert usable(found(run), "default", scratch=run.scratch) is None
    run.build(baseline=None)
    assert usable(found(run), "default", scratch=run.scratch) is None


def test_an_artifact_wins_over_an_error_and_a_newer_error_over_an_older(run: RunFolder) -> None:
    run.build(candidate=run.error("candidate"))
    assert "does not compile" in str(found(run).of("default").candidate.error)
    newer = run.error("candidate", kind="runner_api")
    newer.message = "the runner does not compile"
    run.build(attempt=2, candidate=newer)
    told = found(run, newest=3).of("default").candidate
    assert (told.error_kind, str(told.error).startswith("the runner does not compile")) == ("runner_api", True)
    run.build(attempt=3)
    assert found(run, newest=3).of("default").candidate.artifact is not None
    # An error after an artifact takes nothing back, and a build of the baseline alone neither.
    run.build(attempt=4, candidate=run.error("candidate"))
    run.build(attempt=5, candidate=None)
    assert found(run, newest=5).of("default").candidate.artifact is not None
    assert found(run, newest=5).problems == []


def test_a_side_that_does_not_compile_comes_as_its_error(run: RunFolder) -> None:
    run.build(candidate=run.error("candidate", kind="runner_api"))
    ready = usable(found(run), "default", scratch=run.scratch)
    assert ready is not None
    assert isinstance(ready["baseline"], Artifact)
    error = ready["candidate"]
    assert isinstance(error, BuildError)
    assert (error.kind, error.side) == ("runner_api", "candidate")
    assert error.message == "the candidate does not compile (log: logs/build-candidate.log)"
    assert error.excerpt == "error[E0308]: mismatched types\n --> x"


def test_a_self_comparison_is_one_artifact_twice(tmp_path: Path) -> None:
    plan = make_plan(planned_row(ROW), candidate=revision("a"), equal_trees=True, self_compare=True)
    run = RunFolder(tmp_path, plan)
    one = run.artifact("baseline")
    run.build(baseline=one, candidate=one)
    ready = usable(found(run), "default", scratch=run.scratch)
    assert ready is not None
    left, right = ready["baseline"], ready["candidate"]
    assert isinstance(left, Artifact)
    assert isinstance(right, Artifact)
    assert left.record == right.record
    assert left.path != right.path


def test_a_runner_that_says_it_is_another(run: RunFolder) -> None:
    """The record fits the plan and the bytes, the program says something else: only asking it tells."""
    liar = run.artifact("candidate", revision=revision("c"))
    record = liar.record.model_copy(update={"revision": run.plan.candidate})
    run.build(candidate=Artifact(liar.path, record))
    builds = found(run)
    assert builds.problems == []
    with pytest.raises(InfrastructureError, match="the runner says revision = 'git:ccc"):
        usable(builds, "default", scratch=run.scratch)


def test_a_runner_that_changes_while_it_is_copied(run: RunFolder) -> None:
    folder = run.build()
    builds = found(run)
    _edit_runner(folder)
    with pytest.raises(Exception, match="the runner of the candidate changed while it was copied"):
        usable(builds, "default", scratch=run.scratch)


def test_builds_found_elsewhere_are_taken_in_with_their_problems(run: RunFolder) -> None:
    run.build()
    run.build(root=run.results, candidate=run.artifact("candidate", flavour="changed"))
    (run.results / "x").mkdir()
    (run.results / "x" / "build.json").write_text("{")
    builds = found(run)
    builds.add(find_builds(run.results, run.plan, newest=1))
    assert len(builds.found) == 2
    assert [words.split(":")[0] for words in builds.problems] == [
        "build x/build.json",
        "2 different artifacts were built of the candidate on default",
    ]
    again = len(builds.problems)
    builds.add(Builds())
    assert len(builds.problems) == again


def test_programs_of_this_test_differ_by_flavour(run: RunFolder) -> None:
    assert len({run.artifact("candidate", flavour=flavour).record.sha256 for flavour in ("", "x", "y")}) == 3
    assert run.artifact("candidate").record.sha256 == sha256_bytes(run.artifact("candidate").path.read_bytes())
