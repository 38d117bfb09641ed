"""Closed-loop and agentic rows on real engines, and TensorRT-LLM at the capacity of UPSTREAM.md's third table."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.cli import Finished, run_campaign
from tests.support.files import write_campaign

pytestmark = [pytest.mark.engine, pytest.mark.timeout(900)]

CONFIGS = Path(__file__).parents[2] / "configs"
# Row to preemptions or retractions and virtual milliseconds on 0.12.1, at the shipped capacity.
RUN = {
    "vllm-aggregated-closed-64": (2, 1174118.5976739905),
    "sglang-aggregated-closed-64": (2, 1047668.0741399731),
    "vllm-disaggregated-closed-64": (2, 1410124.3626929978),
    "vllm-aggregated-agentic": (3, 1204600.0769749708),
    "vllm-aggregated-agentic-64": (1, 1199921.7726449748),
    "sglang-aggregated-agentic": (1, 665331.0325640005),
}
AS_IN_THE_TABLE = {"trtllm-aggregated": 2382402.857198912, "trtllm-aggregated-adp2": 2777166.202899666}


@pytest.fixture(scope="module")
def workloads(tmp_path_factory: pytest.TempPathFactory, mooncake: Path) -> Finished:
    output = tmp_path_factory.mktemp("workloads") / "results"
    return run_campaign("workloads-0.12.0-0.12.1", output, "--corpus-dir", str(mooncake))


def test_every_row_matches(workloads: Finished) -> None:
    assert workloads.code == 0, workloads.out + workloads.err
    assert workloads.verdict["counts"] == {"match": len(RUN)}


@pytest.mark.parametrize("row", RUN)
def test_the_counters_are_the_measured_ones(workloads: Finished, row: str) -> None:
    found = workloads.row(row)["baseline"]["qualification"]
    assert (found["vllm_preemptions"] + found["sglang_retractions"], found["virtual_duration_ms"]) == RUN[row]
    assert found["requests_with_short_output"] == 0


def test_trtllm_with_3867_blocks_meets_the_table_and_is_unqualified(tmp_path: Path, mooncake: Path) -> None:
    (tmp_path / "rows").mkdir()
    rows = {f"{name}-3867": (name, duration) for name, duration in AS_IN_THE_TABLE.items()}
    for name, (shipped, _) in rows.items():
        row: dict[str, Any] = yaml.safe_load((CONFIGS / "rows" / f"{shipped}.yaml").read_text())
        row["name"] = name
        row["spec"]["engine"]["rank"]["num_gpu_blocks"] = 3_867
        (tmp_path / "rows" / f"{name}.yaml").write_text(yaml.safe_dump(row))
    campaign = write_campaign(tmp_path, {"version": "0.12.0"}, {"version": "0.12.1"}, rows=list(rows))
    done = run_campaign(str(campaign), tmp_path / "results", "--corpus-dir", str(mooncake))
    assert done.code == 1
    assert done.verdict["counts"] == {"unqualified": len(rows)}
    for name, (_, duration) in rows.items():
        side = done.row(name)["baseline"]
        assert side["qualification"]["virtual_duration_ms"] == duration
        assert side["qualification"]["requests_with_short_output"] == 2
        assert any("2 request(s) did not emit what they asked for" in problem for problem in side["evidence_problems"])
