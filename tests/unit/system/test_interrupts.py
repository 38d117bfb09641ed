"""Signals wait for the end of a block and then arrive once."""

from __future__ import annotations

import signal
import threading

import pytest

from replay_parity.system.interrupts import uninterrupted


def test_an_interrupt_waits_for_the_end_of_the_block() -> None:
    steps = []

    @uninterrupted()
    def block() -> None:
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGINT)
        steps.append("done")

    with pytest.raises(KeyboardInterrupt):
        block()
    assert steps == ["done"]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_blocks_within_blocks() -> None:
    steps = []

    @uninterrupted()
    def block() -> None:
        with uninterrupted():
            signal.raise_signal(signal.SIGINT)
            steps.append("inner")
        steps.append("outer")

    with pytest.raises(KeyboardInterrupt):
        block()
    assert steps == ["inner", "outer"]


def test_what_is_ignored_stays_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    old = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with uninterrupted():
            assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
            signal.raise_signal(signal.SIGHUP)
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, old)


def test_an_error_inside_comes_with_the_handlers_restored() -> None:
    with pytest.raises(ValueError, match="mine"), uninterrupted():
        raise ValueError("mine")
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_other_threads_change_no_handler() -> None:
    seen = []

    def work() -> None:
        with uninterrupted():
            seen.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen == [signal.default_int_handler]
