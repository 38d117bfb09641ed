"""The row file: one frozen engine, topology and workload configuration, the unit of placement and of comparison."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from replay_parity.campaign.base import Identifier, InputModel, Says, SchemaVersion, Sentence, Sha256

PositiveCount = Annotated[int, Field(ge=1, le=2**31 - 1, strict=True)]
EventCount = Annotated[int, Field(ge=0, le=2**53 - 1, strict=True)]
Speedup = Annotated[float, Field(gt=0, le=1e6, description="Divisor of the trace's times.")]
Counts = dict[str, EventCount]
CountOrAnswer = Annotated[
    EventCount | bool, Says("must be a whole number of at least 0, or true or false", kind="value")
]


class TraceWorkload(InputModel):
    """Requests arrive at the trace's timestamps, divided by `arrival_speedup_ratio`."""

    kind: Literal["trace"]
    arrival_speedup_ratio: Speedup = 1.0


class ClosedLoopWorkload(InputModel):
    """At most `max_in_flight` sessions are in the system; the next starts when one ends (rule 10)."""

    kind: Literal["closed_loop"]
    max_in_flight: PositiveCount
    arrival_speedup_ratio: Speedup = 1.0


class AgenticWorkload(InputModel):
    """An agentic trace: requests wait for their dependencies; `lanes` bounds the plays at a time."""

    kind: Literal["agentic"]
    lanes: PositiveCount | None = None
    arrival_speedup_ratio: Speedup = 1.0


Workload = Annotated[TraceWorkload | ClosedLoopWorkload | AgenticWorkload, Field(discriminator="kind")]


class PressureBounds(InputModel):
    """How often the baseline must preempt or retract: 1 to 3, or 0 where the backend never evicts (rule 17)."""

    kind: Literal["vllm_preemptions", "sglang_retractions", "none"]
    minimum: EventCount = 0
    maximum: EventCount = 0

    @model_validator(mode="after")
    def _ordered(self) -> PressureBounds:
        if self.minimum > self.maximum:
            raise ValueError(f"must have a minimum ({self.minimum}) that is not above the maximum ({self.maximum})")
        if self.kind == "none" and self.maximum != 0:
            raise ValueError("must have no bounds but 0, as kind 'none' means that nothing is evicted")
        return self


class Evidence(InputModel):
    """What the record must show besides its bytes; a match without it is `unqualified` (rule 17)."""

    pressure: PressureBounds
    all_workers_used: bool = Field(default=True, description="Every logical worker must serve at least one request.")


class Expected(InputModel):
    """Counters that the baseline must have; the names are those of AI Simulate's frozen rows (UPSTREAM.md)."""

    canonical_sha256: Sha256 | None = None
    completed_requests: EventCount | None = None
    num_requests: EventCount | None = None
    total_input_tokens: EventCount | None = None
    requested_output_tokens: EventCount | None = None
    total_output_tokens: EventCount | None = None
    all_requests_full_output: bool | None = None
    requests_with_short_output: EventCount | None = None
    terminal_counts: Counts | None = None
    prefill_workers: Counts | None = None
    decode_workers: Counts | None = None
    routing_counts: Counts | None = None
    requests_with_reuse: EventCount | None = None
    handoffs_complete: CountOrAnswer | None = None
    vllm_preemptions: EventCount | None = None
    sglang_retractions: EventCount | None = None
    pressure_records: EventCount | None = None
    all_pressure_records_readmitted: bool | None = None
    virtual_duration_ms: float | None = None


class Row(InputModel):
    """A frozen configuration; `spec` is the engine's own ReplaySpec, handed over unchanged."""

    schema_version: SchemaVersion = Field(description="Version of this form: 1.")
    name: Identifier = Field(description="Name of the row, the same as the file's.")
    record_name: Identifier | None = Field(
        default=None,
        description="Name of the row in the record, when it is not the file's: a published digest holds its own.",
    )
    title: Sentence = Field(description="One line for people.")
    corpus: Identifier = Field(description="Name of the corpus file.")
    workload: Workload
    spec: dict[str, Any] = Field(description="AI Simulate's ReplaySpec: topology, engine and 'requests: []'.")
    metadata: dict[str, Any] = Field(
        default_factory=dict, description="Free object that goes into the record's metadata."
    )
    evidence: Evidence
    expected: Expected = Field(default=Expected(), description="Counters that every baseline must have.")
    timeout_seconds: Annotated[int, Field(ge=1, le=86_400, strict=True)] = Field(
        default=600, description="Time limit of one replay, in seconds."
    )

    @property
    def name_in_record(self) -> str:
        """The `row_name` of the record's metadata."""
        return self.record_name or self.name
