"""Types of GitHub's answers that later stages rely on: commit ids, branches and repositories that are just that."""

from __future__ import annotations

import re
from typing import Annotated, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, StringConstraints, TypeAdapter, ValidationError

from replay_parity.errors import InfrastructureError

_LONGEST_BRANCH = 1024
# What git-check-ref-format refuses in a name.
_NO_BRANCH = re.compile(r"[\x00-\x20\x7f~^:?*\[\\]|\.\.|@\{|//|(?:^|/)\.|\.lock(?:/|\Z)|^/|[/.]\Z|^@\Z|^-")


def is_branch_name(name: str) -> bool:
    """Whether git itself could have made a branch of that name."""
    return 0 < len(name) <= _LONGEST_BRANCH and _NO_BRANCH.search(name) is None


def _branch(name: str) -> str:
    if not is_branch_name(name):
        raise ValueError("no branch can have this name")
    return name


CommitId = Annotated[str, StringConstraints(pattern=r"^(?:[0-9a-f]{40}|[0-9a-f]{64})$")]
Branch = Annotated[str, AfterValidator(_branch)]
Repository = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9._-]{1,100}/[A-Za-z0-9._-]{1,100}$")]


class Shape(BaseModel):
    """A part of an answer: what we use is checked and never converted, what GitHub adds is passed over."""

    model_config = ConfigDict(extra="ignore", frozen=True, strict=True)


T = TypeVar("T")


def shaped(kind: TypeAdapter[T], body: bytes, *, where: str) -> T:
    """Read an answer as `kind`; InfrastructureError names the first thing that is not as GitHub describes it."""
    try:
        return kind.validate_json(body)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
    # Raised out here: pydantic's own error would show what GitHub sent.
    place = "".join(f"/{part}" for part in first["loc"])
    raise InfrastructureError(
        f"GitHub's answer is not of the form it describes: {first['msg']}", where=f"{where} {place}".rstrip()
    )
