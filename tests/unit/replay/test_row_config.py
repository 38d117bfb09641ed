"""What the runner is given, and what its record must then say."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from replay_parity.campaign.corpus_file import Upstream
from replay_parity.campaign.row import AgenticWorkload, ClosedLoopWorkload
from replay_parity.canonical.metadata import check_metadata
from replay_parity.errors import CanonicalFormError
from replay_parity.replay.row_config import expected_metadata, runner_config

if TYPE_CHECKING:
    from tests.unit.replay.conftest import LoadPreflight

SHORT = ("vllm-one-worker", "vllm-two-workers", "vllm-disaggregated", "sglang-disaggregated")


@pytest.mark.parametrize("short", SHORT)
def test_a_real_record_carries_what_is_expected(preflight: LoadPreflight, short: str) -> None:
    found = preflight(short)
    check_metadata(found.record(), expected_metadata(found.row, found.corpus), where="record")


def test_a_record_of_another_row_or_corpus_is_refused(preflight: LoadPreflight) -> None:
    one, two = preflight("vllm-one-worker"), preflight("vllm-two-workers")
    for row, corpus in ((one.row, two.corpus), (two.row, one.corpus)):
        with pytest.raises(CanonicalFormError, match="metadata"):
            check_metadata(one.record(), expected_metadata(row, corpus), where="record")


def test_the_configuration_has_the_runners_form(preflight: LoadPreflight) -> None:
    found = preflight("vllm-one-worker")
    config = runner_config(found.row, found.corpus, trace=Path("/cache/slice.jsonl"))
    assert set(config) == {
        "schema",
        "row_name",
        "trace",
        "workload",
        "arrival_speedup_ratio",
        "metadata",
        "spec",
    }
    assert set(config["trace"]) == {"path", "sha256", "rows", "format", "block_size", "upstream", "slice_start"}
    assert config["trace"]["upstream"] == {
        "repository": "replay-parity",
        "commit": "inline",
        "path": "preflight-one-request",
        "full_sha256": found.corpus.source.full_sha256,
        "full_rows": 1,
    }
    assert (config["row_name"], config["workload"], config["spec"]["requests"]) == (found.name, {"kind": "trace"}, [])


def test_an_upstream_trace_is_named_as_it_is(preflight: LoadPreflight) -> None:
    found = preflight("vllm-one-worker")
    source = Upstream(
        kind="upstream",
        repository="https://example.org/traces",
        commit="c" * 40,
        path="folder/trace.jsonl",
        licence="Apache-2.0",
        full_sha256="d" * 64,
        full_rows=9,
    )
    corpus = found.corpus.model_copy(update={"source": source})
    upstream = expected_metadata(found.row, corpus)["workload"]["upstream"]
    assert (upstream["repository"], upstream["commit"], upstream["path"], upstream["full_rows"]) == (
        "https://example.org/traces",
        "c" * 40,
        "folder/trace.jsonl",
        9,
    )


@pytest.mark.parametrize(
    ("workload", "said"),
    [
        (ClosedLoopWorkload(kind="closed_loop", max_in_flight=64), {"kind": "closed_loop", "max_in_flight": 64}),
        (AgenticWorkload(kind="agentic"), {"kind": "agentic", "lanes": None}),
        (AgenticWorkload(kind="agentic", lanes=64), {"kind": "agentic", "lanes": 64}),
    ],
)
def test_other_admissions_are_told_and_expected(
    preflight: LoadPreflight, workload: ClosedLoopWorkload | AgenticWorkload, said: dict[str, object]
) -> None:
    found = preflight("vllm-one-worker")
    row = found.row.model_copy(update={"workload": workload})
    assert runner_config(row, found.corpus, trace=Path("x"))["workload"] == said
    assert expected_metadata(row, found.corpus)["workload"]["admission"] == said
    assert "admission" not in expected_metadata(found.row, found.corpus)["workload"]


def test_free_metadata_goes_into_both(preflight: LoadPreflight) -> None:
    found = preflight("vllm-one-worker")
    row = found.row.model_copy(update={"metadata": {"note": "mine"}})
    assert runner_config(row, found.corpus, trace=Path("x"))["metadata"] == {"note": "mine"}
    assert expected_metadata(row, found.corpus)["note"] == "mine"
