"""Campaign file to plan: immutable revisions, checked relationship, frozen rows, one digest that binds all results."""

from __future__ import annotations

from typing import Literal

import orjson

from replay_parity.campaign.base import Identifier, Model, Sha256
from replay_parity.campaign.corpus_file import Corpus
from replay_parity.campaign.loading import LoadedCampaign
from replay_parity.campaign.models import Build
from replay_parity.campaign.row import Row
from replay_parity.parity.result import DEFAULT_RUNNER, planned_id
from replay_parity.parity.verdict import CampaignSummary
from replay_parity.pin.models import Revision
from replay_parity.pin.resolve import Sources, check_relationship
from replay_parity.pin.runner_source import runner_source_sha256
from replay_parity.system.files import sha256_bytes


class PlannedRow(Model):
    """A frozen row with the corpus that it replays, and the class of machines that it is meant for."""

    row: Row
    corpus: Corpus
    runner: Identifier = DEFAULT_RUNNER

    @property
    def id(self) -> str:
        """The planned unit: the row, and its runner where there are several."""
        return planned_id(self.row.name, self.runner)

    @property
    def sha256(self) -> str:
        """Digest of everything in the row and the corpus that decides about a result."""
        document = self.model_dump(mode="json", exclude={"runner"})
        return sha256_bytes(orjson.dumps(document, option=orjson.OPT_SORT_KEYS))


class Plan(Model):
    """What a campaign will do; `plan.json` is this document."""

    schema_version: Literal[1] = 1
    campaign: CampaignSummary
    baseline: Revision
    candidate: Revision
    equal_trees: bool
    build: Build
    runner_source_sha256: Sha256
    rows: tuple[PlannedRow, ...]

    @property
    def sha256(self) -> str:
        """The plan digest: every result carries it. Toolchains are found where builds run, and are in their records."""
        document = self.model_dump(mode="json")
        return sha256_bytes(orjson.dumps(document, option=orjson.OPT_SORT_KEYS))


def make_plan(loaded: LoadedCampaign, *, sources: Sources) -> Plan:
    """Resolve a loaded campaign; RevisionError when a revision or the relationship cannot be pinned."""
    campaign = loaded.campaign
    baseline = sources.resolve(campaign.baseline)
    candidate = sources.resolve(campaign.candidate)
    relationship = check_relationship(campaign, baseline, candidate, sources)
    return Plan(
        campaign=CampaignSummary(name=campaign.name, title=campaign.title, relationship=relationship),
        baseline=baseline,
        candidate=candidate,
        equal_trees=baseline.content == candidate.content,
        build=campaign.build,
        runner_source_sha256=runner_source_sha256(),
        rows=tuple(PlannedRow(row=item.row, corpus=loaded.corpora[item.row.corpus].corpus) for item in loaded.rows),
    )
