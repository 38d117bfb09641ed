"""Campaign file to plan: immutable revisions, checked relationship, frozen rows, one digest that binds all results."""

from __future__ import annotations

from functools import cached_property
from typing import Literal, Self

import orjson
from pydantic import Field

from replay_parity.campaign.base import Identifier, Model, Sha256
from replay_parity.campaign.corpus_file import Corpus
from replay_parity.campaign.loaded import LoadedCampaign
from replay_parity.campaign.models import Build
from replay_parity.campaign.row import Row
from replay_parity.github.origin import Origin
from replay_parity.parity.result import DEFAULT_RUNNER, planned_id
from replay_parity.parity.verdict import CampaignSummary
from replay_parity.pin.models import Revision
from replay_parity.pin.resolve import Sources, check_relationship
from replay_parity.pin.runner_source import runner_source_sha256
from replay_parity.stages.compared import Compared
from replay_parity.system.files import sha256_bytes


class PlannedRow(Model):
    """A frozen row with the corpus that it replays, and the class of machines that it is meant for."""

    row: Row
    corpus: Corpus
    runner: Identifier = DEFAULT_RUNNER
    file: str | None = Field(default=None, description="Where the row is written in the policy's repository.")

    @property
    def id(self) -> str:
        """The planned unit: the row, and its runner where there are several."""
        return planned_id(self.row.name, self.runner)

    @property
    def sha256(self) -> str:
        """Digest of everything in the row and the corpus that decides about a result."""
        document = self.model_dump(mode="json", exclude={"runner", "file"})
        return sha256_bytes(orjson.dumps(document, option=orjson.OPT_SORT_KEYS))


class Plan(Model):
    """What a campaign will do; `plan.json` is this document."""

    schema_version: Literal[1] = 1
    campaign: CampaignSummary
    baseline: Revision
    candidate: Revision
    equal_trees: bool
    self_compare: bool = Field(default=False, description="One revision on both sides, replayed all the same.")
    advisory: bool = Field(default=False, description="The verdict is shown, but stands in nobody's way.")
    origin: Origin | None = Field(default=None, description="The event on GitHub that the plan was made for.")
    build: Build
    runner_source_sha256: Sha256
    rows: tuple[PlannedRow, ...]

    @property
    def nothing_to_compare(self) -> bool:
        """Equal sources on both sides are parity without a replay (rule 8), unless the check itself is checked."""
        return self.equal_trees and not self.self_compare

    @cached_property
    def sha256(self) -> str:
        """The plan digest: every result carries it. Toolchains are found where builds run, and are in their records.

        All attempts of a run have one, also when `plan` itself is run again: what an earlier one decided still counts
        (rule 26).
        """
        document = self.model_dump(mode="json", exclude={"origin": {"run_attempt"}})
        return sha256_bytes(orjson.dumps(document, option=orjson.OPT_SORT_KEYS))

    def __copy__(self) -> Self:
        """A copy that works its own digest out: it may be made to differ."""
        copied = super().__copy__()
        copied.__dict__.pop("sha256", None)
        return copied


def make_plan(
    loaded: LoadedCampaign,
    compared: Compared,
    *,
    sources: Sources,
    rows: tuple[PlannedRow, ...],
    origin: Origin | None = None,
    self_compare: bool = False,
    advisory: bool = False,
) -> Plan:
    """Resolve what is compared; RevisionError when a revision or the relationship cannot be pinned."""
    campaign = loaded.campaign
    baseline = sources.resolve(compared.baseline)
    candidate = sources.resolve(compared.candidate)
    relationship = check_relationship(compared.stated, baseline, candidate, sources)
    return Plan(
        campaign=CampaignSummary(name=campaign.name, title=campaign.title, relationship=relationship),
        baseline=baseline,
        candidate=candidate,
        equal_trees=baseline.content == candidate.content,
        self_compare=self_compare,
        advisory=advisory,
        origin=origin,
        build=campaign.build,
        runner_source_sha256=runner_source_sha256(),
        rows=rows,
    )


def rows_here(loaded: LoadedCampaign) -> tuple[PlannedRow, ...]:
    """Every row once, for the one machine that runs the whole campaign."""
    return tuple(PlannedRow(row=item.row, corpus=loaded.corpora[item.row.corpus].corpus) for item in loaded.rows)


def rows_per_runner(loaded: LoadedCampaign, *, files: dict[str, str]) -> tuple[PlannedRow, ...]:
    """Every row once for each class of machines that the campaign names for it; `files` are the rows' policy files."""
    return tuple(
        PlannedRow(
            row=item.row,
            corpus=loaded.corpora[item.row.corpus].corpus,
            runner=runner,
            file=files.get(item.row.name),
        )
        for item in loaded.rows
        for runner in item.runners or loaded.campaign.runners
    )
