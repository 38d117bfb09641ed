"""The folder for results: attempts, resumes, old verdicts, two runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from replay_parity.errors import InfrastructureError
from replay_parity.parity.result import RowResult
from replay_parity.stages.workspace import Workspace


def result(attempt: int) -> RowResult:
    return RowResult(
        plan_sha256="0" * 64,
        input_sha256="1" * 64,
        row="r",
        title="r",
        attempt=attempt,
        outcome="match",
        reason="because",
    )


def test_attempts_are_read_in_their_order_and_damaged_ones_do_not_count(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path)
    for attempt in (10, 2, 1):
        workspace.write_result(result(attempt))
    broken = workspace.row_folder("r", 3)
    broken.mkdir()
    (broken / "result.json").write_text('{"schema_version": 1')
    workspace.row_folder("r", 11).mkdir()
    assert [item.attempt for item in workspace.attempts("r")] == [1, 2, 10]
    assert workspace.next_attempt("r") == 12
    assert workspace.next_attempt("other") == 1


def test_an_old_verdict_goes_before_anything_else(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path)
    workspace.verdict_path.write_text("{}")
    with workspace.held():
        assert not workspace.verdict_path.exists()


def test_what_a_killed_run_left_is_removed(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path)
    workspace.write_result(result(1))
    unfinished = workspace.row_folder("r", 2) / "work"
    unfinished.mkdir(parents=True)
    with workspace.held():
        assert not unfinished.parent.exists()
        assert [item.attempt for item in workspace.attempts("r")] == [1]


def test_two_runs_do_not_share_a_folder(tmp_path: Path) -> None:
    with (
        Workspace(tmp_path).held(),
        pytest.raises(InfrastructureError, match="another run"),
        Workspace(tmp_path).held(),
    ):
        pass


def test_a_plan_that_cannot_be_read_is_no_plan(tmp_path: Path) -> None:
    assert Workspace(tmp_path).read_plan() is None
    (tmp_path / "plan.json").write_text("{}")
    assert Workspace(tmp_path).read_plan() is None
