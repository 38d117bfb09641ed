"""The stage `build`: both runners of a plan on one class of machines, in a folder that can travel."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Annotated

from pydantic import Field

from replay_parity.campaign.base import SchemaVersion, Sha256
from replay_parity.campaign.sealed import Sealed
from replay_parity.errors import BuildError
from replay_parity.parity.verdict import BuildSummary, SideBuild
from replay_parity.pin.builder import SIDES, Artifact, BuildOutcome, Side
from replay_parity.pin.models import Revision
from replay_parity.stages.bench import Bench
from replay_parity.stages.plan import Plan
from replay_parity.stages.verdict import summarise
from replay_parity.system.files import remove_tree, storage_errors, write_whole
from replay_parity.system.progress import Progress


class BuildResult(Sealed):
    """`build.json`: what one job built. A side without artifact and error was not asked for."""

    schema_version: SchemaVersion = 1
    plan_sha256: Sha256
    attempt: Annotated[int, Field(ge=1)]
    build: BuildSummary


def runner_file(side: Side) -> str:
    """Name of a side's runner beside `build.json`."""
    return f"{side}.runner"


def build_here(
    plan: Plan, bench: Bench, *, only: Side | None, patch: Path | None, logs: Path, progress: Progress
) -> BuildOutcome:
    """Build what the plan names; `only` the baseline, so that it can be put away before other code is compiled."""
    revisions: dict[Side, Revision] = {"baseline": plan.baseline, "candidate": plan.candidate}
    wanted = {side: revision for side, revision in revisions.items() if only in {None, side}}
    return bench.builder(logs=logs, progress=progress, patch=patch).run(wanted)


def keep(outcome: BuildOutcome, folder: Path, *, plan: Plan, bench: Bench, runner: str, attempt: int) -> BuildResult:
    """Write runners and `build.json` to a folder, the document last."""
    logs = folder / "logs"
    with storage_errors("keep the artifacts", folder):
        folder.mkdir(parents=True, exist_ok=True)
        for side in SIDES:
            place = folder / runner_file(side)
            remove_tree(place)
            built = outcome.sides.get(side)
            if isinstance(built, Artifact):
                shutil.copyfile(built.path, place)
            elif isinstance(built, BuildError) and Path(built.log).is_file() and Path(built.log).parent != logs:
                logs.mkdir(exist_ok=True)
                shutil.copyfile(built.log, logs / Path(built.log).name)
    result = BuildResult(
        plan_sha256=plan.sha256, attempt=attempt, build=summarise(outcome, bench.toolchain, runner=runner)
    ).sealed()
    write_whole(folder / "build.json", result.model_dump_json(indent=2).encode())
    return result


def nothing_built(runner: str) -> BuildSummary:
    """A runner from which no artifact came."""
    return BuildSummary(runner=runner, baseline=SideBuild(), candidate=SideBuild())
