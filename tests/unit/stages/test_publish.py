"""A kept verdict to GitHub: untrusted like every file of a run, and published for its own commit only."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest
from tests.support.github_server import REPOSITORY, SHA, GitHubServer, github_server
from tests.support.hostile import INJECTIONS
from tests.support.run_folder import ROW, RunFolder, good_run
from tests.support.tiny import Told

from replay_parity.errors import BadInputError
from replay_parity.github.origin import Origin
from replay_parity.github.surroundings import Surroundings
from replay_parity.parity.verdict import CampaignSummary, Verdict
from replay_parity.stages.publish import publish_verdict, write_badge

SERVER = "https://github.com"
RUN = 12_345
# https://shields.io/badges/endpoint-badge
SHIELDS = {
    "schemaVersion": int,
    "label": str,
    "message": str,
    "color": str,
    "labelColor": str,
    "isError": bool,
    "namedLogo": str,
    "logoSvg": str,
    "logoColor": str,
    "logoSize": str,
    "style": str,
    "cacheSeconds": int,
}


@pytest.fixture
def server() -> Iterator[GitHubServer]:
    with github_server() as running:
        yield running


@pytest.fixture
def run(tmp_path: Path) -> RunFolder:
    return good_run(tmp_path, origin=origin())


@pytest.fixture
def green(run: RunFolder) -> Verdict:
    return run.decide()


@pytest.fixture
def red(tmp_path: Path) -> Verdict:
    run = good_run(tmp_path / "red", origin=origin())
    shutil.rmtree(run.results / f"test~row~{ROW}~1")
    run.result(ROW, "mismatch")
    return run.decide()


def origin(**changes: Any) -> Origin:
    fields: dict[str, Any] = {
        "server_url": SERVER,
        "repository": REPOSITORY,
        "event": "pull_request",
        "run_id": RUN,
        "run_attempt": 1,
        "head_sha": SHA,
    }
    return Origin(**(fields | changes))


def around(
    tmp_path: Path, event: str = "pull_request", *, ref: str = "refs/pull/1/merge", **payload: Any
) -> Surroundings:
    """The variables of a step of this repository."""
    path = tmp_path / "event.json"
    path.write_bytes(orjson.dumps({"repository": {"default_branch": "main"}, **payload}))
    return Surroundings(
        {
            "GITHUB_EVENT_NAME": event,
            "GITHUB_EVENT_PATH": str(path),
            "GITHUB_REPOSITORY": REPOSITORY,
            "GITHUB_SERVER_URL": SERVER,
            "GITHUB_REF": ref,
            "GITHUB_SHA": SHA,
            "GITHUB_RUN_ID": "99",
            "GITHUB_RUN_ATTEMPT": "1",
        }
    )


def after(tmp_path: Path, **changes: Any) -> Surroundings:
    """A run that follows another one."""
    run = {"id": RUN, "head_sha": SHA, "event": "pull_request", "conclusion": "success"} | changes
    return around(tmp_path, "workflow_run", ref="refs/heads/main", workflow_run=run)


def publish(found: Verdict, server: GitHubServer, where: Surroundings, told: Told | None = None) -> str | None:
    commands: list[str] = []
    told = told or Told()
    found_at = publish_verdict(
        found,
        check_name="Replay Parity report",
        around=where,
        api=server.client(),
        progress=told,
        commands=commands,
    )
    assert [line.startswith("::warning title=Replay Parity") for line in commands] == [
        True for notice in told.notices if "completely" in notice
    ]
    return found_at


def edited(found: Verdict, **changes: Any) -> Verdict:
    """The same document with other fields, read again as from a file."""
    return Verdict.model_validate_json(json.dumps(found.model_dump(mode="json") | changes))


def test_a_green_verdict_is_a_check_of_its_commit(green: Verdict, server: GitHubServer, tmp_path: Path) -> None:
    address = publish(green, server, around(tmp_path))
    (made,) = server.runs.values()
    assert address == made["html_url"]
    assert (made["name"], made["head_sha"]) == ("Replay Parity report (test)", SHA)
    assert (made["status"], made["conclusion"]) == ("completed", "success")
    assert made["external_id"] == "replay-parity/test"
    assert made["details_url"] == f"{SERVER}/{REPOSITORY}/actions/runs/{RUN}"


def test_a_second_time_is_the_same_check(green: Verdict, red: Verdict, server: GitHubServer, tmp_path: Path) -> None:
    publish(red, server, around(tmp_path))
    publish(green, server, around(tmp_path))
    (made,) = server.runs.values()
    assert made["conclusion"] == "success"


@pytest.mark.parametrize(("advisory", "conclusion"), [(False, "failure"), (True, "neutral")])
def test_a_red_verdict(red: Verdict, server: GitHubServer, tmp_path: Path, advisory: bool, conclusion: str) -> None:
    publish(edited(red, advisory=advisory), server, around(tmp_path))
    assert server.runs[1]["conclusion"] == conclusion


def test_what_github_refuses_is_told_and_raises_nothing(green: Verdict, server: GitHubServer, tmp_path: Path) -> None:
    server.fail(status=403, message="Resource not accessible by integration", method="POST", times=9)
    told = Told()
    assert publish(green, server, around(tmp_path), told) is None
    (notice,) = told.notices
    assert notice.startswith("the check run could not be published completely: ")
    assert "read-only" in notice


def test_without_a_plan_there_is_no_commit(server: GitHubServer, tmp_path: Path) -> None:
    none = Verdict(tool_version="0", verdict="ERROR", exit_code=2, problems=("no",))
    told = Told()
    assert publish(none, server, around(tmp_path), told) is None
    assert told.notices[0].startswith("no plan was made")
    assert server.seen == []


@pytest.mark.parametrize("event", ["workflow_dispatch", "schedule", "repository_dispatch"])
def test_a_manual_campaign_publishes_nothing(green: Verdict, server: GitHubServer, tmp_path: Path, event: str) -> None:
    told = Told()
    manual = edited(green, origin=origin(event=event).model_dump())
    assert publish(manual, server, around(tmp_path, event), told) is None
    assert told.notices[0].startswith("a manual campaign belongs to no change")
    assert server.seen == []


# --- a verdict that is not what it says


_NAMES = [("PASS", 0), ("PASS_WITH_SEMANTIC_EXCEPTIONS", 0), ("FAIL", 1), ("ERROR", 2), ("ERROR", 3), ("PASS", 1)]


@pytest.mark.parametrize(("name", "exit_code"), _NAMES)
def test_the_name_follows_from_the_rows(
    red: Verdict, green: Verdict, server: GitHubServer, tmp_path: Path, name: str, exit_code: int
) -> None:
    for found, true in ((red, ("FAIL", 1)), (green, ("PASS", 0))):
        if (name, exit_code) != true:
            with pytest.raises(BadInputError, match=f"the kept verdict says {name}, its rows say {true[0]}"):
                publish(edited(found, verdict=name, exit_code=exit_code), server, around(tmp_path))
    assert server.seen == []


def test_rows_that_were_dropped_or_are_of_another_plan(green: Verdict, server: GitHubServer, tmp_path: Path) -> None:
    with pytest.raises(BadInputError, match="its rows say ERROR"):
        publish(edited(green, rows=[]), server, around(tmp_path))
    with pytest.raises(BadInputError, match="its rows say ERROR"):
        publish(edited(green, rows=[], equal_trees=True, self_compare=True), server, around(tmp_path))
    with pytest.raises(BadInputError, match="it belongs to another plan"):
        publish(edited(green, plan_sha256="9" * 64), server, around(tmp_path))
    with pytest.raises(BadInputError, match="its rows say ERROR"):
        publish(edited(green, problems=["a row is missing"]), server, around(tmp_path))
    assert server.seen == []


def test_a_row_that_was_made_green_by_its_name_only(red: Verdict, server: GitHubServer, tmp_path: Path) -> None:
    rows = [row | {"outcome": "match"} for row in red.model_dump(mode="json")["rows"]]
    forged = edited(red, rows=rows, verdict="PASS", exit_code=0)
    with pytest.raises(BadInputError, match=f"row {ROW} of the kept verdict is refused: its repetitions.*'mismatch'"):
        publish(forged, server, around(tmp_path))
    assert server.seen == []


# --- whose verdict it is


def test_after_another_run_its_verdict_is_published(green: Verdict, server: GitHubServer, tmp_path: Path) -> None:
    pull = server.description.example("pull-request") | {"number": 7, "requested_teams": []}
    pull["head"]["sha"] = SHA
    server.pulls[7] = pull
    judged = edited(green, origin=origin(pull_request=7).model_dump())
    assert publish(judged, server, after(tmp_path)) is not None
    assert (server.runs[1]["head_sha"], server.runs[1]["conclusion"]) == (SHA, "success")


@pytest.mark.parametrize(
    "changes",
    [{"head_sha": "f" * 40}, {"run_id": RUN + 1}, {"server_url": "https://example.com"}, {"repository": "evil/fork"}],
)
def test_after_another_run_no_verdict_of_a_third_one(
    green: Verdict, server: GitHubServer, tmp_path: Path, changes: dict[str, Any]
) -> None:
    forged = edited(green, origin=origin(**changes).model_dump())
    with pytest.raises(BadInputError, match="it is not published"):
        publish(forged, server, after(tmp_path))
    assert server.seen == []


@pytest.mark.parametrize("conclusion", ["failure", "cancelled", None])
def test_a_green_verdict_of_a_run_that_did_not_succeed_is_not_published(
    green: Verdict, server: GitHubServer, tmp_path: Path, conclusion: str | None
) -> None:
    judged = edited(green, origin=origin(pull_request=7).model_dump())
    with pytest.raises(BadInputError, match="green, but its run ended"):
        publish(judged, server, after(tmp_path, conclusion=conclusion))
    assert server.seen == []


@pytest.mark.parametrize("changes", [{"pull_request": None}, {"event": "push"}])
def test_a_verdict_that_hides_its_pull_request_is_not_published(
    green: Verdict, server: GitHubServer, tmp_path: Path, changes: dict[str, Any]
) -> None:
    with pytest.raises(BadInputError, match="it is not published"):
        publish(edited(green, origin=origin(**changes).model_dump()), server, after(tmp_path))
    assert server.seen == []


@pytest.mark.parametrize("payload", [{}, {"workflow_run": None}, {"workflow_run": "x"}, {"workflow_run": {}}])
def test_an_event_that_names_no_run(
    green: Verdict, server: GitHubServer, tmp_path: Path, payload: dict[str, Any]
) -> None:
    with pytest.raises(BadInputError):
        publish(green, server, around(tmp_path, "workflow_run", **payload))
    assert server.seen == []


def test_a_result_of_an_older_commit_is_cancelled_there(green: Verdict, server: GitHubServer, tmp_path: Path) -> None:
    pull = server.description.example("pull-request")
    pull |= {"number": 7, "requested_teams": []}
    pull["head"]["sha"] = "f" * 40
    server.pulls[7] = pull
    publish(edited(green, origin=origin(pull_request=7).model_dump()), server, around(tmp_path))
    assert (server.runs[1]["head_sha"], server.runs[1]["conclusion"]) == (SHA, "cancelled")
    pull["head"]["sha"] = SHA
    publish(edited(green, origin=origin(pull_request=7).model_dump()), server, around(tmp_path))
    assert server.runs[1]["conclusion"] == "success"


@pytest.mark.parametrize("words", [*INJECTIONS, "x" * 100_000])
def test_hostile_words_are_published_or_refused_in_one_sentence(
    red: Verdict, server: GitHubServer, tmp_path: Path, words: str
) -> None:
    forged = edited(
        red,
        campaign=CampaignSummary(name=words, title=words, relationship=words).model_dump(),
        notes=[words],
        files={ROW: words},
    )
    if 0 < len(words) < 200:
        publish(forged, server, around(tmp_path))
        assert server.runs[1]["conclusion"] == "failure"
    else:
        with pytest.raises(BadInputError, match=r"the kept verdict gives no check run: .{5,200}$"):
            publish(forged, server, around(tmp_path))
        assert server.seen == []


# --- the badge


def test_the_badge_is_what_shields_takes(green: Verdict, red: Verdict, tmp_path: Path) -> None:
    where = around(tmp_path, "push", ref="refs/heads/main")
    for found, message in ((green, "pass, 2 rows"), (red, "fail")):
        assert write_badge(found, tmp_path / "out" / "badge.json", around=where)
        document = json.loads((tmp_path / "out" / "badge.json").read_text())
        assert set(document) <= set(SHIELDS)
        assert all(type(value) is SHIELDS[name] for name, value in document.items())
        assert (document["schemaVersion"], document["message"]) == (1, message)
        assert document["label"]


@pytest.mark.parametrize(
    ("event", "ref"),
    [
        ("push", "refs/heads/other"),
        ("push", "refs/heads/main2"),
        ("push", "refs/tags/main"),
        ("push", "main"),
        ("pull_request", "refs/pull/1/merge"),
        ("merge_group", "refs/heads/gh-readonly-queue/main/pr-1"),
        # That one is on the default branch whatever the verdict is about.
        ("workflow_run", "refs/heads/main"),
    ],
)
def test_no_badge_elsewhere(green: Verdict, tmp_path: Path, event: str, ref: str) -> None:
    assert not write_badge(green, tmp_path / "badge.json", around=around(tmp_path, event, ref=ref))
    assert not (tmp_path / "badge.json").exists()


@pytest.mark.parametrize("repository", [None, "x", {}, {"default_branch": None}, {"default_branch": 1}])
def test_no_badge_where_the_default_branch_is_not_known(green: Verdict, tmp_path: Path, repository: Any) -> None:
    where = around(tmp_path, "push", ref="refs/heads/main", repository=repository)
    assert not write_badge(green, tmp_path / "badge.json", around=where)


def test_no_badge_for_a_verdict_that_does_not_follow_from_its_rows(red: Verdict, tmp_path: Path) -> None:
    forged = edited(red, verdict="PASS", exit_code=0)
    with pytest.raises(BadInputError, match="its rows say FAIL"):
        write_badge(forged, tmp_path / "badge.json", around=around(tmp_path, "push", ref="refs/heads/main"))
    assert not (tmp_path / "badge.json").exists()
