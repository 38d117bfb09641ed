"""The plan of an event, made from real clones: whose policy, which two commits, what is refused before any build."""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson
import pytest
from tests.conftest import fenced_environment
from tests.support import policy_repository
from tests.support.github_server import REPOSITORY, GitHubServer, github_server
from tests.support.policy_repository import (
    ADDRESS,
    HOSTED,
    OWN,
    ZERO,
    Consumer,
    Desk,
    clone,
    manual,
    pull_request,
    push,
)
from tests.support.registry import Registry, library
from tests.support.scratch import Scratch

from replay_parity.errors import BadInputError, ManyErrors, ReplayParityError
from replay_parity.github.inputs import Machines
from replay_parity.github.origin import PolicyEdit
from replay_parity.pin.models import GitRevision
from replay_parity.settings import Settings
from replay_parity.stages.github_plan import Planned
from replay_parity.stages.plan import Plan
from replay_parity.stages.plan_folder import PlanFolder


@dataclass(frozen=True)
class World:
    """One history for all tests: `old` and `new` on main, `topic` and `edits` cut at `old`, `release` another base.

    The policy at `old` has the rows red and green, `new` adds the row extra.
    """

    repository: Consumer
    checkout: Scratch
    settings: Settings
    old: str
    new: str
    topic: str
    edits: str
    words: str
    release: str
    stacked: str


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    ground = tmp_path_factory.mktemp("world")
    made = Consumer(ground / "repository")
    for row in ("red", "green"):
        made.row(row)
    made.campaign("red", "green")
    old = made.tiny(source="// old")
    made.row("extra")
    made.campaign("red", "green", "extra")
    new = made.tiny(source="// new")
    made.start("topic", old)
    topic = made.tiny(source="// topic")
    made.start("edits", old)
    made.campaign("green")
    made.row("green", evidence={"pressure": {"kind": "vllm_preemptions", "minimum": 0, "maximum": 1000}})
    made.campaign("green", name="mine")
    (made.folder / policy_repository.POLICY / "rows" / "red.yaml").unlink()
    edits = made.tiny(source="// edits")
    made.start("words", old)
    (made.folder / "README.md").write_text("words\n")
    words = made.commit("another tree, the same engine")
    made.start("release/1.0", old)
    made.campaign("green", title="The campaign of the release")
    release = made.tiny(source="// release")
    made.start("stacked", release)
    stacked = made.tiny(source="// stacked")
    made.git("checkout", "--quiet", "main")
    checkout = clone(made, ground / "checkout", commit=topic)
    settings = Settings.from_environment({"PATH": os.environ["PATH"], **fenced_environment(ground / "fenced")})
    return World(made, checkout, settings, old, new, topic, edits, words, release, stacked)


@pytest.fixture
def desk(world: World, tmp_path: Path) -> Desk:
    return Desk(world.settings, world.checkout.folder, tmp_path / "scratch")


@pytest.fixture
def server(world: World) -> Iterator[GitHubServer]:
    with github_server() as running:
        running.branches |= {"main": world.new, "release/1.0": world.release}
        yield running


@pytest.fixture
def own(tmp_path: Path) -> Consumer:
    """A repository that a test fills for itself."""
    return Consumer(tmp_path / "own")


def put_pull(server: GitHubServer, head: str, base: str, base_ref: str = "main", **changes: Any) -> dict[str, Any]:
    pull = server.description.example("pull-request")
    pull |= {"number": 12, "requested_teams": [], "state": "open"}
    pull["head"]["sha"] = head
    pull["base"] |= {"sha": base, "ref": base_ref}
    server.pulls[12] = pull | changes
    return dict(server.pulls[12])


def desk_of(made: Scratch, tmp_path: Path, *options: str, commit: str) -> Desk:
    """A desk of its own around a new clone."""
    checkout = clone(made, tmp_path / f"clone-{len(list(tmp_path.glob('clone-*')))}", *options, commit=commit)
    return Desk(Settings.from_environment(os.environ), checkout.folder, tmp_path / "scratch")


