"""What a verdict leaves for people: a summary with a command that works, annotations that break out of nothing."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import click
import pytest
from tests.support.hostile import INJECTIONS, hostile_verdict
from tests.support.run_folder import ROW, good_run, make_plan, planned_row, revision
from tests.support.verdicts import row, verdict

from replay_parity.campaign.loading import load_campaign
from replay_parity.campaign.sources import CrateSource, GitSource
from replay_parity.cli.main import cli
from replay_parity.github.origin import Origin
from replay_parity.github.surroundings import Surroundings
from replay_parity.parity.verdict import CampaignSummary, Verdict
from replay_parity.pin.models import CrateRevision, GitRevision, Revision
from replay_parity.pin.resolve import ANCESTRY, check_relationship
from replay_parity.stages.compared import Asked, choose
from replay_parity.stages.report import report

GIT, OTHER = revision("a"), revision("b")
BRANCH = OTHER.model_copy(update={"asked": "main", "asked_as": "branch"})
CRATE = CrateRevision(
    crate="aisimulate-core", asked="0.12.1", version="0.12.1", checksum="c" * 64, commit=None, dirty=False
)
NEXT = CRATE.model_copy(update={"asked": "1.0.0-rc.1+build.5", "version": "1.0.0-rc.1+build.5"})
ORIGIN = Origin(
    server_url="https://github.com",
    repository="octocat/Hello-World",
    event="pull_request",
    run_id=1,
    run_attempt=1,
    head_sha="b" * 40,
)


def red(baseline: Revision, candidate: Revision, *, stated: str = ANCESTRY, **changes: Any) -> Verdict:
    """A verdict with one red row."""
    fields: dict[str, Any] = {
        "verdict": "FAIL",
        "exit_code": 1,
        "baseline": baseline,
        "candidate": candidate,
        "campaign": CampaignSummary(name="conversation", title="t", relationship=stated),
    }
    return verdict(row(outcome="mismatch", reason="they differ"), **(fields | changes))


def command_in(folder: Path) -> list[str]:
    """The words of the one command in the summary."""
    lines = (folder / "summary.md").read_text().splitlines()
    (line,) = (line for line in lines if line.startswith("replay-parity "))
    return shlex.split(line)


def parsed(words: list[str]) -> dict[str, Any]:
    """What the command line makes of the command; nothing is run."""
    assert words[:2] == ["replay-parity", "run"]
    context: click.Context = cli.commands["run"].make_context("run", words[2:])
    return context.params


def told(found: Verdict, folder: Path, *, campaign: str | None = "conversation", **variables: str) -> list[str]:
    return report(found, folder, around=Surroundings(variables), campaign=campaign)


_WORDS = (ANCESTRY, "said so", 'it\'s "the" $HOME `next`; rm -rf * \\', "--output", "0.12.1 is 0.12.0 & a lock")


@pytest.mark.parametrize("stated", _WORDS)
@pytest.mark.parametrize(
    ("baseline", "candidate"), [(GIT, OTHER), (GIT, BRANCH), (CRATE, NEXT), (CRATE, OTHER), (GIT, NEXT)]
)
def test_the_command_is_one_that_the_command_line_takes(
    tmp_path: Path, baseline: Revision, candidate: Revision, stated: str
) -> None:
    told(red(baseline, candidate, stated=stated), tmp_path)
    params = parsed(command_in(tmp_path))
    assert params["campaign"] == "conversation"
    assert params["rows"] == ("vllm-aggregated",)
    assert params["relationship"] == (None if stated == ANCESTRY else stated)
    assert not params["self_compare"]
    # What a person gets by it are the revisions of the run, and no other.
    asked = Asked(baseline=params["baseline"], candidate=params["candidate"], stated=params["relationship"])
    campaign = load_campaign(Path("demo")).campaign
    compared = choose(campaign, asked, git="https://example.invalid/owner/name")
    for source, wanted in ((compared.baseline, baseline), (compared.candidate, candidate)):
        if isinstance(wanted, GitRevision):
            assert isinstance(source, GitSource)
            assert source.revision == wanted.commit
        else:
            assert isinstance(source, CrateSource)
            assert source.version == wanted.version
    assert compared.stated == params["relationship"]


@pytest.mark.parametrize("candidate", [OTHER, CRATE])
def test_the_command_of_a_self_comparison(tmp_path: Path, candidate: Revision) -> None:
    found = red(candidate, candidate, stated="one revision on both sides", self_compare=True, equal_trees=True)
    told(found, tmp_path)
    params = parsed(command_in(tmp_path))
    assert params["self_compare"]
    assert (params["baseline"], params["relationship"]) == (None, None)
    assert params["candidate"] == (candidate.commit if isinstance(candidate, GitRevision) else "crate:0.12.1")
    choose(load_campaign(Path("demo")).campaign, Asked(candidate=params["candidate"], self_compare=True), git="x")


@pytest.mark.parametrize("campaign", ["conversation", None])
def test_the_campaign_is_the_policys_or_the_built_in_one(tmp_path: Path, campaign: str | None) -> None:
    for commit, wanted in ((None, "conversation"), ("d" * 40, ".replay-parity/campaigns/conversation.yaml")):
        told(red(GIT, OTHER, origin=ORIGIN.model_copy(update={"policy_commit": commit})), tmp_path, campaign=campaign)
        assert parsed(command_in(tmp_path))["campaign"] == wanted


def test_the_words_of_a_proven_ancestry_are_those_that_the_plan_writes() -> None:
    class Mirrors:
        """Every commit is here, and every baseline an ancestor."""

        def mirror(self, _: object) -> Mirrors:
            return self

        def adopt(self, *_: object) -> None:
            pass

        def is_ancestor(self, *_: object) -> bool:
            return True

    assert check_relationship(None, GIT, OTHER, Mirrors()) == ANCESTRY  # type: ignore[arg-type]


def test_a_verdict_without_a_plan_has_a_summary_and_one_error(tmp_path: Path) -> None:
    none = Verdict(tool_version="0", verdict="ERROR", exit_code=2, problems=("bad input: no such campaign",))
    lines = told(none, tmp_path, campaign=None)
    assert lines == ["::error title=Replay Parity::ERROR: bad input: no such campaign"]
    assert "no such campaign" in (tmp_path / "summary.md").read_text()


def test_the_summary_goes_to_the_step_as_well(tmp_path: Path) -> None:
    (tmp_path / "step").write_text("before\n")
    told(red(GIT, OTHER), tmp_path, GITHUB_STEP_SUMMARY=str(tmp_path / "step"))
    assert (tmp_path / "step").read_text() == f"before\n{(tmp_path / 'summary.md').read_text()}\n"


def test_a_green_verdict_prints_no_error(tmp_path: Path) -> None:
    run = good_run(tmp_path)
    verdict = run.decide()
    assert told(verdict, run.output) == []
    assert "replay-parity run" not in (run.output / "summary.md").read_text()


def test_a_red_verdict_ends_with_an_error_and_an_advisory_one_with_a_warning(tmp_path: Path) -> None:
    found = red(GIT, OTHER, files={"vllm-aggregated": ".replay-parity/rows/vllm-aggregated.yaml"})
    lines = told(found, tmp_path)
    assert [line.split(" ")[0] for line in lines] == ["::error", "::error"]
    assert "file=.replay-parity/rows/vllm-aggregated.yaml" in lines[0]
    assert lines[1] == "::error title=Replay Parity::FAIL: 1 match"
    lines = told(found.model_copy(update={"advisory": True}), tmp_path)
    assert [line.split(" ")[0] for line in lines] == ["::warning", "::warning"]
    assert lines[1] == "::warning title=Replay Parity (advisory)::advisory FAIL: 1 match"


@pytest.mark.parametrize("words", INJECTIONS)
def test_no_words_break_out_of_a_command_line(tmp_path: Path, words: str) -> None:
    found = hostile_verdict(words)
    lines = told(found, tmp_path)
    assert lines
    for line in lines:
        assert "\n" not in line
        assert "\r" not in line
        assert line.isprintable()
        assert line.startswith(("::error ", "::warning "))


@pytest.mark.parametrize("words", INJECTIONS)
def test_hostile_names_stay_one_argument(tmp_path: Path, words: str) -> None:
    """A release's version and a relationship are free text to the verdict: whatever they hold, it is one word."""
    crate = CRATE.model_copy(update={"version": words.replace("\n", " ").replace("\r", " ")})
    found = red(crate, OTHER, stated=words)
    told(found, tmp_path)
    text = (tmp_path / "summary.md").read_text()
    start = text.index("replay-parity run ")
    command = text[start : text.index("\n```", start)]
    if words.isprintable() and "`" not in words:
        params = parsed(shlex.split(command))
        assert params["relationship"] == words
        assert params["baseline"] == f"crate:{crate.version}"


def test_the_command_of_a_real_run(tmp_path: Path) -> None:
    run = good_run(tmp_path)
    for path in run.results.iterdir():
        path.rename(run.root / path.name)
    run.result(ROW, "mismatch")
    found = run.decide()
    told(found, run.output)
    lines = [line for line in (run.output / "summary.md").read_text().splitlines() if line.startswith("replay-parity")]
    assert [parsed(shlex.split(line))["rows"] for line in lines] == [(ROW,), ("preflight-vllm-two-workers",)]


def test_a_row_on_several_machines_is_repeated_by_its_name(tmp_path: Path) -> None:
    plan = make_plan(planned_row(ROW, runner="large"))
    found = red(GIT, OTHER, plan_sha256=plan.sha256)
    row_there = found.rows[0].model_copy(update={"runner": "large"})
    told(found.model_copy(update={"rows": (row_there,)}), tmp_path)
    assert parsed(command_in(tmp_path))["rows"] == ("vllm-aggregated",)
