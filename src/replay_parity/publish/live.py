"""A live line with a spinner, the running step, its detail and its time."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from rich.console import Console
from rich.progress import Progress as Bar
from rich.progress import SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.text import Text

from replay_parity.publish.plain import visible


class LiveProgress:
    """Shows the current step live; finished steps stay above it."""

    def __init__(self, bar: Bar) -> None:
        self._bar = bar
        self._task = bar.add_task("", total=None, step="", detail="")
        self._step = ""

    def step(self, text: str) -> None:
        """Leave the former step on the screen and begin a new one."""
        if self._step:
            self._bar.console.print(Text(f"  {self._step}", style="dim"))
        self._step = visible(text)
        self._bar.reset(self._task, step=self._step, detail="")

    def detail(self, text: str) -> None:
        """Update the line."""
        self._bar.update(self._task, detail=visible(text))

    def notice(self, text: str) -> None:
        """Print a notice above the line."""
        self._bar.console.print(Text(f"note: {visible(text)}", style="yellow"))


@contextlib.contextmanager
def live_progress() -> Iterator[LiveProgress]:
    """A live line on standard error for as long as the block runs."""
    columns = (
        SpinnerColumn(),
        TextColumn("{task.fields[step]}", markup=False),
        TextColumn("{task.fields[detail]}", style="dim", markup=False),
        TimeElapsedColumn(),
    )
    with Bar(*columns, console=Console(stderr=True), transient=True) as bar:
        yield LiveProgress(bar)
