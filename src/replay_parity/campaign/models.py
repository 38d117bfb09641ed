"""The campaign file: one comparison of two revisions (DESIGN.md, words; rules 1 to 8)."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Discriminator, Field, StringConstraints, Tag, field_validator, model_validator

from replay_parity.campaign.base import Identifier, InputModel, Location, Says, SchemaVersion, Sentence, Sha256
from replay_parity.campaign.sources import CoreFolder, Source, stays_inside

Feature = Annotated[
    str,
    StringConstraints(pattern=r"^[A-Za-z0-9_][A-Za-z0-9_+.-]{0,62}$", strict=True),
    Says("must be the name of a cargo feature"),
]
Flag = Annotated[
    str,
    StringConstraints(pattern=r"^[^\u0000-\u0020\u007f]+$", max_length=200, strict=True),
    Says("must be one flag without blanks, at most 200 characters"),
]
Toolchain = Annotated[
    str,
    StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$", strict=True),
    Says("must be the name of a rustup toolchain such as '1.93.1', or 'path'"),
]


class Relationship(InputModel):
    """How baseline and candidate relate (rule 1): a checked ancestry, or words that the verdict prints."""

    ancestor: Literal[True] | None = Field(default=None, description="The baseline is an ancestor of the candidate.")
    stated: Sentence | None = Field(default=None, description="The relationship in words, when it is not ancestry.")

    @model_validator(mode="after")
    def _one_of(self) -> Relationship:
        if (self.ancestor is None) == (self.stated is None):
            raise ValueError("must hold exactly one of 'ancestor: true' and 'stated: <words>'")
        return self


class Patch(InputModel):
    """A determinism patch that is applied identically to both revisions (rule 4)."""

    file: Location = Field(description="Path of the patch, from the campaign file's folder.")
    sha256: Sha256


class Build(InputModel):
    """Toolchain, profile, flags and features, all explicit (rule 2)."""

    toolchain: Toolchain = Field(
        description="Name of a rustup toolchain ('1.93.1'), or 'path' for the rustc that PATH finds; recorded exactly."
    )
    profile: Literal["release", "dev"] = Field(description="Cargo profile of the workspace that is built.")
    flags: Annotated[tuple[Flag, ...], Field(max_length=100, strict=False)] = Field(
        description="Flags for rustc, in order; [] for none."
    )
    features: Annotated[tuple[Feature, ...], Field(max_length=100, strict=False)] = Field(
        description="Features of aisimulate-core; [] for none. 'all' is refused."
    )
    lock: Literal["shared", "own"] = Field(
        default="shared",
        description="'shared': one resolution seeded by the baseline serves both sides; "
        "'own': each side's own Cargo.lock.",
    )
    patch: Patch | None = None
    negative_control: Literal["determinism-off"] | None = Field(
        default=None, description="Builds a runner that must go red; a campaign with it can never pass."
    )
    timeout_minutes: Annotated[int, Field(ge=1, le=360)] = Field(
        default=60, description="Time limit of one build, in minutes."
    )

    @field_validator("features", mode="before")
    @classmethod
    def _not_all(cls, value: Any) -> Any:
        # Also the bare word `features: all`, which is no list.
        named = value if isinstance(value, list | tuple) else [value]
        if any(name in {"all", "all-features", "--all-features", "*"} for name in named if isinstance(name, str)):
            raise ValueError("'all features' is refused: name each feature of aisimulate-core, or [] for none (rule 2)")
        return value

    @field_validator("features")
    @classmethod
    def _named_features(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        if len(set(value)) != len(value):
            raise ValueError("must not name a feature twice")
        return tuple(sorted(value))


def _no_runner_twice(value: tuple[str, ...]) -> tuple[str, ...]:
    if len(set(value)) != len(value):
        raise ValueError("must not name a runner twice")
    return value


RunnerNames = Annotated[
    tuple[Identifier, ...], Field(min_length=1, max_length=16, strict=False), AfterValidator(_no_runner_twice)
]


class RowReference(InputModel):
    """A row by name (the campaign's own rows first, then the built-in ones) or by file."""

    name: Identifier | None = None
    file: Location | None = Field(
        default=None, description="Path from the campaign file's folder: a row file, or a frozen row (.json)."
    )
    runners: RunnerNames | None = Field(default=None, description="Classes of machines for this row alone.")

    @model_validator(mode="after")
    def _one_of(self) -> RowReference:
        if (self.name is None) == (self.file is None):
            raise ValueError("must hold exactly one of 'name' and 'file'")
        return self


def _kind_of_reference(value: Any) -> str | None:
    return "<reference>" if isinstance(value, dict | RowReference) else "<name>"


RowItem = Annotated[
    Annotated[Identifier, Tag("<name>")] | Annotated[RowReference, Tag("<reference>")],
    Discriminator(_kind_of_reference),
]


class Campaign(InputModel):
    """One comparison: baseline, candidate, relationship, build and rows."""

    schema_version: SchemaVersion = Field(description="Version of this form: 1.")
    name: Identifier = Field(description="Short name of the campaign.")
    title: Sentence = Field(description="One line for people.")
    baseline: Source | None = Field(
        default=None, description="The revision that is trusted; left out when the event or the command names it."
    )
    candidate: Source | None = Field(default=None, description="The revision that is judged; as the baseline.")
    relationship: Relationship | None = Field(
        default=None,
        description="How they relate; needed with them. Without: ancestry is checked, or words come along.",
    )
    core: CoreFolder = Field(
        default="crates/core", description="Folder of the engine crate in revisions that an event or a command names."
    )
    build: Build
    runners: RunnerNames = Field(
        default=("default",),
        description="Classes of machines on which every row runs; a workflow maps each to labels.",
    )
    rows: Annotated[tuple[RowItem, ...], Field(min_length=1, max_length=10_000, strict=False)] = Field(
        description="The rows that are replayed, each by name or by file."
    )

    @model_validator(mode="after")
    def _both_or_none(self) -> Campaign:
        given = [value is not None for value in (self.baseline, self.candidate, self.relationship)]
        if any(given[:2]) and not all(given):
            raise ValueError(
                "must hold 'baseline', 'candidate' and 'relationship', or none of the revisions for a campaign that an "
                "event or a command completes"
            )
        return self

    @field_validator("core")
    @classmethod
    def _core_inside(cls, value: str) -> str:
        return stays_inside(value)

    @field_validator("rows")
    @classmethod
    def _no_row_twice(cls, value: tuple[str | RowReference, ...]) -> tuple[str | RowReference, ...]:
        seen: set[str] = set()
        for item in value:
            key = item if isinstance(item, str) else (item.name or f"file:{item.file}")
            if key in seen:
                raise ValueError(f"must not list the row {key!r} twice")
            seen.add(key)
        return value
