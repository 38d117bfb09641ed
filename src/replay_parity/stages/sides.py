"""Repetitions as results, and what is decided before any record is compared (rule 24, outcomes)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from replay_parity.canonical.model import Digests
from replay_parity.parity.differences_model import Differences
from replay_parity.parity.result import DifferenceSummary, Fault, Outcome, Refusal, RepetitionResult, SideResult
from replay_parity.replay.qualification import RunnerFailure
from replay_parity.replay.repetition import SIDES, Repetition, Side


@dataclass
class Judgement:
    """What became of a row, before it is bound to a plan."""

    outcome: Outcome
    reason: str
    fault: Fault | None = None
    sides: dict[Side, SideResult] = field(default_factory=dict)
    differences: DifferenceSummary | None = None
    reports: tuple[str, ...] = ()


def side_result(
    repetitions: Sequence[Repetition], digests: Sequence[Digests | None], artifact_sha256: str
) -> SideResult:
    """One side as it goes into the result; `digests` stand beside the repetitions."""
    first = next((item.qualification for item in repetitions if item.qualification is not None), None)
    known = [digest for digest in digests if digest is not None]
    return SideResult(
        artifact_sha256=artifact_sha256,
        digests=tuple(digest.canonical for digest in known),
        results_digests=tuple(digest.results for digest in known),
        qualification=first.model_dump() if first is not None else None,
        repetitions=tuple(_repetition(item, digest) for item, digest in zip(repetitions, digests, strict=True)),
        evidence_notes=tuple(dict.fromkeys(fault for item in repetitions for fault in item.faults)),
    )


def undecided(repetitions: Mapping[Side, Sequence[Repetition]]) -> Judgement | None:
    """The outcome of a row in which some process did not give a record; None when all did."""
    broken = {side: _first_broken(repetitions[side]) for side in SIDES}
    baseline, candidate = broken["baseline"], broken["candidate"]
    if baseline is None and candidate is None:
        return None
    if baseline is not None and baseline.status == "refused":
        if candidate is None:
            return Judgement(
                "baseline_unsupported",
                f"the baseline's engine refuses this row: {words_of(baseline)}",
                fault="baseline",
            )
        if candidate.status == "refused" and _same(baseline.failure, candidate.failure):
            return Judgement("unsupported", f"both engines refuse this row alike: {words_of(baseline)}", fault="both")
    fault: Fault = "both"
    if baseline is None or candidate is None:
        fault = "candidate" if baseline is None else "baseline"
    told = [item for item in (baseline, candidate) if item is not None]
    outcome: Outcome = "timed_out" if all(item.status == "timed_out" for item in told) else "replay_failed"
    return Judgement(outcome, "; ".join(f"{item.side}: {words_of(item)}" for item in told), fault=fault)


def first_difference(differences: Differences) -> str | None:
    """The first field that differs, with both values; results before the rest."""
    sections = differences.sections
    for section in (sections.results, sections.configuration, sections.metadata):
        if section.first is not None:
            found = section.first
            return f"{found.pointer} ({found.left or 'absent'} against {found.right or 'absent'})"
    return None


def _repetition(item: Repetition, digest: Digests | None) -> RepetitionResult:
    failure = item.failure
    return RepetitionResult(
        index=item.index,
        status=item.status,
        canonical_sha256=digest.canonical if digest else None,
        results_sha256=digest.results if digest else None,
        report_bytes=digest.bytes if digest else None,
        refusal=Refusal.model_validate(failure.model_dump()) if failure else None,
        reason=item.reason or None,
        seconds=round(item.seconds, 3),
        peak_threads=item.peak_threads,
        peak_rss_bytes=item.peak_rss_bytes,
        cpus=item.cpus,
    )


def _first_broken(repetitions: Sequence[Repetition]) -> Repetition | None:
    return next((item for item in repetitions if item.status != "ok"), None)


def _same(left: RunnerFailure | None, right: RunnerFailure | None) -> bool:
    return left is not None and left == right


def words_of(item: Repetition) -> str:
    """How a process without a record ended."""
    if item.failure is not None and item.failure.kind == "engine_refused":
        return f"{item.failure.variant}: {item.failure.message}"
    if item.failure is not None:
        return f"{item.failure.kind}: {item.failure.message}"
    return f"the runner {item.reason}" if item.reason else "the runner failed"
