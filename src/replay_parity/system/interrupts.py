"""Moments that an interrupt must not cut in two: starting processes and ending them."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator

_DEFERRED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@contextlib.contextmanager
def uninterrupted() -> Iterator[None]:
    """Let signals wait until the block is done, then deliver the first of them.

    Without it a Ctrl-C between a fork and the note of its process id leaves a child that nobody ends. Signals that are
    ignored stay ignored; outside of the main thread, where Python delivers none, nothing is to do.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    caught: list[int] = []
    handlers = {number: signal.getsignal(number) for number in _DEFERRED}
    # None is a handler that was not set from Python, which could not be put back.
    deferred = [number for number, handler in handlers.items() if handler not in {None, signal.SIG_IGN}]
    try:
        for number in deferred:
            signal.signal(number, lambda received, _frame: caught.append(received))
        yield
    finally:
        for number in deferred:
            signal.signal(number, handlers[number])
        if caught:
            signal.raise_signal(caught[0])