def commits(plan: Plan) -> tuple[str, str]:
    assert isinstance(plan.baseline, GitRevision)
    assert isinstance(plan.candidate, GitRevision)
    assert {plan.baseline.repository, plan.candidate.repository} == {ADDRESS}
    return plan.baseline.commit, plan.candidate.commit


def rows(plan: Plan) -> list[str]:
    return [planned.id for planned in plan.rows]


def policy(plan: Plan) -> str | None:
    assert plan.origin is not None
    return plan.origin.policy_commit


def refused(desk: Desk, given: Any, *words: str, **options: Any) -> str:
    """Refused as the user's to mend, in one line that holds all the words."""
    with pytest.raises(BadInputError) as caught:
        desk.plan(given, **options)
    text = str(caught.value)
    assert len(text.splitlines()) == 1, text
    for word in words:
        assert word in text
    return text


# Policy and baseline (rule 20)


def test_a_pull_request_is_compared_with_where_it_was_cut(desk: Desk, world: World) -> None:
    plan = desk.plan(pull_request(world.topic, world.old)).plan
    assert commits(plan) == (world.old, world.topic)
    assert (rows(plan), policy(plan)) == (["red", "green"], world.old)
    assert plan.campaign.relationship == "the baseline is an ancestor of the candidate"
    assert not plan.nothing_to_compare
    assert plan.origin is not None
    assert plan.origin.model_dump() == {
        "server_url": policy_repository.SERVER,
        "repository": REPOSITORY,
        "event": "pull_request",
        "run_id": 77,
        "run_attempt": 1,
        "pull_request": 12,
        "base_ref": "main",
        "head_ref": "topic",
        "head_sha": world.topic,
        "from_fork": False,
        "policy_commit": world.old,
        "policy_edits": (),
    }


def test_the_policy_is_that_of_the_bases_newest_head_the_baseline_is_not(
    desk: Desk, world: World, server: GitHubServer
) -> None:
    plan = desk.plan(pull_request(world.topic, world.old), api=server.client()).plan
    assert commits(plan) == (world.old, world.topic)
    assert (rows(plan), policy(plan)) == (["red", "green", "extra"], world.new)


def test_the_event_may_be_newer_than_the_cut(desk: Desk, world: World) -> None:
    plan = desk.plan(pull_request(world.topic, world.new)).plan
    assert commits(plan) == (world.old, world.topic)
    assert policy(plan) == world.new


def test_a_newer_head_that_the_checkout_lacks_leaves_the_events_base(
    desk: Desk, world: World, server: GitHubServer
) -> None:
    server.branches["main"] = "e" * 40
    plan = desk.plan(pull_request(world.topic, world.old), api=server.client()).plan
    assert policy(plan) == world.old


def test_edits_of_the_policy_are_listed_and_change_nothing(desk: Desk, world: World) -> None:
    plain = desk.plan(pull_request(world.topic, world.old)).plan
    plan = desk.plan(pull_request(world.edits, world.old)).plan
    assert plan.rows == plain.rows
    assert (plan.build, plan.campaign) == (plain.build, plain.campaign)
    assert plan.origin is not None
    assert plan.origin.policy_edits == (
        PolicyEdit(path=".replay-parity/campaigns/mine.yaml", change="added"),
        PolicyEdit(path=".replay-parity/campaigns/nightly.yaml", change="changed"),
        PolicyEdit(path=".replay-parity/rows/green.yaml", change="changed"),
        PolicyEdit(path=".replay-parity/rows/red.yaml", change="removed"),
    )
    assert policy(plan) == world.old


def test_what_the_base_did_meanwhile_is_no_edit_of_the_change(desk: Desk, world: World) -> None:
    plan = desk.plan(pull_request(world.topic, world.new)).plan
    assert plan.origin is not None
    assert plan.origin.policy_edits == ()


