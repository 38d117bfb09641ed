"""One row: verified inputs, four processes, one judgement, one result that says what it was made from."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import orjson

from replay_parity import __version__
from replay_parity.corpus.slice import VerifiedSlice
from replay_parity.corpus.totals import WorkloadTotals
from replay_parity.errors import BuildError
from replay_parity.parity.result import Fault, RowResult, SideResult
from replay_parity.pin.builder import Artifact
from replay_parity.pin.identity import expected_identity
from replay_parity.replay.node import NodeRecord, read_cores, record_node, usable_cpus
from replay_parity.replay.placement import Placement, place
from replay_parity.replay.repetition import SIDES, ReplayJob, Runner, Side, replay_row
from replay_parity.replay.row_config import runner_config
from replay_parity.stages.judge import Judge
from replay_parity.stages.plan import PlannedRow
from replay_parity.stages.workspace import Workspace
from replay_parity.system.files import private_folder, remove_tree, sha256_bytes
from replay_parity.system.progress import Progress


@dataclass(frozen=True)
class RowInputs:
    """Everything that a row's result is made from, and where it goes."""

    plan_sha256: str
    planned: PlannedRow
    corpus: VerifiedSlice
    totals: WorkloadTotals
    sides: Mapping[Side, Artifact | BuildError]
    workspace: Workspace
    locks_folder: Path
    progress: Progress
    label: str

    @property
    def artifacts(self) -> dict[Side, Artifact]:
        """Both artifacts; only for sides that were built."""
        return {side: artifact for side, artifact in self.sides.items() if isinstance(artifact, Artifact)}

    @property
    def sha256(self) -> str:
        """Digest of all inputs; a finished row is kept only for exactly these."""
        return input_digest(self.planned, {side: artifact.record.sha256 for side, artifact in self.artifacts.items()})


def input_digest(planned: PlannedRow, artifacts: Mapping[Side, str]) -> str:
    """Digest of everything that decides about a result; `artifacts` are the SHA-256 of the runners there are."""
    document = {
        "tool": __version__,
        "row": planned.sha256,
        "corpus": planned.corpus.slice.sha256,
        "artifacts": dict(artifacts),
    }
    return sha256_bytes(orjson.dumps(document, option=orjson.OPT_SORT_KEYS))


def run_row(inputs: RowInputs, *, attempt: int) -> RowResult:
    """Replay and judge one attempt; its result is kept in the workspace, last of all."""
    started = time.monotonic()
    inputs.progress.step(inputs.label)
    row, artifacts = inputs.planned.row, inputs.artifacts
    folder = inputs.workspace.row_folder(inputs.planned.id, attempt)
    work = private_folder(folder / "work")
    placement, node = _place()
    job = ReplayJob(
        config=runner_config(row, inputs.corpus.corpus, trace=inputs.corpus.path),
        runners={side: _runner(artifacts[side]) for side in SIDES},
        timeout_seconds=float(row.timeout_seconds),
        work=work,
    )
    try:
        repetitions = replay_row(job, placement=placement, locks=inputs.locks_folder, progress=inputs.progress)
        judge = Judge(row, inputs.corpus.corpus, inputs.totals, folder=folder, root=inputs.workspace.root)
        judgement = judge.judge(repetitions, {side: artifacts[side].record.sha256 for side in SIDES})
    finally:
        # What explains the outcome was kept; the reports of a matching row go (rule 18).
        remove_tree(work)
    result = RowResult(
        plan_sha256=inputs.plan_sha256,
        input_sha256=inputs.sha256,
        row=row.name,
        runner=inputs.planned.runner,
        title=row.title,
        attempt=attempt,
        outcome=judgement.outcome,
        reason=judgement.reason,
        fault=judgement.fault,
        baseline=judgement.sides["baseline"],
        candidate=judgement.sides["candidate"],
        differences=judgement.differences,
        reports=judgement.reports,
        node=node,
        placement=placement.words,
        seconds=round(time.monotonic() - started, 3),
    ).sealed()
    inputs.workspace.write_result(result)
    return result


def unbuilt(inputs: RowInputs, *, attempt: int) -> RowResult:
    """The result of a row whose artifact does not exist on one side or both."""
    errors = {side: built for side, built in inputs.sides.items() if isinstance(built, BuildError)}
    fault: Fault = "both" if len(errors) > 1 else next(iter(errors))
    sides = {side: SideResult(artifact_sha256=artifact.record.sha256) for side, artifact in inputs.artifacts.items()}
    return RowResult(
        plan_sha256=inputs.plan_sha256,
        input_sha256=inputs.sha256,
        row=inputs.planned.row.name,
        runner=inputs.planned.runner,
        title=inputs.planned.row.title,
        attempt=attempt,
        outcome="build_failed",
        reason="; ".join(error.message for error in errors.values()),
        fault=fault,
        baseline=sides.get("baseline", SideResult()),
        candidate=sides.get("candidate", SideResult()),
    ).sealed()


def _runner(artifact: Artifact) -> Runner:
    return Runner(artifact.path, artifact.record.sha256, expected_identity(artifact.record))


def _place() -> tuple[Placement, NodeRecord]:
    usable = usable_cpus()
    cores = read_cores(usable)
    node = record_node(cores, usable)
    return place(cores, pinning=node.pinning, quota=node.cpu_quota), node
