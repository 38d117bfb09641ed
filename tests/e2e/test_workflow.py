"""The reusable workflow, called from another repository, in a real workflow engine with real engines and artifacts."""

from __future__ import annotations

import json
import os
import shutil
import signal
import time
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from replay_parity.parity.result import RowResult
from replay_parity.stages.plan import Plan
from tests.support.act import Act, Finished
from tests.support.consumer import ROWS, SLOW, Consumer
from tests.support.github_server import GitHubServer, github_server
from tests.support.run_folder import RunFolder

pytestmark = [pytest.mark.engine, pytest.mark.timeout(2400)]


@pytest.fixture(scope="module")
def server() -> Iterator[GitHubServer]:
    with github_server() as server:
        yield server


@pytest.fixture(scope="module")
def consumer(tmp_path_factory: pytest.TempPathFactory) -> Consumer:
    return Consumer.make(tmp_path_factory.mktemp("consumer") / "aisimulate")


@pytest.fixture
def act(consumer: Consumer, server: GitHubServer, tmp_path: Path) -> Act:
    return Act(tmp_path, consumer.scratch, api_url=server.api_url)


@pytest.fixture(scope="module")
def green(
    consumer: Consumer, server: GitHubServer, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Act, dict[str, Any], Finished]:
    """0.12.0 to 0.12.1 as pull request 7, run once."""
    consumer.tell(server, 7, "green", "main")
    act = Act(tmp_path_factory.mktemp("green"), consumer.scratch, api_url=server.api_url)
    event = consumer.pull_request(7, "green", "main")
    return act, event, act.run(event)


def copied(green: tuple[Act, dict[str, Any], Finished], folder: Path) -> tuple[Act, dict[str, Any], Finished]:
    """The green run with artifacts of its own, to be tampered with."""
    act, event, first = green
    mine = Act(folder, act.consumer, api_url=act.api_url)
    shutil.copytree(act.artifacts, mine.artifacts)
    return mine, event, Finished(first.returncode, first.log, mine.artifacts)


def rewrite(archive: Path, name: str, data: bytes) -> None:
    """Replace a file of an artifact."""
    with zipfile.ZipFile(archive) as old:
        files = {item: old.read(item) for item in old.namelist()}
    assert name in files
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as new:
        for item, content in files.items():
            new.writestr(item, data if item == name else content)


def result_of(first: Finished, row: str) -> RowResult:
    return RowResult.model_validate_json(first.read(f"~row~{row}~1", f"rows/{row}/attempt-1/result.json"))


