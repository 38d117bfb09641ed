"""The entry point: signals, the exit code, and every command registered."""

from __future__ import annotations

import os
import signal
import sys
from types import FrameType
from typing import Any, NoReturn

import click

from replay_parity.cli import corpus, records, run, workflow
from replay_parity.cli.failures import failed, interrupted, told
from replay_parity.cli.group import cli
from replay_parity.errors import EXIT_BAD_INPUT, EXIT_INFRASTRUCTURE, EXIT_OK, ReplayParityError

__all__ = ["cli", "main"]

# Importing a module registers its commands.
COMMANDS = (run, records, corpus, workflow)
# A closed terminal too: our children live in sessions of their own and would stay.
_ENDING = (signal.SIGTERM, signal.SIGHUP)


def main(arguments: list[str] | None = None) -> NoReturn:
    """Run the command line and exit; expected failures, interrupts and bugs never look alike."""
    for number in _ENDING:
        signal.signal(number, _interrupt)
    sys.exit(_guarded(arguments))


def _guarded(arguments: list[str] | None) -> int:
    try:
        cli.main(args=arguments, prog_name="replay-parity", standalone_mode=False)
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else EXIT_OK
    except click.exceptions.Abort:
        return interrupted()
    except KeyboardInterrupt:
        return interrupted()
    except click.ClickException as error:
        error.show()
        return EXIT_BAD_INPUT
    except ReplayParityError as error:
        return failed(error)
    except BrokenPipeError:
        # The reader went away; nothing is left to say to it.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return EXIT_INFRASTRUCTURE
    except Exception as error:  # noqa: BLE001 (a bug must not look like a verdict)
        return told(error)
    return EXIT_OK


def _interrupt(_number: int, _frame: FrameType | None) -> Any:
    # Like Ctrl-C: GitHub sends INT, then TERM; a second signal during clean-up must not break it.
    for number in _ENDING:
        signal.signal(number, signal.SIG_IGN)
    raise KeyboardInterrupt
