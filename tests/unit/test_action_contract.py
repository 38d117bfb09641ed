"""action.yml, the workflows and the code say the same: inputs, variables, outputs, modes; and nothing is put into a
script or taken from a moving reference."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import yaml

from replay_parity.github.inputs import Inputs, Mode
from replay_parity.settings import Settings
from replay_parity.stages import action

ROOT = Path(__file__).resolve().parents[2]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.y*ml"))
FILES = [ROOT / "action.yml", *WORKFLOWS]
# Not for the stages: the settings read the one, the steps before the stage the other.
ELSEWHERE = {"cache", "python-version"}


def read(path: Path) -> dict[str, Any]:
    # YAML 1.1 takes the key `on` for true; nothing here looks at it.
    document: dict[str, Any] = yaml.safe_load(path.read_text())
    return document


ACTION = read(ROOT / "action.yml")
STAGE = next(step for step in ACTION["runs"]["steps"] if step.get("id") == "stage")


def found(node: Any, key: str) -> Iterator[Any]:
    """Every value of a key, wherever it is."""
    items = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    for name, value in items:
        if name == key:
            yield value
        yield from found(value, key)


def test_the_inputs_are_those_that_are_read() -> None:
    assert set(ACTION["inputs"]) == {*Inputs.names(), *ELSEWHERE}
    assert len(Inputs.names()) == len(set(Inputs.names()))
    assert all(given["description"].strip() for given in ACTION["inputs"].values())


def test_each_input_goes_to_its_variable() -> None:
    variables = {name: value for name, value in STAGE["env"].items() if name.startswith("REPLAY_PARITY_")}
    wanted = {f"REPLAY_PARITY_{name.upper().replace('-', '_')}": name for name in {*Inputs.names(), "cache"}}
    assert set(variables) == set(wanted)
    for variable, name in wanted.items():
        given = re.findall(r"\binputs\.([a-z-]+)", variables[variable])
        assert given == [name], variable
    plain = {variable: f"${{{{ inputs.{name} }}}}" for variable, name in wanted.items() if name != "cache"}
    assert {variable: variables[variable] for variable in plain} == plain


def test_the_cache_goes_to_the_settings() -> None:
    assert Settings.from_environment({"REPLAY_PARITY_CACHE": "/somewhere"}).cache == Path("/somewhere")
    assert "runner.temp" in STAGE["env"]["REPLAY_PARITY_CACHE"], "without one the cache ends with the job"


def test_the_defaults_are_those_of_the_code() -> None:
    defaults = {
        f"REPLAY_PARITY_{name.upper().replace('-', '_')}": str(given.get("default", ""))
        for name, given in ACTION["inputs"].items()
        if name not in ELSEWHERE
    }
    assert Inputs.from_environment({**defaults, "REPLAY_PARITY_MODE": "row"}) == Inputs(mode="row")


def put_by_the_stages() -> set[str]:
    tree = ast.parse(Path(action.__file__).read_text())
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)]
    puts = [call for call in calls if call.func.attr == "put"]  # type: ignore[attr-defined]
    assert len(puts) >= len(get_args(Mode))
    return {str(keyword.arg).replace("_", "-") for call in puts for keyword in call.keywords}


def test_the_outputs_are_those_that_the_stages_put() -> None:
    assert set(ACTION["outputs"]) == put_by_the_stages()
    for name, given in ACTION["outputs"].items():
        assert given["value"] == f"${{{{ steps.stage.outputs.{name} }}}}"
        assert given["description"].strip()


def test_the_workflow_uses_outputs_that_there_are() -> None:
    used = {
        name
        for path in WORKFLOWS
        for name in re.findall(
            r"steps\.(?:plan|baseline|both|row|verdict|publish)\.outputs\.([a-z-]+)", path.read_text()
        )
    }
    assert used
    assert used <= set(ACTION["outputs"])


def test_the_modes_are_named() -> None:
    words = re.findall(r"[a-z]+", ACTION["inputs"]["mode"]["description"].partition(":")[2])
    assert [word for word in words if word != "or"] == list(get_args(Mode))


def test_the_stage_runs_isolated_and_outside_of_the_checkout() -> None:
    assert STAGE["run"] == 'cd "${RP_ENVIRONMENT}" && exec bin/python -I -m replay_parity action'
    assert "github.workspace" not in str(STAGE["env"])
