"""The stage `plan` as action.yml runs it: an environment and an event in; outputs, a plan or a refusal, a log out."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from replay_parity.stages.plan_folder import PlanFolder
from tests.support.action import Log, Step, run_step
from tests.support.github_server import REPOSITORY, TOKEN, GitHubServer, github_server
from tests.support.policy_repository import POLICY, SERVER, ZERO, Consumer, clone
from tests.support.scratch import Scratch

RUNNERS = json.dumps({"default": {"labels": ["prod-aisimulate-default-amd64-v1"], "container": ""}})
# GitHub refuses everything else in the name of an artifact; a job's output of this kind is never taken for a secret.
ARTIFACT = re.compile(r"[a-z0-9._@~-]+")
WITNESS = "shadow was imported"


@dataclass(frozen=True)
class World:
    repository: Consumer
    checkout: Scratch
    old: str
    new: str
    many: str
    bad: str


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    ground = tmp_path_factory.mktemp("world")
    made = Consumer(ground / "repository")
    made.row("red", title="::error::boom ##[error]boom")
    made.row("green")
    made.campaign("red", "green", title="::set-output name=count::9 ##[add-mask]a")
    old, new = made.tiny(source="// old"), made.tiny(source="// new")
    made.start("many", new)
    rows = [f"row-{number:03}" for number in range(130)]
    for row in rows:
        made.row(row)
    made.campaign(*rows, name="many", runners=["default", "arm64"])
    many = made.tiny(source="// many")
    made.start("bad", new)
    made.campaign("red", name="bad", **{"##[error]boom\n::error::boom": 1, "::error::boom": 2})
    made.row("red", title="a\n::error::boom\r::add-mask::a\u2028##[warning]x")
    bad = made.tiny(source="// bad")
    made.git("checkout", "--quiet", "main")
    return World(made, clone(made, ground / "checkout", commit=new), old, new, many, bad)


@pytest.fixture
def server(world: World) -> Iterator[GitHubServer]:
    with github_server() as running:
        running.branches["main"] = world.new
        yield running


class Job:
    """A job of a hosted runner with its temporary folder; `step` runs the stage for an event."""

    def __init__(self, world: World, folder: Path) -> None:
        self.world = world
        self.folder = folder
        self.temporary = folder / "temporary"
        self.temporary.mkdir()
        (folder / "home").mkdir()

    @property
    def plan(self) -> PlanFolder:
        return PlanFolder(self.temporary / "replay-parity" / "plan")

    def variables(self, name: str, payload: dict[str, Any], **changes: str) -> dict[str, str]:
        event = self.folder / "event.json"
        event.write_text(json.dumps(payload))
        return {
            "PATH": os.environ["PATH"],
            "HOME": str(self.folder / "home"),
            "CI": "true",
            "GITHUB_EVENT_NAME": name,
            "GITHUB_EVENT_PATH": str(event),
            "GITHUB_REPOSITORY": REPOSITORY,
            "GITHUB_SERVER_URL": SERVER,
            "GITHUB_REF": "refs/pull/12/merge",
            "GITHUB_SHA": "d" * 40,
            "GITHUB_RUN_ID": "77",
            "GITHUB_RUN_ATTEMPT": "1",
            "GITHUB_WORKSPACE": str(self.world.checkout.folder),
            "RUNNER_TEMP": str(self.temporary),
            "REPLAY_PARITY_MODE": "plan",
            "REPLAY_PARITY_CAMPAIGN": "nightly",
            "REPLAY_PARITY_RUNNERS": RUNNERS,
            "REPLAY_PARITY_CACHE": str(self.temporary / "cache"),
            "REPLAY_PARITY_LOCK_DIR": str(self.temporary / "locks"),
            **changes,
        }

    def pull_request(self, head: str, base: str, *, repository: str = REPOSITORY, **changes: str) -> dict[str, str]:
        pull = {
            "number": 12,
            "head": {"sha": head, "ref": "topic", "repo": {"full_name": repository}},
            "base": {"sha": base, "ref": "main", "repo": {"full_name": REPOSITORY}},
        }
        return self.variables("pull_request", {"pull_request": pull}, **changes)

    def push(self, before: str, after: str, branch: str = "main", **changes: str) -> dict[str, str]:
        where = {"GITHUB_REF": f"refs/heads/{branch}", "GITHUB_SHA": after}
        return self.variables("push", {"before": before, "after": after, "commits": []}, **(where | changes))

    def step(self, variables: dict[str, str], *, cwd: Path | None = None, program: str | None = None) -> Step:
        return run_step(variables, self.folder / "told", cwd=cwd or self.folder, program=program)


@pytest.fixture
def job(world: World, tmp_path: Path) -> Job:
    return Job(world, tmp_path)


def check_log(step: Step, *, commands: int = 0) -> Log:
    """Nothing is obeyed but our own commands, which come last; nothing stands outside of the marks beside them."""
    log = step.log
    assert not log.stopped, step.text
    assert log.loose == [], step.text
    assert len(log.commands) == commands, step.text
    lines = step.text.split("\n")
    assert lines.pop() == ""
    assert lines[len(lines) - commands :] == log.commands
    assert "Traceback" not in step.text
    assert step.summary.read_bytes() == b""
    return log


def check_refusal(job: Job, step: Step, *words: str, code: int = 2) -> str:
    """One error for people, the same words kept for the verdict, and no matrix."""
    assert step.code == code, step.text
    log = check_log(step, commands=1)
    assert log.commands[0].startswith("::error title=Replay Parity%3A ")
    kept = job.plan.read_refusal()
    assert kept is not None
    assert kept.exit_code == code
    for word in words:
        assert word in kept.message
        assert word in log.commands[0].replace("%0A", "\n").replace("%25", "%")
    assert step.outputs == {
        "plan-artifact": "replay-parity~nightly~refused~1",
        "path": str(job.plan.root),
        "count": "0",
    }
    return kept.message


def test_a_pull_request(job: Job, world: World) -> None:
    step = job.step(job.pull_request(world.new, world.old))
    assert step.code == 0, step.text
    log = check_log(step)
    assert "note: 2 rows in 2 jobs" in log.between
    plan = job.plan.read()
    outputs = step.outputs
    prefix = f"replay-parity~nightly~{plan.sha256[:12]}"
    assert json.loads(outputs.pop("matrix")) == {
        "include": [{"shard": "red", "runner": "default"}, {"shard": "green", "runner": "default"}]
    }
    assert json.loads(outputs.pop("builds")) == {"include": [{"runner": "default"}]}
    assert outputs == {
        "count": "2",
        "artifacts": prefix,
        "plan-artifact": f"{prefix}~plan~1",
        "path": str(job.plan.root),
    }
    assert ARTIFACT.fullmatch(f"{prefix}~plan~1")
    assert plan.origin is not None
    assert (plan.origin.head_sha, plan.origin.policy_commit) == (world.new, world.old)
    assert job.plan.read_refusal() is None


def test_the_next_attempt_has_another_artifact_of_the_same_plan(job: Job, world: World) -> None:
    first = job.step(job.pull_request(world.new, world.old)).outputs
    second = job.step(job.pull_request(world.new, world.old, GITHUB_RUN_ATTEMPT="2")).outputs
    assert first["artifacts"] == second["artifacts"]
    assert (first["plan-artifact"][-7:], second["plan-artifact"][-7:]) == ("~plan~1", "~plan~2")


def test_equal_trees(job: Job, world: World) -> None:
    variables = job.variables(
        "workflow_dispatch",
        {"inputs": None},
        GITHUB_SHA=world.new,
        REPLAY_PARITY_BASELINE=world.new,
        REPLAY_PARITY_CANDIDATE=world.new,
    )
    step = job.step(variables)
    assert step.code == 0, step.text
    assert "note: equal sources on both sides: nothing to compare" in check_log(step).between
    assert step.outputs["count"] == "0"
    assert json.loads(step.outputs["matrix"]) == {"include": []}
    assert job.plan.read().nothing_to_compare
    step = job.step({**variables, "REPLAY_PARITY_BASELINE": "", "REPLAY_PARITY_SELF_COMPARE": "true"})
    assert step.outputs["count"] == "2"


def test_more_rows_than_a_matrix_holds(job: Job, world: World) -> None:
    runners = json.dumps({name: {"labels": [name]} for name in ("default", "arm64")})
    step = job.step(job.push(world.new, world.many, REPLAY_PARITY_CAMPAIGN="many", REPLAY_PARITY_RUNNERS=runners))
    assert step.code == 0, step.text
    cells = json.loads(step.outputs["matrix"])["include"]
    assert step.outputs["count"] == str(len(cells))
    assert 250 <= len(cells) <= 256
    assert len({cell["shard"] for cell in cells}) == len(cells)
    assert all(ARTIFACT.fullmatch(cell["shard"]) for cell in cells)
    assert json.loads(step.outputs["builds"])["include"] == [{"runner": "default"}, {"runner": "arm64"}]
    assert len(step.outputs["matrix"]) < 100_000


def test_a_trusted_copy_asks_the_api(job: Job, world: World, server: GitHubServer) -> None:
    pull = server.description.example("pull-request")
    pull |= {"number": 12, "requested_teams": [], "state": "open"}
    pull["head"]["sha"] = world.new
    pull["base"] |= {"sha": world.old, "ref": "main"}
    server.pulls[12] = pull
    server.branches["main"] = world.old
    variables = job.push(ZERO, world.new, "pull-request/12", GITHUB_API_URL=server.api_url, REPLAY_PARITY_TOKEN=TOKEN)
    step = job.step(variables)
    assert step.code == 0, step.text
    check_log(step)
    assert TOKEN not in step.text
    assert {seen.authorization for seen in server.seen} == {f"Bearer {TOKEN}"}
    kept = [path for path in job.folder.rglob("*") if path.is_file() and TOKEN.encode() in path.read_bytes()]
    assert kept == [], "the token is written nowhere"
    check_refusal(job, job.step({**variables, "REPLAY_PARITY_TOKEN": ""}), "needs the API", "pull-requests: read")
    pull["head"]["sha"] = world.old
    check_refusal(job, job.step(variables), "the copy is stale", world.new)


def test_a_refusal_is_kept(job: Job, world: World) -> None:
    job.step(job.pull_request(world.new, world.old))
    step = job.step(job.pull_request("e" * 40, world.old))
    check_refusal(job, step, f"has no commit {'e' * 40}")
    assert not (job.plan.root / "plan.json").exists(), "no plan of another event is left"


def test_a_fork_and_the_machines_that_stay(job: Job, world: World) -> None:
    step = job.step(job.pull_request(world.new, world.old, repository="somebody/else"))
    check_refusal(job, step, "comes from a fork", "docs/security.md")
    assert not (job.temporary / "cache").exists(), "refused before anything is read"


def test_an_advisory_refusal_stands_in_nobodys_way(job: Job, world: World) -> None:
    step = job.step(job.pull_request("e" * 40, world.old, REPLAY_PARITY_ADVISORY="true"))
    assert step.code == 0, step.text
    assert any(line.startswith("note: no plan: ") for line in check_log(step).between)
    assert step.outputs["count"] == "0"
    kept = job.plan.read_refusal()
    assert kept is not None
    assert kept.exit_code == 2


def test_a_machine_without_git(job: Job, world: World) -> None:
    step = job.step(job.pull_request(world.new, world.old, PATH=str(job.folder)))
    check_refusal(job, step, "git was not found", code=3)


def test_words_of_a_policy_are_no_commands(job: Job, world: World) -> None:
    step = job.step(job.push(world.new, world.bad, REPLAY_PARITY_CAMPAIGN="bad"))
    assert step.code == 2, step.text
    log = check_log(step, commands=1)
    kept = job.plan.read_refusal()
    assert kept is not None
    assert ".replay-parity/campaigns/bad.yaml:" in kept.message
    assert ".replay-parity/rows/red.yaml:" in kept.message
    assert "##[error]boom" in kept.message, "the words are told"
    assert any("##[error]boom" in line for line in log.between), "and are in the log, where nothing is obeyed"
    assert step.outputs["plan-artifact"] == "replay-parity~bad~refused~1"


@pytest.mark.parametrize("words", ["::error::boom", "##[error]boom", "x\n::error::boom", "x\r##[add-mask]a", "x\udcff"])
def test_words_of_git_and_of_inputs_are_no_commands(words: str, job: Job, world: World) -> None:
    """A folder of any name, as git and the file system tell it."""
    place = job.folder / words
    place.mkdir()
    step = job.step(job.pull_request(world.new, world.old, REPLAY_PARITY_CHECKOUT=str(place)))
    assert step.code == 2, step.text
    check_log(step, commands=1)
    wanted = "must be an absolute path in UTF-8" if "\udcff" in words else "is not a git repository"
    assert wanted in step.log.commands[0]


@pytest.mark.parametrize("name", ["REPLAY_PARITY_MODE", "GITHUB_EVENT_NAME", "GITHUB_SHA"])
def test_words_of_the_environment_are_no_commands(name: str, job: Job, world: World) -> None:
    words = "x\n::error::boom ##[error]boom\r##[add-mask]\udcff"
    step = job.step(job.pull_request(world.new, world.old, **{name: words}))
    assert step.code == 2, step.text
    check_log(step, commands=1)


def test_a_fault_of_ours_stays_between_the_marks(job: Job, world: World) -> None:
    program = (
        "import sys\nfrom replay_parity.cli import main\nfrom replay_parity.stages import action\n"
        "def run_action(use):\n    raise RuntimeError('##[error]boom\\n::error::boom')\n"
        "action.run_action = run_action\nmain.main(sys.argv[1:])\n"
    )
    step = job.step(job.pull_request(world.new, world.old, TMPDIR=str(job.folder)), program=program)
    assert step.code == 3, step.text
    assert any("fault of replay-parity itself" in line for line in check_log(step).between)


@pytest.mark.parametrize("name", ["GITHUB_RUN_ATTEMPT", "RUNNER_TEMP"])
def test_outside_of_a_job(name: str, job: Job, world: World) -> None:
    step = job.step(job.pull_request(world.new, world.old, **{name: ""}))
    assert step.code == 2, step.text
    assert f"{name} is not set" in check_log(step, commands=1).commands[0]


def test_files_of_a_checkout_are_not_imported(job: Job, world: World, tmp_path: Path) -> None:
    """Neither from where the step runs, nor from what it reads, nor from what the environment names."""
    checkout = clone(world.repository, tmp_path / "checkout", commit=world.new)
    names = ["json.py", "sitecustomize.py", "usercustomize.py", "yaml.py", "orjson.py", "replay_parity/__init__.py"]
    for folder in (checkout.folder, checkout.folder / POLICY):
        for name in names:
            path = folder / name
            path.parent.mkdir(exist_ok=True)
            path.write_text(f"raise SystemExit({WITNESS!r})\n")
    given = job.pull_request(
        world.new,
        world.old,
        REPLAY_PARITY_CHECKOUT=str(checkout.folder),
        PYTHONPATH=str(checkout.folder),
        PYTHONSTARTUP=str(checkout.folder / "json.py"),
    )
    step = job.step(given, cwd=checkout.folder)
    assert step.code == 0, step.text
    assert WITNESS not in step.text
    assert step.outputs["count"] == "2"


def test_a_checkout_with_settings_that_run_code(job: Job, world: World, tmp_path: Path) -> None:
    checkout = clone(world.repository, tmp_path / "checkout", commit=world.new)
    witness = tmp_path / "witness"
    program = tmp_path / "program"
    program.write_text(f"#!/bin/sh\ntouch {witness}\n")
    program.chmod(0o755)
    for key in ("core.fsmonitor", "core.sshCommand", "uploadpack.packObjectsHook", "diff.external", "core.pager"):
        checkout.git("config", key, str(program))
    (checkout.folder / ".git" / "hooks").mkdir(exist_ok=True)
    for hook in ("reference-transaction", "post-checkout", "post-index-change"):
        (checkout.folder / ".git" / "hooks" / hook).symlink_to(program)
    witness.unlink(missing_ok=True)
    step = job.step(job.pull_request(world.new, world.old, REPLAY_PARITY_CHECKOUT=str(checkout.folder)))
    assert step.code == 0, step.text
    assert not witness.exists()
