"""The result of one row: what each side printed, and what became of the comparison."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from replay_parity.campaign.base import Identifier, Model, SchemaVersion, Sha256
from replay_parity.campaign.sealed import Sealed
from replay_parity.replay.node import NodeRecord

Outcome = Literal[
    "match",
    "mismatch",
    "excepted",
    "baseline_unsupported",
    "unsupported",
    "unstable_baseline",
    "unstable_candidate",
    "unqualified",
    "build_failed",
    "replay_failed",
    "timed_out",
    "missing",
    "invalid",
]
# A newer attempt replaces only these; everything else is decided for good (rule 26).
RETRIED: frozenset[Outcome] = frozenset({"build_failed", "replay_failed", "timed_out", "missing", "invalid"})

Fault = Literal["baseline", "candidate", "both"]

# The runner of a campaign that names none: the machine that runs it.
DEFAULT_RUNNER = "default"


def planned_id(row: str, runner: str) -> str:
    """One id for a row on a runner; `@` is in no identifier, so two of them never meet."""
    return row if runner == DEFAULT_RUNNER else f"{row}@{runner}"


class Refusal(Model):
    """A typed error of the runner: the engine refuses the row, the configuration is bad, the trace is another."""

    kind: str
    phase: str | None
    variant: str | None
    message: str


class RepetitionResult(Model):
    """One process replaying the row once; times in seconds (no performance result, rule 28), memory in bytes."""

    index: Annotated[int, Field(ge=1)]
    status: str
    canonical_sha256: Sha256 | None = None
    results_sha256: Sha256 | None = None
    report_bytes: int | None = None
    refusal: Refusal | None = None
    reason: str | None = None
    seconds: float | None = None
    peak_threads: int | None = None
    peak_rss_bytes: int | None = None
    cpus: tuple[int, ...] = ()


class SideResult(Model):
    """What one revision gave: one canonical digest for each repetition, the counters of the first."""

    artifact_sha256: Sha256 | None = None
    digests: tuple[Sha256, ...] = ()
    results_digests: tuple[Sha256, ...] = ()
    qualification: dict[str, Any] | None = None
    evidence_problems: tuple[str, ...] = ()
    evidence_notes: tuple[str, ...] = ()
    repetitions: tuple[RepetitionResult, ...] = ()


class DifferenceSummary(Model):
    """What the focused difference says in a few numbers; the whole of it is in the file."""

    file: str
    total: int
    results: int
    configuration: int
    requests: int
    top: tuple[str, ...] = Field(default=(), description="The most frequent patterns in words, results first.")


class RowResult(Sealed):
    """What became of a row on one runner, bound to the plan and the bytes that it was made from."""

    schema_version: SchemaVersion = 1
    plan_sha256: Sha256
    input_sha256: Sha256 = Field(description="Digest of everything that decides about the result; a resume needs it.")
    row: Identifier
    runner: Identifier = Field(default=DEFAULT_RUNNER, description="Class of machines that the row was planned for.")
    title: str
    attempt: Annotated[int, Field(ge=1, description="On GitHub the attempt of the run, which a re-run raises.")]
    outcome: Outcome
    reason: str
    fault: Fault | None = None
    baseline: SideResult = SideResult()
    candidate: SideResult = SideResult()
    differences: DifferenceSummary | None = None
    reports: tuple[str, ...] = ()
    node: NodeRecord | None = None
    placement: str | None = None
    seconds: float = 0.0

    @property
    def id(self) -> str:
        """The planned unit: the row, and its runner where there are several."""
        return planned_id(self.row, self.runner)


def settle(attempts: list[RowResult]) -> RowResult:
    """One result out of all attempts of a row (rule 26), by their numbers, whatever their order.

    A newer attempt replaces only an undecided one: what is red stays red, an unstable row stays unstable, and two
    decided attempts with different digests for one revision make the row unstable. A green one falls with an `invalid`
    one that is not older: that is somebody's forgery or our fault, and no older decision covers it.
    """
    ordered = sorted(attempts, key=lambda result: (result.attempt, result.outcome == "invalid"))
    unstable = [result for result in ordered if result.outcome.startswith("unstable_")]
    if unstable:
        return unstable[0]
    decided = [result for result in ordered if result.outcome not in RETRIED]
    if not decided:
        return ordered[-1]
    red = [result for result in decided if result.outcome != "match"]
    refused = [item for item in ordered if item.outcome == "invalid" and item.attempt >= decided[-1].attempt]
    return _moved(decided) or (red or refused or decided)[-1]


def _moved(decided: list[RowResult]) -> RowResult | None:
    """The newest attempt as unstable when a revision has two digests; None when each has one."""
    outcomes: dict[Fault, Outcome] = {"baseline": "unstable_baseline", "candidate": "unstable_candidate"}
    for side, outcome in outcomes.items():
        digests = {digest for result in decided for digest in getattr(result, side).digests}
        if len(digests) > 1:
            reason = f"attempts of one run gave {len(digests)} digests for the {side}: " + ", ".join(
                sorted(digest[:16] for digest in digests)
            )
            return decided[-1].model_copy(update={"outcome": outcome, "reason": reason, "fault": side})
    return None
