"""Evidence (rule 17): what a row's record must show besides its bytes, or a match is unqualified."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from replay_parity.campaign.row import Expected, Row
from replay_parity.corpus.totals import WorkloadTotals
from replay_parity.replay.counters import RecordCounters, count_record
from replay_parity.replay.qualification import Qualification

__all__ = ["EvidenceReport", "RecordCounters", "agree", "check_evidence", "count_record"]

# Counters that the runner takes from the same record; the two must agree.
_SAME = (
    "completed_requests",
    "num_requests",
    "total_input_tokens",
    "requested_output_tokens",
    "total_output_tokens",
    "all_requests_full_output",
    "requests_with_short_output",
    "terminal_counts",
    "prefill_workers",
    "decode_workers",
    "routing_counts",
    "requests_with_reuse",
    "requests_with_first_admission_reuse",
    "handoffs_complete",
    "vllm_preemptions",
    "sglang_retractions",
    "pressure_records",
    "all_pressure_records_readmitted",
    "virtual_duration_ms",
)


@dataclass
class EvidenceReport:
    """`problems` make a row unqualified; `notes` are reported beside the outcome (drift on the candidate)."""

    problems: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def check_evidence(
    counters: RecordCounters,
    *,
    row: Row,
    totals: WorkloadTotals,
    side: Literal["baseline", "candidate"],
    qualification: Qualification,
) -> EvidenceReport:
    """Hold a record's counters against what the row and its corpus demand, and against the runner's own."""
    report = EvidenceReport()
    _check_totals(counters, totals, report)
    if row.evidence.all_workers_used:
        _check_workers(counters, row, report)
    if _is_disaggregated(row):
        _check_handoffs(counters, report)
    _check_pressure(counters, row, side, report)
    if not counters.virtual_duration_ms > 0:
        report.problems.append("virtual time does not advance")
    if side == "baseline":
        _check_expected(counters, row.expected, report)
    report.problems += agree(counters, qualification)
    return report


def agree(counters: RecordCounters, qualification: Qualification) -> list[str]:
    """Where the record, counted in Python, and the runner's own counters disagree."""
    if qualification.counters_error is not None:
        return [f"the runner could not count its record: {qualification.counters_error}"]
    problems = []
    for name in _SAME:
        ours, theirs = _shown(getattr(counters, name)), _shown(getattr(qualification, name))
        if ours != theirs:
            problems.append(f"{name}: the record says {ours}, the runner counted {theirs}")
    return problems


def _shown(value: Any) -> Any:
    """Counts without their zeros, in a fixed order: `queued: 0` and nothing queued are the same."""
    if isinstance(value, Mapping):
        return {name: count for name, count in sorted(value.items()) if count}
    return value


def _check_totals(counters: RecordCounters, totals: WorkloadTotals, report: EvidenceReport) -> None:
    finished = counters.terminal_counts["completed"]
    if finished != totals.requests or counters.completed_requests != totals.requests:
        states = ", ".join(
            f"{number:,} {state}" for state, number in sorted(counters.terminal_counts.items()) if number
        )
        report.problems.append(
            f"{finished:,} of {totals.requests:,} requests completed ({states or 'none recorded'}; "
            f"the summary says {counters.completed_requests:,})"
        )
    pairs = (
        ("requests", counters.num_requests, totals.requests),
        ("request records", counters.records, totals.requests),
        ("input tokens", counters.total_input_tokens, totals.input_tokens),
        ("requested output tokens", counters.requested_output_tokens, totals.requested_output_tokens),
        ("output tokens", counters.total_output_tokens, totals.requested_output_tokens),
    )
    for name, found, wanted in pairs:
        if found != wanted:
            report.problems.append(f"{found:,} {name}, the corpus has {wanted:,}")
    if counters.requests_with_short_output:
        report.problems.append(f"{counters.requests_with_short_output:,} request(s) did not emit what they asked for")


def _is_disaggregated(row: Row) -> bool:
    return bool((row.spec.get("topology") or {}).get("kind") == "disaggregated")


def _check_workers(counters: RecordCounters, row: Row, report: EvidenceReport) -> None:
    """Every logical worker and every DP rank of it must have served a request."""
    topology, engine = row.spec.get("topology") or {}, row.spec.get("engine") or {}
    pools = {"prefill": "prefill", "decode": "decode"} if _is_disaggregated(row) else {"agg": "workers"}
    for pool, key in pools.items():
        workers = (topology.get(key) or {}).get("initial_workers", 1)
        ranks = ((engine.get(pool) if pool != "agg" else None) or engine).get("dp_size", 1)
        used = counters.ranks.get(pool, set())
        missing = sorted({(worker, rank) for worker in range(workers) for rank in range(ranks)} - used)
        if missing:
            worker, rank = missing[0]
            report.problems.append(
                f"{len(missing)} of {workers * ranks} worker ranks of pool '{pool}' served no request, "
                f"the first is worker {worker} rank {rank}"
            )


def _check_handoffs(counters: RecordCounters, report: EvidenceReport) -> None:
    if counters.handoffs_complete != counters.records:
        report.problems.append(f"{counters.handoffs_complete:,} of {counters.records:,} hand-offs are complete")
    if counters.handoffs_out_of_order:
        report.problems.append(f"{counters.handoffs_out_of_order:,} hand-off(s) have their times in a wrong order")


def _check_pressure(counters: RecordCounters, row: Row, side: str, report: EvidenceReport) -> None:
    bounds = row.evidence.pressure
    total = counters.vllm_preemptions + counters.sglang_retractions
    found = total if bounds.kind == "none" else getattr(counters, bounds.kind)
    words = "pressure events" if bounds.kind == "none" else bounds.kind.split("_", 1)[1]
    inside = bounds.minimum <= found <= bounds.maximum
    sentence = f"{found:,} {words}, the row asks for {bounds.minimum} to {bounds.maximum} on the baseline"
    if not inside and side == "baseline":
        report.problems.append(sentence)
    elif not inside:
        # Pressure windows do not carry over between releases, so a drift is told and decides nothing.
        report.notes.append(f"evidence drifted: {sentence}")
    if found != total:
        report.problems.append(f"{total - found:,} pressure events are of another kind than '{bounds.kind}'")
    if side == "baseline" and inside and counters.most_pressure_on_one_request > 1:
        report.problems.append(f"one request was taken out {counters.most_pressure_on_one_request} times: it cycles")
    if not counters.all_pressure_records_readmitted:
        missing = counters.pressure_records - counters.readmitted_records
        report.problems.append(f"{missing:,} of {counters.pressure_records:,} pressure records were never readmitted")
    if counters.pressure_records != total:
        report.problems.append(f"{counters.pressure_records:,} pressure records for {total:,} pressure events")


def _check_expected(counters: RecordCounters, expected: Expected, report: EvidenceReport) -> None:
    """The row's own expectations; its digest is not a counter and is checked where the digest is known."""
    for name, wanted in expected.model_dump(exclude_none=True, exclude={"canonical_sha256"}).items():
        found = _comparable(name, getattr(counters, name), wanted, counters)
        if found != _shown(wanted):
            report.problems.append(f"{name} is {found}, the row expects {_shown(wanted)}")


def _comparable(name: str, found: Any, wanted: Any, counters: RecordCounters) -> Any:
    """What the record says in the form in which the row says it."""
    if name == "handoffs_complete" and isinstance(wanted, bool):
        return found == counters.records
    if name == "routing_counts":
        # The record's placements are counted twice, as `immediate` and as `agg_immediate`: a row may name either.
        return _shown({key: found[key] for key in wanted})
    return _shown(found)
