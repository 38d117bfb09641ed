"""An event's change, completed by the API and by git, and refused before anything is built (CONSUMER.md, threat 1)."""

from __future__ import annotations

import dataclasses
import re
from dataclasses import dataclass
from typing import Protocol

from replay_parity.errors import BadInputError, RevisionError
from replay_parity.github.event import Change
from replay_parity.github.inputs import Inputs
from replay_parity.pin.git import Mirror

_FULL_COMMIT = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
# GitHub's own labels to the letter: "ubuntu-anything" may be somebody's machine in a cupboard.
_HOSTED = re.compile(
    r"ubuntu-(?:latest|slim|[0-9]{2}\.04(?:-arm)?)"
    r"|windows-(?:latest|[0-9]{4}(?:-vs[0-9]{4})?|11-arm)"
    r"|macos-(?:latest|[0-9]{2})(?:-large|-xlarge|-intel)?",
    re.IGNORECASE | re.ASCII,
)


class PullRequestFacts(Protocol):
    """A pull request's ends, as GitHub names them."""

    @property
    def state(self) -> str: ...  # noqa: D102
    @property
    def head_sha(self) -> str: ...  # noqa: D102
    @property
    def head_ref(self) -> str: ...  # noqa: D102
    @property
    def base_ref(self) -> str: ...  # noqa: D102
    @property
    def base_sha(self) -> str: ...  # noqa: D102
    @property
    def is_fork(self) -> bool: ...  # noqa: D102


class Api(Protocol):
    """What is read from GitHub's API: facts that an event does not carry."""

    def pull_request(self, number: int) -> PullRequestFacts:
        """A pull request as it is now."""
        ...

    def branch_head(self, name: str) -> str:
        """The commit that a branch names now."""
        ...


@dataclass(frozen=True)
class Pinned:
    """A change with the two commits that everything hangs on; `baseline` None where the event has no before."""

    change: Change
    baseline: str | None
    policy: str


def complete(change: Change, api: Api | None) -> Change:
    """A trusted copy gets its base from the API, and must be the pull request's head."""
    if change.kind != "copy" or change.pull_request is None:
        return change
    if api is None:
        raise BadInputError(
            f"a trusted copy of pull request {change.pull_request} needs the API to know its base",
            hint="give the input 'token', with 'pull-requests: read'",
        )
    found = api.pull_request(change.pull_request)
    if found.head_sha != change.head_sha:
        raise RevisionError(
            f"the copy is stale: it holds {change.head_sha}, the head of pull request {change.pull_request} "
            f"is {found.head_sha}",
            hint="copy the pull request again",
        )
    if found.state != "open":
        raise RevisionError(f"pull request {change.pull_request} is {found.state}; there is nothing to decide")
    return dataclasses.replace(
        change, base_ref=found.base_ref, base_sha=found.base_sha, head_ref=found.head_ref, from_fork=found.is_fork
    )


def refuse(change: Change, inputs: Inputs) -> None:
    """Code of a fork never meets a machine that stays; a trusted copy was looked at by a person before."""
    expected = inputs.expected_sha
    if expected is not None and not _FULL_COMMIT.fullmatch(expected):
        raise BadInputError("must be a full commit id in lower case", where="input expected-sha")
    if expected not in {None, change.head_sha}:
        raise RevisionError(
            f"the event is about commit {change.head_sha}, {expected} was expected", where="input expected-sha"
        )
    if not change.from_fork or change.kind == "copy" or inputs.allow_forks:
        return
    labels = [label for machines in inputs.runners.values() for label in machines.labels]
    lasting = [label for label in labels if not _HOSTED.fullmatch(label)]
    if lasting:
        raise BadInputError(
            f"the pull request comes from a fork, and its code would run on '{lasting[0]}', "
            "which is no GitHub-hosted runner",
            hint="copy vetted pull requests to branches pull-request/NUMBER, or set 'allow_forks: true' for ephemeral "
            "runners; see docs/security.md",
        )


def pin(change: Change, mirror: Mirror, api: Api | None, *, event_sha: str) -> Pinned:
    """Baseline and policy commit: merge base with, and head of, the base branch (rule 20).

    Where there is no base, the policy is that of the commit which somebody with write access chose.
    """
    if change.kind == "manual":
        return Pinned(change, None, event_sha)
    if change.kind == "push":
        return Pinned(change, _before(change, mirror), event_sha)
    if change.base_sha is None or change.base_ref is None:
        raise BadInputError("the event names no base")
    head = _base_head(change, mirror, api)
    # The base of a merge queue holds changes that go before this one, but are no policy yet.
    against = change.base_sha if change.kind == "merge_group" else head
    return Pinned(change, mirror.merge_base(against, change.head_sha), head)


def _base_head(change: Change, mirror: Mirror, api: Api | None) -> str:
    """The base branch's newest head that the checkout holds; of a merge queue's base only the branch itself will do."""
    known = str(change.base_sha)
    is_queued = change.kind == "merge_group"
    if api is None:
        if is_queued:
            raise BadInputError(
                f"a merge group needs the API to know the head of '{change.base_ref}', from which the policy is read",
                hint="give the input 'token', with 'contents: read'",
            )
        return known
    newest = api.branch_head(str(change.base_ref))
    try:
        mirror.ensure(newest)
    except RevisionError:
        if is_queued:
            raise
        return known
    return newest


def _before(change: Change, mirror: Mirror) -> str | None:
    """What a branch was before a push; a rewritten branch has no before."""
    if change.base_sha is None:
        return None
    try:
        mirror.ensure(change.base_sha)
    except RevisionError as error:
        # A checkout that is cut off says how to mend it; a whole one without the commit means that it was given up.
        if error.hint is not None:
            raise
        return None
    mirror.ensure(change.head_sha)
    return change.base_sha if mirror.is_ancestor(change.base_sha, change.head_sha) else None
