"""Evidence (rule 17): what the record shows besides its bytes, read in Python, independent of the runner's counters."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from replay_parity.campaign.row import Expected, Row
from replay_parity.corpus.totals import WorkloadTotals
from replay_parity.replay.qualification import Qualification

_HANDOFF_TIMES = (
    "prefill_admit_ms",
    "source_held_ms",
    "destination_reserved_ms",
    "destination_activated_ms",
    "decode_admit_ms",
    "source_released_ms",
)
_FLOOD = 10


@dataclass
class EvidenceReport:
    """`problems` make a row unqualified; `notes` are reported beside the outcome (drift on the candidate)."""

    problems: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


@dataclass
class RecordCounters:
    """Counters read from a canonical record; names as in the runner's qualification, virtual duration in ms."""

    completed_requests: int = 0
    num_requests: int = 0
    total_input_tokens: int = 0
    requested_output_tokens: int = 0
    total_output_tokens: int = 0
    requests_with_short_output: int = 0
    requests_with_reuse: int = 0
    handoffs_complete: int = 0
    vllm_preemptions: int = 0
    sglang_retractions: int = 0
    pressure_records: int = 0
    readmitted_records: int = 0
    virtual_duration_ms: float = 0.0
    terminal: Counter[str] = field(default_factory=Counter)
    workers: dict[str, Counter[int]] = field(default_factory=dict)


def count_record(record: Mapping[str, Any]) -> RecordCounters:
    """Count a proven record; KeyError or TypeError when a field that every release writes is missing."""
    counters = RecordCounters()
    for request in record["per_request"]:
        _count_request(request, counters)
    summary = record["summary"]
    counters.completed_requests = summary["completed_requests"]
    counters.num_requests = summary["num_requests"]
    counters.virtual_duration_ms = summary["duration_ms"]
    pressure = record["coverage"].get("pressure") or {}
    counters.vllm_preemptions = pressure.get("vllm_preemptions_total", 0)
    counters.sglang_retractions = pressure.get("sglang_retractions_total", 0)
    records = pressure.get("records", [])
    counters.pressure_records = len(records)
    counters.readmitted_records = sum(1 for item in records if item["readmitted_at_ms"] is not None)
    return counters


def _count_request(request: Mapping[str, Any], counters: RecordCounters) -> None:
    counters.total_input_tokens += request["input_length"]
    counters.requested_output_tokens += request["requested_output_length"]
    counters.total_output_tokens += request["output_length"]
    counters.requests_with_short_output += request["output_length"] != request["requested_output_length"]
    counters.terminal[str(request["terminal_status"])] += 1
    counters.handoffs_complete += all(request.get(name) is not None for name in _HANDOFF_TIMES)
    counters.requests_with_reuse += request["reused_input_tokens"] > 0
    for route in request["routing_history"]:
        counters.workers.setdefault(route["pool"], Counter())[route["logical_worker_id"]] += 1


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
    _check_workers(counters, row, report)
    _check_pressure(counters, row, side, report)
    if not counters.virtual_duration_ms > 0:
        report.problems.append("virtual time does not advance")
    if side == "baseline":
        _check_expected(counters, row.expected, qualification, report)
    report.problems += agree(counters, qualification)
    return report


def agree(counters: RecordCounters, qualification: Qualification) -> list[str]:
    """Where the record, counted in Python, and the runner's own counters disagree."""
    if qualification.counters_error is not None:
        return [f"the runner could not count its record: {qualification.counters_error}"]
    names = (
        "completed_requests",
        "num_requests",
        "total_input_tokens",
        "requested_output_tokens",
        "total_output_tokens",
        "requests_with_short_output",
        "requests_with_reuse",
        "handoffs_complete",
        "vllm_preemptions",
        "sglang_retractions",
        "pressure_records",
        "virtual_duration_ms",
    )
    return [
        f"{name}: the record says {getattr(counters, name)}, the runner counted {getattr(qualification, name)}"
        for name in names
        if getattr(counters, name) != getattr(qualification, name)
    ]


