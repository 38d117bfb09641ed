"""Workflow files and action.yml: what no linter holds. Linters: `make lint`."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import pytest
import yaml
from pytest_httpserver import HTTPServer
from werkzeug import Request, Response

from replay_parity.github.inputs import Inputs, Mode
from replay_parity.parity.verdict import VerdictName
from tests.support.workflows import ACTION, OWN, ROOT, WORKFLOWS, asked_permissions, document, steps, uses, workflow

FILES = [*WORKFLOWS, ACTION]
_PINNED = re.compile(r"[\w.-]+/[\w./-]+@[0-9a-f]{40}")
# Read by settings.py and by a step of action.yml, not by a stage.
_BESIDE = {"cache", "python-version"}


def name_of(path: Path) -> str:
    return path.name


def test_the_workflows_are_the_five_of_the_documentation() -> None:
    assert [path.stem for path in WORKFLOWS] == ["campaign", "ci", "publish", "release", "replay-parity"]


@pytest.mark.parametrize("path", FILES, ids=name_of)
def test_everything_that_is_used_is_pinned_by_commit(path: Path) -> None:
    found = list(uses(document(path)))
    assert found
    assert [used for used in found if not used.startswith("./") and not _PINNED.fullmatch(used)] == []


@pytest.mark.parametrize("path", FILES, ids=name_of)
def test_a_version_stands_beside_the_pin_of_every_foreign_action(path: Path) -> None:
    lines = [line for line in path.read_text("utf-8").splitlines() if re.search(r"\buses: (?!\./)", line)]
    assert [line for line in lines if OWN not in line and not re.search(r" # v\d+\.\d+\.\d+$", line)] == []


def test_one_action_has_one_pin_in_all_files() -> None:
    pins: dict[str, set[str]] = {}
    for path in FILES:
        for used in uses(document(path)):
            repository, _, commit = used.partition("@")
            pins.setdefault(repository, set()).add(commit)
    assert {repository: commits for repository, commits in pins.items() if len(commits) != 1} == {}


@pytest.mark.parametrize("path", FILES, ids=name_of)
def test_no_expression_is_expanded_in_a_script(path: Path) -> None:
    assert [step["run"] for step in steps(document(path)) if "${{" in step.get("run", "")] == []


@pytest.mark.parametrize("path", WORKFLOWS, ids=name_of)
def test_nothing_is_permitted_but_what_a_job_names(path: Path) -> None:
    found = document(path)
    assert found["permissions"] == {}
    assert [name for name, job in found["jobs"].items() if "permissions" not in job] == []


@pytest.mark.parametrize("path", WORKFLOWS, ids=name_of)
def test_every_job_has_a_limit_and_no_checkout_keeps_a_token(path: Path) -> None:
    found = document(path)
    assert [name for name, job in found["jobs"].items() if "uses" not in job and "timeout-minutes" not in job] == []
    checkouts = [step for step in steps(found) if step.get("uses", "").startswith("actions/checkout@")]
    assert [step for step in checkouts if step["with"]["persist-credentials"] is not False] == []


@pytest.mark.parametrize("name", ["build", "row"])
def test_a_job_that_runs_code_of_a_change_can_only_read_the_repository(name: str) -> None:
    assert workflow("replay-parity")["jobs"][name]["permissions"] == {"contents": "read"}


def test_only_the_release_knows_a_secret() -> None:
    knowing = [path.stem for path in FILES if re.search(r"\$\{\{[^}]*\bsecrets\b", path.read_text("utf-8"))]
    assert knowing == ["release"]
    assert workflow("release")["jobs"]["bump-pin"]["environment"] == "release"


def test_the_manual_campaign_grants_what_the_called_workflow_asks_for() -> None:
    """A caller that grants less does not start at all."""
    granted = workflow("campaign")["jobs"]["campaign"]["permissions"]
    assert granted == asked_permissions(workflow("replay-parity"))


def test_the_manual_campaign_hands_over_all_that_it_asks() -> None:
    found = workflow("campaign")
    asked = found["on"]["workflow_dispatch"]["inputs"]
    assert len(asked) <= 10
    given = found["jobs"]["campaign"]["with"]
    assert {name: value for name, value in given.items() if name != "publish"} == {
        name: f"${{{{ inputs.{name} }}}}" for name in asked
    }
    assert set(given) <= set(workflow("replay-parity")["on"]["workflow_call"]["inputs"])
    assert json.loads(asked["runners"]["default"])["default"]["labels"]


@pytest.mark.parametrize("name", ["replay-parity", "publish"])
def test_what_the_workflow_gives_to_the_action_is_an_input_of_it(name: str) -> None:
    known = document(ACTION)["inputs"]
    used = [step for step in steps(workflow(name)) if step.get("uses", "").startswith(f"{OWN}@")]
    assert used
    assert [set(step["with"]) - set(known) for step in used if set(step["with"]) - set(known)] == []


def test_the_action_has_exactly_the_inputs_that_are_read() -> None:
    assert set(document(ACTION)["inputs"]) == set(Inputs.names()) | _BESIDE


def test_the_types_are_those_of_every_input_and_output() -> None:
    types = yaml.safe_load((ROOT / "action-types.yml").read_text("utf-8"))
    action = document(ACTION)
    for part in ("inputs", "outputs"):
        assert list(types[part]) == list(action[part])
        assert {item["type"] for item in types[part].values()} <= {"string", "boolean", "integer", "enum", "list"}
    assert types["inputs"]["mode"]["allowed-values"] == list(get_args(Mode))
    assert types["outputs"]["verdict"]["allowed-values"] == list(get_args(VerdictName))
    flags = [name for name, item in types["inputs"].items() if item["type"] == "boolean"]
    assert flags == [name for name, item in action["inputs"].items() if item.get("default") == "false"]


def test_the_privileged_half_is_for_forks_and_checks_out_nothing() -> None:
    found = workflow("publish")
    assert "github.event.workflow_run.event == 'pull_request'" in found["jobs"]["choose"]["if"]
    assert "head_repository.full_name != github.repository" in found["jobs"]["choose"]["if"]
    assert found["jobs"]["publish"]["needs"] == "choose"
    assert {used.partition("@")[0] for used in uses(found)} == {"actions/download-artifact", OWN}
    assert asked_permissions(found) == {"actions": "read", "checks": "write", "pull-requests": "read"}


# The script of publish.yml that chooses verdicts, run as it stands there against a GitHub of this machine.

RUN, ATTEMPTS = 4711, 3
_PATH = f"/repos/consumer/aisimulate/actions/runs/{RUN}/artifacts"
_DIGEST = "0123456789ab"


class Chooser:
    def __init__(self, server: HTTPServer, folder: Path) -> None:
        self._server = server
        self._folder = folder
        self.artifacts: list[dict[str, Any]] = []
        self.pages = 0
        server.expect_request(_PATH).respond_with_handler(self._answer)

    def _answer(self, request: Request) -> Response:
        assert request.headers["Authorization"] == "Bearer not-a-token"
        page, size = int(request.args["page"]), int(request.args["per_page"])
        self.pages += 1
        return Response(json.dumps({"artifacts": self.artifacts[(page - 1) * size : page * size]}))

    def put(self, *names: str, expired: bool = False) -> None:
        self.artifacts += [{"name": name, "expired": expired} for name in names]

    def run(self) -> subprocess.CompletedProcess[str]:
        step = next(step for step in steps(workflow("publish")) if step.get("id") == "choose")
        script = self._folder / "choose.py"
        script.write_text(step["run"])
        assert step["shell"] == "python3 -I {0}"
        environment = {
            "PATH": os.defpath,
            "RP_TOKEN": "not-a-token",
            "RP_RUN": str(RUN),
            "RP_ATTEMPT": str(ATTEMPTS),
            "GITHUB_REPOSITORY": "consumer/aisimulate",
            "GITHUB_API_URL": self._server.url_for("").rstrip("/"),
            "GITHUB_OUTPUT": str(self._folder / "output"),
        }
        argv = [sys.executable, "-I", str(script)]
        return subprocess.run(argv, env=environment, capture_output=True, text=True, timeout=60, check=False)

    def chosen(self) -> list[str]:
        done = self.run()
        assert (done.returncode, done.stderr) == (0, "")
        name, _, value = (self._folder / "output").read_text().rstrip("\n").partition("=")
        assert name == "artifacts"
        found: list[str] = json.loads(value)
        return found


@pytest.fixture
def chooser(httpserver: HTTPServer, tmp_path: Path) -> Iterator[Chooser]:
    yield Chooser(httpserver, tmp_path)
    httpserver.check()


def verdict(campaign: str, attempt: int, digest: str = _DIGEST) -> str:
    return f"replay-parity~{campaign}~{digest}~verdict~{attempt}"


def test_the_newest_attempt_of_each_campaign_is_chosen_by_its_number(chooser: Chooser) -> None:
    chooser.put(verdict("pr", 2), verdict("pr", 3), verdict("pr", 1), verdict("nightly", 1))
    chooser.put(f"replay-parity~pr~{_DIGEST}~plan~3", f"replay-parity~pr~{_DIGEST}~row~a@default~3")
    assert chooser.chosen() == [verdict("nightly", 1), verdict("pr", 3)]


def test_a_later_plan_of_a_campaign_replaces_an_earlier_one_also_when_it_was_refused(chooser: Chooser) -> None:
    chooser.put(verdict("pr", 1), verdict("pr", 2, "ba9876543210"))
    chooser.put(verdict("other", 1), "replay-parity~refused~other~verdict~2")
    assert chooser.chosen() == [verdict("pr", 2, "ba9876543210"), "replay-parity~refused~other~verdict~2"]


def test_two_plans_of_one_attempt_are_both_chosen(chooser: Chooser) -> None:
    chooser.put(verdict("pr", 1, "aaaaaaaaaaaa"), verdict("pr", 1, "bbbbbbbbbbbb"))
    assert len(chooser.chosen()) == 2


@pytest.mark.parametrize(
    "name",
    [
        "replay-parity~pr~0123456789ab~verdict~4",
        "replay-parity~pr~0123456789ab~verdict~0",
        "replay-parity~pr~0123456789ab~verdict~1\n",
        "replay-parity~pr~0123456789ab~verdict~٣",
        "replay-parity~$(id)~0123456789ab~verdict~1",
        "replay-parity~pr~0123456789ab~verdict~1~x",
        "x-replay-parity~pr~0123456789ab~verdict~1",
        "replay-parity~-pr~0123456789ab~verdict~1",
        f"replay-parity~{'a' * 81}~0123456789ab~verdict~1",
    ],
    ids=repr,
)
def test_a_name_that_is_not_ours_is_passed_over(chooser: Chooser, name: str) -> None:
    chooser.put(name)
    assert chooser.chosen() == []


def test_an_artifact_that_is_gone_is_passed_over(chooser: Chooser) -> None:
    chooser.put(verdict("pr", 2), expired=True)
    chooser.put(verdict("pr", 1))
    assert chooser.chosen() == [verdict("pr", 1)]


def test_every_page_is_read(chooser: Chooser) -> None:
    chooser.put(*(f"noise-{number}" for number in range(250)), verdict("pr", 1))
    assert chooser.chosen() == [verdict("pr", 1)]
    assert chooser.pages == 3


def test_a_full_last_page_is_no_end(chooser: Chooser) -> None:
    chooser.put(*(f"noise-{number}" for number in range(99)), verdict("pr", 1))
    assert chooser.chosen() == [verdict("pr", 1)]
    assert chooser.pages == 2


@pytest.mark.parametrize(("noise", "verdicts"), [(5_000, 0), (0, 51)])
def test_a_flood_is_refused_aloud(chooser: Chooser, noise: int, verdicts: int) -> None:
    chooser.put(
        *(f"noise-{number}" for number in range(noise)), *(verdict(f"c{number}", 1) for number in range(verdicts))
    )
    done = chooser.run()
    assert done.returncode == 1
    assert "nothing is published" in done.stderr