def test_a_campaign_of_the_change_itself_counts_once_it_is_merged(desk: Desk, world: World) -> None:
    refused(
        desk,
        pull_request(world.edits, world.old),
        "there is no campaign 'mine'",
        ".replay-parity/campaigns/mine.yaml",
        world.old,
        "once it is merged",
        campaign="mine",
    )


def test_another_base_has_another_policy(desk: Desk, world: World, server: GitHubServer) -> None:
    given = pull_request(world.stacked, world.release, base_ref="release/1.0")
    plan = desk.plan(given, api=server.client()).plan
    assert commits(plan) == (world.release, world.stacked)
    assert (rows(plan), plan.campaign.title) == (["green"], "The campaign of the release")


def test_a_built_in_campaign(desk: Desk, world: World) -> None:
    plan = desk.plan(pull_request(world.topic, world.old), campaign="demo").plan
    assert commits(plan) == (world.old, world.topic), "the event's commits, not the campaign's releases"
    assert plan.campaign.name == "demo"
    assert policy(plan) is None
    assert {planned.file for planned in plan.rows} == {None}


def test_files_for_annotations(desk: Desk, own: Consumer, tmp_path: Path, world: World) -> None:
    own.row("mine")
    own.row("other")
    own.campaign("mine", "demo-sglang-aggregated", {"file": "../rows/other.yaml"})
    old, new = own.tiny(source="// 1"), own.tiny(source="// 2")
    plan = desk_of(own, tmp_path, commit=new).plan(pull_request(new, old)).plan
    assert {planned.id: planned.file for planned in plan.rows} == {
        "mine": ".replay-parity/rows/mine.yaml",
        "demo-sglang-aggregated": None,
        "other": ".replay-parity/rows/other.yaml",
    }


# Trusted copies


def test_a_copy_takes_its_base_from_the_api(desk: Desk, world: World, server: GitHubServer) -> None:
    pull = put_pull(server, world.topic, world.old)
    plan = desk.plan(push(ZERO, world.topic, "pull-request/12"), api=server.client()).plan
    assert commits(plan) == (world.old, world.topic)
    assert policy(plan) == world.new
    assert plan.origin is not None
    assert (plan.origin.pull_request, plan.origin.base_ref) == (12, "main")
    assert plan.origin.head_ref == pull["head"]["ref"]
    assert [seen.path.rpartition("/repos")[2] for seen in server.seen] == [
        f"/{REPOSITORY}/pulls/12",
        f"/{REPOSITORY}/git/ref/heads%2Fmain",
    ]


def test_a_copy_of_a_pull_request_to_another_base(desk: Desk, world: World, server: GitHubServer) -> None:
    put_pull(server, world.stacked, world.old, "release/1.0")
    plan = desk.plan(push(world.topic, world.stacked, "pull-request/12"), api=server.client()).plan
    assert commits(plan) == (world.release, world.stacked)
    assert policy(plan) == world.release


def test_a_copy_of_a_forks_code_was_looked_at_by_a_person(desk: Desk, world: World, server: GitHubServer) -> None:
    pull = put_pull(server, world.topic, world.old)
    pull["head"]["repo"]["full_name"] = "somebody/Hello-World"
    plan = desk.plan(push(ZERO, world.topic, "pull-request/12"), api=server.client(), runners=OWN).plan
    assert plan.origin is not None
    assert plan.origin.from_fork


def test_a_stale_copy(desk: Desk, world: World, server: GitHubServer) -> None:
    put_pull(server, world.edits, world.old)
    given = push(ZERO, world.topic, "pull-request/12")
    refused(desk, given, "stale", world.topic, world.edits, "copy the pull request again", api=server.client())


def test_a_copy_of_a_closed_pull_request(desk: Desk, world: World, server: GitHubServer) -> None:
    put_pull(server, world.topic, world.old, state="closed")
    refused(desk, push(ZERO, world.topic, "pull-request/12"), "pull request 12 is closed", api=server.client())


