"""The client against a GitHub of this machine: every answer that can go wrong, without one real wait."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr, TypeAdapter
from tests.support.github_server import REPOSITORY, SHA, TOKEN, FakeTime, Fault, GitHubServer, github_server, other_host

from replay_parity.errors import BadInputError, InfrastructureError
from replay_parity.github.client import GitHub
from replay_parity.github.failures import PermissionDenied, RateLimited, Unclear
from replay_parity.github.transport import Limits

OTHER = "f" * 40
SHORT = Limits(read_seconds=0.5, attempts=2)


@pytest.fixture
def server() -> Iterator[GitHubServer]:
    with github_server() as running:
        yield running


def put_pull(server: GitHubServer, number: int = 7, **changes: Any) -> dict[str, Any]:
    """GitHub's own example of a pull request, with another head."""
    pull = server.description.example("pull-request")
    pull |= {"number": number, "requested_teams": []}
    pull["head"]["sha"], pull["base"]["sha"] = SHA, OTHER
    pull |= changes
    server.pulls[number] = pull
    return dict(pull)


def put_files(server: GitHubServer, count: int, **last: Any) -> None:
    entry = server.description.example("diff-entry-items")[0]
    server.files[7] = [{**entry, "filename": f"src/{index}.rs"} for index in range(count)]
    server.files[7][-1] |= last


def test_a_pull_request(server: GitHubServer) -> None:
    pull = put_pull(server)
    found = server.client().pull_request(7)
    assert (found.number, found.state, found.draft) == (7, "open", pull["draft"])
    assert (found.head_sha, found.head_ref) == (SHA, pull["head"]["ref"])
    assert (found.base_sha, found.base_ref) == (OTHER, pull["base"]["ref"])
    assert found.head_repository == found.base_repository == "octocat/Hello-World"
    assert not found.is_fork
    assert server.seen[0].authorization == f"Bearer {TOKEN}"


def test_a_fork_and_a_fork_that_was_deleted(server: GitHubServer) -> None:
    pull = put_pull(server)
    pull["head"]["repo"]["full_name"] = "somebody/Hello-World"
    found = server.client().pull_request(7)
    assert found.is_fork
    assert found.head_repository == "somebody/Hello-World"
    pull["head"]["repo"] = None
    server.pulls[8] = {**pull, "number": 8}
    gone = server.client().pull_request(8)
    assert gone.is_fork
    assert gone.head_repository is None
    # The description does not say so, GitHub does it all the same.
    assert [problem for problem in server.problems if "$.head.repo" not in problem] == []
    server.problems.clear()


@pytest.mark.parametrize(
    ("place", "value"),
    [
        (("head", "sha"), "HEAD"),
        (("head", "sha"), SHA.upper()),
        (("head", "sha"), SHA + "\n"),
        (("head", "sha"), "--upload-pack=x"),
        (("head", "ref"), "a\nb"),
        (("head", "ref"), "--help"),
        (("base", "sha"), SHA[:12]),
        (("base", "ref"), "../x"),
        (("base", "repo", "full_name"), "a/b/c"),
        (("state",), "merged?"),
        (("number",), 8),
    ],
)
def test_hostile_values_are_refused(server: GitHubServer, place: tuple[str, ...], value: object) -> None:
    target: Any = put_pull(server)
    for part in place[:-1]:
        target = target[part]
    target[place[-1]] = value
    server.pulls[7] |= {"number": target["number"]} if place == ("number",) else {}
    if place == ("state",):
        server.pulls[7]["state"] = value
    with pytest.raises(InfrastructureError):
        server.client().pull_request(7)
    server.problems.clear()


@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("main", "heads%2Fmain"),
        ("feature/über", "heads%2Ffeature%2F%C3%BCber"),
        ("a?b".replace("?", "%3F"), "heads%2Fa%253Fb"),
        ("a&per_page=1#x", "heads%2Fa%26per_page%3D1%23x"),
        ("$(touch${IFS}x);'\"", "heads%2F%24%28touch%24%7BIFS%7Dx%29%3B%27%22"),
    ],
)
def test_a_branch_name_is_one_part_of_the_address(server: GitHubServer, name: str, path: str) -> None:
    server.branches[name] = SHA
    assert server.client().branch_head(name) == SHA
    assert server.seen[0].path == f"/repos/{REPOSITORY}/git/ref/{path}"
    assert server.seen[0].query == {}


