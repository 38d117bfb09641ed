"""Progress for people: a live line in a terminal, one line a step elsewhere, nothing when quiet."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Iterator

from replay_parity.publish.plain import visible
from replay_parity.system.progress import Progress, Silent

_PLAIN_SECONDS = 30.0


class PlainProgress:
    """Lines on standard error; details at most every half minute, so that logs stay short."""

    def __init__(self) -> None:
        self._told = time.monotonic()

    def step(self, text: str) -> None:
        """Tell a new step."""
        self._say(text)

    def detail(self, text: str) -> None:
        """Tell a detail when none was told for a while."""
        if time.monotonic() - self._told > _PLAIN_SECONDS:
            self._say(f"  {text}")

    def notice(self, text: str) -> None:
        """Tell a notice."""
        self._say(f"note: {text}")

    def _say(self, text: str) -> None:
        self._told = time.monotonic()
        sys.stderr.write(f"{visible(text)}\n")
        sys.stderr.flush()


@contextlib.contextmanager
def make_progress(*, quiet: bool, plain: bool) -> Iterator[Progress]:
    """The progress that fits the place where the program runs."""
    if quiet:
        yield Silent()
    elif plain or not sys.stderr.isatty():
        yield PlainProgress()
    else:
        # Rich costs start-up time, so only a terminal that shows it pays for it.
        from replay_parity.publish.live import live_progress

        with live_progress() as progress:
            yield progress
