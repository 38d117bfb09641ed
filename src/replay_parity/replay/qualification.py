"""The runner's own counters (`qualification.json`) and its typed errors (`error.json`), read as untrusted data."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

import orjson
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from replay_parity.errors import BadInputError
from replay_parity.system.files import read_capped

_CAP = 4 << 20
_SHOWN = 200

Count = Annotated[int, Field(ge=0)]


class _Untrusted(BaseModel):
    # A later runner may count more, so unknown keys pass; a value of another type does not.
    model_config = ConfigDict(extra="ignore", frozen=True, strict=True)


class RunnerFailure(_Untrusted):
    """A typed error; for "engine_refused" variant and full message decide whether two refusals are equal (rule 24)."""

    schema_: Literal["replay-parity.runner-error.v1"] = Field(alias="schema", exclude=True)
    kind: Literal["bad_config", "trace_mismatch", "engine_refused", "io_error"]
    phase: Literal["new", "run"] | None = None
    variant: str | None = None
    message: str


class Qualification(_Untrusted):
    """Counters of one replay; names as in UPSTREAM.md, virtual duration in milliseconds.

    `None` where the record has a form that the runner does not know (`counters_error` says why).
    """

    schema_: Literal["replay-parity.qualification.v1"] = Field(alias="schema", exclude=True)
    row_name: str
    canonical_sha256: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
    canonical_bytes: Count
    completed_requests: Count | None = None
    num_requests: Count | None = None
    total_input_tokens: Count | None = None
    requested_output_tokens: Count | None = None
    total_output_tokens: Count | None = None
    all_requests_full_output: bool | None = None
    requests_with_short_output: Count | None = None
    terminal_counts: dict[str, Count] | None = None
    prefill_workers: dict[str, Count] | None = None
    decode_workers: dict[str, Count] | None = None
    routing_counts: dict[str, Count] | None = None
    requests_with_reuse: Count | None = None
    requests_with_first_admission_reuse: Count | None = None
    handoffs_complete: Count | None = None
    vllm_preemptions: Count | None = None
    sglang_retractions: Count | None = None
    pressure_records: Count | None = None
    all_pressure_records_readmitted: bool | None = None
    virtual_duration_ms: float | None = None
    counters_error: str | None = None
    timing_ms: dict[str, float]
    identity: dict[str, Any]

    def names_another(self, *, row_name: str, identity: Mapping[str, Any]) -> list[str]:
        """Where this tells of another row or another runner than `row_name` and `identity` (only its keys count)."""
        pairs = [
            ("row_name", self.row_name, row_name),
            *((name, self.identity.get(name), wanted) for name, wanted in identity.items()),
        ]
        return [
            f"it says {name} = {str(found)[:_SHOWN]!r}, it was given {wanted!r}"
            for name, found, wanted in pairs
            if found != wanted
        ]


def read_qualification(folder: Path) -> Qualification:
    """Read the counters; BadInputError when the file is missing, too long or of another form."""
    return _read(Qualification, folder / "qualification.json")


def read_failure(folder: Path) -> RunnerFailure | None:
    """The typed error of a repetition, or None when it left none; BadInputError as above."""
    path = folder / "error.json"
    return _read(RunnerFailure, path) if path.is_symlink() or path.exists() else None


_M = TypeVar("_M", bound=_Untrusted)


def _read(model: type[_M], path: Path) -> _M:
    try:
        document = orjson.loads(read_capped(path, cap=_CAP))
    except orjson.JSONDecodeError as error:
        raise BadInputError(f"is not JSON: {error}", where=path.name) from None
    except BadInputError as error:
        # The folder's name is another in every run; a reason must not be.
        raise BadInputError(error.message, where=path.name) from None
    try:
        return model.model_validate(document)
    except ValidationError as error:
        first = error.errors()[0]
        pointer = "".join(f"/{part}" for part in first["loc"])
        raise BadInputError(
            f"has another form than the runner writes: {first['msg']}", where=f"{path.name} {pointer[:_SHOWN]}".strip()
        ) from None