@pytest.mark.parametrize(
    "name", ["", "..", ".", "a/../b", "a b", "a\nb", "x.lock", "/a", "a/", "-a", "a\\b", "a" * 2000]
)
def test_what_no_branch_is_named_is_not_asked_for(server: GitHubServer, name: str) -> None:
    with pytest.raises(BadInputError):
        server.client().branch_head(name)
    assert server.seen == []


def test_another_branch_than_asked_for_is_refused(server: GitHubServer) -> None:
    answer = server.description.example("git-ref")
    answer["object"]["sha"] = SHA
    server.fail(status=200, body=b'{"ref":"refs/heads/other","object":{"type":"commit","sha":"%s"}}' % SHA.encode())
    with pytest.raises(InfrastructureError, match="in place of"):
        server.client().branch_head("main")


def test_a_branch_that_is_not_there(server: GitHubServer) -> None:
    with pytest.raises(PermissionDenied, match="contents: read") as caught:
        server.client().branch_head("gone")
    assert caught.value.status == 404


def test_changed_files_of_all_pages_with_both_names(server: GitHubServer) -> None:
    put_files(server, 250, status="renamed", previous_filename=".replay-parity/campaigns/old.yaml")
    names = server.client().changed_files(7)
    assert names == [*(f"src/{index}.rs" for index in range(250)), ".replay-parity/campaigns/old.yaml"]
    assert len(server.seen) == 3


@pytest.mark.parametrize(("count", "known"), [(2999, True), (3000, False)])
def test_a_list_that_github_cuts_is_no_list(server: GitHubServer, count: int, known: bool) -> None:
    put_files(server, count)
    names = server.client().changed_files(7)
    assert (names is not None) is known


def test_pages_without_end_are_left(server: GitHubServer) -> None:
    link = f'<{server.api_url}/repos/{REPOSITORY}/pulls/7/files?page=2>; rel="next"'
    server.fail(status=200, body=b"[]", headers={"Link": link}, times=1000)
    with pytest.raises(InfrastructureError, match="more than 31 pages"):
        server.client().changed_files(7)


def test_a_next_page_elsewhere_is_not_fetched(server: GitHubServer) -> None:
    other = other_host()
    link = f'<{other.url_for("/x")}>; rel="next"'
    server.fail(status=200, body=b"[]", headers={"Link": link})
    with pytest.raises(InfrastructureError, match="another host"):
        server.client().changed_files(7)
    assert other.log == []


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_a_token_is_not_sent_to_another_host(server: GitHubServer, status: int) -> None:
    other = other_host()
    server.fail(status=status, headers={"Location": other.url_for("/pulls/7")})
    with pytest.raises(InfrastructureError, match="not sent there"):
        server.client().pull_request(7)
    assert other.log == []


def test_a_redirect_out_of_the_api_of_the_same_host_is_not_followed(server: GitHubServer) -> None:
    server.fail(status=302, headers={"Location": "/login"})
    with pytest.raises(InfrastructureError, match="not sent there"):
        server.client().pull_request(7)


def test_a_redirect_within_the_api_is_followed(server: GitHubServer) -> None:
    put_pull(server)
    server.fail(status=301, headers={"Location": f"{server.api_url}/repos/{REPOSITORY}/pulls/7"})
    assert server.client().pull_request(7).number == 7


def test_redirects_without_end(server: GitHubServer) -> None:
    server.fail(status=302, headers={"Location": f"{server.api_url}/repos/{REPOSITORY}/pulls/7"}, times=100)
    with pytest.raises(InfrastructureError, match="too often"):
        server.client().pull_request(7)


@pytest.mark.parametrize("status", [500, 502, 503, 504])
def test_an_outage_that_passes(server: GitHubServer, status: int) -> None:
    put_pull(server)
    server.fail(status=status, times=3)
    assert server.client().pull_request(7).number == 7
    assert server.time.slept == [0, 2, 4]


def test_an_outage_that_stays(server: GitHubServer) -> None:
    server.fail(status=502, times=100)
    with pytest.raises(InfrastructureError, match="it answered 502, 4 times in a row"):
        server.client().pull_request(7)
    assert len(server.seen) == 4


