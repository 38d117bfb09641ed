"""The command line: one subcommand per stage, `run` for all of them; the only place that exits."""

from __future__ import annotations

import os
import shutil
import signal
import sys
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn

import click

from replay_parity import __version__
from replay_parity.errors import (
    EXIT_BAD_INPUT,
    EXIT_DIFFERENT,
    EXIT_INFRASTRUCTURE,
    EXIT_INTERRUPTED,
    EXIT_OK,
    ReplayParityError,
)

_EXISTING_FOLDER = click.Path(exists=True, file_okay=False, path_type=Path)
# A closed terminal too: our children live in sessions of their own and would stay.
_ENDING = (signal.SIGTERM, signal.SIGHUP)
_RUN_EXAMPLES = """\b
Examples:
  replay-parity run demo
  replay-parity run my-campaign.yaml --corpus-dir traces --row vllm-aggregated
  replay-parity run demo --baseline main --candidate HEAD
"""
_FILE = click.Path(dir_okay=False, path_type=Path)
_STAGES = {
    "plan": "Event or inputs to a plan and a matrix of rows.",
    "build": "Build the plan's runners.",
    "row": "Replay and judge the rows of one job.",
    "verdict": "Decide from what all jobs left.",
    "publish": "Make or update the check run of a verdict.",
    "badge": "Write the document of a status badge.",
}


@click.group(
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Exit codes: 0 parity, 1 different, 2 bad input, 3 infrastructure, 130 interrupted.",
)
@click.version_option(__version__, prog_name="replay-parity")
def cli() -> None:
    """Tell whether a change moved the simulated results of AI Simulate."""


@cli.command(short_help="Compare two revisions completely.", epilog=_RUN_EXAMPLES)
@click.argument("campaign", type=str)
@click.option("--corpus-dir", "corpus_dirs", type=_EXISTING_FOLDER, multiple=True, help="Folder that holds traces.")
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


@cli.command(short_help="Print the digests of a canonical record.")
@click.argument("file", type=_FILE)
def canonical(file: Path) -> None:
    """Print the digests of a canonical record and whether its form is proven."""
    from replay_parity.stages.records import read_record

    record = read_record(file)
    click.echo(f"canonical  {record.canonical_sha256}")
    click.echo(f"results    {record.results_sha256}")
    click.echo(f"bytes      {record.size}")
    click.echo("form       proven canonical (dynamo.offline-replay.v1)")


@cli.command(short_help="Compare two canonical records.")
@click.argument("left", type=_FILE)
@click.argument("right", type=_FILE)
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


@cli.command(short_help="One stage of the GitHub Action, from its environment.", hidden=True)
def action() -> None:
    """Run the stage that the input `mode` names; action.yml calls this."""
    _stage_on_github(None)


def _stage(name: str, help_text: str) -> None:
    """Register a stage of the workflow as a command of its own."""

    @cli.command(name, short_help=help_text)
    @click.option("--github", is_flag=True, required=True, help="Inputs and event come from the job's environment.")
    def stage(github: bool) -> None:  # noqa: ARG001, FBT001 (a flag that must be given)
        _stage_on_github(name)

    stage.help = f"{help_text} Runs in a job of GitHub Actions: docs/action.md. On one machine use 'run'."


for _name, _help in _STAGES.items():
    _stage(_name, _help)


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
        return _interrupted()
    except KeyboardInterrupt:
        return _interrupted()
    except click.ClickException as error:
        error.show()
        return EXIT_BAD_INPUT
    except ReplayParityError as error:
        return _failed(error)
    except BrokenPipeError:
        # The reader went away; nothing is left to say to it.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return EXIT_INFRASTRUCTURE
    except Exception as error:  # noqa: BLE001 (a bug must not look like a verdict)
        return _bug(error)
    return EXIT_OK


def _failed(error: ReplayParityError) -> int:
    for line in str(error).splitlines():
        click.echo(f"replay-parity: {error.label}: {_shown(line)}", err=True)
    return error.exit_code


def _told(error: Exception) -> int:
    return _failed(error) if isinstance(error, ReplayParityError) else _bug(error)


def _stage_on_github(mode: str | None) -> NoReturn:
    """Run one stage from the environment of a job; `mode` None takes the input of that name."""
    from replay_parity.stages.job import run_in_job

    raise SystemExit(run_in_job(os.environ, mode=mode, write=_unbuffered, tell=_told))


def _unbuffered(text: str) -> None:
    # Both streams go to one log; nothing may overtake a mark.
    sys.stderr.flush()
    sys.stdout.write(text)
    sys.stdout.flush()


def _interrupted() -> int:
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


def _interrupt(_number: int, _frame: FrameType | None) -> Any:
    # Like Ctrl-C: GitHub sends INT, then TERM; a second signal during clean-up must not break it.
    for number in _ENDING:
        signal.signal(number, signal.SIG_IGN)
    raise KeyboardInterrupt
