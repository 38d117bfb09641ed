"""The derived agentic corpora on real engines: two releases agree, with and without lanes; all requests complete."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.cli import run_campaign

pytestmark = pytest.mark.engine

CONFIGS = Path(__file__).parents[2] / "configs"
TOKENS = {"agentic-sessions-400": (400, 94_518), "agentic-conversation-5000": (5_000, 1_730_337)}


def row(name: str, corpus: str, workload: dict[str, Any]) -> dict[str, Any]:
    document: dict[str, Any] = yaml.safe_load((CONFIGS / "rows" / "vllm-aggregated.yaml").read_text())
    requests, tokens = TOKENS[corpus]
    document |= {"name": name, "title": f"{corpus} for a test", "corpus": corpus}
    document["workload"] = {"kind": "agentic", "arrival_speedup_ratio": 4.0} | workload
    document["evidence"] = {"pressure": {"kind": "vllm_preemptions", "minimum": 0, "maximum": 1_000}}
    document["expected"] = {
        "num_requests": requests,
        "completed_requests": requests,
        "total_output_tokens": tokens,
        "all_requests_full_output": True,
    }
    return document


def test_two_releases_agree_on_the_derived_traces(tmp_path: Path, mooncake: Path) -> None:
    (tmp_path / "rows").mkdir()
    names = []
    for corpus in TOKENS:
        for kind, workload in {"lanes": {"lanes": 16}, "free": {}}.items():
            name = f"{corpus}-{kind}"
            names.append(name)
            (tmp_path / "rows" / f"{name}.yaml").write_text(yaml.safe_dump(row(name, corpus, workload)))
    campaign = yaml.safe_load((CONFIGS / "campaigns" / "conversation-0.12.0-0.12.1.yaml").read_text())
    path = tmp_path / "agentic.yaml"
    path.write_text(yaml.safe_dump(campaign | {"name": "agentic", "rows": names}))
    done = run_campaign(path, tmp_path / "results", "--corpus-dir", str(mooncake))
    assert done.code == 0, done.out + done.err
    digests = {name: done.row(name) for name in names}
    assert {found["outcome"] for found in digests.values()} == {"match"}
