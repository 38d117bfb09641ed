"""Results to a verdict (rules 26 and 28): fail closed, every planned row accounted for. No I/O."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from pydantic import Field

from replay_parity.campaign.base import Model, Sha256
from replay_parity.errors import EXIT_BAD_INPUT, EXIT_DIFFERENT, EXIT_INFRASTRUCTURE, EXIT_OK
from replay_parity.parity.result import Outcome, RowResult
from replay_parity.pin.models import ArtifactRecord, LockDifference, Revision, Toolchain

VerdictName = Literal["PASS", "PASS_WITH_SEMANTIC_EXCEPTIONS", "FAIL", "ERROR"]

_FAILING: frozenset[Outcome] = frozenset(
    {"mismatch", "baseline_unsupported", "unsupported", "unstable_baseline", "unstable_candidate", "unqualified"}
)
# A candidate that alone does not compile, crashes or hangs is a regression too; on the baseline nothing was decided.
_FAILING_WHEN_CANDIDATE_ALONE: frozenset[Outcome] = frozenset({"build_failed", "replay_failed", "timed_out", "invalid"})


class SideSummary(Model):
    """One revision with its artifact, or why there is none."""

    revision: Revision
    artifact: ArtifactRecord | None = None
    build_error: str | None = None


class CampaignSummary(Model):
    """Name, title and relationship as the campaign states them."""

    name: str
    title: str
    relationship: str


class Verdict(Model):
    """What became of a campaign; `verdict.json` is this document."""

    schema_version: Literal[1] = 1
    tool_version: str
    verdict: VerdictName
    exit_code: int
    plan_sha256: Sha256
    campaign: CampaignSummary
    baseline: SideSummary
    candidate: SideSummary
    toolchain: Toolchain
    runner_source_sha256: Sha256
    equal_trees: bool = Field(description="Nothing to compare: both sides are the same sources.")
    notes: tuple[str, ...] = ()
    counts: dict[str, int]
    failed_rows: tuple[str, ...]
    undecided_rows: tuple[str, ...]
    rows: tuple[RowResult, ...]
    lock_differences: tuple[LockDifference, ...] = ()
    seconds: float = Field(description="Wall time of the run; no performance result of the engine.")


def is_failing(result: RowResult) -> bool:
    """Whether the row alone makes the campaign FAIL."""
    if result.outcome in _FAILING:
        return True
    return result.outcome in _FAILING_WHEN_CANDIDATE_ALONE and result.fault == "candidate"


def is_green(result: RowResult) -> bool:
    """Whether the row stands in nobody's way."""
    return result.outcome in {"match", "excepted"}


def complete(planned: Sequence[str], results: Mapping[str, RowResult], *, plan_sha256: str) -> list[RowResult]:
    """Exactly the planned rows, in the plan's order; a missing one says so, one of another plan is invalid."""
    rows: list[RowResult] = []
    for name in planned:
        result = results.get(name)
        if result is None:
            rows.append(_absent(name, plan_sha256, "missing", "no result was found for this planned row"))
        elif result.plan_sha256 != plan_sha256:
            rows.append(_absent(name, plan_sha256, "invalid", "the result belongs to another plan"))
        else:
            rows.append(result)
    return rows


def decide(
    rows: Sequence[RowResult], *, equal_trees: bool, baseline_unbuildable: bool = False
) -> tuple[VerdictName, int]:
    """Verdict and exit code. FAIL beats ERROR; no rows are never green unless the trees are equal.

    A baseline that does not compile is a wrong input, not a fault of the machine.
    """
    if equal_trees and not rows:
        return "PASS", EXIT_OK
    if any(is_failing(row) for row in rows):
        return "FAIL", EXIT_DIFFERENT
    if not rows or not all(is_green(row) for row in rows):
        return "ERROR", EXIT_BAD_INPUT if baseline_unbuildable else EXIT_INFRASTRUCTURE
    if any(row.outcome == "excepted" for row in rows):
        return "PASS_WITH_SEMANTIC_EXCEPTIONS", EXIT_OK
    return "PASS", EXIT_OK


def count(rows: Sequence[RowResult]) -> dict[str, int]:
    """How many rows there are of each outcome, in the order of the rows."""
    counts: dict[str, int] = {}
    for row in rows:
        counts[row.outcome] = counts.get(row.outcome, 0) + 1
    return counts


def _absent(name: str, plan_sha256: str, outcome: Outcome, reason: str) -> RowResult:
    return RowResult(
        plan_sha256=plan_sha256,
        input_sha256="0" * 64,
        row=name,
        title=name,
        attempt=1,
        outcome=outcome,
        reason=reason,
        fault="both",
    )
