"""How a failure is told: an expected one in a sentence, a bug of ours with the file that holds its traceback."""

from __future__ import annotations

import click

from replay_parity.errors import EXIT_INFRASTRUCTURE, EXIT_INTERRUPTED, ReplayParityError


def told(error: Exception) -> int:
    """Say what failed; the exit code."""
    return failed(error) if isinstance(error, ReplayParityError) else _bug(error)


def failed(error: ReplayParityError) -> int:
    """Say an expected failure in its own sentences; the exit code lives on its class."""
    for line in str(error).splitlines():
        click.echo(f"replay-parity: {error.label}: {_shown(line)}", err=True)
    return error.exit_code


def interrupted() -> int:
    """Say that the work was interrupted; its exit code."""
    click.echo("replay-parity: interrupted; what is done is kept, the same command continues", err=True)
    return EXIT_INTERRUPTED


def _bug(error: Exception) -> int:
    import tempfile
    import traceback

    with tempfile.NamedTemporaryFile("w", prefix="replay-parity-bug-", suffix=".log", delete=False) as file:
        traceback.print_exception(error, file=file)
    click.echo(
        f"replay-parity: this is a fault of replay-parity itself ({type(error).__name__}: {_shown(str(error))}); "
        f"please report it with {file.name}",
        err=True,
    )
    return EXIT_INFRASTRUCTURE


def _shown(text: str) -> str:
    from replay_parity.publish.plain import visible

    return visible(text)
