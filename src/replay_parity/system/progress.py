"""What a long stage tells while it works; the command line decides how it is shown."""

from __future__ import annotations

from typing import Protocol


class Progress(Protocol):
    """Receives the steps of a run; implementations must be fast, they are called from waiting loops."""

    def step(self, text: str) -> None:
        """A new step has begun."""

    def detail(self, text: str) -> None:
        """How the current step is doing; may be called many times a second."""

    def notice(self, text: str) -> None:
        """Something a person should know, although work goes on."""


class Silent:
    """Tells nothing."""

    def step(self, text: str) -> None:
        """Ignore the step."""

    def detail(self, text: str) -> None:
        """Ignore the detail."""

    def notice(self, text: str) -> None:
        """Ignore the notice."""