def _check_totals(counters: RecordCounters, totals: WorkloadTotals, report: EvidenceReport) -> None:
    finished = counters.terminal["completed"]
    if finished != totals.requests or counters.completed_requests != totals.requests:
        states = ", ".join(f"{number} {state}" for state, number in sorted(counters.terminal.items()))
        report.problems.append(f"{finished} of {totals.requests} requests completed ({states})")
    pairs = (
        ("requests", counters.num_requests, totals.requests),
        ("input tokens", counters.total_input_tokens, totals.input_tokens),
        ("requested output tokens", counters.requested_output_tokens, totals.requested_output_tokens),
        ("output tokens", counters.total_output_tokens, totals.requested_output_tokens),
    )
    for name, found, wanted in pairs:
        if found != wanted:
            report.problems.append(f"{found:,} {name}, the corpus has {wanted:,}")
    if counters.requests_with_short_output:
        report.problems.append(f"{counters.requests_with_short_output} request(s) did not emit what they asked for")


def _check_workers(counters: RecordCounters, row: Row, report: EvidenceReport) -> None:
    if not row.evidence.all_workers_used:
        return
    topology = row.spec.get("topology") or {}
    pools = (
        {"prefill": topology.get("prefill"), "decode": topology.get("decode")}
        if topology.get("kind") == "disaggregated"
        else {"agg": topology.get("workers")}
    )
    for pool, spec in pools.items():
        wanted = spec.get("initial_workers", 1) if isinstance(spec, dict) else 1
        used = len(counters.workers.get(pool, {}))
        if used != wanted:
            report.problems.append(f"{used} of {wanted} workers of pool '{pool}' served requests")
    if topology.get("kind") == "disaggregated" and counters.handoffs_complete != counters.num_requests:
        report.problems.append(f"{counters.handoffs_complete} of {counters.num_requests} hand-offs are complete")


def _check_pressure(counters: RecordCounters, row: Row, side: str, report: EvidenceReport) -> None:
    bounds = row.evidence.pressure
    total = counters.vllm_preemptions + counters.sglang_retractions
    found = total if bounds.kind == "none" else getattr(counters, bounds.kind)
    words = "pressure events" if bounds.kind == "none" else bounds.kind.split("_", 1)[1]
    outside = not bounds.minimum <= found <= bounds.maximum or found != total
    sentence = f"{found} {words}, the row asks for {bounds.minimum} to {bounds.maximum}"
    if outside and side == "baseline":
        report.problems.append(sentence)
    elif side == "candidate" and ((bounds.minimum > 0 and found == 0) or found > bounds.maximum + _FLOOD):
        # Pressure windows do not carry over between releases, so a drift is told and decides nothing.
        report.notes.append(f"evidence drifted: {sentence} of the baseline")
    if counters.readmitted_records != counters.pressure_records:
        missing = counters.pressure_records - counters.readmitted_records
        report.problems.append(f"{missing} of {counters.pressure_records} pressure records were never readmitted")
    if counters.pressure_records != total:
        report.problems.append(f"{counters.pressure_records} pressure records for {total} pressure events")


def _check_expected(
    counters: RecordCounters, expected: Expected, qualification: Qualification, report: EvidenceReport
) -> None:
    found = {
        **qualification.model_dump(),
        "all_requests_full_output": counters.requests_with_short_output == 0,
        "terminal_counts": dict(counters.terminal),
        "all_pressure_records_readmitted": counters.readmitted_records == counters.pressure_records,
        **{name: value for name, value in vars(counters).items() if isinstance(value, (int, float))},
    }
    for name, wanted in expected.model_dump(exclude_none=True).items():
        value = found[name]
        if name == "handoffs_complete" and isinstance(wanted, bool):
            value = value == counters.num_requests
        if value != wanted:
            report.problems.append(f"{name} is {value}, the row expects {wanted}")
