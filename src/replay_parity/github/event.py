"""What an event on GitHub asks to be compared; facts only, no policy (CONSUMER.md). No I/O."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from replay_parity.campaign.base import CommitId
from replay_parity.errors import BadInputError
from replay_parity.github.shapes import is_branch_name

Kind = Literal["pull_request", "copy", "merge_group", "push", "manual"]

_BRANCHES = "refs/heads/"
_COPY = re.compile(r"refs/heads/pull-request/(?P<number>.*)", re.DOTALL)
_NUMBER = re.compile(r"[1-9][0-9]{0,9}")
_MOST = 9_999_999_999
_REPOSITORY = re.compile(r"[A-Za-z0-9._-]{1,100}/[A-Za-z0-9._-]{1,100}")
_ZERO = re.compile(r"0+")
_COMMIT = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_MANUAL = frozenset({"workflow_dispatch", "schedule", "repository_dispatch"})


def _visible_branch(name: str) -> str:
    if not is_branch_name(name) or not name.isprintable():
        raise ValueError("must be a name that git allows for a branch, in visible characters")
    return name


# It goes into an API address, percent-encoded, and is shown; git itself is only ever given commit ids (threat 7).
BranchName = Annotated[str, AfterValidator(_visible_branch)]
# A merge group writes refs/heads/ before it, a pull request does not.
_FullBranchName = Annotated[str, AfterValidator(lambda ref: _visible_branch(ref.removeprefix(_BRANCHES)))]


class _Part(BaseModel):
    """Of GitHub's payload only what is needed is looked at, and nothing in it is converted."""

    model_config = ConfigDict(extra="ignore", frozen=True, strict=True)


_P = TypeVar("_P", bound=_Part)


class _Repository(_Part):
    full_name: str


class _End(_Part):
    sha: CommitId
    ref: BranchName
    repo: _Repository | None = None


class _PullRequest(_Part):
    number: Annotated[int, Field(ge=1, le=_MOST)]
    head: _End
    base: _End


class _PullRequestPayload(_Part):
    pull_request: _PullRequest


class _MergeGroup(_Part):
    head_sha: CommitId
    base_sha: CommitId
    base_ref: _FullBranchName


class _MergeGroupPayload(_Part):
    merge_group: _MergeGroup


class _PushPayload(_Part):
    before: CommitId
    deleted: bool = False


@dataclass(frozen=True)
class Event:
    """One event with the run that it started; values are GitHub's own variables."""

    name: str
    repository: str
    server_url: str
    ref: str
    sha: str
    run_id: int
    run_attempt: int
    payload: Mapping[str, Any]

    @property
    def address(self) -> str:
        """Address of the repository: how a plan names it on every machine."""
        return f"{self.server_url}/{self.repository}"


@dataclass(frozen=True)
class Change:
    """What the event is about; commits are full ids. `base_sha` is the base as the event knows it."""

    kind: Kind
    head_sha: str
    head_ref: str | None = None
    base_ref: str | None = None
    base_sha: str | None = None
    pull_request: int | None = None
    from_fork: bool = False


def change_of(event: Event) -> Change:
    """Facts of an event; BadInputError for one that nothing can be compared for.

    A trusted copy (`push` to `pull-request/NUMBER`) is completed by the API: its base is not in the payload.
    """
    if not _REPOSITORY.fullmatch(event.repository):
        raise BadInputError(f"{event.repository!r} is not OWNER/NAME of a repository", where="GITHUB_REPOSITORY")
    if not _COMMIT.fullmatch(event.sha):
        raise BadInputError(f"{event.sha!r} is not a full commit id", where="GITHUB_SHA")
    if event.name == "pull_request":
        return _of_pull_request(event)
    if event.name == "pull_request_target":
        raise BadInputError(
            "pull_request_target hands a token that can write to a job that builds the pull request",
            where="GITHUB_EVENT_NAME",
            hint="start the workflow by 'pull_request', or by 'push' to trusted copies",
        )
    if event.name == "merge_group":
        return _of_merge_group(event)
    if event.name == "push":
        return _of_push(event)
    if event.name in _MANUAL:
        return Change(kind="manual", head_sha=event.sha)
    raise BadInputError(
        f"nothing is known to compare for the event {event.name!r}",
        where="GITHUB_EVENT_NAME",
        hint="use pull_request, push, merge_group, workflow_dispatch or schedule",
    )


def _of_pull_request(event: Event) -> Change:
    found = _read(_PullRequestPayload, event).pull_request
    head_repository = found.head.repo.full_name if found.head.repo else None
    return Change(
        kind="pull_request",
        head_sha=found.head.sha,
        head_ref=found.head.ref,
        base_ref=found.base.ref,
        base_sha=found.base.sha,
        pull_request=found.number,
        # A fork that was deleted meanwhile is no less a fork.
        from_fork=head_repository is None or head_repository.lower() != event.repository.lower(),
    )


def _of_merge_group(event: Event) -> Change:
    found = _read(_MergeGroupPayload, event).merge_group
    return Change(
        kind="merge_group",
        head_sha=found.head_sha,
        base_ref=found.base_ref,
        base_sha=found.base_sha,
    )


def _of_push(event: Event) -> Change:
    if not event.ref.startswith(_BRANCHES):
        raise BadInputError(
            f"a push to {event.ref!r} has no base to compare with",
            where="GITHUB_REF",
            hint="give the inputs 'baseline' and 'candidate' to a workflow that is started by hand",
        )
    copy = _COPY.fullmatch(event.ref)
    if copy is not None and not _NUMBER.fullmatch(copy["number"]):
        raise BadInputError(
            f"the branch {event.ref!r} looks like a trusted copy, but holds no number of a pull request",
            where="GITHUB_REF",
            hint="the name is pull-request/NUMBER",
        )
    found = _read(_PushPayload, event)
    if found.deleted:
        raise BadInputError(f"the branch {event.ref!r} was deleted; there is nothing to compare", where="GITHUB_REF")
    if copy is not None:
        return Change(kind="copy", head_sha=event.sha, pull_request=int(copy["number"]))
    branch = _pushed_branch(event.ref.removeprefix(_BRANCHES))
    before = None if _ZERO.fullmatch(found.before) else found.before
    return Change(kind="push", head_sha=event.sha, head_ref=branch, base_ref=branch, base_sha=before)


def _pushed_branch(name: str) -> str:
    try:
        return _visible_branch(name)
    except ValueError as error:
        raise BadInputError(f"the branch {name!r} {error}", where="GITHUB_REF") from None


def _read(model: type[_P], event: Event) -> _P:
    try:
        return model.model_validate(event.payload)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        place = "/".join(str(part) for part in first["loc"])
        reason = first["msg"].removeprefix("Value error, ")
    # Raised out here: pydantic's own error would show the payload.
    raise BadInputError(f"the payload of '{event.name}' cannot be used: {reason}", where=f"event /{place}")
