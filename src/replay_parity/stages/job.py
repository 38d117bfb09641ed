"""A stage inside a job of GitHub Actions: inputs and event come from the environment, nothing printed is a command."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from replay_parity.errors import EXIT_INFRASTRUCTURE, ReplayParityError
from replay_parity.github.commands import command, stopped_output
from replay_parity.github.inputs import Inputs
from replay_parity.github.surroundings import Surroundings
from replay_parity.github.text import well_formed
from replay_parity.publish.progress import PlainProgress
from replay_parity.settings import Settings
from replay_parity.stages.action import run_action
from replay_parity.stages.action_use import ActionUse


def run_in_job(
    environment: Mapping[str, str],
    *,
    mode: str | None,
    write: Callable[[str], object],
    tell: Callable[[Exception], int],
) -> int:
    """Run the stage and return its exit code; `mode` None takes the input of that name.

    `write` prints, past all buffers; `tell` shows an error to people and gives its exit code.
    """
    commands: list[str] = []
    code = EXIT_INFRASTRUCTURE
    with stopped_output(commands, write=write):
        try:
            use = ActionUse(
                inputs=Inputs.from_environment(environment, mode=mode),
                around=Surroundings(environment),
                settings=Settings.from_environment(environment),
                progress=PlainProgress(),
                commands=commands,
            )
            code = run_action(use)
        except ReplayParityError as error:
            commands.append(command("error", well_formed(str(error)), title=f"Replay Parity: {error.label}"))
            code = tell(error)
        except Exception as error:  # noqa: BLE001 (its words are no safer than others, so they stay between the marks)
            code = tell(error)
    return code
