"""The group that every command belongs to, and the kinds of arguments that several of them take."""

from __future__ import annotations

from pathlib import Path

import click

from replay_parity import __version__

EXISTING_FOLDER = click.Path(exists=True, file_okay=False, path_type=Path)
FILE = click.Path(dir_okay=False, path_type=Path)


@click.group(
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Exit codes: 0 parity, 1 different, 2 bad input, 3 infrastructure, 130 interrupted.",
)
@click.version_option(__version__, prog_name="replay-parity")
def cli() -> None:
    """Tell whether a change moved the simulated results of AI Simulate."""
