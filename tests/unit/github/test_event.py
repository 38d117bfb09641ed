"""Events to changes: what GitHub sends, what a hostile name or payload tries, and one sentence for every refusal."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from replay_parity.errors import BadInputError
from replay_parity.github.event import Change, Event, change_of

HEAD, BASE, MERGE = "a" * 40, "b" * 40, "c" * 40
ZERO = "0" * 40
REPOSITORY = "consumer/aisimulate"
HOSTILE_REFS = [
    "",
    "-x",
    "--upload-pack=x",
    "a..b",
    "a b",
    "a\nb",
    "a\x00b",
    "a\x7fb",
    "a@{1}",
    "a.lock",
    "a/",
    "/a",
    "a//b",
    ".a",
    "a/.b",
    "a.",
    "@",
    "a\\b",
    "a:b",
    "a^",
    "a~1",
    "a*",
    "a\u202eb",
    "a\u2028b",
    "\udcff",
    "x" * 1025,
]
HOSTILE_SHAS = [
    "",
    "HEAD",
    "a" * 39,
    "a" * 41,
    "A" * 40,
    f"{HEAD}\n",
    f"\n{HEAD}",
    "--upload-pack=x",
    "refs/heads/main",
    f"{HEAD}^{{tree}}",
    "\u0661" * 40,
]


def event(name: str, payload: dict[str, Any], **changes: Any) -> Event:
    fields: dict[str, Any] = {
        "name": name,
        "repository": REPOSITORY,
        "server_url": "https://example.invalid",
        "ref": "refs/heads/main",
        "sha": MERGE,
        "run_id": 1,
        "run_attempt": 1,
        "payload": payload,
    }
    return Event(**(fields | changes))


def pull_request(**head: Any) -> dict[str, Any]:
    """What matters of GitHub's payload, and something that does not."""
    return {
        "action": "synchronize",
        "number": 12,
        "pull_request": {
            "number": 12,
            "head": {"sha": HEAD, "ref": "topic", "repo": {"full_name": REPOSITORY, "fork": False}, **head},
            "base": {"sha": BASE, "ref": "release/1.0", "repo": {"full_name": REPOSITORY}},
            "draft": True,
        },
    }


def push(ref: str, before: str = BASE, **payload: Any) -> Event:
    # GitHub sends the commits of a copy as an empty list.
    return event("push", {"ref": ref, "before": before, "after": HEAD, "commits": [], **payload}, ref=ref, sha=HEAD)


def merge_group(**changes: Any) -> dict[str, Any]:
    group = {"head_sha": HEAD, "head_ref": "refs/heads/gh-readonly-queue/main/pr-12", "base_sha": BASE}
    return {"action": "checks_requested", "merge_group": {**group, "base_ref": "refs/heads/main", **changes}}


def refusal(given: Event) -> str:
    """The one sentence, which says where."""
    with pytest.raises(BadInputError) as caught:
        change_of(given)
    assert caught.value.where
    text = str(caught.value)
    assert len(text.splitlines()) == 1, text
    assert text.isprintable(), ascii(text)
    return text


def test_a_pull_request_of_the_repository_itself() -> None:
    assert change_of(event("pull_request", pull_request(), ref="refs/pull/12/merge")) == Change(
        kind="pull_request",
        head_sha=HEAD,
        head_ref="topic",
        base_ref="release/1.0",
        base_sha=BASE,
        pull_request=12,
        from_fork=False,
    )


@pytest.mark.parametrize(
    ("repo", "is_fork"),
    [
        ({"full_name": REPOSITORY.upper()}, False),
        ({"full_name": "somebody/aisimulate"}, True),
        ({"full_name": f"{REPOSITORY}-2"}, True),
        ({"full_name": "aisimulate/consumer"}, True),
        (None, True),
    ],
)
def test_a_fork_is_told_by_its_name_and_a_deleted_one_is_one(repo: Any, is_fork: bool) -> None:
    assert change_of(event("pull_request", pull_request(repo=repo))).from_fork is is_fork


