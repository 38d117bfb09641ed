"""Where a revision comes from: a git repository or a published release of the engine crate (rule 1)."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Discriminator, Field, StringConstraints, Tag, field_validator

from replay_parity.campaign.base import InputModel, Location, Says, Sha256

# A consumer's policy inside its repository (DESIGN.md, rule 20). It is no source: nothing of it is ever compiled.
POLICY_FOLDER = ".replay-parity"


def _no_range(value: str) -> str:
    if ".." in value or "@{" in value:
        raise ValueError("must name one revision, not a range or a history")
    return value


def _no_secret(value: str) -> str:
    # The address is printed in verdicts and kept in records.
    if re.match(r"^[A-Za-z][A-Za-z0-9+.-]*://[^/@]*:[^/@]*@", value) or re.match(r"^https?://[^/@]*@", value):
        raise ValueError("must not hold a user or a password; leave credentials to git's own credential helper")
    return value


# Rule against option injection (threat 7): a name never starts with "-", and holds none of what git refuses in names.
RevisionName = Annotated[
    str,
    StringConstraints(pattern=r"^[A-Za-z0-9_][A-Za-z0-9_./+@-]{0,254}$", strict=True),
    Says(
        "must be a commit id, a branch or a tag: at most 255 letters, digits and '_./+@-', "
        "starting with a letter, a digit or '_'"
    ),
    AfterValidator(_no_range),
]
Version = Annotated[
    str,
    StringConstraints(
        pattern=r"^(?:[0-9]+\.[0-9]+\.[0-9]+(?:-[0-9A-Za-z.-]+)?(?:\+[0-9A-Za-z.-]+)?"
        r"|[\^~=<>][0-9A-Za-z.,*<>=^~ +-]*)$",
        max_length=100,
        strict=True,
    ),
    Says("must be a version such as '0.12.1', or a range that starts with '^', '~', '=', '<' or '>'"),
]
CoreFolder = Annotated[
    str,
    StringConstraints(pattern=r"^[A-Za-z0-9_][A-Za-z0-9_./-]*$", max_length=255, strict=True),
    Says("must be a plain folder inside the repository, such as 'crates/core'"),
]


def stays_inside(value: str) -> str:
    """The folder itself; ValueError when it could lead out of its root."""
    if any(part in {"", ".", ".."} for part in value.split("/")):
        raise ValueError("must be a plain folder inside the repository, without '.', '..' or empty parts")
    return value


class GitSource(InputModel):
    """A revision in a git repository: a local folder or a clone URL."""

    git: Annotated[Location, AfterValidator(_no_secret)] = Field(description="Local folder or clone URL.")
    revision: RevisionName = Field(
        description="Full commit id; a branch, tag or short id is resolved once and recorded."
    )
    core: CoreFolder = Field(default="crates/core", description="Folder of the engine crate inside the repository.")

    @field_validator("core")
    @classmethod
    def _core_inside(cls, value: str) -> str:
        return stays_inside(value)


class CrateSource(InputModel):
    """A published release of the engine crate, brought by cargo from the registry that it is set up with."""

    crate: Literal["aisimulate-core"] = "aisimulate-core"
    version: Version = Field(description="Exact version; a range is resolved once and recorded.")
    checksum: Sha256 | None = Field(default=None, description="Registry checksum that the release must have.")
    dirty: bool = Field(
        default=False,
        description="Must be true for a release that was cut from a dirty tree, or it is refused.",
    )


def _kind_of_source(value: Any) -> str | None:
    if isinstance(value, GitSource) or (isinstance(value, dict) and ("git" in value or "revision" in value)):
        return "<git>"
    if isinstance(value, CrateSource) or (isinstance(value, dict) and ("crate" in value or "version" in value)):
        return "<crate>"
    return None


# The tags are in angle brackets since error locations hold them and no key looks like that (messages.py).
Source = Annotated[
    Annotated[GitSource, Tag("<git>")] | Annotated[CrateSource, Tag("<crate>")],
    Discriminator(
        _kind_of_source,
        custom_error_type="says_value",
        custom_error_message="must hold 'git' and 'revision', or 'crate' and 'version'",
    ),
]
