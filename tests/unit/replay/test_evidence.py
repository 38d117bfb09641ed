"""Evidence on records that a real runner wrote, and on the same records with one thing spoiled."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal

import pytest

from replay_parity.campaign.row import Expected, Row
from replay_parity.corpus.totals import totals
from replay_parity.replay.counters import count_record
from replay_parity.replay.evidence import EvidenceReport, agree, check_evidence
from replay_parity.replay.qualification import Qualification

if TYPE_CHECKING:
    from tests.unit.replay.conftest import LoadPreflight, Preflight

SHORT = ("vllm-one-worker", "vllm-two-workers", "vllm-disaggregated", "sglang-disaggregated")
Record = dict[str, Any]


def check(
    found: Preflight,
    record: Record,
    *,
    row: Row | None = None,
    side: Literal["baseline", "candidate"] = "baseline",
    qualification: Qualification | None = None,
) -> EvidenceReport:
    counters = count_record(record)
    report = check_evidence(
        counters,
        row=row or found.row,
        totals=totals(found.slice),
        side=side,
        qualification=qualification or found.qualification(),
    )
    if qualification is None:
        # What the runner counted before the record was spoiled says nothing new.
        told = agree(counters, found.qualification())
        report.problems = [problem for problem in report.problems if problem not in told]
    return report


@pytest.mark.parametrize("short", SHORT)
@pytest.mark.parametrize("side", ["baseline", "candidate"])
def test_a_good_record_has_all_its_evidence(
    preflight: LoadPreflight, short: str, side: Literal["baseline", "candidate"]
) -> None:
    found = preflight(short)
    assert agree(count_record(found.record()), found.qualification()) == []
    report = check(found, found.record(), side=side)
    assert (report.problems, report.notes) == ([], [])


def test_counters_of_a_record(preflight: LoadPreflight) -> None:
    counters = count_record(preflight("vllm-two-workers").record())
    assert (counters.records, counters.terminal_counts["completed"]) == (4, 4)
    assert counters.decode_workers == {"0": 2, "1": 2}
    assert counters.ranks == {"agg": {(0, 0), (1, 0)}}
    assert counters.routing_counts == {"immediate": 4, "agg_immediate": 4}
    assert (counters.all_requests_full_output, counters.all_pressure_records_readmitted) == (True, True)
    handed = count_record(preflight("sglang-disaggregated").record())
    assert (handed.handoffs_complete, handed.handoffs_out_of_order, handed.virtual_duration_ms) == (1, 0, 10.0)


def pressed(record: Record, kind: str, *requests: int, readmitted: float | None = 5.0) -> None:
    """Add one pressure record for each of the named requests."""
    pressure = record["coverage"]["pressure"]
    pressure[f"{kind}_total"] += len(requests)
    for request in requests:
        uuid = record["per_request"][request]["uuid"]
        pressure["records"].append({"request_uuid": uuid, "at_ms": 4.0, "readmitted_at_ms": readmitted})


def _incomplete(record: Record) -> None:
    record["per_request"][0]["terminal_status"] = "rejected"


def _summary_incomplete(record: Record) -> None:
    record["summary"]["completed_requests"] -= 1


def _short(record: Record) -> None:
    record["per_request"][0]["output_length"] -= 1


def _long(record: Record) -> None:
    record["per_request"][0]["output_length"] += 1
    record["per_request"][0]["requested_output_length"] += 1


def _other_input(record: Record) -> None:
    record["per_request"][0]["input_length"] += 1


def _lost(record: Record) -> None:
    record["per_request"].pop()


def _one_worker(record: Record) -> None:
    for request in record["per_request"]:
        request["routing_history"][0]["logical_worker_id"] = 0


def _no_time(record: Record) -> None:
    record["summary"]["duration_ms"] = 0.0


def _cut_handoff(record: Record) -> None:
    record["per_request"][0]["source_released_ms"] = None


def _handoff_backwards(record: Record) -> None:
    record["per_request"][0]["destination_activated_ms"] = 1e9


def _never_back(record: Record) -> None:
    pressed(record, "vllm_preemptions", 0, readmitted=None)


def _back_before(record: Record) -> None:
    pressed(record, "vllm_preemptions", 0, readmitted=1.0)


def _unrecorded(record: Record) -> None:
    record["coverage"]["pressure"]["vllm_preemptions_total"] = 1


@pytest.mark.parametrize(
    ("short", "spoil", "words"),
    [
        ("vllm-two-workers", _incomplete, "3 of 4 requests completed (3 completed, 1 rejected; the summary says 4)"),
        ("vllm-two-workers", _summary_incomplete, "the summary says 3"),
        ("vllm-two-workers", _short, "1 request(s) did not emit what they asked for"),
        ("vllm-two-workers", _short, "3 output tokens, the corpus has 4"),
        ("vllm-two-workers", _long, "5 requested output tokens, the corpus has 4"),
        ("vllm-two-workers", _other_input, "17 input tokens, the corpus has 16"),
        ("vllm-two-workers", _lost, "3 request records, the corpus has 4"),
        ("vllm-two-workers", _one_worker, "1 of 2 worker ranks of pool 'agg' served no request, the first is worker 1"),
        ("vllm-two-workers", _no_time, "virtual time does not advance"),
        ("vllm-disaggregated", _cut_handoff, "0 of 1 hand-offs are complete"),
        ("vllm-disaggregated", _handoff_backwards, "1 hand-off(s) have their times in a wrong order"),
        ("sglang-disaggregated", _handoff_backwards, "1 hand-off(s) have their times in a wrong order"),
        ("vllm-two-workers", _never_back, "1 of 1 pressure records were never readmitted"),
        ("vllm-two-workers", _back_before, "1 of 1 pressure records were never readmitted"),
        ("vllm-two-workers", _unrecorded, "0 pressure records for 1 pressure events"),
    ],
)
@pytest.mark.parametrize("side", ["baseline", "candidate"])
def test_each_missing_piece_is_a_sentence_on_both_sides(
    preflight: LoadPreflight,
    short: str,
    spoil: Callable[[Record], None],
    words: str,
    side: Literal["baseline", "candidate"],
) -> None:
    found = preflight(short)
    record = found.record()
    spoil(record)
    assert any(words in problem for problem in check(found, record, side=side).problems)


def test_the_order_of_a_handoff_depends_on_the_backend(preflight: LoadPreflight) -> None:
    record = preflight("sglang-disaggregated").record()
    times = record["per_request"][0]
    # SGLang reserves first; the same times are wrong for the others.
    assert times["destination_reserved_ms"] < times["source_held_ms"]
    assert count_record(record).handoffs_out_of_order == 0
    record["metadata"]["engine"]["prefill"]["rank"]["backend"] = "trtllm"
    assert count_record(record).handoffs_out_of_order == 1


def test_data_parallel_ranks_must_all_be_used(preflight: LoadPreflight) -> None:
    found = preflight("vllm-two-workers")
    row = found.row.model_copy(update={"spec": {**found.row.spec, "engine": {"dp_size": 2}}})
    (problem,) = check(found, found.record(), row=row).problems
    assert problem == "2 of 4 worker ranks of pool 'agg' served no request, the first is worker 0 rank 1"
    record = found.record()
    for number, request in enumerate(record["per_request"]):
        request["routing_history"][0] |= {"logical_worker_id": number // 2, "dp_rank": number % 2}
    assert check(found, record, row=row).problems == []


def test_a_role_without_ranks_of_its_own_has_those_of_the_engine(preflight: LoadPreflight) -> None:
    found = preflight("vllm-disaggregated")
    engine = {"dp_size": 2, "decode": {"dp_size": 1}}
    row = found.row.model_copy(update={"spec": {**found.row.spec, "engine": engine}})
    (problem,) = check(found, found.record(), row=row).problems
    assert "1 of 2 worker ranks of pool 'prefill'" in problem


def test_a_row_need_not_use_all_its_workers(preflight: LoadPreflight) -> None:
    found = preflight("vllm-two-workers")
    evidence = found.row.evidence.model_copy(update={"all_workers_used": False})
    record = found.record()
    _one_worker(record)
    assert check(found, record, row=found.row.model_copy(update={"evidence": evidence})).problems == []


# Pressure


def bounded(found: Preflight, kind: str, minimum: int, maximum: int) -> Row:
    pressure = {"kind": kind, "minimum": minimum, "maximum": maximum}
    return Row.model_validate({**found.row.model_dump(), "evidence": {"pressure": pressure}})


@pytest.mark.parametrize(("events", "inside"), [((), False), ((0,), True), ((0, 1, 2), True), ((0, 1, 2, 3), False)])
def test_pressure_qualifies_the_baseline_and_is_drift_on_the_candidate(
    preflight: LoadPreflight, events: tuple[int, ...], inside: bool
) -> None:
    found = preflight("vllm-two-workers")
    row = bounded(found, "vllm_preemptions", 1, 3)
    record = found.record()
    pressed(record, "vllm_preemptions", *events)
    sentence = f"{len(events)} preemptions, the row asks for 1 to 3 on the baseline"
    baseline = check(found, record, row=row, side="baseline")
    assert (baseline.problems, baseline.notes) == ([] if inside else [sentence], [])
    candidate = check(found, record, row=row, side="candidate")
    assert (candidate.problems, candidate.notes) == ([], [] if inside else [f"evidence drifted: {sentence}"])


def test_pressure_of_another_kind(preflight: LoadPreflight) -> None:
    found = preflight("vllm-two-workers")
    record = found.record()
    pressed(record, "vllm_preemptions", 0)
    pressed(record, "sglang_retractions", 1)
    report = check(found, record, row=bounded(found, "vllm_preemptions", 1, 3))
    assert report.problems == ["1 pressure events are of another kind than 'vllm_preemptions'"]


def test_none_where_the_backend_never_evicts(preflight: LoadPreflight) -> None:
    found = preflight("vllm-two-workers")
    record = found.record()
    pressed(record, "vllm_preemptions", 0)
    assert check(found, record).problems == ["1 pressure events, the row asks for 0 to 0 on the baseline"]


def test_one_request_that_cycles(preflight: LoadPreflight) -> None:
    found = preflight("vllm-two-workers")
    record = found.record()
    pressed(record, "vllm_preemptions", 2, 2)
    row = bounded(found, "vllm_preemptions", 1, 3)
    assert check(found, record, row=row).problems == ["one request was taken out 2 times: it cycles"]
    assert check(found, record, row=row, side="candidate").problems == []


# The row's own expectations, the runner's own counters


@pytest.mark.parametrize(
    ("expected", "problem"),
    [
        ({"terminal_counts": {"completed": 4}, "decode_workers": {"0": 2, "1": 2}, "prefill_workers": {}}, None),
        ({"routing_counts": {"agg_immediate": 4, "queued": 0}, "all_pressure_records_readmitted": True}, None),
        ({"routing_counts": {"immediate": 4}, "all_requests_full_output": True, "requests_with_reuse": 0}, None),
        ({"handoffs_complete": 0, "virtual_duration_ms": 2.0}, None),
        ({"handoffs_complete": True}, "handoffs_complete is False, the row expects True"),
        ({"vllm_preemptions": 2}, "vllm_preemptions is 0, the row expects 2"),
        ({"virtual_duration_ms": 1.5}, "virtual_duration_ms is 2.0, the row expects 1.5"),
        ({"decode_workers": {"0": 4}}, "decode_workers is {'0': 2, '1': 2}, the row expects {'0': 4}"),
        ({"routing_counts": {"agg_queued": 1}}, "routing_counts is {}, the row expects {'agg_queued': 1}"),
        ({"canonical_sha256": "a" * 64}, None),
    ],
)
def test_expectations_of_the_row(preflight: LoadPreflight, expected: dict[str, Any], problem: str | None) -> None:
    found = preflight("vllm-two-workers")
    row = found.row.model_copy(update={"expected": Expected(**expected)})
    assert check(found, found.record(), row=row).problems == ([problem] if problem else [])
    # They are of the baseline.
    assert check(found, found.record(), row=row, side="candidate").problems == []


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("completed_requests", 3),
        ("total_output_tokens", None),
        ("all_requests_full_output", False),
        ("decode_workers", {"0": 4}),
        ("routing_counts", {"immediate": 3, "queued": 1}),
        ("requests_with_first_admission_reuse", 1),
        ("virtual_duration_ms", 1.0000001),
    ],
)
def test_a_runner_that_counts_otherwise(preflight: LoadPreflight, name: str, value: object) -> None:
    found = preflight("vllm-two-workers")
    counted = found.qualification().model_copy(update={name: value})
    (problem,) = check(found, found.record(), qualification=counted).problems
    assert problem.startswith(f"{name}: the record says ")


def test_a_runner_that_could_not_count(preflight: LoadPreflight) -> None:
    found = preflight("vllm-two-workers")
    counted = found.qualification().model_copy(update={"counters_error": "/summary: missing field"})
    (problem,) = check(found, found.record(), qualification=counted).problems
    assert problem == "the runner could not count its record: /summary: missing field"


@pytest.mark.parametrize(
    ("section", "name"), [("summary", "duration_ms"), ("coverage", "pressure"), ("metadata", "engine")]
)
def test_a_record_without_a_field_that_is_counted(preflight: LoadPreflight, section: str, name: str) -> None:
    record = preflight("vllm-two-workers").record()
    del record[section][name]
    with pytest.raises(KeyError, match=name):
        count_record(record)
