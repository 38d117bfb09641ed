"""What an event on GitHub asks to be compared; facts only, no policy (CONSUMER.md). No I/O."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints, ValidationError

from replay_parity.campaign.base import CommitId
from replay_parity.errors import BadInputError

Kind = Literal["pull_request", "copy", "merge_group", "push", "manual"]

_COPY = re.compile(r"refs/heads/pull-request/(?P<number>.*)", re.DOTALL)
_NUMBER = re.compile(r"[1-9][0-9]{0,9}")
_REPOSITORY = re.compile(r"[A-Za-z0-9._-]{1,100}/[A-Za-z0-9._-]{1,100}")
_ZERO = re.compile(r"0+")
_MANUAL = frozenset({"workflow_dispatch", "schedule", "repository_dispatch"})


def _plain_name(value: str) -> str:
    if ".." in value or "@{" in value or value.endswith((".", "/", ".lock")):
        raise ValueError("is not a name of a branch")
    return value


# A branch as it goes into an API address and into git's arguments; git itself allows more than is sane (threat 7).
BranchName = Annotated[
    str, StringConstraints(pattern=r"^[A-Za-z0-9_][A-Za-z0-9_./+@=,#-]{0,254}$"), AfterValidator(_plain_name)
]


class _Part(BaseModel):
    """Of GitHub's payload only what is needed is looked at."""

    model_config = ConfigDict(extra="ignore", frozen=True)


_P = TypeVar("_P", bound=_Part)


class _Repository(_Part):
    full_name: str


class _End(_Part):
    sha: CommitId
    ref: BranchName
    repo: _Repository | None = None


class _PullRequest(_Part):
    number: Annotated[int, Field(ge=1)]
    head: _End
    base: _End


class _PullRequestPayload(_Part):
    pull_request: _PullRequest


class _MergeGroup(_Part):
    head_sha: CommitId
    base_sha: CommitId
    base_ref: str


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
        raise BadInputError(f"'{event.repository}' is not OWNER/NAME of a repository")
    if event.name == "pull_request":
        return _of_pull_request(event)
    if event.name == "pull_request_target":
        raise BadInputError(
            "pull_request_target hands a token that can write to a job that builds the pull request",
            hint="start the workflow by 'pull_request', or by 'push' to trusted copies",
        )
    if event.name == "merge_group":
        return _of_merge_group(event)
    if event.name == "push":
        return _of_push(event)
    if event.name in _MANUAL:
        return Change(kind="manual", head_sha=event.sha)
    raise BadInputError(
        f"nothing is known to compare for the event '{event.name}'",
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
        base_ref=_branch(found.base_ref.removeprefix("refs/heads/")),
        base_sha=found.base_sha,
    )


def _of_push(event: Event) -> Change:
    copy = _COPY.fullmatch(event.ref)
    if copy is not None:
        number = copy["number"]
        if not _NUMBER.fullmatch(number):
            raise BadInputError(
                f"the branch {event.ref!r} looks like a trusted copy, but holds no number of a pull request",
                hint="the name is pull-request/NUMBER",
            )
        return Change(kind="copy", head_sha=event.sha, pull_request=int(number))
    if not event.ref.startswith("refs/heads/"):
        raise BadInputError(
            f"a push to {event.ref!r} has no base to compare with", hint="give the inputs 'baseline' and 'candidate'"
        )
    found = _read(_PushPayload, event)
    if found.deleted:
        raise BadInputError(f"the branch {event.ref!r} was deleted; there is nothing to compare")
    branch = _branch(event.ref.removeprefix("refs/heads/"))
    before = None if _ZERO.fullmatch(found.before) else found.before
    return Change(kind="push", head_sha=event.sha, head_ref=branch, base_ref=branch, base_sha=before)


def _branch(name: str) -> str:
    return _read_value(_BranchPart, {"name": name}, f"the branch name {name!r}").name


class _BranchPart(_Part):
    name: BranchName


def _read(model: type[_P], event: Event) -> _P:
    return _read_value(model, event.payload, f"the payload of the event '{event.name}'")


def _read_value(model: type[_P], value: Mapping[str, Any], what: str) -> _P:
    try:
        return model.model_validate(value)
    except ValidationError as error:
        first = error.errors()[0]
        place = "/".join(str(part) for part in first["loc"])
        raise BadInputError(f"{what} cannot be used: {first['msg']}", where=f"/{place}") from None
