"""The plan: what its digest binds, which rows it holds, when there is nothing to compare."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.support.planned import plan, planned_row, revision

from replay_parity.campaign.loaded import LoadedCampaign
from replay_parity.campaign.loading import load_campaign
from replay_parity.parity.verdict import CampaignSummary
from replay_parity.stages.plan import Plan, rows_here, rows_per_runner


@pytest.fixture(scope="module")
def demo() -> LoadedCampaign:
    return load_campaign(Path("demo"))


def origin(**changes: Any) -> Any:
    found = plan().origin
    assert found is not None
    return found.model_copy(update=changes)


CHANGES: list[dict[str, Any]] = [
    {"campaign": CampaignSummary(name="nightly", title="Nightly", relationship="another")},
    {"baseline": revision("4")},
    {"candidate": revision("4")},
    {"candidate": revision("2", asked="main", asked_as="branch")},
    {"equal_trees": True},
    {"self_compare": True},
    {"advisory": True},
    {"origin": None},
    {"origin": origin(run_id=8)},
    {"origin": origin(policy_commit="5" * 40)},
    {"origin": origin(from_fork=True)},
    {"build": plan().build.model_copy(update={"flags": ("-O",)})},
    {"runner_source_sha256": "4" * 64},
    {"rows": ()},
    {"rows": (planned_row("green"),)},
    {"rows": (planned_row(runner="arm64"),)},
    {"rows": (planned_row(requests=4999),)},
    {"rows": (planned_row(), planned_row("green"))},
    {"rows": (planned_row().model_copy(update={"file": "x"}),)},
]


def test_the_digest_binds_everything() -> None:
    digests = [plan().sha256, *(plan(**change).sha256 for change in CHANGES)]
    assert len(set(digests)) == len(digests)
    named = {name for change in CHANGES for name in change}
    assert named == set(Plan.model_fields) - {"schema_version"}, "a new field needs a case here"


def test_the_digest_is_one_for_all_attempts() -> None:
    assert plan(origin=origin(run_attempt=2)).sha256 == plan().sha256


def test_the_digest_survives_the_journey() -> None:
    made = plan(planned_row(), planned_row("green", runner="arm64"))
    assert Plan.model_validate_json(made.model_dump_json()).sha256 == made.sha256
    assert Plan.model_validate_json(made.model_dump_json()) == made


def test_a_copy_has_a_digest_of_its_own() -> None:
    made = plan()
    first = made.sha256
    assert made.model_copy(update={"advisory": True}).sha256 != first
    assert made.sha256 == first


def test_the_digest_is_kept_and_is_no_part_of_the_document() -> None:
    """Each of 10,000 results is held against it."""
    made = plan()
    before = made.model_dump_json()
    assert made.sha256 is made.sha256
    assert made.model_dump_json() == before
    assert made == plan()


def test_the_digest_of_a_row() -> None:
    row = planned_row()
    assert row.sha256 == row.model_copy(update={"runner": "arm64", "file": "x"}).sha256
    assert len({row.sha256, planned_row("green").sha256, planned_row(requests=1).sha256}) == 3


@pytest.mark.parametrize(
    ("equal_trees", "self_compare", "nothing"),
    [(False, False, False), (True, False, True), (True, True, False), (False, True, False)],
)
def test_nothing_to_compare(equal_trees: bool, self_compare: bool, nothing: bool) -> None:
    assert plan(equal_trees=equal_trees, self_compare=self_compare).nothing_to_compare is nothing


def test_rows_on_the_one_machine(demo: LoadedCampaign) -> None:
    planned = rows_here(demo)
    assert [item.id for item in planned] == [item.row.name for item in demo.rows]
    assert {(item.runner, item.file) for item in planned} == {("default", None)}


def test_rows_on_each_class_of_machines(demo: LoadedCampaign) -> None:
    campaign = demo.campaign.model_copy(update={"runners": ("amd64", "default")})
    first, *rest = demo.rows
    lone = LoadedCampaign(campaign, demo.path, (replace(first, runners=("arm64",)), *rest), demo.corpora)
    planned = rows_per_runner(lone, files={first.row.name: "a/file"})
    assert [item.id for item in planned[:3]] == [
        f"{first.row.name}@arm64",
        f"{rest[0].row.name}@amd64",
        rest[0].row.name,
    ]
    assert [item.file for item in planned[:2]] == ["a/file", None]
    assert len(planned) == 1 + 2 * len(rest)
    assert all(item.corpus == demo.corpora[item.row.corpus].corpus for item in planned)
