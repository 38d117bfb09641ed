"""The corpus file: a trace slice with its provenance (DESIGN.md, words)."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, StringConstraints, model_validator

from replay_parity.campaign.base import (
    CommitId,
    Identifier,
    InputModel,
    Location,
    Says,
    SchemaVersion,
    Sentence,
    Sha256,
    ShortText,
)

Count = Annotated[int, Field(ge=1, le=2**53 - 1, strict=True)]
Seed = Annotated[int, Field(ge=0, le=2**63 - 1, strict=True)]
TraceFormat = Literal["mooncake", "agentic_mooncake"]
# As the trace's publisher is named in the record, so not only an address (published rows are read as they are).
Repository = Annotated[
    str,
    StringConstraints(pattern=r"^[A-Za-z0-9][^\u0000-\u0020\u007f-\u009f]*$", max_length=500, strict=True),
    Says("must be the address of a repository, without blanks"),
]
TraceLine = Annotated[
    str,
    StringConstraints(pattern=r"^[^\u0000-\u001f\u007f]+$", max_length=100_000, strict=True),
    Says("must be one line: a JSON object in quotes"),
]


class Upstream(InputModel):
    """A trace file at one commit of a public repository."""

    kind: Literal["upstream"]
    repository: Repository = Field(description="Where the trace is published, such as a https address.")
    commit: CommitId
    path: Location = Field(description="Path of the trace in that repository.")
    licence: ShortText = Field(description="SPDX name of the licence of the data.")
    full_rows: Count = Field(description="Requests in the whole trace.")
    full_sha256: Sha256 = Field(description="Checksum of the whole trace.")


class Generator(InputModel):
    """A trace that replay-parity writes itself, the same bytes everywhere."""

    kind: Literal["generator"]
    name: Literal["sessions-v1"]
    seed: Seed
    licence: ShortText = Field(description="SPDX name of the licence of the data.")
    full_rows: Count = Field(description="Requests in the whole trace.")
    full_sha256: Sha256 = Field(description="Checksum of the whole trace.")


class Inline(InputModel):
    """A trace of a few requests, written in the corpus file itself, one JSON object a line."""

    kind: Literal["inline"]
    lines: Annotated[tuple[TraceLine, ...], Field(min_length=1, max_length=1000, strict=False)]
    licence: ShortText = Field(description="SPDX name of the licence of the data.")
    full_rows: Count = Field(description="Requests in the whole trace.")
    full_sha256: Sha256 = Field(description="Checksum of the lines, each with a line feed.")


class Slice(InputModel):
    """A contiguous range of whole lines: first line (from zero), number of lines, checksum of their bytes."""

    start: Annotated[int, Field(ge=0, le=2**53 - 1, strict=True)] = 0
    rows: Count
    sha256: Sha256


class DerivedFrom(InputModel):
    """The Mooncake slice that another trace is made from, named completely: the corpus stays provable from its file."""

    name: Identifier = Field(description="Name of the corpus that has this slice.")
    source: Annotated[Upstream | Generator | Inline, Field(discriminator="kind")]
    slice: Slice


class Derived(InputModel):
    """A trace that replay-parity makes from the rows of another one, the same bytes everywhere."""

    kind: Literal["derived"]
    name: Literal["agentic-v1"]
    seed: Seed
    derived_from: DerivedFrom
    licence: ShortText = Field(description="SPDX name of the licence of the data.")
    full_rows: Count = Field(description="Requests in the whole trace: the first so many rows of the slice are used.")
    full_sha256: Sha256 = Field(description="Checksum of the whole trace.")


CorpusSource = Annotated[Upstream | Generator | Inline | Derived, Field(discriminator="kind")]


class Corpus(InputModel):
    """A trace slice that can be verified from the file alone."""

    schema_version: SchemaVersion = Field(description="Version of this form: 1.")
    name: Identifier = Field(description="Name of the corpus, the same as the file's.")
    title: Sentence = Field(description="One line for people.")
    format: TraceFormat
    block_size: Annotated[int, Field(ge=1, le=2**20, strict=True)] = Field(
        description="Tokens that one hash id of the trace stands for."
    )
    source: CorpusSource
    slice: Slice

    @model_validator(mode="after")
    def _slice_fits(self) -> Corpus:
        end = self.slice.start + self.slice.rows
        if end > self.source.full_rows:
            raise ValueError(f"must have its slice inside the trace: it ends at row {end} of {self.source.full_rows}")
        whole = self.slice.start == 0 and self.slice.rows == self.source.full_rows
        if whole and self.slice.sha256 != self.source.full_sha256:
            raise ValueError("must have equal 'slice.sha256' and 'source.full_sha256', as the slice is the whole trace")
        return self

    @model_validator(mode="after")
    def _lines_are_counted(self) -> Corpus:
        if isinstance(self.source, Inline):
            # The header of an agentic trace is no request.
            rows = len(self.source.lines) - (self.format == "agentic_mooncake")
            if rows != self.source.full_rows:
                raise ValueError(f"must have 'source.full_rows' {rows}, the number of requests in 'source.lines'")
        return self

    @model_validator(mode="after")
    def _is_derived_whole(self) -> Corpus:
        if not isinstance(self.source, Derived):
            return self
        if self.format != "agentic_mooncake":
            raise ValueError("must have 'format' agentic_mooncake, as its source makes an agentic trace")
        if self.slice.rows != self.source.full_rows:
            raise ValueError("must have its slice be the whole trace, as a play must not be cut")
        if self.source.full_rows > self.source.derived_from.slice.rows:
            raise ValueError(
                f"must have 'source.full_rows' of at most {self.source.derived_from.slice.rows}, "
                "the rows of the slice that it is derived from"
            )
        # Raises for a slice that does not fit into its trace.
        base_of(self, self.source)
        return self


def base_of(corpus: Corpus, source: Derived) -> Corpus:
    """The corpus that another one is derived from."""
    base = source.derived_from
    return Corpus(
        schema_version=1,
        name=base.name,
        title=f"What {corpus.name} is derived from",
        format="mooncake",
        block_size=corpus.block_size,
        source=base.source,
        slice=base.slice,
    )
