"""What GitHub may refuse, as named errors: each tells the caller what it can still do."""

from __future__ import annotations

from replay_parity.errors import InfrastructureError


class PermissionDenied(InfrastructureError):  # noqa: N818 (named for what happened)
    """401, 403 or 404: the token may not do this or not see it; `hint` says what to grant, `status` which one it was.

    GitHub answers 404 both for what is not there and for what a token may not see.
    """

    label = "permission denied"

    def __init__(self, message: str, *, status: int, where: str | None = None, hint: str | None = None) -> None:
        super().__init__(message, where=where, hint=hint)
        self.status = status


class Unprocessable(InfrastructureError):  # noqa: N818
    """422: what was sent is refused; the message holds GitHub's own words."""

    label = "refused by GitHub"


class RateLimited(InfrastructureError):  # noqa: N818
    """A rate limit that outlasts the time that this client may wait."""

    label = "rate limit"


class Unclear(InfrastructureError):  # noqa: N818
    """A write whose answer was lost (5xx, timeout, cut-off body): it may have taken effect, so look first."""

    label = "unclear outcome"