def unstable(first: Finished, row: str, folder: Path) -> None:
    """Put into the row's artifact what its job leaves when the candidate's two processes differ."""
    real = result_of(first, row)
    left = RunFolder(folder, Plan.model_validate_json(first.read("~plan~1", "plan.json")))
    attempt = left.result(row, "unstable_candidate")
    made = RowResult.model_validate_json((attempt / "result.json").read_bytes())
    sides = {
        side: getattr(made, side).model_copy(update={"artifact_sha256": getattr(real, side).artifact_sha256})
        for side in ("baseline", "candidate")
    }
    result = made.model_copy(update={"input_sha256": real.input_sha256, **sides}).sealed()
    (attempt / "result.json").write_text(result.model_dump_json())
    with zipfile.ZipFile(first.zipped(f"~row~{row}~1"), "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted(attempt.rglob("*")):
            if path.is_file():
                archive.write(path, f"rows/{row}/attempt-1/{path.relative_to(attempt).as_posix()}")


def test_equal_releases_are_green(
    green: tuple[Act, dict[str, Any], Finished], server: GitHubServer, consumer: Consumer
) -> None:
    _, _, run = green
    assert run.returncode == 0, run.log[-4000:]
    for job in ("Plan", "Build (default)", *(f"Row ({row})" for row in ROWS), "Replay Parity", "Publish"):
        assert run.job(job) == "succeeded", job
    verdict = run.verdict()
    assert (verdict["verdict"], verdict["counts"], verdict["problems"]) == ("PASS", {"match": 2}, [])
    assert verdict["baseline"]["commit"] == consumer.commits["main"]
    assert verdict["candidate"]["commit"] == consumer.commits["green"]
    assert verdict["origin"]["policy_commit"] == consumer.commits["main"]
    # One artifact per revision: both rows used those of the build job.
    for side in ("baseline", "candidate"):
        built = verdict["builds"][0][side]["artifact"]["sha256"]
        assert {row[side]["artifact_sha256"] for row in verdict["rows"]} == {built}
    runs = [found for found in server.runs.values() if found["external_id"] == "replay-parity/pr"]
    runs = [found for found in runs if found["head_sha"] == consumer.commits["green"]]
    assert [found["conclusion"] for found in runs] == ["success"]
    assert "PASS" in runs[0]["output"]["title"]


def test_a_change_that_moves_results_is_red_although_it_drops_the_red_row_from_its_policy(
    act: Act, server: GitHubServer, consumer: Consumer
) -> None:
    consumer.tell(server, 8, "red", "release/0.12")
    run = act.run(consumer.pull_request(8, "red", "release/0.12"))
    assert run.returncode != 0
    # A mismatch is decided: running its job again would change nothing, so only the aggregate is red.
    assert run.job(f"Row ({ROWS[0]})") == "succeeded"
    assert run.job("Replay Parity") == "failed"
    verdict = run.verdict()
    assert verdict["verdict"] == "FAIL"
    assert [row["row"] for row in verdict["rows"]] == list(ROWS)
    assert ROWS[0] in verdict["failed_rows"]
    edits = verdict["origin"]["policy_edits"]
    assert edits == [{"path": ".replay-parity/campaigns/pr.yaml", "change": "changed"}]
    summary = run.read("~verdict~1", "summary.md").decode()
    assert "proposed" in summary.lower()
    kept = [row for row in verdict["rows"] if row["outcome"] == "mismatch"]
    assert kept
    for name in (*kept[0]["reports"], kept[0]["differences"]["file"]):
        assert run.read("~verdict~1", name)
    (check,) = [
        found
        for found in server.runs.values()
        if found["head_sha"] == consumer.commits["red"] and found["external_id"] == "replay-parity/pr"
    ]
    assert check["conclusion"] == "failure"
    notes = server.annotations[check["id"]]
    assert {note["path"] for note in notes} == {f".replay-parity/rows/{row}.yaml" for row in verdict["failed_rows"]}


def test_a_row_that_is_killed_is_red_and_its_second_attempt_is_green(
    act: Act, server: GitHubServer, consumer: Consumer
) -> None:
    act.inputs = {"campaign": "slow"}
    consumer.tell(server, 7, "green", "main")
    event = consumer.pull_request(7, "green", "main")
    running = act.start(event)
    kill_when_it_replays(SLOW)
    first = act.finish(running)
    assert first.returncode != 0
    assert first.job(f"Row ({SLOW})") == "failed"
    verdict = first.verdict()
    assert (verdict["verdict"], verdict["counts"]) == ("ERROR", {"missing": 1, "match": 1})
    second = act.rerun(first, event, jobs=["row", "verdict", "publish"], attempt=2, shard=SLOW)
    assert second.returncode == 0, second.log[-4000:]
    verdict = second.verdict(2)
    assert (verdict["verdict"], verdict["counts"]) == ("PASS", {"match": 2})
    assert {row["row"]: row["attempt"] for row in verdict["rows"]} == {SLOW: 2, ROWS[0]: 1}
    # The check of the first attempt was updated, not doubled.
    runs = [found for found in server.runs.values() if found["external_id"] == "replay-parity/slow"]
    assert [found["conclusion"] for found in runs] == ["success"]


def kill_when_it_replays(shard: str) -> None:
    """End the row's process the hard way as soon as it has started runners."""
    deadline = time.monotonic() + 1200
    while time.monotonic() < deadline:
        for process in psutil.process_iter(["environ", "cmdline"]):
            environ = process.info["environ"] or {}
            ours = "replay_parity" in (process.info["cmdline"] or [])
            if ours and environ.get("REPLAY_PARITY_SHARD") == shard:
                try:
                    replaying = any("runner" in child.name() for child in process.children(recursive=True))
                except psutil.NoSuchProcess:
                    continue
                if replaying:
                    os.kill(process.pid, signal.SIGKILL)
                    return
        time.sleep(0.05)
    pytest.fail("the row never replayed")


def test_a_forged_result_is_red(green: tuple[Act, dict[str, Any], Finished], tmp_path: Path) -> None:
    act, event, first = copied(green, tmp_path)
    row = ROWS[0]
    forged = json.loads(first.read(f"~row~{row}~1", f"rows/{row}/attempt-1/result.json"))
    forged["candidate"]["digests"] = ["f" * 64, "f" * 64]
    rewrite(first.zipped(f"~row~{row}~1"), f"rows/{row}/attempt-1/result.json", json.dumps(forged).encode())
    again = act.rerun(first, event, jobs=["verdict"], attempt=2)
    assert again.returncode != 0
    verdict = again.verdict(2)
    assert (verdict["verdict"], verdict["counts"]) == ("ERROR", {"invalid": 1, "match": 1})
    assert "edited after it was sealed" in again.log


def test_an_unstable_row_stays_red_in_its_second_attempt(
    green: tuple[Act, dict[str, Any], Finished], tmp_path: Path
) -> None:
    act, event, first = copied(green, tmp_path)
    row = ROWS[0]
    unstable(first, row, tmp_path / "unstable")
    again = act.rerun(first, event, jobs=["row", "verdict"], attempt=2, shard=row)
    assert again.job(f"Row ({row})") == "succeeded"
    assert again.job("Replay Parity") == "failed"
    verdict = again.verdict(2)
    assert (verdict["verdict"], verdict["counts"]) == ("FAIL", {"unstable_candidate": 1, "match": 1})


def test_a_trusted_copy_that_is_red_but_advisory_leaves_the_job_green_and_says_so(
    act: Act, server: GitHubServer, consumer: Consumer
) -> None:
    consumer.tell(server, 8, "red", "release/0.12")
    act.inputs = {"advisory": True}
    event = {
        "ref": "refs/heads/pull-request/8",
        "before": "0" * 40,
        "after": consumer.commits["red"],
        "commits": [],
        "repository": {"full_name": "octocat/Hello-World", "default_branch": "main"},
    }
    consumer.scratch.git("branch", "--force", "pull-request/8", consumer.commits["red"])
    run = act.run(event, name="push")
    assert run.returncode == 0, run.log[-4000:]
    assert run.job("Replay Parity") == "succeeded"
    verdict = run.verdict()
    assert (verdict["verdict"], verdict["advisory"]) == ("FAIL", True)
    assert verdict["origin"]["pull_request"] == 8
    assert verdict["baseline"]["commit"] == consumer.commits["release/0.12"]
    assert "::warning" in run.log
    assert "advisory" in run.read("~verdict~1", "summary.md").decode()


def test_a_self_comparison_is_replayed_and_green(act: Act, consumer: Consumer, server: GitHubServer) -> None:
    consumer.tell(server, 7, "green", "main")
    act.inputs = {"self_compare": True, "rows": ROWS[0], "publish": False}
    run = act.run(consumer.pull_request(7, "green", "main"))
    assert run.returncode == 0, run.log[-4000:]
    verdict = run.verdict()
    assert (verdict["verdict"], verdict["self_compare"], verdict["counts"]) == ("PASS", True, {"match": 1})
    assert verdict["baseline"]["commit"] == verdict["candidate"]["commit"] == consumer.commits["green"]
    assert run.job("Publish") == "absent"


def test_a_fork_is_refused_before_any_build(act: Act, consumer: Consumer) -> None:
    run = act.run(consumer.pull_request(7, "green", "main", fork=True))
    assert run.returncode != 0
    assert run.job("Plan") == "failed"
    assert run.job("Build") == "absent"
    assert run.job("Row") == "absent"
    assert run.job("Replay Parity") == "failed"
    verdict = run.verdict()
    assert verdict["verdict"] == "ERROR"
    assert "comes from a fork" in verdict["problems"][0]
    assert "pull-request/NUMBER" in run.read("~verdict~1", "summary.md").decode()
