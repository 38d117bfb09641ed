"""Planned rows, one after the other, each kept when it is decided for exactly these inputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from replay_parity.corpus.slice import VerifiedSlice
from replay_parity.corpus.totals import totals
from replay_parity.errors import BuildError
from replay_parity.parity.result import RETRIED, RowResult, settle
from replay_parity.pin.builder import Artifact
from replay_parity.replay.repetition import Side
from replay_parity.settings import Settings
from replay_parity.stages.plan import Plan, PlannedRow
from replay_parity.stages.row import RowInputs, run_row, unbuilt
from replay_parity.stages.workspace import Workspace
from replay_parity.system.progress import Progress


@dataclass(frozen=True)
class Ready:
    """Everything that rows are replayed from."""

    plan: Plan
    slices: Mapping[str, VerifiedSlice]
    sides: Mapping[Side, Artifact | BuildError]
    workspace: Workspace
    settings: Settings
    progress: Progress


def run_rows(
    ready: Ready, rows: Sequence[PlannedRow], *, fresh: bool = False, attempt: int | None = None
) -> dict[str, RowResult]:
    """The settled result of each row by planned id.

    `attempt` is the number that GitHub gives to all rows of a job; None counts the attempts in the workspace.
    """
    sums = {name: totals(verified) for name, verified in ready.slices.items()}
    results: dict[str, RowResult] = {}
    for number, planned in enumerate(rows, start=1):
        inputs = RowInputs(
            plan_sha256=ready.plan.sha256,
            planned=planned,
            corpus=ready.slices[planned.corpus.name],
            totals=sums[planned.corpus.name],
            sides=ready.sides,
            workspace=ready.workspace,
            locks_folder=ready.settings.locks,
            progress=ready.progress,
            label=f"row {number} of {len(rows)}: {planned.id}",
        )
        results[planned.id] = _row(inputs, fresh=fresh, attempt=attempt)
    return results


def _row(inputs: RowInputs, *, fresh: bool, attempt: int | None) -> RowResult:
    """Kept when decided for exactly these inputs, replayed otherwise (rule 26)."""
    if any(isinstance(side, BuildError) for side in inputs.sides.values()):
        return unbuilt(inputs, attempt=attempt or 1)
    known = [
        result.model_copy(update={"plan_sha256": inputs.plan_sha256}).sealed()
        for result in inputs.workspace.attempts(inputs.planned.id)
        if result.input_sha256 == inputs.sha256
    ]
    if not known or fresh or settle(known).outcome in RETRIED:
        known.append(run_row(inputs, attempt=attempt or inputs.workspace.next_attempt(inputs.planned.id)))
    return settle(known)
