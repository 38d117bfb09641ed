"""Publishing a check run against a GitHub of this machine that keeps state as GitHub does."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import requests
from tests.support.github_server import REPOSITORY, SHA, TOKEN, Fault, GitHubServer, github_server

from replay_parity.errors import InfrastructureError
from replay_parity.github.check_run import Annotation, CheckRun
from replay_parity.github.transport import Limits
from replay_parity.publish.checks import Published, publish_check

NEWER = "f" * 40
URL = f"https://github.com/{REPOSITORY}/runs/1"
LIMIT = 65_535
CHARACTERS = {1: "a", 2: "é", 3: "€", 4: "😀"}


@pytest.fixture
def server() -> Iterator[GitHubServer]:
    with github_server() as running:
        yield running


def remarks(count: int) -> tuple[Annotation, ...]:
    return tuple(
        Annotation(
            path="configs/rows/vllm.yaml",
            start_line=number + 1,
            end_line=number + 1,
            level="failure",
            title="mismatch",
            message=f"row {number} differs",
            raw_details="-1\n+2" if number % 2 else None,
        )
        for number in range(count)
    )


def a_check(count: int = 0, **changes: Any) -> CheckRun:
    values: dict[str, Any] = {
        "name": "replay-parity",
        "head_sha": SHA,
        "external_id": "run-1/demo",
        "conclusion": "failure",
        "title": "FAIL: 1 of 4 rows differs",
        "summary": "| row | outcome |\n|---|---|\n| vllm | mismatch |",
        "annotations": remarks(count),
    }
    return CheckRun(**{**values, **changes})


def check_whole(server: GitHubServer, check: CheckRun, number: int = 1) -> None:
    """One run, finished, with every annotation once, and never finished before."""
    assert list(server.runs) == [number]
    run = server.runs[number]
    assert (run["status"], run["conclusion"]) == ("completed", check.conclusion)
    assert (run["name"], run["head_sha"], run["external_id"]) == (check.name, check.head_sha, check.external_id)
    shown = [annotation["message"] for annotation in server.annotations[number]]
    assert sorted(shown) == sorted(annotation.message for annotation in check.annotations)
    wanted = len(check.annotations)
    assert all(status == "in_progress" or count == wanted for _, status, count in server.history)


def batches(server: GitHubServer) -> list[int]:
    writes = [seen for seen in server.seen if seen.method in {"POST", "PATCH"}]
    return [len(seen.document["output"].get("annotations", [])) for seen in writes]


@pytest.mark.parametrize(
    ("count", "sizes"), [(0, [0]), (1, [1]), (49, [49]), (50, [50]), (51, [50, 1]), (120, [50, 50, 20])]
)
def test_annotations_go_in_batches(server: GitHubServer, count: int, sizes: list[int]) -> None:
    check = a_check(count, text="more", details_url="https://ci.example/1")
    assert publish_check(server.client(), check) == Published(URL, "failure", None)
    check_whole(server, check)
    assert batches(server) == sizes
    assert server.runs[1]["output"]["title"] == check.title
    assert server.runs[1]["output"]["summary"] == check.summary
    assert server.runs[1]["output"]["text"] == "more"
    assert server.runs[1]["details_url"] == "https://ci.example/1"
    assert [annotation.get("raw_details") for annotation in server.annotations[1]] == [
        annotation.raw_details for annotation in check.annotations
    ]


@pytest.mark.parametrize("field", ["summary", "text"])
@pytest.mark.parametrize("bytes_each", [1, 2, 3, 4])
@pytest.mark.parametrize("total", [LIMIT - 1, LIMIT, LIMIT + 1, LIMIT + 3, 10 * LIMIT])
def test_texts_are_cut_by_bytes(server: GitHubServer, field: str, bytes_each: int, total: int) -> None:
    # Plain characters first, so that a wide one lies over the boundary.
    text = "x" * (total % bytes_each) + CHARACTERS[bytes_each] * (total // bytes_each)
    assert len(text.encode()) == total
    assert publish_check(server.client(), a_check().model_copy(update={field: text})).problem is None
    shown = server.runs[1]["output"][field]
    if total <= LIMIT:
        assert shown == text
    else:
        assert "This is cut" in shown
        assert LIMIT - 4 <= len(shown.encode()) <= LIMIT


def test_texts_over_githubs_limits_are_cut_in_the_models() -> None:
    annotation = Annotation(
        path="a",
        start_line=1,
        end_line=2,
        level="notice",
        title="t" * 300,
        message="é" * 40_000,
        raw_details="\0\ud800",
    )
    assert len(annotation.title) == 255
    assert len(annotation.message.encode()) <= LIMIT
    assert annotation.raw_details == "\ufffd\ufffd"
    assert a_check(title="a\nb " * 200).title.startswith("a b a b")
    assert len(a_check(title="a\nb " * 200).title) == 255


def test_texts_that_no_json_carries_are_published(server: GitHubServer) -> None:
    assert publish_check(server.client(), a_check(summary="a\ud800b\0")).problem is None
    assert server.runs[1]["output"]["summary"] == "a\ufffdb\ufffd"


@pytest.mark.parametrize(
    "changes", [{"head_sha": "HEAD"}, {"external_id": ""}, {"details_url": "javascript:x"}, {"conclusion": "stale"}]
)
def test_what_is_no_check_run(changes: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="1 validation error"):
        a_check(**changes)


def test_a_head_that_moved_makes_it_cancelled(server: GitHubServer) -> None:
    check = a_check(2)
    published = publish_check(server.client(), check, head_now=lambda: NEWER)
    assert published == Published(URL, "cancelled", None)
    run = server.runs[1]
    assert (run["head_sha"], run["conclusion"]) == (SHA, "cancelled")
    assert NEWER[:12] in run["output"]["title"]
    assert "out of date" in run["output"]["summary"]
    assert check.title in run["output"]["summary"]


def test_a_head_that_stayed(server: GitHubServer) -> None:
    server.branches["feature/x"] = SHA
    client = server.client()
    published = publish_check(client, a_check(), head_now=lambda: client.branch_head("feature/x"))
    assert published == Published(URL, "failure", None)


def test_a_head_that_cannot_be_read_is_said(server: GitHubServer) -> None:
    client = server.client()
    published = publish_check(client, a_check(), head_now=lambda: client.branch_head("gone"))
    assert (published.url, published.conclusion) == (URL, "failure")
    assert published.problem is not None
    assert "the head of the branch could not be read again" in published.problem
    assert "contents: read" in published.problem


@pytest.mark.parametrize("count", [0, 1, 50, 120])
def test_a_second_publication_updates_the_first(server: GitHubServer, count: int) -> None:
    publish_check(server.client(), a_check(count, conclusion="failure"))
    check = a_check(count, conclusion="success", title="PASS", summary="all equal")
    assert publish_check(server.client(), check) == Published(URL, "success", None)
    check_whole(server, check)
    assert len(server.sent("POST")) == 1
    assert server.runs[1]["output"]["summary"] == "all equal"


def test_a_second_publication_sends_only_what_is_new(server: GitHubServer) -> None:
    publish_check(server.client(), a_check(60))
    server.seen.clear()
    server.history.clear()
    check = a_check(130)
    publish_check(server.client(), check)
    check_whole(server, check)
    assert batches(server) == [50, 20]


def test_the_same_remark_twice_stays_twice(server: GitHubServer) -> None:
    twice = a_check().model_copy(update={"annotations": remarks(1) * 2})
    publish_check(server.client(), a_check(1))
    server.history.clear()
    publish_check(server.client(), twice)
    publish_check(server.client(), twice)
    check_whole(server, twice)


def test_annotations_of_an_earlier_attempt_are_named(server: GitHubServer) -> None:
    publish_check(server.client(), a_check(3))
    publish_check(server.client(), a_check(1, conclusion="success"))
    assert server.runs[1]["output"]["summary"].startswith("_2 annotations of an earlier attempt are still listed")


def test_only_the_own_run_is_updated_and_the_newest_of_several(server: GitHubServer) -> None:
    server.per_page = 2
    own = {"name": "replay-parity", "external_id": "run-1/demo"}
    others = [
        server.run(**own),
        server.run(**own),
        server.run(**{**own, "external_id": "run-2/demo"}),
        server.run(**{**own, "name": "another"}),
        server.run(**own, head_sha=NEWER),
    ]
    before = [{**run, "output": dict(run["output"])} for run in others]
    assert publish_check(server.client(), a_check()).url == f"https://github.com/{REPOSITORY}/runs/2"
    assert [run["id"] for run, old in zip(others, before, strict=True) if run != old] == [2]
    assert len(server.runs) == 5


LOST = {
    "502": Fault(status=502),
    "500": Fault(status=500),
    "timeout": Fault(status=201, hangs=True),
    "cut off": Fault(status=201, body=b'{"id": 1', cut_off=True),
    "no JSON": Fault(status=201, body=b"<html>"),
    "another document": Fault(status=201, body=b"{}"),
    "huge": Fault(status=201, body=b"[" + b" " * 50_000),
}
SMALL = Limits(read_seconds=0.5, body_bytes=40_000)


def lose(server: GitHubServer, kind: str, **how: Any) -> None:
    server.fail(**{**vars(LOST[kind]), **how})


@pytest.mark.parametrize("kind", LOST)
@pytest.mark.parametrize("after_effect", [True, False])
@pytest.mark.parametrize("count", [0, 70])
def test_an_answer_lost_to_a_post_doubles_nothing(
    server: GitHubServer, kind: str, after_effect: bool, count: int
) -> None:
    lose(server, kind, method="POST", after_effect=after_effect)
    check = a_check(count)
    published = publish_check(server.client(SMALL), check)
    assert published == Published(URL, "failure", None)
    check_whole(server, check)
    assert len(server.sent("POST")) == (1 if after_effect else 2)
    assert server.time.slept[0] >= 1


@pytest.mark.parametrize(("kind", "losses"), [("502", 1), ("502", 2), ("502", 4), ("cut off", 2), ("timeout", 1)])
@pytest.mark.parametrize("after_effect", [True, False])
def test_an_answer_lost_to_a_batch_doubles_nothing(
    server: GitHubServer, kind: str, losses: int, after_effect: bool
) -> None:
    lose(server, kind, method="PATCH", after_effect=after_effect, times=losses)
    check = a_check(170)
    assert publish_check(server.client(SMALL), check) == Published(URL, "failure", None)
    check_whole(server, check)


def test_answers_lost_for_good_end_with_a_problem(server: GitHubServer) -> None:
    server.fail(method="POST", status=502, times=100)
    published = publish_check(server.client(), a_check(3))
    assert (published.url, published.conclusion) == (None, "failure")
    assert published.problem is not None
    assert "it answered 502" in published.problem
    assert len(server.sent("POST")) == 5
    assert server.runs == {}


def test_a_run_that_stays_open_is_said(server: GitHubServer) -> None:
    server.fail(method="PATCH", status=502, times=100)
    published = publish_check(server.client(), a_check(60))
    assert (published.url, published.conclusion) == (URL, "failure")
    assert published.problem is not None
    assert "may stay in progress" in published.problem
    assert server.runs[1]["status"] == "in_progress"


@pytest.mark.parametrize("method", ["GET", "POST"])
@pytest.mark.parametrize(
    ("status", "message"),
    [(403, "Resource not accessible by integration"), (404, "Not Found"), (401, "Bad credentials")],
)
def test_a_token_that_may_not_is_a_problem_only(server: GitHubServer, method: str, status: int, message: str) -> None:
    server.fail(method=method, status=status, message=message, times=100)
    published = publish_check(server.client(), a_check())
    assert (published.url, published.conclusion) == (None, "failure")
    assert published.problem is not None
    assert message in published.problem
    assert "forks are read-only" in published.problem
    assert status == 401 or "grant `checks: write`" in published.problem
    assert server.time.slept == []


@pytest.mark.parametrize(
    ("fault", "slept"),
    [
        (Fault(status=403, message="You have exceeded a secondary rate limit", method="POST"), [60]),
        (Fault(status=429, headers={"retry-after": "9"}, method="POST"), [10]),
        (Fault(status=429, headers={"retry-after": "9"}, method="PATCH", times=2), [10, 10]),
        (Fault(status=403, headers={"x-ratelimit-remaining": "0", "x-ratelimit-reset": "1800000500"}), [501]),
    ],
)
def test_rate_limits_are_waited_for(server: GitHubServer, fault: Fault, slept: list[float]) -> None:
    server.faults.append(fault)
    check = a_check(60)
    assert publish_check(server.client(), check) == Published(URL, "failure", None)
    check_whole(server, check)
    assert server.time.slept == slept


def test_a_rate_limit_that_lasts_is_a_problem_only(server: GitHubServer) -> None:
    server.fail(method="POST", status=403, headers={"x-ratelimit-remaining": "0", "x-ratelimit-reset": "1800003600"})
    published = publish_check(server.client(), a_check())
    assert (published.url, published.conclusion) == (None, "failure")
    assert published.problem is not None
    assert "rate limit lasts longer" in published.problem


def test_a_refusal_has_githubs_own_words(server: GitHubServer) -> None:
    server.fail(method="POST", status=422, message="No commit found for SHA: 0123", times=100)
    published = publish_check(server.client(), a_check(2))
    assert (published.url, published.conclusion) == (None, "failure")
    assert published.problem is not None
    assert published.problem.count("No commit found for SHA: 0123") == 1


def test_annotations_that_are_refused_do_not_take_the_check_along(server: GitHubServer) -> None:
    server.fail(method="PATCH", status=422, message="Invalid request. annotations/3 is bad")
    published = publish_check(server.client(), a_check(60))
    assert (published.url, published.conclusion) == (URL, "failure")
    assert published.problem is not None
    assert "annotations/3 is bad" in published.problem
    assert "may stay in progress" not in published.problem
    run = server.runs[1]
    assert (run["status"], run["conclusion"]) == ("completed", "failure")
    assert "GitHub refused some of the 60 annotations" in run["output"]["summary"]
    assert "earlier attempt" not in run["output"]["summary"]


def test_a_head_reader_that_breaks_is_a_problem_only(server: GitHubServer) -> None:
    def broken() -> str:
        raise InfrastructureError("no head")

    published = publish_check(server.client(), a_check(), head_now=broken)
    assert (published.url, published.conclusion) == (URL, "failure")
    assert published.problem == "the head of the branch could not be read again: no head"


def test_the_token_is_in_no_problem(server: GitHubServer) -> None:
    server.fail(method="POST", status=422, message=f"bad {TOKEN}", times=9)
    assert TOKEN not in repr(publish_check(server.client(), a_check()))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"output": {"title": "t", "summary": "é" * 32_768}}, "65536 were supplied"),
        ({"output": {"title": "t", "summary": "", "annotations": [{}] * 51}}, "51 were supplied"),
        ({"status": "completed"}, "conclusion is missing"),
        ({"head_sha": 1}, None),
        ({"colour": "red"}, None),
    ],
)
def test_the_github_of_these_tests_refuses_what_github_refuses(
    server: GitHubServer, change: dict[str, Any], words: str | None
) -> None:
    for annotation in change.get("output", {}).get("annotations", []):
        annotation |= {"path": "a", "start_line": 1, "end_line": 1, "annotation_level": "notice", "message": "m"}
    document = {"name": "x", "head_sha": SHA, **change}
    answer = requests.post(f"{server.api_url}/repos/{REPOSITORY}/check-runs", json=document, timeout=5)
    if words is None:
        assert server.problems
    else:
        assert answer.status_code == 422
        assert words in answer.json()["message"]
    server.problems.clear()