def test_a_copy_without_a_token(desk: Desk, world: World) -> None:
    given = push(ZERO, world.topic, "pull-request/12")
    refused(desk, given, "pull request 12", "'token'", "pull-requests: read")


def test_a_copy_of_no_pull_request(desk: Desk, world: World, server: GitHubServer) -> None:
    with pytest.raises(ReplayParityError, match="404"):
        desk.plan(push(ZERO, world.topic, "pull-request/12"), api=server.client())


# Merge groups, pushes, runs by hand


def merge_group(head: str, base: str) -> Any:
    group = {"head_sha": head, "base_sha": base, "base_ref": "refs/heads/main"}
    return policy_repository.event("merge_group", {"merge_group": group}, sha=head)


def test_a_merge_group_is_judged_by_the_branchs_policy(own: Consumer, tmp_path: Path, server: GitHubServer) -> None:
    own.row("red")
    own.row("green")
    own.campaign("red", "green")
    main = own.tiny(source="// main")
    own.campaign("green")
    ahead = own.tiny(source="// the entry ahead drops a row")
    mine = own.tiny(source="// mine")
    server.branches["main"] = main
    desk = desk_of(own, tmp_path, commit=mine)
    plan = desk.plan(merge_group(mine, ahead), api=server.client()).plan
    assert commits(plan) == (ahead, mine)
    assert (rows(plan), policy(plan)) == (["red", "green"], main)
    assert plan.origin is not None
    assert plan.origin.policy_edits == ()
    # What goes before it is no policy yet, also when the branch's own cannot be found out.
    refused(desk, merge_group(mine, ahead), "needs the API", "'token'", "contents: read")
    server.branches["main"] = "e" * 40
    refused(desk, merge_group(mine, ahead), f"has no commit {'e' * 40}", api=server.client())


def test_a_push_compares_before_with_after(desk: Desk, world: World) -> None:
    plan = desk.plan(push(world.old, world.new)).plan
    assert commits(plan) == (world.old, world.new)
    assert (rows(plan), policy(plan)) == (["red", "green", "extra"], world.new)
    assert plan.origin is not None
    assert (plan.origin.policy_edits, plan.origin.pull_request) == ((), None)


@pytest.mark.parametrize("before", [ZERO, "e" * 40, "edits"])
def test_a_branch_that_is_new_or_was_rewritten_needs_a_baseline(before: str, desk: Desk, world: World) -> None:
    given = push(world.edits if before == "edits" else before, world.topic, "main")
    refused(desk, given, "no baseline", "the input 'baseline'")
    assert commits(desk.plan(given, baseline=world.old).plan) == (world.old, world.topic)


def test_revisions_given_by_hand(desk: Desk, world: World) -> None:
    plan = desk.plan(manual(world.new), baseline="release/1.0", candidate="stacked").plan
    assert commits(plan) == (world.release, world.stacked)
    assert policy(plan) == world.new
    assert commits(desk.plan(manual(world.new), baseline=world.old).plan) == (world.old, world.new)
    refused(desk, manual(world.new), "names no candidate", "'candidate'")
    refused(desk, manual(world.new), "names no baseline", candidate="stacked")
    refused(desk, manual(world.new), "is not an ancestor", "in words", baseline="stacked", candidate="main")
    stated = desk.plan(manual(world.new), baseline="stacked", candidate="main", relationship="two lines of work").plan
    assert stated.campaign.relationship == "two lines of work"
    refused(desk, manual(world.new), "no commit, branch or tag 'nothing'", baseline="nothing", candidate="main")
    refused(desk, manual(world.new), "must be a commit id", baseline="--upload-pack=x", candidate="main")


