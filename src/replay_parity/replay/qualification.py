"""The runner's own counters (`qualification.json`) and its typed errors (`error.json`), read as untrusted data."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import orjson
from pydantic import BaseModel, ConfigDict, ValidationError

from replay_parity.errors import BadInputError
from replay_parity.system.files import read_capped

_CAP = 4 << 20


class RunnerFailure(BaseModel):
    """A typed error; for "engine_refused" variant and full message decide whether two refusals are equal (rule 24)."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    kind: Literal["bad_config", "trace_mismatch", "engine_refused", "io_error"]
    phase: Literal["new", "run"] | None = None
    variant: str | None = None
    message: str


class Qualification(BaseModel):
    """Counters of one replay; names as in UPSTREAM.md, virtual duration in milliseconds.

    `None` where the record has a form that the runner does not know (`counters_error` says why).
    """

    model_config = ConfigDict(extra="ignore", frozen=True)

    row_name: str
    canonical_sha256: str
    canonical_bytes: int
    completed_requests: int | None = None
    num_requests: int | None = None
    total_input_tokens: int | None = None
    requested_output_tokens: int | None = None
    total_output_tokens: int | None = None
    all_requests_full_output: bool | None = None
    requests_with_short_output: int | None = None
    terminal_counts: dict[str, int] | None = None
    prefill_workers: dict[str, int] | None = None
    decode_workers: dict[str, int] | None = None
    routing_counts: dict[str, int] | None = None
    requests_with_reuse: int | None = None
    requests_with_first_admission_reuse: int | None = None
    handoffs_complete: int | None = None
    vllm_preemptions: int | None = None
    sglang_retractions: int | None = None
    pressure_records: int | None = None
    all_pressure_records_readmitted: bool | None = None
    virtual_duration_ms: float | None = None
    counters_error: str | None = None
    timing_ms: dict[str, float]
    identity: dict[str, Any]


def read_qualification(folder: Path) -> Qualification:
    """Read the counters; BadInputError when the file is missing, too long or of another form."""
    path = folder / "qualification.json"
    try:
        return Qualification.model_validate(_document(path))
    except ValidationError as error:
        raise _form(path, error) from None


def read_failure(folder: Path) -> RunnerFailure | None:
    """The typed error of a repetition, or None when it left none."""
    path = folder / "error.json"
    if not path.exists():
        return None
    try:
        return RunnerFailure.model_validate(_document(path))
    except ValidationError as error:
        raise _form(path, error) from None


def _document(path: Path) -> object:
    try:
        return orjson.loads(read_capped(path, cap=_CAP))
    except orjson.JSONDecodeError as error:
        raise BadInputError(f"is not JSON: {error}", where=path.name) from None


def _form(path: Path, error: ValidationError) -> BadInputError:
    first = error.errors()[0]
    pointer = "/" + "/".join(str(part) for part in first["loc"])
    return BadInputError(f"has another form than the runner writes: {first['msg']}", where=f"{path.name} {pointer}")
