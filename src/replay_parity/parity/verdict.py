"""Results to a verdict (rules 26 and 28): fail closed, every planned row accounted for. No I/O."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from pydantic import Field

from replay_parity.campaign.base import Identifier, Model, Sha256
from replay_parity.errors import EXIT_BAD_INPUT, EXIT_DIFFERENT, EXIT_INFRASTRUCTURE, EXIT_OK
from replay_parity.github.origin import Origin
from replay_parity.parity.result import Outcome, RowResult, planned_id
from replay_parity.pin.models import ArtifactRecord, LockDifference, Revision, Toolchain

VerdictName = Literal["PASS", "PASS_WITH_SEMANTIC_EXCEPTIONS", "FAIL", "ERROR"]

_FAILING: frozenset[Outcome] = frozenset(
    {"mismatch", "baseline_unsupported", "unsupported", "unstable_baseline", "unstable_candidate", "unqualified"}
)
# A candidate that alone does not compile, crashes or hangs is a regression too; on the baseline nothing was decided.
_FAILING_WHEN_CANDIDATE_ALONE: frozenset[Outcome] = frozenset({"build_failed", "replay_failed", "timed_out", "invalid"})


class SideBuild(Model):
    """The artifact of one side on one runner, or why there is none."""

    artifact: ArtifactRecord | None = None
    error: str | None = None
    error_kind: str | None = Field(default=None, description="'revision' and 'runner_api' lie in the sources.")


class BuildSummary(Model):
    """What was built on one runner: both sides with one toolchain, and every lock entry that differs (rules 7, 8)."""

    runner: Identifier
    toolchain: Toolchain | None = None
    baseline: SideBuild
    candidate: SideBuild
    lock_differences: tuple[LockDifference, ...] = ()


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
    plan_sha256: Sha256 | None = Field(default=None, description="None when no plan could be made.")
    campaign: CampaignSummary | None = None
    baseline: Revision | None = None
    candidate: Revision | None = None
    runner_source_sha256: Sha256 | None = None
    equal_trees: bool = Field(default=False, description="Nothing to compare: both sides are the same sources.")
    self_compare: bool = Field(default=False, description="One revision on both sides: the check itself is checked.")
    advisory: bool = Field(default=False, description="The verdict is shown, but stands in nobody's way.")
    origin: Origin | None = None
    problems: tuple[str, ...] = Field(default=(), description="Why the campaign as a whole cannot be green.")
    notes: tuple[str, ...] = ()
    counts: dict[str, int] = Field(default_factory=dict)
    failed_rows: tuple[str, ...] = ()
    undecided_rows: tuple[str, ...] = ()
    rows: tuple[RowResult, ...] = ()
    builds: tuple[BuildSummary, ...] = ()
    files: dict[str, str] = Field(
        default_factory=dict, description="Name of a row to the file of the policy that it is written in."
    )
    seconds: float = Field(default=0.0, description="Wall time of the run; no performance result of the engine.")

    @property
    def lock_differences(self) -> tuple[LockDifference, ...]:
        """Dependencies that differ between the sides, each once, of all runners."""
        return tuple(dict.fromkeys(item for build in self.builds for item in build.lock_differences))


def is_failing(result: RowResult) -> bool:
    """Whether the row alone makes the campaign FAIL."""
    if result.outcome in _FAILING:
        return True
    return result.outcome in _FAILING_WHEN_CANDIDATE_ALONE and result.fault == "candidate"


def is_green(result: RowResult) -> bool:
    """Whether the row stands in nobody's way."""
    return result.outcome in {"match", "excepted"}


def complete(
    planned: Sequence[tuple[str, str]], results: Mapping[str, RowResult], *, plan_sha256: str
) -> list[RowResult]:
    """Exactly the planned pairs of row and runner, in the plan's order; `results` are keyed by planned id.

    A missing one says so, one of another plan is invalid.
    """
    rows: list[RowResult] = []
    for row, runner in planned:
        result = results.get(planned_id(row, runner))
        if result is None:
            reason = "no result was found for this planned row"
            rows.append(absent(row, runner, plan_sha256=plan_sha256, outcome="missing", reason=reason))
        elif result.plan_sha256 != plan_sha256:
            reason = "the result belongs to another plan"
            rows.append(absent(row, runner, plan_sha256=plan_sha256, outcome="invalid", reason=reason))
        else:
            rows.append(result)
    return rows


def decide(
    rows: Sequence[RowResult], *, equal_trees: bool, baseline_unbuildable: bool = False, problems: bool = False
) -> tuple[VerdictName, int]:
    """Verdict and exit code. FAIL beats ERROR; no rows are never green unless the trees are equal.

    A baseline that does not compile is a wrong input, not a fault of the machine. `problems` of the campaign as a
    whole (an unplanned result, two artifacts for one revision) stand in the way of any green.
    """
    if any(is_failing(row) for row in rows):
        return "FAIL", EXIT_DIFFERENT
    if problems or not all(is_green(row) for row in rows) or not (rows or equal_trees):
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


def absent(row: str, runner: str, *, plan_sha256: str, outcome: Outcome, reason: str) -> RowResult:
    """A result that stands for one that is not there or cannot be used."""
    return RowResult(
        plan_sha256=plan_sha256,
        input_sha256="0" * 64,
        row=row,
        runner=runner,
        title=row,
        attempt=1,
        outcome=outcome,
        reason=reason,
        fault="both",
    )