def test_a_payload_that_names_no_repository_of_the_head_is_a_fork() -> None:
    payload = pull_request()
    del payload["pull_request"]["head"]["repo"]
    assert change_of(event("pull_request", payload)).from_fork


@pytest.mark.parametrize(
    "name", ["topic", "fix(core)/a+b", "dependabot/npm_and_yarn/@types/node-1.2", "größe", "a#1", "a,b=c", "修正"]
)
def test_branches_that_people_do_make(name: str) -> None:
    assert change_of(event("pull_request", pull_request(ref=name))).head_ref == name
    assert change_of(push(f"refs/heads/{name}")).base_ref == name


def test_a_privileged_event_is_refused() -> None:
    said = refusal(event("pull_request_target", pull_request()))
    assert "token that can write" in said
    assert "pull-request" in said or "pull_request" in said


@pytest.mark.parametrize("name", ["issue_comment", "workflow_run", "release", "", "push\n::error::x"])
def test_an_event_that_nothing_is_known_for(name: str) -> None:
    assert "workflow_dispatch" in refusal(event(name, {}))


def test_a_push_to_a_copy() -> None:
    assert change_of(push("refs/heads/pull-request/12", ZERO)) == Change(kind="copy", head_sha=HEAD, pull_request=12)
    # The base comes from the API alone, whatever the branch held before.
    assert change_of(push("refs/heads/pull-request/12")).base_sha is None


@pytest.mark.parametrize(
    "rest",
    [
        "12;rm",
        "-x",
        "0012",
        "0",
        "",
        "1%0a2",
        "1\n2",
        "12\n",
        "1/2",
        "12/",
        "1 2",
        "+1",
        "1.0",
        "1e3",
        "0x1",
        "\u0661\u0662",
        "²",
        "9" * 11,
        "9" * 5000,
        "$(id)",
        "12::error::x",
    ],
)
def test_hostile_names_of_copies(rest: str) -> None:
    assert "holds no number of a pull request" in refusal(push(f"refs/heads/pull-request/{rest}"))


@pytest.mark.parametrize(
    "ref", ["refs/heads/my/pull-request/12", "refs/heads/pull-request", "refs/heads/Pull-Request/12"]
)
def test_other_branches_are_no_copies(ref: str) -> None:
    assert change_of(push(ref)).kind == "push"


@pytest.mark.parametrize("name", ["main", "release/1.0"])
def test_a_push_to_a_branch(name: str) -> None:
    assert change_of(push(f"refs/heads/{name}")) == Change(
        kind="push", head_sha=HEAD, head_ref=name, base_ref=name, base_sha=BASE
    )
    assert change_of(push(f"refs/heads/{name}", ZERO)).base_sha is None, "a new branch was nothing before"
    assert change_of(push(f"refs/heads/{name}", "0" * 64)).base_sha is None


@pytest.mark.parametrize("ref", ["refs/heads/main", "refs/heads/pull-request/12"])
def test_a_deleted_branch_holds_nothing(ref: str) -> None:
    assert "was deleted" in refusal(push(ref, deleted=True, after=ZERO))


@pytest.mark.parametrize("ref", ["refs/tags/v1", "refs/pull/1/merge", "main", "refs/notes/x", "refs/headsx/main", "\n"])
def test_a_push_of_something_else_than_a_branch(ref: str) -> None:
    assert "no base to compare with" in refusal(push(ref))


def test_a_merge_group() -> None:
    assert change_of(event("merge_group", merge_group())) == Change(
        kind="merge_group", head_sha=HEAD, base_ref="main", base_sha=BASE
    )


@pytest.mark.parametrize("name", ["workflow_dispatch", "schedule", "repository_dispatch"])
def test_a_run_without_a_change(name: str) -> None:
    assert change_of(event(name, {"inputs": None})) == Change(kind="manual", head_sha=MERGE)


