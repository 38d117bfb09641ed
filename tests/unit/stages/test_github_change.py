"""A change completed by the API, and what is refused of it: forks on machines that stay, unexpected commits."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

import pytest
from tests.support.github_server import GitHubServer, github_server

from replay_parity.errors import BadInputError, RevisionError
from replay_parity.github.event import Change
from replay_parity.github.inputs import Inputs, Machines
from replay_parity.stages.github_change import complete, refuse

HEAD, BASE = "a" * 40, "b" * 40
FORK = Change(kind="pull_request", head_sha=HEAD, base_ref="main", base_sha=BASE, pull_request=12, from_fork=True)
COPY = Change(kind="copy", head_sha=HEAD, pull_request=12)


@pytest.fixture
def server() -> Iterator[GitHubServer]:
    with github_server() as running:
        pull = running.description.example("pull-request")
        pull |= {"number": 12, "requested_teams": [], "state": "open"}
        pull["head"] |= {"sha": HEAD, "ref": "topic"}
        pull["base"] |= {"sha": BASE, "ref": "release/1.0"}
        running.pulls[12] = pull
        yield running


def inputs(*labels: str, **changes: Any) -> Inputs:
    runners = {"default": Machines(labels=("ubuntu-24.04",))}
    if labels:
        # Also a class of machines that no row may need in the end.
        runners["other"] = Machines(labels=labels)
    return Inputs(mode="plan", campaign="nightly", runners=runners, **changes)


@pytest.mark.parametrize(
    "label",
    [
        "ubuntu-latest",
        "ubuntu-slim",
        "ubuntu-24.04",
        "Ubuntu-22.04",
        "ubuntu-24.04-arm",
        "windows-latest",
        "windows-2025",
        "windows-11-arm",
        "macos-latest",
        "macos-15",
        "macos-14-xlarge",
        "macos-15-intel",
    ],
)
def test_machines_that_github_hosts(label: str) -> None:
    refuse(FORK, inputs(label))


@pytest.mark.parametrize(
    "labels",
    [
        ("prod-aisimulate-default-amd64-v1",),
        ("self-hosted",),
        ("ubuntu",),
        ("ubuntu-own-amd64",),
        ("ubuntu-24.04-gpu",),
        ("ubuntu-24.04 ",),
        ("ubuntu-24x04",),
        ("ubuntu-\u0662\u0664.04",),
        ("xubuntu-24.04",),
        ("windows-build-1",),
        ("macos-lab",),
        ("self-hosted", "ubuntu-24.04"),
        ("ubuntu-24.04", "x"),
    ],
)
def test_machines_that_stay_meet_no_forks_code(labels: tuple[str, ...]) -> None:
    with pytest.raises(BadInputError, match="comes from a fork") as caught:
        refuse(FORK, inputs(*labels))
    lasting = next(label for label in labels if label != "ubuntu-24.04")
    assert f"'{lasting}'" in str(caught.value)
    assert "pull-request/NUMBER" in str(caught.value)
    refuse(FORK, inputs(*labels, allow_forks=True))
    refuse(dataclasses.replace(FORK, from_fork=False), inputs(*labels))
    # A person looked at the code before it was copied.
    refuse(dataclasses.replace(FORK, kind="copy"), inputs(*labels))


def test_the_expected_commit() -> None:
    change = Change(kind="manual", head_sha=HEAD)
    refuse(change, inputs(expected_sha=HEAD))
    with pytest.raises(RevisionError, match=f"about commit {HEAD}, {BASE} was expected"):
        refuse(change, inputs(expected_sha=BASE))
    for wrong in (HEAD[:12], HEAD.upper(), "HEAD", f"{HEAD}\n", "a" * 64 + "a", ""):
        with pytest.raises(BadInputError, match="must be a full commit id") as caught:
            refuse(change, inputs(expected_sha=wrong))
        assert caught.value.where == "input expected-sha"


def test_only_a_copy_needs_to_be_completed(server: GitHubServer) -> None:
    for change in (FORK, Change(kind="push", head_sha=HEAD), Change(kind="manual", head_sha=HEAD)):
        assert complete(change, server.client()) is change
        assert complete(change, None) is change
    assert server.seen == []


def test_a_copy_is_completed(server: GitHubServer) -> None:
    found = complete(COPY, server.client())
    assert found == Change(
        kind="copy", head_sha=HEAD, head_ref="topic", base_ref="release/1.0", base_sha=BASE, pull_request=12
    )
    server.pulls[12]["head"]["repo"]["full_name"] = "somebody/else"
    assert complete(COPY, server.client()).from_fork


def test_a_stale_copy(server: GitHubServer) -> None:
    server.pulls[12]["head"]["sha"] = BASE
    server.pulls[12]["state"] = "closed"
    with pytest.raises(RevisionError, match=f"it holds {HEAD}, the head of pull request 12 is {BASE}.*copy the pull"):
        complete(COPY, server.client())


def test_a_copy_of_a_closed_pull_request(server: GitHubServer) -> None:
    server.pulls[12]["state"] = "closed"
    with pytest.raises(RevisionError, match="pull request 12 is closed"):
        complete(COPY, server.client())


def test_a_copy_without_a_token() -> None:
    with pytest.raises(BadInputError, match="'pull-requests: read'"):
        complete(COPY, None)
