"""AI Simulate's own frozen row files are read as they are, and what they expect is held against the baseline."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.cli import run_campaign
from tests.support.files import write_campaign

pytestmark = pytest.mark.engine

ROWS = 5_000
CRATES = ({"version": "0.12.0"}, {"version": "0.12.1"})


@pytest.fixture
def frozen(tmp_path: Path, mooncake: Path, repository_root: Path) -> dict[str, Any]:
    """A frozen row with its trace beside it, as AI Simulate's qualification runner keeps them."""
    lines = (mooncake / "conversation_trace.jsonl").read_bytes().splitlines(keepends=True)[:ROWS]
    (tmp_path / "slice.jsonl").write_bytes(b"".join(lines))
    row = yaml.safe_load((repository_root / "configs" / "rows" / "sglang-aggregated.yaml").read_text())
    corpus = yaml.safe_load((repository_root / "configs" / "corpora" / "mooncake-conversation-5000.yaml").read_text())
    source = corpus["source"]
    return {
        "row_name": "sglang-aggregated",
        "trace_file": "slice.jsonl",
        "trace_sha256": corpus["slice"]["sha256"],
        "trace_rows": ROWS,
        "trace_block_size": 512,
        "arrival_speedup_ratio": 4.0,
        "trace_upstream_repository": source["repository"],
        "trace_upstream_commit": source["commit"],
        "trace_upstream_path": source["path"],
        "trace_full_sha256": source["full_sha256"],
        "trace_full_rows": source["full_rows"],
        "trace_slice_start": 0,
        "iterations": 1,
        "capture_canonical": True,
        "write_full_report": False,
        "source_revision": "ignored",
        "metadata": {},
        "expected": {"sglang_retractions": 3, "requests_with_reuse": 4996, "virtual_duration_ms": 563013.8852620244},
        "spec": row["spec"],
    }


def test_a_frozen_row_runs_as_it_is(tmp_path: Path, frozen: dict[str, Any]) -> None:
    (tmp_path / "frozen.json").write_text(json.dumps(frozen))
    campaign = write_campaign(tmp_path, *CRATES, rows=[{"file": "frozen.json"}])
    done = run_campaign(campaign, tmp_path / "results")
    assert done.code == 0, done.out + done.err
    assert done.row("sglang-aggregated")["outcome"] == "match"


def test_what_a_frozen_row_expects_is_demanded_of_the_baseline(tmp_path: Path, frozen: dict[str, Any]) -> None:
    frozen["expected"]["virtual_duration_ms"] = 563013.8852620245
    (tmp_path / "frozen.json").write_text(json.dumps(frozen))
    campaign = write_campaign(tmp_path, *CRATES, rows=[{"file": "frozen.json"}])
    done = run_campaign(campaign, tmp_path / "results")
    assert done.code == 1, done.out + done.err
    row = done.row("sglang-aggregated")
    assert row["outcome"] == "unqualified"
    assert "virtual_duration_ms is 563013.8852620244, the row expects 563013.8852620245" in row["reason"]
