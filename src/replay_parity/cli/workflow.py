"""`plan` to `badge`: the stages of the workflow, each from the environment of its job."""

from __future__ import annotations

import os
import sys
from typing import NoReturn

import click

from replay_parity.cli.failures import told
from replay_parity.cli.group import cli

_STAGES = {
    "plan": "Event or inputs to a plan and a matrix of rows.",
    "build": "Build the plan's runners.",
    "row": "Replay and judge the rows of one job.",
    "verdict": "Decide from what all jobs left.",
    "publish": "Make or update the check run of a verdict.",
    "badge": "Write the document of a status badge.",
}


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


def _stage_on_github(mode: str | None) -> NoReturn:
    """Run one stage from the environment of a job; `mode` None takes the input of that name."""
    from replay_parity.stages.job import run_in_job

    raise SystemExit(run_in_job(os.environ, mode=mode, write=_unbuffered, tell=told))


def _unbuffered(text: str) -> None:
    # Both streams go to one log; nothing may overtake a mark.
    sys.stderr.flush()
    sys.stdout.write(text)
    sys.stdout.flush()
