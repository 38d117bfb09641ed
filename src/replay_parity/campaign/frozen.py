"""AI Simulate's own frozen rows (UPSTREAM.md, "Its frozen row files are JSON"), read as they are.

One file holds what we keep in two: a row, and the trace that it replays. Nothing in it is changed; what has no meaning
here (`iterations`, `capture_canonical`, `write_full_report`, `source_revision`) is accepted and not used.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

import orjson
from pydantic import Field, model_validator

from replay_parity.campaign.base import CommitId, Identifier, InputModel, Location, Sha256
from replay_parity.campaign.corpus_file import Corpus, Count, Repository, Slice, Upstream
from replay_parity.campaign.row import Evidence, Expected, PressureBounds, Row, Speedup, TraceWorkload
from replay_parity.system.files import sha256_bytes

_COUNTERS = {"vllm": "vllm_preemptions", "sglang": "sglang_retractions"}


class FrozenRow(InputModel):
    """The keys of a frozen row file."""

    row_name: Identifier
    trace_file: Location
    trace_sha256: Sha256
    trace_rows: Count
    trace_block_size: Annotated[int, Field(ge=1, le=2**20)]
    arrival_speedup_ratio: Speedup = 1.0
    trace_upstream_repository: Repository
    trace_upstream_commit: CommitId
    trace_upstream_path: Location
    trace_full_sha256: Sha256
    trace_full_rows: Count
    trace_slice_start: Annotated[int, Field(ge=0, le=2**53 - 1)] = 0
    iterations: int | None = None
    capture_canonical: bool | None = None
    write_full_report: bool | None = None
    metadata: dict[str, Any] = Field(default_factory=dict)
    expected: Expected = Expected()
    spec: dict[str, Any]
    source_revision: Any = None

    @model_validator(mode="after")
    def _slice_fits(self) -> FrozenRow:
        end = self.trace_slice_start + self.trace_rows
        if end > self.trace_full_rows:
            raise ValueError(f"must have its slice inside the trace: it ends at row {end} of {self.trace_full_rows}")
        if self.trace_rows == self.trace_full_rows and self.trace_sha256 != self.trace_full_sha256:
            raise ValueError("must have equal 'trace_sha256' and 'trace_full_sha256', as the slice is the whole trace")
        return self


@dataclass(frozen=True)
class Thawed:
    """A frozen row as the two documents that it stands for; `trace_file` is as written in the file."""

    row: Row
    corpus: Corpus
    trace_file: str


def thaw(frozen: FrozenRow) -> Thawed:
    """Row and corpus of a frozen row."""
    corpus = _corpus(frozen)
    row = Row(
        schema_version=1,
        name=frozen.row_name,
        title=f"Frozen row {frozen.row_name}",
        corpus=corpus.name,
        workload=TraceWorkload(kind="trace", arrival_speedup_ratio=frozen.arrival_speedup_ratio),
        spec=frozen.spec,
        metadata=frozen.metadata,
        evidence=Evidence(pressure=_bounds(frozen)),
        expected=frozen.expected,
    )
    return Thawed(row, corpus, frozen.trace_file)


def _corpus(frozen: FrozenRow) -> Corpus:
    described = Corpus(
        schema_version=1,
        name="frozen",
        title=f"Trace of frozen rows: {frozen.trace_rows:,} rows",
        format="mooncake",
        block_size=frozen.trace_block_size,
        source=Upstream(
            kind="upstream",
            repository=frozen.trace_upstream_repository,
            commit=frozen.trace_upstream_commit,
            path=frozen.trace_upstream_path,
            licence="not stated",
            full_rows=frozen.trace_full_rows,
            full_sha256=frozen.trace_full_sha256,
        ),
        slice=Slice(start=frozen.trace_slice_start, rows=frozen.trace_rows, sha256=frozen.trace_sha256),
    )
    # Named by content: rows that say the same of their trace share one corpus, others never meet.
    name = sha256_bytes(orjson.dumps(described.model_dump(mode="json"), option=orjson.OPT_SORT_KEYS))
    return described.model_copy(update={"name": f"frozen-{name[:16]}"})


def _bounds(frozen: FrozenRow) -> PressureBounds:
    """The count that the row itself expects, else one to three where the backend can evict (rule 17)."""
    kind = _COUNTERS.get(_backend(frozen.spec))
    if kind is None:
        return PressureBounds(kind="none")
    expected = frozen.expected.vllm_preemptions if kind == "vllm_preemptions" else frozen.expected.sglang_retractions
    low, high = (1, 3) if expected is None else (expected, expected)
    return PressureBounds.model_validate({"kind": kind, "minimum": low, "maximum": high})


def _backend(spec: dict[str, Any]) -> str:
    """Backend that decodes: the decode role's in a disaggregated row, else the rank's; the engine's default is vllm."""
    engine = spec.get("engine")
    engine = engine if isinstance(engine, dict) else {}
    disaggregated = isinstance(spec.get("topology"), dict) and spec["topology"].get("kind") == "disaggregated"
    decode = engine.get("decode")
    rank = (decode if disaggregated and isinstance(decode, dict) else engine).get("rank")
    backend = rank.get("backend", "vllm") if isinstance(rank, dict) else "vllm"
    return backend if isinstance(backend, str) else "vllm"
