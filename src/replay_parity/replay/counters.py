"""What a canonical record shows besides its bytes, counted in Python, independent of the runner's own counters."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

_HANDOFF_TIMES = (
    "prefill_admit_ms",
    "source_held_ms",
    "destination_reserved_ms",
    "destination_activated_ms",
    "decode_admit_ms",
    "source_released_ms",
)


@dataclass
class RecordCounters:
    """Counters read from a canonical record; names as in the runner's qualification, virtual duration in ms.

    `ranks` holds for each pool the (logical worker, DP rank) pairs that served requests, `handoffs_out_of_order` is
    counted among the complete ones, `most_pressure_on_one_request` is the largest number of pressure records of one.
    """

    completed_requests: int = 0
    num_requests: int = 0
    records: int = 0
    total_input_tokens: int = 0
    requested_output_tokens: int = 0
    total_output_tokens: int = 0
    requests_with_short_output: int = 0
    requests_with_reuse: int = 0
    requests_with_first_admission_reuse: int = 0
    handoffs_complete: int = 0
    handoffs_out_of_order: int = 0
    vllm_preemptions: int = 0
    sglang_retractions: int = 0
    pressure_records: int = 0
    readmitted_records: int = 0
    most_pressure_on_one_request: int = 0
    virtual_duration_ms: float = 0.0
    terminal_counts: Counter[str] = field(default_factory=Counter)
    prefill_workers: Counter[str] = field(default_factory=Counter)
    decode_workers: Counter[str] = field(default_factory=Counter)
    routing_counts: Counter[str] = field(default_factory=Counter)
    ranks: dict[str, set[tuple[int, int]]] = field(default_factory=dict)

    @property
    def all_requests_full_output(self) -> bool:
        """Whether every request emitted exactly what it asked for."""
        return self.requests_with_short_output == 0

    @property
    def all_pressure_records_readmitted(self) -> bool:
        """Whether every request that was taken out came back."""
        return self.readmitted_records == self.pressure_records


def count_record(record: Mapping[str, Any]) -> RecordCounters:
    """Count a proven record; KeyError, TypeError or AttributeError when a field of every release is missing or odd."""
    counters = RecordCounters()
    reserves_first = _backend(record) == "sglang"
    for request in record["per_request"]:
        _count_request(request, counters)
        _count_handoff(request, counters, reserves_first=reserves_first)
    summary = record["summary"]
    counters.completed_requests = summary["completed_requests"]
    counters.num_requests = summary["num_requests"]
    counters.virtual_duration_ms = summary["duration_ms"]
    _count_pressure(record["coverage"]["pressure"], counters)
    return counters


def _backend(record: Mapping[str, Any]) -> str:
    engine = record["metadata"]["engine"]
    return str(((engine.get("prefill") or engine)["rank"])["backend"])


def _count_request(request: Mapping[str, Any], counters: RecordCounters) -> None:
    counters.records += 1
    counters.total_input_tokens += request["input_length"]
    counters.requested_output_tokens += request["requested_output_length"]
    counters.total_output_tokens += request["output_length"]
    counters.requests_with_short_output += request["output_length"] != request["requested_output_length"]
    counters.terminal_counts[str(request["terminal_status"])] += 1
    counters.requests_with_reuse += request["reused_input_tokens"] > 0
    # Later admissions say little: before 0.13.0 SGLang counts the continuation of a chunked prefill as one.
    first = next(iter(request["admission_history"]), None)
    counters.requests_with_first_admission_reuse += first is not None and first["reused_input_tokens"] > 0
    if request["prefill_worker_idx"] is not None:
        counters.prefill_workers[str(request["prefill_worker_idx"])] += 1
    if request["decode_worker_idx"] is not None:
        counters.decode_workers[str(request["decode_worker_idx"])] += 1
    for route in request["routing_history"]:
        counters.routing_counts[route["outcome"]] += 1
        counters.routing_counts[f"{route['pool']}_{route['outcome']}"] += 1
        counters.ranks.setdefault(route["pool"], set()).add((route["logical_worker_id"], route["dp_rank"]))


def _count_handoff(request: Mapping[str, Any], counters: RecordCounters, *, reserves_first: bool) -> None:
    times = [request[name] for name in _HANDOFF_TIMES]
    if any(time is None for time in times):
        return
    counters.handoffs_complete += 1
    admitted, held, reserved, activated, decoding, released = times
    # SGLang reserves at the destination before it holds at the source, mostly before it admits (rule 17).
    begins = reserved <= held <= activated if reserves_first else admitted <= held <= reserved <= activated
    counters.handoffs_out_of_order += not (begins and activated <= released and activated <= decoding)


def _count_pressure(pressure: Mapping[str, Any], counters: RecordCounters) -> None:
    counters.vllm_preemptions = pressure["vllm_preemptions_total"]
    counters.sglang_retractions = pressure["sglang_retractions_total"]
    records = pressure["records"]
    counters.pressure_records = len(records)
    counters.readmitted_records = sum(
        item["readmitted_at_ms"] is not None and item["readmitted_at_ms"] >= item["at_ms"] for item in records
    )
    of_requests = Counter(item["request_uuid"] for item in records)
    counters.most_pressure_on_one_request = max(of_requests.values(), default=0)
