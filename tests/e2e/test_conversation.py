"""The conversation matrix on real engines: counters and virtual durations of UPSTREAM.md's third table, every digit.

The TensorRT-LLM rows ship with 3,899 blocks: with the table's 3,867 two requests come out short (see their files).
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.cli import Finished, run_campaign
from tests.support.files import write_campaign

pytestmark = [pytest.mark.engine, pytest.mark.timeout(1800)]

# Row to preemptions or retractions, requests with reuse, hand-offs, virtual milliseconds on 0.12.1.
RUN = {
    "vllm-aggregated": (2, 4_996, 0, 1121624.6866249666),
    "vllm-aggregated-adp2": (2, 4_996, 0, 1462884.517838913),
    "vllm-disaggregated": (2, 4_998, 5_000, 1422131.237644008),
    "sglang-aggregated": (3, 4_996, 0, 563013.8852620244),
    "sglang-aggregated-adp2": (3, 4_996, 0, 771760.849406999),
    "sglang-disaggregated": (3, 4_995, 5_000, 810555.6452799999),
    "trtllm-aggregated": (0, 4_996, 0, 2369800.589035892),
    "trtllm-aggregated-adp2": (0, 4_996, 0, 2765801.575996652),
}
# Row to the refusal of 0.12.1, then as above on 0.13.0.
REFUSED = {
    "vllm-disaggregated-adp2-4": ("InvalidSpec", 2, 4_998, 5_000, 838231.4470720033),
    "sglang-disaggregated-adp2-4": ("InvalidSpec", 3, 4_998, 5_000, 820014.024910004),
    "trtllm-disaggregated": ("Invariant", 0, 4_998, 5_000, 4264780.198701935),
    "trtllm-disaggregated-adp2-4": ("InvalidSpec", 0, 4_998, 5_000, 2772672.0920180185),
}


def counters(side: dict[str, object]) -> tuple[object, ...]:
    found = side["qualification"]
    assert isinstance(found, dict)
    pressure = found["vllm_preemptions"] + found["sglang_retractions"]
    return pressure, found["requests_with_reuse"], found["handoffs_complete"], found["virtual_duration_ms"]


@pytest.fixture(scope="module")
def matrix(tmp_path_factory: pytest.TempPathFactory, mooncake: Path) -> Finished:
    output = tmp_path_factory.mktemp("matrix") / "results"
    return run_campaign("conversation-0.12.0-0.12.1", output, "--corpus-dir", str(mooncake))


def test_every_row_that_both_run_matches(matrix: Finished) -> None:
    assert matrix.code == 0, matrix.out + matrix.err
    assert matrix.verdict["counts"] == {"match": len(RUN)}


@pytest.mark.parametrize("row", RUN)
def test_the_counters_are_the_measured_ones(matrix: Finished, row: str) -> None:
    assert counters(matrix.row(row)["baseline"]) == RUN[row]


def test_rows_that_only_0_13_0_runs_are_told_with_the_refusal(tmp_path: Path, mooncake: Path) -> None:
    campaign = write_campaign(tmp_path, {"version": "0.12.1"}, {"version": "0.13.0"}, rows=list(REFUSED))
    done = run_campaign(str(campaign), tmp_path / "results", "--corpus-dir", str(mooncake))
    assert done.code == 1
    assert done.verdict["counts"] == {"baseline_unsupported": len(REFUSED)}
    for name, (variant, *wanted) in REFUSED.items():
        row = done.row(name)
        assert row["baseline"]["repetitions"][0]["refusal"]["variant"] == variant
        assert counters(row["candidate"]) == tuple(wanted)
