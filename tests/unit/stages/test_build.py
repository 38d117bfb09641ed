"""What a build job leaves: runners, records, logs of what failed, the document last and sealed."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.support.run_folder import ROW, RunFolder, make_plan, planned_row, revision
from tests.support.tiny import Told

from replay_parity.errors import InfrastructureError
from replay_parity.pin.builder import SIDES
from replay_parity.settings import Settings
from replay_parity.stages.bench import Bench
from replay_parity.stages.build import BuildResult, build_here, keep, nothing_built, runner_file
from replay_parity.stages.builds import find_builds, usable
from replay_parity.system.files import sha256_file

if TYPE_CHECKING:
    from replay_parity.pin.builder import BuildOutcome


@pytest.fixture
def run(tmp_path: Path) -> RunFolder:
    return RunFolder(tmp_path, make_plan(planned_row(ROW)))


def read(folder: Path) -> BuildResult:
    return BuildResult.model_validate_json((folder / "build.json").read_bytes(), strict=True)


def test_both_sides(run: RunFolder) -> None:
    folder = run.build(attempt=3)
    result = read(folder)
    assert result.seal_holds
    assert (result.plan_sha256, result.attempt, result.build.runner) == (run.plan.sha256, 3, "default")
    for side in SIDES:
        record = getattr(result.build, side).artifact
        assert record.sha256 == sha256_file(folder / runner_file(side))
    assert sorted(path.name for path in folder.iterdir()) == ["baseline.runner", "build.json", "candidate.runner"]


def test_a_side_that_was_not_asked_for_has_neither_artifact_nor_error(run: RunFolder) -> None:
    folder = run.build(candidate=None)
    result = read(folder)
    assert result.build.candidate == nothing_built("default").candidate
    assert (result.build.candidate.artifact, result.build.candidate.error) == (None, None)
    assert not (folder / "candidate.runner").exists()


def test_an_error_comes_with_its_excerpt_and_its_log(run: RunFolder) -> None:
    folder = run.build(candidate=run.error("candidate"))
    side = read(folder).build.candidate
    assert side.error_kind == "revision"
    assert side.error == (
        "the candidate does not compile (log: logs/build-candidate.log)\nerror[E0308]: mismatched types\n --> x"
    )
    assert (folder / "logs" / "build-candidate.log").read_text() == "error[E0308]: mismatched types, candidate\n"
    assert not (folder / "candidate.runner").exists()


def test_a_log_that_lies_there_already_or_nowhere(run: RunFolder) -> None:
    error = run.error("candidate")
    folder = run.builds / "test~build~default~build~1"
    (folder / "logs").mkdir(parents=True)
    error.log = str(folder / "logs" / "build-candidate.log")
    Path(error.log).write_text("here")
    run.build(candidate=error)
    assert Path(error.log).read_text() == "here"
    error.log = str(run.root / "gone.log")
    run.build(candidate=error)
    assert "gone.log" in str(read(folder).build.candidate.error)


def test_a_folder_that_is_used_again_keeps_no_old_runner(run: RunFolder) -> None:
    folder = run.build()
    run.build(candidate=run.error("candidate"))
    assert not (folder / "candidate.runner").exists()
    (folder / "baseline.runner").unlink()
    (folder / "baseline.runner").symlink_to(run.root / "precious")
    (run.root / "precious").write_text("precious")
    run.build()
    assert (run.root / "precious").read_text() == "precious"
    assert not (folder / "baseline.runner").is_symlink()


def test_an_artifact_that_went_away_is_one_sentence(run: RunFolder) -> None:
    artifact = run.artifact("candidate", flavour="gone")
    artifact.path.unlink()
    with pytest.raises(InfrastructureError, match="cannot keep the artifacts"):
        run.build(candidate=artifact)


class _Builder:
    """Remembers which sides it was asked for."""

    def __init__(self) -> None:
        self.asked: list[dict[str, object]] = []

    def run(self, revisions: dict[str, object]) -> BuildOutcome | None:
        self.asked.append(revisions)
        return None


def test_the_baseline_alone_or_both_in_order(run: RunFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    builder = _Builder()
    bench = Bench(Settings.from_environment({"HOME": str(run.root)}), run.plan.build, base=run.root)
    monkeypatch.setattr(bench, "builder", lambda **_: builder)
    for only in ("baseline", None):
        build_here(run.plan, bench, only=only, patch=None, logs=run.root, progress=Told())
    assert builder.asked[0] == {"baseline": revision("a")}
    assert list(builder.asked[1].items()) == [("baseline", revision("a")), ("candidate", revision("b"))]


def test_what_is_kept_can_be_used_again(run: RunFolder) -> None:
    """The way of an artifact: built, kept, found, taken, and kept by the row that took it."""
    run.build()
    taken = usable(find_builds(run.builds, run.plan, newest=1), "default", scratch=run.scratch)
    assert taken is not None
    outcome = run.outcome(baseline=taken["baseline"], candidate=taken["candidate"])
    kept = keep(outcome, run.root / "again", plan=run.plan, bench=run.bench, runner="default", attempt=1)
    assert kept == read(run.builds / "test~build~default~build~1")
