"""Real engines and a real pair of reports for the benchmarks, made by the product and kept in its cache."""

from __future__ import annotations

import gzip
import os
import tempfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from replay_parity.campaign.loading import load_campaign
from replay_parity.corpus.totals import totals
from replay_parity.pin.builder import Artifact
from replay_parity.publish.progress import PlainProgress
from replay_parity.replay.repetition import SIDES, Side
from replay_parity.settings import Settings
from replay_parity.stages.row import RowInputs, run_row
from replay_parity.stages.run import Prepared, RunOptions, prepare
from replay_parity.stages.workspace import Workspace
from replay_parity.system.progress import Silent

CAMPAIGN = Path(__file__).parent / "campaign.yaml"


@dataclass(frozen=True)
class Engines:
    """Two built revisions with a row to replay; `folder` is for whatever a benchmark writes."""

    prepared: Prepared
    settings: Settings
    folder: Path

    def artifact(self, side: Side) -> Artifact:
        """The runner of a side."""
        built = self.prepared.built.sides[side] if self.prepared.built else None
        if not isinstance(built, Artifact):
            raise RuntimeError(f"the {side} of {CAMPAIGN.name} was not built: {built}")  # noqa: TRY004 (no fault of a type)
        return built

    def inputs(self, name: str, sides: dict[Side, Artifact]) -> RowInputs:
        """Inputs of the campaign's row with a workspace of their own."""
        planned = self.prepared.plan.rows[0]
        return RowInputs(
            plan_sha256=self.prepared.plan.sha256,
            planned=planned,
            corpus=self.prepared.slices[planned.corpus.name],
            totals=totals(self.prepared.slices[planned.corpus.name]),
            sides=sides,
            workspace=Workspace(self.folder / name),
            locks_folder=self.settings.locks,
            progress=Silent(),
            label=name,
        )


@cache
def engines() -> Engines:
    """Build the benchmarks' campaign, or find it in the cache."""
    folder = Path(tempfile.mkdtemp(prefix="replay-parity-benchmarks-"))
    settings = Settings.from_environment(os.environ)
    workspace = Workspace(folder / "plan")
    with workspace.held():
        prepared = prepare(
            load_campaign(CAMPAIGN),
            options=RunOptions(),
            workspace=workspace,
            settings=settings,
            progress=PlainProgress(),
        )
    return Engines(prepared, settings, folder)


@cache
def differing_pair() -> tuple[bytes, bytes]:
    """The canonical records of both revisions: a real pair of some megabytes that differs nearly everywhere."""
    built = engines()
    result = run_row(built.inputs("pair", {side: built.artifact(side) for side in SIDES}), attempt=1)
    left, right = (gzip.decompress((built.folder / "pair" / report).read_bytes()) for report in result.reports)
    return left, right
