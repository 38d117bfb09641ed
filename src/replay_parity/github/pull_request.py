"""A pull request as GitHub tells it."""

from __future__ import annotations

from typing import Literal

from replay_parity.github.shapes import Branch, CommitId, Repository, Shape


class PullRequest(Shape):
    """The facts of a pull request that decide what is compared and who is trusted.

    `head_repository` is None when the fork was deleted; `base_sha` is the head of the base branch as GitHub last saw
    it, not the merge base.
    """

    number: int
    state: Literal["open", "closed"]
    draft: bool
    head_sha: CommitId
    head_ref: Branch
    head_repository: Repository | None
    base_sha: CommitId
    base_ref: Branch
    base_repository: Repository

    @property
    def is_fork(self) -> bool:
        """Whether its code comes from another repository; one that is gone counts as another."""
        return self.head_repository is None or self.head_repository.lower() != self.base_repository.lower()


class _Named(Shape):
    full_name: Repository


class _Head(Shape):
    sha: CommitId
    ref: Branch
    repo: _Named | None


class _Base(Shape):
    sha: CommitId
    ref: Branch
    repo: _Named


class PullRequestAnswer(Shape):
    """GET /repos/{owner}/{repo}/pulls/{pull_number}."""

    number: int
    state: Literal["open", "closed"]
    draft: bool = False
    head: _Head
    base: _Base

    def facts(self) -> PullRequest:
        """The same, flat."""
        return PullRequest(
            number=self.number,
            state=self.state,
            draft=self.draft,
            head_sha=self.head.sha,
            head_ref=self.head.ref,
            head_repository=self.head.repo.full_name if self.head.repo else None,
            base_sha=self.base.sha,
            base_ref=self.base.ref,
            base_repository=self.base.repo.full_name,
        )


class ChangedFile(Shape):
    """One entry of GET /repos/{owner}/{repo}/pulls/{pull_number}/files."""

    filename: str
    previous_filename: str | None = None


class _Object(Shape):
    type: Literal["commit"]
    sha: CommitId


class RefAnswer(Shape):
    """GET /repos/{owner}/{repo}/git/ref/{ref} of a branch."""

    ref: str
    object: _Object