def test_the_time_for_one_request_is_bounded(server: GitHubServer) -> None:
    server.fail(status=502, times=100)
    with pytest.raises(InfrastructureError, match="5 s are over"):
        server.client(Limits(attempts=100, call_seconds=5)).pull_request(7)
    assert sum(server.time.slept) < 5


@pytest.mark.parametrize(
    "fault",
    [
        Fault(status=200, body=b'{"number": 7', cut_off=True),
        Fault(status=200, hangs=True),
        Fault(status=200, body=b"not packed", headers={"Content-Encoding": "gzip"}),
    ],
    ids=["cut off", "timeout", "garbled"],
)
def test_a_lost_answer_is_asked_for_again(server: GitHubServer, fault: Fault) -> None:
    put_pull(server)
    server.faults.append(fault)
    assert server.client(SHORT).pull_request(7).number == 7
    assert len(server.seen) == 2


def test_a_body_that_drips_is_left() -> None:
    with github_server() as server:
        server.fail(status=200, body=b"x" * 10_000, drips=True)
        limits = Limits(read_seconds=1, call_seconds=0.2, attempts=1)
        client = GitHub(server.api_url, None, REPOSITORY, limits=limits)
        with pytest.raises(InfrastructureError, match="it took too long"):
            client.pull_request(7)
        server.released.set()


def test_nobody_listens() -> None:
    time = FakeTime()
    client = GitHub("http://127.0.0.1:9", SecretStr(TOKEN), REPOSITORY, sleep=time.sleep, clock=time.clock)
    with pytest.raises(InfrastructureError, match="the connection failed, 4 times"):
        client.pull_request(7)


def test_a_huge_answer_is_not_read(server: GitHubServer) -> None:
    server.fail(status=200, body=b"[" + b" " * 200_000 + b"]")
    with pytest.raises(InfrastructureError, match="longer than 100,000 bytes"):
        server.client(Limits(body_bytes=100_000)).changed_files(7)


@pytest.mark.parametrize("body", [b"<html>a proxy</html>", b"", b"[]", b"null", b"[" * 100_000])
def test_an_answer_that_is_no_pull_request(server: GitHubServer, body: bytes) -> None:
    server.fail(status=200, body=body)
    with pytest.raises(InfrastructureError, match="not of the form"):
        server.client().pull_request(7)


@pytest.mark.parametrize(
    ("fault", "slept"),
    [
        (Fault(status=429, headers={"retry-after": "30"}), [31]),
        (Fault(status=403, headers={"retry-after": "5", "x-ratelimit-remaining": "0", "x-ratelimit-reset": "1"}), [6]),
        (Fault(status=403, headers={"x-ratelimit-remaining": "0", "x-ratelimit-reset": "1800000100"}), [101]),
        (Fault(status=403, headers={"x-ratelimit-remaining": "0", "x-ratelimit-reset": "1"}), [1]),
        (Fault(status=403, message="You have exceeded a secondary rate limit."), [60]),
        (Fault(status=403, message="You have triggered an abuse detection mechanism.", times=2), [60, 120]),
        (Fault(status=429), [60]),
        (Fault(status=429, headers={"retry-after": "soon"}), [60]),
    ],
)
def test_rate_limits_are_waited_for(server: GitHubServer, fault: Fault, slept: list[float]) -> None:
    put_pull(server)
    server.faults.append(fault)
    assert server.client().pull_request(7).number == 7
    assert server.time.slept == slept


@pytest.mark.parametrize(
    "fault",
    [
        Fault(status=429, headers={"retry-after": "1000"}),
        Fault(status=429, headers={"retry-after": "9999999999"}),
        Fault(status=403, headers={"x-ratelimit-remaining": "0", "x-ratelimit-reset": "1800003600"}),
        Fault(status=403, message="secondary rate limit", times=100),
        Fault(status=429, headers={"retry-after": "0"}, times=100),
    ],
)
def test_waiting_is_bounded(server: GitHubServer, fault: Fault) -> None:
    server.faults.append(fault)
    with pytest.raises(RateLimited, match="longer than the 900 s"):
        server.client().pull_request(7)
    assert sum(server.time.slept) <= 900
    assert len(server.seen) <= 10


def test_a_client_waits_for_all_its_requests_together(server: GitHubServer) -> None:
    put_pull(server)
    server.fail(status=429, headers={"retry-after": "500"}, times=2)
    client = server.client()
    with pytest.raises(RateLimited):
        client.pull_request(7)
    assert server.time.slept == [501]


