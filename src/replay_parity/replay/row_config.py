"""A frozen row as the runner reads it, and the metadata that its record must carry (rule 15; UPSTREAM.md, metadata)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from replay_parity.campaign.corpus_file import Corpus, Derived, Generator, Inline
from replay_parity.campaign.row import AgenticWorkload, ClosedLoopWorkload, Row

CONFIG_SCHEMA = "replay-parity.runner-config.v1"
# The campaign name of AI Simulate's own qualification runner: published digests can only be met with it.
_RECORD_CAMPAIGN = "aisimulate.engine-replay-parity.v1"


def runner_config(row: Row, corpus: Corpus, *, trace: Path) -> dict[str, Any]:
    """The configuration of one repetition; `trace` is the verified slice."""
    return {
        "schema": CONFIG_SCHEMA,
        "row_name": row.name_in_record,
        "trace": {
            "path": str(trace),
            "sha256": corpus.slice.sha256,
            "rows": corpus.slice.rows,
            "format": corpus.format,
            "block_size": corpus.block_size,
            "upstream": _upstream(corpus),
            "slice_start": corpus.slice.start,
        },
        "workload": _workload(row),
        "arrival_speedup_ratio": row.workload.arrival_speedup_ratio,
        "metadata": row.metadata,
        "spec": {**row.spec, "requests": []},
    }


def expected_metadata(row: Row, corpus: Corpus) -> dict[str, Any]:
    """What the record's metadata must say besides `engine`, which the revision normalises itself."""
    workload: dict[str, Any] = {
        "format": corpus.format,
        "sha256": corpus.slice.sha256,
        "rows": corpus.slice.rows,
        "block_size": corpus.block_size,
        "arrival_speedup_ratio": row.workload.arrival_speedup_ratio,
        "upstream": _upstream(corpus),
        "slice": {"start_zero_based": corpus.slice.start, "rows": corpus.slice.rows},
    }
    if row.workload.kind != "trace":
        workload["admission"] = _workload(row)
    return {
        **row.metadata,
        "campaign": _RECORD_CAMPAIGN,
        "row_name": row.name_in_record,
        "composition": {"placement": "round_robin", "scaling": "none"},
        "workload": workload,
        "topology": row.spec.get("topology"),
    }


def _workload(row: Row) -> dict[str, Any]:
    if isinstance(row.workload, ClosedLoopWorkload):
        return {"kind": "closed_loop", "max_in_flight": row.workload.max_in_flight}
    if isinstance(row.workload, AgenticWorkload):
        return {"kind": "agentic", "lanes": row.workload.lanes}
    return {"kind": "trace"}


def _upstream(corpus: Corpus) -> dict[str, Any]:
    source = corpus.source
    if isinstance(source, Generator):
        origin = {"repository": "replay-parity", "commit": source.name, "path": f"seed {source.seed}"}
    elif isinstance(source, Derived):
        base = f"{source.derived_from.name} (SHA-256 {source.derived_from.slice.sha256})"
        origin = {"repository": "replay-parity", "commit": source.name, "path": f"seed {source.seed} from {base}"}
    elif isinstance(source, Inline):
        origin = {"repository": "replay-parity", "commit": "inline", "path": corpus.name}
    else:
        origin = {"repository": source.repository, "commit": source.commit, "path": source.path}
    return {**origin, "full_sha256": source.full_sha256, "full_rows": source.full_rows}