def test_a_campaign_with_revisions_of_its_own(own: Consumer, tmp_path: Path) -> None:
    """Elsewhere is where its own are; the event's commits are here."""
    elsewhere = Scratch(tmp_path / "elsewhere")
    there = [elsewhere.tiny(source=f"// there {number}") for number in range(2)]
    side = {"git": str(elsewhere.folder)}
    sides: dict[str, Any] = {"baseline": {**side, "revision": there[0]}, "candidate": {**side, "revision": there[1]}}
    own.campaign("demo-vllm-aggregated", **sides, relationship={"stated": "as the campaign says"})
    old, new = own.tiny(source="// 1"), own.tiny(source="// 2")
    desk = desk_of(own, tmp_path, commit=new)
    plan = desk.plan(manual(new)).plan
    assert [side.commit for side in (plan.baseline, plan.candidate)] == there
    assert plan.campaign.relationship == "as the campaign says"
    assert commits(desk.plan(pull_request(new, old)).plan) == (old, new)


def test_one_revision_on_both_sides(desk: Desk, world: World) -> None:
    plan = desk.plan(pull_request(world.topic, world.old), self_compare=True).plan
    assert commits(plan) == (world.topic, world.topic)
    assert plan.equal_trees
    assert not plan.nothing_to_compare, "the check itself is checked"
    assert commits(desk.plan(manual(world.new), self_compare=True).plan) == (world.new, world.new)
    assert commits(desk.plan(manual(world.new), self_compare=True, candidate="topic").plan) == (world.topic,) * 2
    both = {"self_compare": True, "baseline": "main"}
    refused(desk, manual(world.new), "candidate on both sides", "'main'", **both)
    refused(desk, pull_request(world.topic, world.old), "candidate on both sides", **both)


def test_equal_engines_and_equal_trees(desk: Desk, world: World) -> None:
    assert desk.plan(manual(world.new), baseline=world.old, candidate=world.old).plan.nothing_to_compare
    # The tree of the whole repository counts: a workspace file may decide about a build.
    assert not desk.plan(pull_request(world.words, world.old)).plan.nothing_to_compare


@pytest.mark.parametrize("given", ["self_compare", "advisory"])
def test_what_the_plan_takes_over(given: str, desk: Desk, world: World) -> None:
    options: dict[str, Any] = {given: True}
    plan = desk.plan(pull_request(world.topic, world.old), **options).plan
    assert getattr(plan, given)
    assert not getattr(desk.plan(pull_request(world.topic, world.old)).plan, given)


def test_one_digest_for_all_attempts_of_a_run(desk: Desk, world: World) -> None:
    """An earlier attempt's results still count when everything is run again (rule 26)."""
    plans = [desk.plan(pull_request(world.topic, world.old, run_attempt=number)).plan for number in (1, 2)]
    assert plans[0].sha256 == plans[1].sha256
    assert plans[0] != plans[1]
    others = [
        desk.plan(pull_request(world.topic, world.old, run_id=78)).plan,
        desk.plan(pull_request(world.topic, world.old), rows=("red",)).plan,
        desk.plan(pull_request(world.edits, world.old)).plan,
    ]
    assert len({plan.sha256 for plan in (plans[0], *others)}) == 4


# Refusals before anything is read


def test_the_expected_commit(desk: Desk, world: World) -> None:
    given = pull_request(world.topic, world.old)
    assert commits(desk.plan(given, expected_sha=world.topic).plan)[1] == world.topic
    refused(desk, given, "input expected-sha", world.topic, world.edits, expected_sha=world.edits)
    for wrong in (world.topic[:12], world.topic.upper(), "HEAD", f"{world.topic}\n"):
        refused(desk, given, "input expected-sha", "full commit id", expected_sha=wrong)


def test_a_forks_code_meets_no_machine_that_stays(desk: Desk, world: World, tmp_path: Path) -> None:
    given = pull_request(world.topic, world.old, repository="somebody/Hello-World")
    said = refused(
        desk,
        given,
        "comes from a fork",
        "'prod-aisimulate-default-amd64-v1'",
        "pull-request/NUMBER",
        "allow_forks",
        checkout=tmp_path / "nowhere",
    )
    assert "git" not in said.lower().replace("github-hosted", "")
    assert desk.told.steps == [], "nothing was begun"
    assert list(desk.scratch.iterdir()) == []


