"""`run`: the whole comparison on one machine."""

from __future__ import annotations

import os
from pathlib import Path

import click

from replay_parity.cli.group import EXISTING_FOLDER, cli

_EXAMPLES = """\b
Examples:
  replay-parity run demo
  replay-parity run my-campaign.yaml --corpus-dir traces --row vllm-aggregated
  replay-parity run demo --baseline main --candidate HEAD
"""


@cli.command(short_help="Compare two revisions completely.", epilog=_EXAMPLES)
@click.argument("campaign", type=str)
@click.option("--corpus-dir", "corpus_dirs", type=EXISTING_FOLDER, multiple=True, help="Folder that holds traces.")
@click.option("--row", "rows", multiple=True, metavar="NAME", help="Only this row of the campaign; may be repeated.")
@click.option("--baseline", metavar="REV", help="Trusted revision: a commit, branch or tag, or crate:VERSION.")
@click.option("--candidate", metavar="REV", help="Judged revision, named like the baseline.")
@click.option("--relationship", metavar="WORDS", help="How the two relate, when that is not ancestry.")
@click.option("--self-compare", is_flag=True, help="The candidate on both sides: checks the check itself.")
@click.option("--output", type=click.Path(file_okay=False, path_type=Path), help="Folder for results.")
@click.option("--fresh", is_flag=True, help="Replay rows again although they are done for the same inputs.")
@click.option("--json", "as_json", is_flag=True, help="Print verdict.json instead of the table.")
@click.option("--quiet", "-q", is_flag=True, help="No progress, only the verdict.")
def run(
    campaign: str,
    corpus_dirs: tuple[Path, ...],
    rows: tuple[str, ...],
    baseline: str | None,
    candidate: str | None,
    relationship: str | None,
    self_compare: bool,  # noqa: FBT001
    output: Path | None,
    fresh: bool,  # noqa: FBT001
    as_json: bool,  # noqa: FBT001
    quiet: bool,  # noqa: FBT001
) -> None:
    """Compare two revisions completely: pin, build, replay, prove, compare, verdict.

    CAMPAIGN is a campaign file, or the name of a campaign that is shipped.
    """
    from replay_parity.publish.progress import make_progress
    from replay_parity.settings import Settings
    from replay_parity.stages.compared import Asked
    from replay_parity.stages.run import RunOptions, run_campaign

    settings = Settings.from_environment(os.environ)
    asked = Asked(baseline=baseline, candidate=candidate, stated=relationship, self_compare=self_compare)
    with make_progress(quiet=quiet, plain=settings.plain) as progress:
        finished = run_campaign(
            campaign,
            options=RunOptions(corpus_folders=corpus_dirs, rows=rows, output=output, fresh=fresh, asked=asked),
            settings=settings,
            progress=progress,
        )
    if as_json:
        click.echo(finished.verdict.model_dump_json(indent=2))
    else:
        from rich.console import Console

        from replay_parity.publish.terminal import print_verdict

        print_verdict(finished.verdict, Console(highlight=False))
        click.echo(f"results: {finished.folder}")
    raise SystemExit(finished.verdict.exit_code)
