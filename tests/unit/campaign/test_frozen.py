from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from replay_parity.campaign.corpus_file import Upstream
from replay_parity.campaign.frozen import FrozenRow, thaw
from replay_parity.campaign.loading import load_campaign
from replay_parity.campaign.row import PressureBounds, TraceWorkload

if TYPE_CHECKING:
    from tests.unit.campaign.conftest import Desk

_FROZEN: dict[str, Any] = {
    "row_name": "golden",
    "trace_file": "traces/slice.jsonl",
    "trace_sha256": "b" * 64,
    "trace_rows": 2,
    "trace_block_size": 512,
    "arrival_speedup_ratio": 4,
    "trace_upstream_repository": "kvcache-ai/Mooncake",
    "trace_upstream_commit": "c" * 40,
    "trace_upstream_path": "traces/full.jsonl",
    "trace_full_sha256": "d" * 64,
    "trace_full_rows": 10,
    "trace_slice_start": 3,
    "iterations": 2,
    "capture_canonical": True,
    "write_full_report": False,
    "metadata": {},
    "expected": {"canonical_sha256": "e" * 64, "vllm_preemptions": 2, "decode_workers": {"0": 1, "1": 1}},
    "spec": {
        "topology": {"kind": "aggregated", "workers": {"initial_workers": 4}},
        "engine": {"dp_size": 1, "rank": {"backend": "vllm", "num_gpu_blocks": 6144}},
        "requests": [],
    },
}


def _engine(backend: str) -> dict[str, Any]:
    return {"spec": _FROZEN["spec"] | {"engine": {"rank": {"backend": backend}}}, "expected": {}}


def _split(prefill: str, decode: str) -> dict[str, Any]:
    roles = {
        "rank": {"backend": "vllm"},
        "prefill": {"rank": {"backend": prefill}},
        "decode": {"rank": {"backend": decode}},
    }
    return {"spec": {"topology": {"kind": "disaggregated"}, "engine": roles}, "expected": {}}


def _frozen(**changes: Any) -> str:
    return json.dumps(_FROZEN | changes, indent=2)


def test_a_frozen_row_is_a_row_and_a_corpus_with_every_word_kept(desk: Desk) -> None:
    path = desk.write("rows/golden.json", _frozen(source_revision="abc", metadata={"owner": "me"}))
    loaded = load_campaign(desk.campaign("golden"))
    assert loaded.rows[0].path == path
    row = loaded.rows[0].row
    assert row.name == "golden"
    assert row.spec == _FROZEN["spec"]
    assert row.metadata == {"owner": "me"}
    assert row.workload == TraceWorkload(kind="trace", arrival_speedup_ratio=4.0)
    assert row.expected.canonical_sha256 == "e" * 64
    assert row.expected.decode_workers == {"0": 1, "1": 1}
    found = loaded.corpora[row.corpus]
    assert found.trace_file == desk.folder / "rows" / "traces" / "slice.jsonl"
    corpus = found.corpus
    assert (corpus.format, corpus.block_size) == ("mooncake", 512)
    assert (corpus.slice.start, corpus.slice.rows, corpus.slice.sha256) == (3, 2, "b" * 64)
    assert isinstance(corpus.source, Upstream)
    assert corpus.source.repository == "kvcache-ai/Mooncake"
    assert (corpus.source.path, corpus.source.full_rows) == ("traces/full.jsonl", 10)


def test_rows_that_say_the_same_of_their_trace_share_one_corpus(desk: Desk) -> None:
    desk.write("one.json", _frozen(row_name="one"))
    desk.write("two.json", _frozen(row_name="two", arrival_speedup_ratio=2.5))
    desk.write("three.json", _frozen(row_name="three", trace_block_size=64))
    files = [f"{{file: {name}.json}}" for name in ("one", "two", "three")]
    loaded = load_campaign(desk.campaign(*files))
    names = [item.row.corpus for item in loaded.rows]
    assert names[0] == names[1] != names[2]
    assert set(loaded.corpora) == set(names)


def test_a_file_that_is_named_by_the_campaign_may_be_called_anything(desk: Desk) -> None:
    desk.write("Some Row (2).json", _frozen())
    loaded = load_campaign(desk.campaign("{file: Some Row (2).json}"))
    assert loaded.rows[0].row.name == "golden"


def test_what_has_a_default_may_be_left_out() -> None:
    rest = ("iterations", "capture_canonical", "write_full_report", "metadata", "expected", "trace_slice_start")
    frozen = FrozenRow.model_validate({key: value for key, value in _FROZEN.items() if key not in rest})
    assert thaw(frozen).corpus.slice.start == 0


@pytest.mark.parametrize(
    ("changes", "bounds"),
    [
        ({}, ("vllm_preemptions", 2, 2)),
        ({"expected": {}}, ("vllm_preemptions", 1, 3)),
        ({"expected": {"vllm_preemptions": 0}}, ("vllm_preemptions", 0, 0)),
        (_engine("sglang"), ("sglang_retractions", 1, 3)),
        (_engine("trtllm"), ("none", 0, 0)),
        (_split("sglang", "vllm"), ("vllm_preemptions", 1, 3)),
        (_split("vllm", "sglang"), ("sglang_retractions", 1, 3)),
        ({"spec": {"engine": None}, "expected": {}}, ("vllm_preemptions", 1, 3)),
        ({"spec": {"engine": {"rank": {"backend": 7}}}, "expected": {}}, ("vllm_preemptions", 1, 3)),
    ],
)
def test_pressure_is_bounded_by_what_the_row_expects_else_by_its_backend(
    changes: dict[str, Any], bounds: tuple[str, int, int]
) -> None:
    kind, minimum, maximum = bounds
    found = thaw(FrozenRow.model_validate(_FROZEN | changes)).row.evidence.pressure
    assert found == PressureBounds.model_validate({"kind": kind, "minimum": minimum, "maximum": maximum})