def test_a_forks_code_on_machines_that_github_hosts_or_the_owner_allows(desk: Desk, world: World) -> None:
    given = pull_request(world.topic, world.old, repository="somebody/Hello-World")
    hosted: dict[str, Any] = {"runners": HOSTED}
    allowed: dict[str, Any] = {"allow_forks": True}
    for options in (hosted, allowed):
        plan = desk.plan(given, **options).plan
        assert commits(plan) == (world.old, world.topic)
        assert plan.origin is not None
        assert plan.origin.from_fork


def test_a_fork_that_is_gone_is_one(desk: Desk, world: World, tmp_path: Path) -> None:
    given = pull_request(world.topic, world.old)
    given.payload["pull_request"]["head"]["repo"] = None
    refused(desk, given, "comes from a fork", checkout=tmp_path / "nowhere")


# Rows and machines


def test_some_rows(desk: Desk, world: World) -> None:
    assert rows(desk.plan(pull_request(world.topic, world.old), rows=("green",)).plan) == ["green"]
    refused(desk, pull_request(world.topic, world.old), "no row 'blue'", "green, red", rows=("green", "blue"))


def test_machines_that_the_workflow_does_not_give(desk: Desk, world: World) -> None:
    given = pull_request(world.topic, world.old)
    refused(desk, given, "input runners", "row red", "'default'", "gives arm64", runners={"arm64": OWN["default"]})
    refused(desk, given, "input runners", "gives none", runners={})


def test_rows_on_several_machines(own: Consumer, tmp_path: Path) -> None:
    for row in ("both", "one", "default"):
        own.row(row)
    items = ["both", {"name": "one", "runners": ["arm64"]}, {"name": "default", "runners": ["default", "amd64"]}]
    own.campaign(*items, runners=["amd64", "arm64"])
    old, new = own.tiny(source="// 1"), own.tiny(source="// 2")
    desk = desk_of(own, tmp_path, commit=new)
    machines = {name: Machines(labels=(name,)) for name in ("amd64", "arm64", "default")}
    plan = desk.plan(pull_request(new, old), runners=machines).plan
    assert rows(plan) == ["both@amd64", "both@arm64", "one@arm64", "default", "default@amd64"]
    assert [planned.runner for planned in plan.rows] == ["amd64", "arm64", "arm64", "default", "amd64"]
    one, other = plan.rows[:2]
    assert one.sha256 == other.sha256, "where it runs does not decide about a result"
    del machines["default"]
    refused(desk, pull_request(new, old), "row default", "gives amd64, arm64", runners=machines)


# Checkouts


def test_a_full_clone_with_branches_of_its_own(world: World, tmp_path: Path) -> None:
    folder = tmp_path / "full"
    world.repository.git("clone", "--quiet", f"file://{world.repository.folder}", str(folder))
    desk = Desk(Settings.from_environment(os.environ), folder, tmp_path / "scratch")
    assert commits(desk.plan(pull_request(world.topic, world.old)).plan) == (world.old, world.topic)
    assert commits(desk.plan(manual(world.new), baseline="release/1.0", candidate="stacked").plan)[1] == world.stacked


@pytest.mark.parametrize("kind", ["pull_request", "push", "copy"])
def test_a_shallow_checkout(kind: str, world: World, server: GitHubServer, tmp_path: Path) -> None:
    desk = desk_of(world.repository, tmp_path, "--depth=1", "--branch=topic", commit=world.topic)
    given = {
        "pull_request": pull_request(world.topic, world.old),
        "push": push(world.old, world.topic),
        "copy": push(ZERO, world.topic, "pull-request/12"),
    }[kind]
    put_pull(server, world.topic, world.old)
    refused(desk, given, "fetch-depth: 0", api=server.client() if kind == "copy" else None)