@pytest.mark.parametrize("ref", HOSTILE_REFS)
def test_hostile_branches(ref: str) -> None:
    payload = pull_request(ref=ref)
    assert "/pull_request/head/ref" in refusal(event("pull_request", payload))
    payload = pull_request()
    payload["pull_request"]["base"]["ref"] = ref
    assert "/pull_request/base/ref" in refusal(event("pull_request", payload))
    assert "/merge_group/base_ref" in refusal(event("merge_group", merge_group(base_ref=f"refs/heads/{ref}")))
    refusal(push(f"refs/heads/{ref}"))


@pytest.mark.parametrize("sha", HOSTILE_SHAS)
def test_hostile_commit_ids(sha: str) -> None:
    assert "/pull_request/head/sha" in refusal(event("pull_request", pull_request(sha=sha)))
    payload = pull_request()
    payload["pull_request"]["base"]["sha"] = sha
    assert "/pull_request/base/sha" in refusal(event("pull_request", payload))
    assert "/merge_group/head_sha" in refusal(event("merge_group", merge_group(head_sha=sha)))
    assert "/merge_group/base_sha" in refusal(event("merge_group", merge_group(base_sha=sha)))
    assert "/before" in refusal(push("refs/heads/main", sha))
    assert "GITHUB_SHA" in refusal(event("workflow_dispatch", {}, sha=sha))


@pytest.mark.parametrize("number", [0, -1, True, "12", 1.0, None, 10**10, "12;rm", [12]])
def test_hostile_numbers(number: Any) -> None:
    payload = pull_request()
    payload["pull_request"]["number"] = number
    assert "/pull_request/number" in refusal(event("pull_request", payload))


@pytest.mark.parametrize("name", ["", "aisimulate", "a/b/c", "a b/c", "a/b\n", "../x/y", "a/" + "b" * 101])
def test_hostile_names_of_the_repository(name: str) -> None:
    assert "OWNER/NAME" in refusal(event("push", {}, repository=name))


def test_no_refusal_shows_the_payload() -> None:
    payload = pull_request(sha="ghs_secretLikeValue")
    assert "ghs_" not in refusal(event("pull_request", payload))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8) | st.sampled_from([HEAD, ZERO]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
NAMES = st.sampled_from(["pull_request", "pull_request_target", "push", "merge_group", "workflow_dispatch", "x"])
PLACES = [
    ("pull_request",),
    ("pull_request", "number"),
    *(("pull_request", end, key) for end in ("head", "base") for key in ("sha", "ref", "repo")),
    ("pull_request", "head", "repo", "full_name"),
    ("merge_group",),
    *(("merge_group", key) for key in ("head_sha", "base_sha", "base_ref")),
    ("before",),
    ("deleted",),
]


def settled(given: Event) -> None:
    """A change of safe parts, or the one kind of refusal."""
    try:
        change = change_of(given)
    except BadInputError:
        return
    assert {len(sha) for sha in (change.head_sha, change.base_sha) if sha is not None} <= {40, 64}
    for name in (change.head_ref, change.base_ref):
        assert name is None or (name.isprintable() and not name.startswith("-") and ".." not in name)


@given(NAMES, st.dictionaries(st.sampled_from(["pull_request", "merge_group", "before", "deleted"]) | st.text(), JSON))
def test_any_payload_gives_a_change_or_a_refusal(name: str, payload: dict[str, Any]) -> None:
    settled(event(name, payload))


@given(NAMES, st.sampled_from(PLACES), JSON, st.text(max_size=40))
def test_a_payload_that_is_wrong_in_one_place(name: str, place: tuple[str, ...], value: Any, ref: str) -> None:
    payload = copy.deepcopy({**pull_request(), **merge_group(), "before": BASE})
    inner: Any = payload
    for key in place[:-1]:
        inner = inner[key]
    inner[place[-1]] = value
    settled(event(name, payload, ref=f"refs/heads/{ref}"))
