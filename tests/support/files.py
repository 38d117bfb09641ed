"""Campaign files of tests."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

CONVERSATION_ROWS = ["vllm-aggregated", "sglang-aggregated", "trtllm-aggregated", "vllm-disaggregated"]
DEMO_ROWS = [f"demo-{name}" for name in CONVERSATION_ROWS]


def campaign_document(baseline: dict[str, Any], candidate: dict[str, Any], **changes: Any) -> dict[str, Any]:
    """A campaign of one row; `changes` replace whole keys."""
    return {
        "schema_version": 1,
        "name": "test",
        "title": "A campaign of a test",
        "baseline": baseline,
        "candidate": candidate,
        "relationship": {"stated": "the test says so"},
        "build": {"toolchain": "path", "profile": "release", "flags": [], "features": []},
        "rows": ["demo-vllm-aggregated"],
        **changes,
    }


def write_campaign(folder: Path, baseline: dict[str, Any], candidate: dict[str, Any], **changes: Any) -> Path:
    """Write a campaign file and return its path."""
    path = folder / "campaign.yaml"
    path.write_text(yaml.safe_dump(campaign_document(baseline, candidate, **changes), sort_keys=False))
    return path