def test_a_checkout_that_is_none(desk: Desk, world: World, tmp_path: Path) -> None:
    (tmp_path / "plain").mkdir()
    for folder in (tmp_path / "plain", tmp_path / "nowhere"):
        refused(desk, pull_request(world.topic, world.old), "is not a git repository", checkout=folder)


def test_a_change_that_the_checkout_does_not_have(desk: Desk, world: World) -> None:
    refused(desk, pull_request("e" * 40, world.old), f"has no commit {'e' * 40}")


# Hostile policies


def planned_of(own: Consumer, tmp_path: Path) -> tuple[Desk, Any]:
    """A desk, and a pull request on top of what was written."""
    old, new = own.tiny(source="// 1"), own.tiny(source="// 2")
    return desk_of(own, tmp_path, commit=new), pull_request(new, old)


@pytest.mark.parametrize("where", ["rows/x.yaml", "campaigns/nightly.yaml", "rows", ""])
def test_a_policy_with_a_link(where: str, own: Consumer, tmp_path: Path) -> None:
    link = own.folder / policy_repository.POLICY / where if where else own.folder / policy_repository.POLICY
    if where:
        own.write("campaigns/other.yaml", "x")
        link.parent.mkdir(exist_ok=True)
    link.symlink_to("/etc")
    desk, given = planned_of(own, tmp_path)
    refused(desk, given, ".replay-parity")


def test_a_policy_with_a_huge_file(own: Consumer, tmp_path: Path) -> None:
    own.campaign("demo-vllm-aggregated")
    own.write("rows/huge.yaml", "x" * ((64 << 20) + 1))
    refused(*planned_of(own, tmp_path), "at most", "bytes")


def test_a_bomb_in_the_policy(own: Consumer, tmp_path: Path) -> None:
    own.write("campaigns/nightly.yaml", "a: &a [x]\nb: [*a, *a]\n")
    desk, given = planned_of(own, tmp_path)
    assert refused(desk, given, "anchors are refused").startswith(".replay-parity/campaigns/nightly.yaml:")


def test_a_broken_policy_is_told_by_the_repositorys_own_paths(own: Consumer, tmp_path: Path) -> None:
    own.campaign("nothing", {"file": "../rows/missing.yaml"}, "bad")
    own.row("bad", title=1)
    desk, given = planned_of(own, tmp_path)
    with pytest.raises(ManyErrors) as caught:
        desk.plan(given)
    lines = str(caught.value).splitlines()
    assert len(lines) == 3
    assert str(tmp_path) not in str(caught.value)
    assert any(line.startswith(".replay-parity/rows/bad.yaml:") for line in lines)
    assert any(line.endswith("there is no file .replay-parity/rows/missing.yaml") for line in lines)


def test_a_row_outside_of_the_policy(own: Consumer, tmp_path: Path) -> None:
    """The checkout's files are the change's; no path leads there."""
    own.row("mine")
    outside = tmp_path / "mine.yaml"
    outside.write_bytes((own.folder / policy_repository.POLICY / "rows" / "mine.yaml").read_bytes())
    own.campaign({"file": str(outside)})
    desk, given = planned_of(own, tmp_path)
    refused(desk, given, "mine lies outside of the policy", ".replay-parity/campaigns/nightly.yaml")


# What travels


FROZEN_TRACE = b'{"timestamp": 0, "input_length": 4, "output_length": 2, "hash_ids": [1]}\n'


def frozen_row(name: str, trace: str) -> dict[str, Any]:
    sha256 = hashlib.sha256(FROZEN_TRACE).hexdigest()
    return {
        "row_name": name,
        "trace_file": trace,
        "trace_sha256": sha256,
        "trace_rows": 1,
        "trace_block_size": 512,
        "trace_upstream_repository": f"of-{name}",
        "trace_upstream_commit": "a" * 40,
        "trace_upstream_path": "trace.jsonl",
        "trace_full_sha256": sha256,
        "trace_full_rows": 1,
        "spec": {
            "topology": {"kind": "aggregated", "workers": {"initial_workers": 1}},
            "engine": {"rank": {"backend": "vllm", "num_gpu_blocks": 2112, "block_size": 64}},
            "requests": [],
        },
    }


