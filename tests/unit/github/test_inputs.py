"""Inputs of the action: environment to one object, a sentence for each wrong value, the token nowhere in it."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from replay_parity.errors import BadInputError
from replay_parity.github.inputs import Inputs, Machines
from replay_parity.github.surroundings import Surroundings
from replay_parity.settings import Settings
from replay_parity.stages.action_use import ActionUse
from replay_parity.system.progress import Silent

TOKEN = "ghs_notARealTokenButAsSecretAsOne0123"


GIVEN: list[tuple[str, str, Any]] = [
    ("campaign", " nightly ", "nightly"),
    ("rows", "a, b\n c,", ("a", "b", "c")),
    ("rows", " , ", ()),
    ("baseline", "release/1.0", "release/1.0"),
    ("candidate", "crate:0.12.1", "crate:0.12.1"),
    ("relationship", "the one is a fork of the other", "the one is a fork of the other"),
    ("expected_sha", "a" * 40, "a" * 40),
    ("self_compare", "true", True),
    ("self_compare", "TRUE", True),
    ("advisory", "true", True),
    ("allow_forks", "true", True),
    ("allow_forks", "false", False),
    ("checkout", "/a/b", Path("/a/b")),
    ("folder", "/a/b", Path("/a/b")),
    ("runner", "arm64", "arm64"),
    ("side", "baseline", "baseline"),
    ("shard", "shard-001@default", "shard-001@default"),
    ("corpus_dir", "/traces", Path("/traces")),
    ("jobs", "plan=success build=failure row=", {"plan": "success", "build": "failure", "row": "cancelled"}),
    ("check_name", "Parity", "Parity"),
    ("token", TOKEN, TOKEN),
]


def inputs(**given_inputs: str) -> Inputs:
    given_inputs = {"mode": "plan", "campaign": "nightly"} | given_inputs
    return Inputs.from_environment({f"REPLAY_PARITY_{name.upper()}": value for name, value in given_inputs.items()})


def refused(name: str, value: str) -> str:
    with pytest.raises(BadInputError) as caught:
        inputs(**{name: value})
    assert caught.value.where == f"input {name.replace('_', '-')}"
    text = str(caught.value)
    assert text.isprintable(), ascii(text)
    return text


@pytest.mark.parametrize(("name", "value", "read"), GIVEN)
def test_each_input(name: str, value: str, read: Any) -> None:
    assert getattr(inputs(**{name: value}), name) == read


def test_every_input_is_tested_here_or_below() -> None:
    tested = {name for name, _, _ in GIVEN}
    assert {name.replace("-", "_") for name in Inputs.names()} - tested == {"mode", "runners"}


@pytest.mark.parametrize("mode", ["plan", "build", "row", "verdict", "publish", "badge"])
def test_modes(mode: str) -> None:
    assert inputs(mode=mode).mode == mode


def test_blank_is_unset() -> None:
    bare = Inputs.from_environment({"REPLAY_PARITY_MODE": "row"})
    blank = {f"REPLAY_PARITY_{name.upper().replace('-', '_')}": " \n" for name in Inputs.names()}
    assert Inputs.from_environment({**blank, "REPLAY_PARITY_MODE": "row"}) == bare
    assert bare.runner == "default"
    assert bare.check_name == "Replay Parity report"
    assert {name for name, value in asdict(bare).items() if value} == {"mode", "runner", "check_name"}


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("mode", "", "must be one of plan, build, row"),
        ("mode", "Plan", "must be one of plan, build, row"),
        ("mode", "plan\n::error::x", "must be one of plan, build, row"),
        ("campaign", "", "is needed to plan"),
        ("campaign", "../demo", "lower-case letters"),
        ("campaign", "-x", "lower-case letters"),
        ("self_compare", "yes", "must be 'true' or 'false'"),
        ("advisory", "1", "must be 'true' or 'false'"),
        ("allow_forks", "true\n::error::x", "must be 'true' or 'false'"),
        ("checkout", "source", "must be an absolute path"),
        ("folder", "./a\nb", "must be an absolute path"),
        ("corpus_dir", "~/traces", "must be an absolute path"),
        ("checkout", "/a\udcff", "must be an absolute path in UTF-8"),
        ("runner", "a b", "lower-case letters"),
        ("side", "candidate", "must be 'baseline'"),
        ("jobs", "plan", "must be words such as 'plan=success'"),
        ("jobs", "publish=success", "must be words"),
        ("jobs", "plan=Success", "must be words"),
        ("jobs", "plan=success;row=success", "must be words"),
        ("jobs", "plan=\x1b[31m", "must be words"),
    ],
)
def test_wrong_values(name: str, value: str, said: str) -> None:
    assert said in refused(name, value)


def test_runners() -> None:
    given = {
        "default": {"labels": ["prod-aisimulate-default-amd64-v1"]},
        "arm64": {"labels": ["self-hosted", "arm64"], "container": "registry.example/image@sha256:0"},
    }
    assert inputs(runners=orjson.dumps(given).decode()).runners == {
        "default": Machines(labels=("prod-aisimulate-default-amd64-v1",)),
        "arm64": Machines(labels=("self-hosted", "arm64"), container="registry.example/image@sha256:0"),
    }


@pytest.mark.parametrize(
    "text",
    [
        "prod-amd64",
        "{",
        "[]",
        "{}",
        "null",
        '"default"',
        '["default"]',
        "[" * 2000,
        '{"default": "prod-amd64"}',
        '{"default": ["prod-amd64"]}',
        '{"default": {}}',
        '{"default": {"labels": []}}',
        '{"default": {"labels": "prod-amd64"}}',
        '{"default": {"labels": {"a": "b"}}}',
        '{"default": {"labels": [1]}}',
        '{"default": {"labels": [null]}}',
        '{"default": {"labels": [["a"]]}}',
        '{"default": {"labels": [""]}}',
        '{"default": {"labels": ["a\\n::error::x"]}}',
        '{"default": {"labels": ["a\\u202eb"]}}',
        '{"default": {"labels": ["a\\u0000"]}}',
        '{"default": {"labels": ["a"], "container": 1}}',
        '{"default": {"labels": ["a"], "container": "x\\ny"}}',
        '{"default": {"labels": ["a"], "image": "x"}}',
        '{"default": {"labels": ["a"], "Labels": ["b"]}}',
        '{"": {"labels": ["a"]}}',
        '{"Default": {"labels": ["a"]}}',
        '{"a b": {"labels": ["a"]}}',
        '{"a~b": {"labels": ["a"]}}',
        '{"a@b": {"labels": ["a"]}}',
        '{"default": {"labels": ["a"]}} x',
        "\udcff",
    ],
)
def test_wrong_runners(text: str) -> None:
    assert 'must be JSON such as {"default"' in refused("runners", text)


def test_the_token_is_never_shown() -> None:
    given = inputs(token=TOKEN)
    variables = {"REPLAY_PARITY_TOKEN": TOKEN, "GITHUB_TOKEN": TOKEN}
    use = ActionUse(given, Surroundings(variables), Settings.from_environment(variables), Silent())
    for shown in (repr(given), str(given), f"{given}", repr(use), str(use), repr(use.around), repr(use.settings)):
        assert "ghs_" not in shown
    assert given.token == TOKEN
    with pytest.raises(BadInputError) as caught:
        inputs(token=TOKEN, mode="plan", jobs="x")
    assert "ghs_" not in repr(caught.value) + str(caught.value)


@given(
    st.dictionaries(
        st.sampled_from([name.upper().replace("-", "_") for name in Inputs.names()]), st.text(max_size=30), max_size=6
    )
)
def test_any_environment_gives_inputs_or_a_refusal(given_inputs: dict[str, str]) -> None:
    variables = {f"REPLAY_PARITY_{name}": value for name, value in given_inputs.items()}
    wrong = None
    try:
        Inputs.from_environment({"REPLAY_PARITY_MODE": "row", **variables})
    except BadInputError as error:
        wrong = str(error.where)
    assert wrong is None or wrong.removeprefix("input ") in Inputs.names()
