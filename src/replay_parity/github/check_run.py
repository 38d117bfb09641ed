"""What GitHub's Checks API takes of a check run."""

from __future__ import annotations

from typing import Literal

from replay_parity.campaign.base import Model


class Annotation(Model):
    """A remark on lines of a file of the repository; title up to 255 characters, message up to 64 KB."""

    path: str
    start_line: int
    end_line: int
    level: Literal["notice", "warning", "failure"]
    title: str
    message: str
    raw_details: str | None = None
