"""Which two sources are compared: the campaign's own, or those that a person or an event names."""

from __future__ import annotations

from typing import Any

import pytest
from tests.support.files import campaign_document

from replay_parity.campaign.models import Campaign
from replay_parity.campaign.sources import CrateSource, GitSource
from replay_parity.errors import BadInputError
from replay_parity.stages.compared import Asked, Compared, choose

HERE = "https://github.example/here/it"
THERE = "https://github.example/there/it"
OLD, NEW, OTHER = "a" * 40, "b" * 40, "c" * 40


def campaign(baseline: dict[str, Any], candidate: dict[str, Any], **changes: Any) -> Campaign:
    return Campaign.model_validate(campaign_document(baseline, candidate, **changes))


CRATES = campaign({"version": "0.12.0", "dirty": True}, {"version": "0.12.1"})
COMMITS = campaign({"git": THERE, "revision": OLD, "core": "core"}, {"git": THERE, "revision": NEW})
OPEN = COMMITS.model_copy(update={"baseline": None, "candidate": None, "relationship": None, "core": "engine"})


def test_the_campaigns_own() -> None:
    assert choose(CRATES, Asked(), git=HERE) == Compared(
        CrateSource(version="0.12.0", dirty=True), CrateSource(version="0.12.1"), "the test says so"
    )
    proven = campaign({"git": "x", "revision": OLD}, {"git": "x", "revision": NEW}, relationship={"ancestor": True})
    assert choose(proven, Asked(), git=HERE).stated is None


def test_names_of_an_open_campaign() -> None:
    found = choose(OPEN, Asked(baseline=OLD, candidate="release/1.0"), git=HERE)
    assert found == Compared(
        GitSource(git=HERE, revision=OLD, core="engine"),
        GitSource(git=HERE, revision="release/1.0", core="engine"),
        None,
    )


def test_names_from_outside_belong_to_the_campaigns_repository_unless_it_is_told() -> None:
    found = choose(COMMITS, Asked(candidate=OTHER), git=HERE)
    assert found.candidate == GitSource(git=THERE, revision=OTHER, core="core")
    assert found.baseline == COMMITS.baseline
    told = choose(COMMITS, Asked(candidate=OTHER, git=HERE), git=HERE)
    assert told.candidate == GitSource(git=HERE, revision=OTHER, core="core")
    assert told.baseline == COMMITS.baseline, "its own revisions stay where they are"


@pytest.mark.parametrize("asked", [Asked(baseline=OTHER), Asked(candidate=OTHER)])
def test_the_campaigns_words_are_about_its_own_revisions(asked: Asked) -> None:
    assert choose(COMMITS, asked, git=HERE).stated is None


def test_words_from_outside_come_first() -> None:
    assert choose(COMMITS, Asked(candidate=OTHER, stated="a fork of it"), git=HERE).stated == "a fork of it"
    assert choose(COMMITS, Asked(stated="a fork of it"), git=HERE).stated == "a fork of it"


@pytest.mark.parametrize("words", ["", "a\nb", "x" * 501, "\u202ereversed"])
def test_words_are_one_visible_line(words: str) -> None:
    with pytest.raises(BadInputError, match="the relationship must be one line") as caught:
        choose(COMMITS, Asked(stated=words), git=HERE)
    assert caught.value.where == "--relationship"


def test_a_release_by_name() -> None:
    found = choose(COMMITS, Asked(baseline="crate:0.12.1", candidate=NEW), git=HERE)
    assert found.baseline == CrateSource(version="0.12.1")
    # That a dirty release is meant was said for this side.
    assert choose(CRATES, Asked(baseline="crate:0.1.0"), git=HERE).baseline == CrateSource(version="0.1.0", dirty=True)
    assert choose(CRATES, Asked(candidate="crate:0.1.0"), git=HERE).candidate == CrateSource(version="0.1.0")


@pytest.mark.parametrize(
    "name",
    ["", "-x", "--upload-pack=touch x", "a..b", "main@{1}", "main~1", "a b", "a\nb", "crate:", "crate:x", "crate:-1"],
)
@pytest.mark.parametrize("side", ["baseline", "candidate"])
def test_hostile_names(name: str, side: str) -> None:
    given: dict[str, Any] = {"baseline": OLD, "candidate": NEW, side: name}
    with pytest.raises(BadInputError) as caught:
        choose(OPEN, Asked(**given), git=HERE)
    assert caught.value.where == f"--{side}"
    assert str(caught.value).isprintable()


@pytest.mark.parametrize("side", ["baseline", "candidate"])
def test_a_side_that_nobody_names(side: str) -> None:
    given: dict[str, Any] = {"baseline": OLD, "candidate": NEW, side: None}
    with pytest.raises(BadInputError, match=f"the campaign names no {side}.*the input '{side}'"):
        choose(OPEN, Asked(**given), git=HERE)


def test_a_self_comparison() -> None:
    both = GitSource(git=HERE, revision=NEW, core="engine")
    for asked in (
        Asked(candidate=NEW, self_compare=True),
        Asked(candidate=NEW, self_compare=True, stated="words do not matter"),
        Asked(baseline=NEW, candidate=NEW, self_compare=True),
    ):
        assert choose(OPEN, asked, git=HERE) == Compared(both, both, "one revision on both sides")
    assert choose(CRATES, Asked(self_compare=True), git=HERE).baseline == CRATES.candidate


@pytest.mark.parametrize("candidate", [None, NEW])
def test_a_self_comparison_with_another_baseline_is_ambiguous(candidate: str | None) -> None:
    with pytest.raises(BadInputError, match="the candidate on both sides"):
        choose(COMMITS, Asked(baseline=OLD, candidate=candidate, self_compare=True), git=HERE)