def test_the_patch_and_the_policys_own_traces_travel(own: Consumer, tmp_path: Path) -> None:
    patch = b"--- a/x\n+++ b/x\n"
    outside = tmp_path / "outside.jsonl"
    outside.write_bytes(FROZEN_TRACE)
    for name, trace in (("inside", "../traces/t.jsonl"), ("outside", str(outside)), ("absent", "nowhere.jsonl")):
        own.write(f"rows/{name}.json", orjson.dumps(frozen_row(name, trace)).decode())
    own.write("traces/t.jsonl", FROZEN_TRACE.decode())
    own.write("campaigns/x.patch", patch.decode())
    build = {**policy_repository.BUILD, "patch": {"file": "x.patch", "sha256": hashlib.sha256(patch).hexdigest()}}
    own.campaign("inside", "outside", "absent", build=build)
    desk, given = planned_of(own, tmp_path)
    planned = desk.plan(given)
    folder = PlanFolder(tmp_path / "plan")
    planned.keep(folder)
    assert folder.read() == planned.plan
    assert folder.patch is not None
    assert folder.patch.read_bytes() == patch
    corpus = next(item.corpus.name for item in planned.plan.rows if item.row.name == "inside")
    assert {path.name: path.read_bytes() for path in folder.traces.iterdir()} == {f"{corpus}.jsonl": FROZEN_TRACE}


def test_a_patch_that_is_another(own: Consumer, tmp_path: Path) -> None:
    own.write("campaigns/x.patch", "x")
    build = {**policy_repository.BUILD, "patch": {"file": "x.patch", "sha256": "0" * 64}}
    own.campaign("demo-vllm-aggregated", build=build)
    refused(*planned_of(own, tmp_path), "the patch has SHA-256", "0" * 64)


def test_a_plan_without_a_patch_or_traces(desk: Desk, world: World) -> None:
    planned: Planned = desk.plan(pull_request(world.topic, world.old))
    assert (planned.patch, dict(planned.traces)) == (None, {})


def test_the_checkout_is_only_read(desk: Desk, world: World) -> None:
    (world.checkout.core / "src" / "lib.rs").write_text("// not committed")
    before = world.checkout.git("status", "--porcelain"), world.checkout.git("for-each-ref")
    desk.plan(pull_request(world.topic, world.old))
    assert (world.checkout.git("status", "--porcelain"), world.checkout.git("for-each-ref")) == before
    world.checkout.git("checkout", "--quiet", "--", ".")


def test_a_release_on_one_side_needs_words(world: World, tmp_path: Path) -> None:
    """A release comes by real cargo, from a registry of our own."""
    settings = Settings.from_environment({**os.environ, "CARGO_NET_OFFLINE": "false"})
    registry = Registry(tmp_path / "registry")
    home = Path(settings.tool_environment["CARGO_HOME"])
    home.mkdir(parents=True)
    (home / "config.toml").write_text(registry.configuration)
    desk = Desk(settings, world.checkout.folder, tmp_path / "scratch")
    with contextlib.closing(registry):
        registry.publish("aisimulate-core", "1.2.3", library("aisimulate-core", "1.2.3", "// a release"))
        names = ("crate:1.2.3", "main")
        for baseline, candidate in (names, names[::-1]):
            sides: dict[str, Any] = {"baseline": baseline, "candidate": candidate}
            refused(desk, manual(world.new), "releases carry no history", "in words", **sides)
            plan = desk.plan(manual(world.new), relationship="a release and main", **sides).plan
            assert {plan.baseline.kind, plan.candidate.kind} == {"crate", "git"}
            assert plan.campaign.relationship == "a release and main"
