"""Rows of one revision: twice each, in separate surroundings, as many at a time as there are lanes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from replay_parity.errors import InfrastructureError
from replay_parity.replay.alone import AloneJob, replay_alone
from replay_parity.replay.placement import Lanes
from replay_parity.replay.turn import Repetition, Runner
from replay_parity.system.progress import Silent

if TYPE_CHECKING:
    from tests.unit.replay.conftest import MakeRunner

_Alone = Callable[..., list[tuple[Repetition, ...]]]
_WHEN = (
    "started = time.monotonic(); time.sleep(0.3); good(); (output / 'when').write_text(f'{started} {time.monotonic()}')"
)


@pytest.fixture
def alone(tmp_path: Path) -> _Alone:
    """Replay each runner as a job of its own."""

    def run(*runners: Runner, width: int = 2) -> list[tuple[Repetition, ...]]:
        jobs = []
        for number, runner in enumerate(runners):
            work = tmp_path / f"work-{number}"
            work.mkdir()
            jobs.append(AloneJob({"row_name": "row"}, runner, 20.0, work))
        return replay_alone(
            jobs, lanes=Lanes((None,) * width, frozenset()), locks=tmp_path / "locks", progress=Silent()
        )

    return run


@pytest.mark.parametrize("width", [1, 2, 3, 8])
def test_each_job_runs_twice_in_its_own_folder(runner: MakeRunner, alone: _Alone, tmp_path: Path, width: int) -> None:
    done = alone(runner(), runner("good(b'{\"record\":2}\\n')"), width=width)
    assert [[(item.side, item.index, item.status) for item in job] for job in done] == [
        [("baseline", 1, "ok"), ("baseline", 2, "ok")]
    ] * 2
    assert [[item.report.read_bytes() for item in job] for job in done] == [
        [b'{"record":1}\n'] * 2,
        [b'{"record":2}\n'] * 2,
    ]
    assert all(
        item.folder.is_relative_to(tmp_path / f"work-{number}") for number, job in enumerate(done) for item in job
    )
    assert len({item.folder for job in done for item in job}) == 4


@pytest.mark.parametrize(("width", "at_a_time"), [(1, 1), (2, 2), (3, 3)])
def test_no_more_processes_run_at_a_time_than_there_are_lanes(
    runner: MakeRunner, alone: _Alone, width: int, at_a_time: int
) -> None:
    done = alone(runner(_WHEN), runner(_WHEN), width=width)
    spans = [tuple(map(float, (item.folder / "when").read_text().split())) for job in done for item in job]
    most = max(sum(start <= moment < end for start, end in spans) for moment, _ in spans)
    assert most == at_a_time


def test_a_broken_job_is_not_tried_again_and_the_others_go_on(runner: MakeRunner, alone: _Alone) -> None:
    refuses = "error(12, kind='engine_refused', phase='new', variant='InvalidSpec', message='no')"
    done = alone(runner(refuses), runner(), width=1)
    assert [[item.status for item in job] for job in done] == [["refused"], ["ok", "ok"]]


def test_a_changed_artifact_ends_everything(runner: MakeRunner, alone: _Alone, tmp_path: Path) -> None:
    made = runner()
    with pytest.raises(InfrastructureError, match="artifact was changed"):
        alone(runner(), Runner(made.path, "0" * 64))
    assert not list((tmp_path / "work-0").iterdir())
