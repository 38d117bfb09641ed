"""`canonical` and `diff`: canonical records as files."""

from __future__ import annotations

import shutil
from pathlib import Path

import click

from replay_parity.cli.group import FILE, cli
from replay_parity.errors import EXIT_DIFFERENT, EXIT_OK


@cli.command(short_help="Print the digests of a canonical record.")
@click.argument("file", type=FILE)
def canonical(file: Path) -> None:
    """Print the digests of a canonical record and whether its form is proven."""
    from replay_parity.stages.records import read_record

    record = read_record(file)
    click.echo(f"canonical  {record.canonical_sha256}")
    click.echo(f"results    {record.results_sha256}")
    click.echo(f"bytes      {record.size}")
    click.echo("form       proven canonical (dynamo.offline-replay.v1)")


@cli.command(short_help="Compare two canonical records.")
@click.argument("left", type=FILE)
@click.argument("right", type=FILE)
@click.option("--json", "as_json", is_flag=True, help="Print differences.json instead of the summary.")
def diff(left: Path, right: Path, as_json: bool) -> None:  # noqa: FBT001
    """Compare two canonical records: exit code 0 equal, 1 different, 2 bad input."""
    from replay_parity.parity.differences_model import to_json
    from replay_parity.parity.differences_text import summary_lines
    from replay_parity.stages.records import compare_files

    differences = compare_files(left, right)
    if as_json:
        click.echo(to_json(differences), nl=False)
    else:
        size = shutil.get_terminal_size((100, 40))
        for line in summary_lines(
            differences, width=size.columns, height=max(size.lines - 1, 8), left="left", right="right"
        ):
            click.echo(line)
    raise SystemExit(EXIT_DIFFERENT if differences.count else EXIT_OK)