def test_a_refusal_with_the_last_request_of_the_hour_is_not_waited_for(server: GitHubServer) -> None:
    headers = {"x-ratelimit-remaining": "0", "x-ratelimit-reset": "1800000100"}
    server.fail(status=403, message="Resource not accessible by integration", headers=headers)
    with pytest.raises(PermissionDenied, match="pull-requests: read"):
        server.client().pull_request(7)
    assert server.time.slept == []


def test_a_bad_token(server: GitHubServer) -> None:
    server.fail(status=401, message="Bad credentials")
    with pytest.raises(PermissionDenied, match="missing, wrong or expired"):
        server.client().pull_request(7)


def test_no_token_and_no_password_of_the_home_folder(server: GitHubServer) -> None:
    Path("~/.netrc").expanduser().write_text("machine 127.0.0.1 login a password b\n")
    put_pull(server)
    server.client(token=None).pull_request(7)
    server.client().pull_request(7)
    assert [seen.authorization for seen in server.seen] == [None, f"Bearer {TOKEN}"]


@pytest.mark.parametrize(
    "fault",
    [
        Fault(status=403, message=f"your header was Bearer {TOKEN}", times=100),
        Fault(status=502, message=TOKEN, times=100),
        Fault(status=418, message=TOKEN, times=100),
        Fault(status=200, body=b'{"number": "%s"}' % TOKEN.encode(), times=100),
        Fault(status=200, cut_off=True, times=100),
    ],
)
def test_a_token_is_in_no_message(server: GitHubServer, fault: Fault, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    server.faults.append(fault)
    client = server.client()
    with pytest.raises(InfrastructureError) as caught:
        client.pull_request(7)
    error: BaseException | None = caught.value
    while error is not None:
        assert TOKEN not in str(error) + repr(error) + repr(vars(error))
        error = error.__cause__ or error.__context__
    assert TOKEN not in caplog.text
    for value in (client, *vars(client).values(), *vars(vars(client)["_transport"]).values()):
        assert TOKEN not in repr(value)


@pytest.mark.parametrize("token", ["", "a b", f"{TOKEN}\n", "tökén"])
def test_a_token_that_is_none_is_refused_unnamed(token: str) -> None:
    with pytest.raises(BadInputError) as caught:
        GitHub("https://api.github.com", SecretStr(token), REPOSITORY)
    assert not token or token not in str(caught.value)


@pytest.mark.parametrize(
    "url",
    [
        "http://api.github.com",
        "http://localhost.example.com",
        "http://128.0.0.1",
        "ftp://api.github.com",
        "api.github.com",
        "",
        "https://",
        "https://u:p@api.github.com",
        "https://api.github.com?x=1",
        "https://api.github.com/#x",
        "https://host:port",
    ],
)
def test_addresses_that_would_show_a_token(url: str) -> None:
    with pytest.raises(BadInputError, match="address of GitHub's API"):
        GitHub(url, SecretStr(TOKEN), REPOSITORY)


@pytest.mark.parametrize(
    "url",
    [
        "https://api.github.com",
        "https://ghe.example/api/v3/",
        "http://127.0.0.1:1",
        "http://[::1]:1",
        "http://localhost",
    ],
)
def test_addresses_that_are_fine(url: str) -> None:
    assert repr(GitHub(url, SecretStr(TOKEN), REPOSITORY)) == f"GitHub({url.rstrip('/')!r}, {REPOSITORY!r})"


@pytest.mark.parametrize("repository", ["", "a", "a/b/c", "a/..", "../b", "a/b?x", "a b/c", "a/b\n"])
def test_names_that_are_no_repository(repository: str) -> None:
    with pytest.raises(BadInputError, match="owner/name"):
        GitHub("https://api.github.com", None, repository)


def test_a_write_is_never_repeated_blindly(server: GitHubServer) -> None:
    server.fail(method="POST", status=502)
    with pytest.raises(Unclear, match="it answered 502"):
        server.client().write(
            "POST", "/check-runs", {"name": "x", "head_sha": SHA}, TypeAdapter(dict[str, Any]), needs="checks: write"
        )
    assert len(server.seen) == 1
    assert server.time.slept == []
