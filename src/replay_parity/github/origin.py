"""Where a campaign on GitHub comes from: the event, the run, and the commit that its policy was read from."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from replay_parity.campaign.base import CommitId, Model


class PolicyEdit(Model):
    """A file of the policy that the change edits; it counts once it is merged (rule 20)."""

    path: str
    change: Literal["added", "changed", "removed"]


class Origin(Model):
    """The event that a plan was made for."""

    server_url: str
    repository: str = Field(description="OWNER/NAME")
    event: str
    run_id: int
    run_attempt: int
    pull_request: int | None = None
    base_ref: str | None = Field(default=None, description="Branch that the change goes to.")
    head_ref: str | None = None
    head_sha: CommitId = Field(description="The commit that the check belongs to.")
    from_fork: bool = False
    policy_commit: CommitId | None = Field(
        default=None, description="Commit that campaign, rows and corpora were read from; none for a built-in campaign."
    )
    policy_edits: tuple[PolicyEdit, ...] = ()

    @property
    def run_url(self) -> str:
        """Address of the run."""
        return f"{self.server_url}/{self.repository}/actions/runs/{self.run_id}"
