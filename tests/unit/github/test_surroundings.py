"""What a step is told by its environment, and how it answers: outputs and summary as GitHub reads them."""

from __future__ import annotations

import os
from pathlib import Path

import orjson
import pytest
from tests.support.hostile import INJECTIONS
from tests.unit.github.test_commands import read_outputs

from replay_parity.errors import BadInputError, InfrastructureError
from replay_parity.github.surroundings import Surroundings

SHA = "a" * 40


def variables(folder: Path, payload: object = None, **changes: str) -> dict[str, str]:
    event = folder / "event.json"
    event.write_bytes(orjson.dumps({} if payload is None else payload))
    return {
        "GITHUB_EVENT_NAME": "push",
        "GITHUB_EVENT_PATH": str(event),
        "GITHUB_REPOSITORY": "consumer/aisimulate",
        "GITHUB_SERVER_URL": "https://example.invalid/",
        "GITHUB_REF": "refs/heads/main",
        "GITHUB_SHA": SHA,
        "GITHUB_RUN_ID": "12345678901",
        "GITHUB_RUN_ATTEMPT": "2",
        "GITHUB_WORKSPACE": str(folder / "workspace"),
        "RUNNER_TEMP": str(folder / "temporary"),
        "GITHUB_OUTPUT": str(folder / "output"),
        "GITHUB_STEP_SUMMARY": str(folder / "summary"),
        **changes,
    }


def test_the_event(tmp_path: Path) -> None:
    around = Surroundings(variables(tmp_path, {"before": SHA}))
    event = around.event()
    assert (event.name, event.repository, event.ref, event.sha) == (
        "push",
        "consumer/aisimulate",
        "refs/heads/main",
        SHA,
    )
    assert (event.run_id, event.run_attempt, event.payload) == (12345678901, 2, {"before": SHA})
    assert event.address == "https://example.invalid/consumer/aisimulate"
    assert around.workspace == tmp_path / "workspace"
    assert around.temporary == tmp_path / "temporary"


def test_the_api_of_github_and_of_a_server_of_ones_own(tmp_path: Path) -> None:
    assert Surroundings(variables(tmp_path)).api_url == "https://api.github.com"
    own = variables(tmp_path, GITHUB_API_URL=" https://git.example/api/v3 ")
    assert Surroundings(own).api_url == "https://git.example/api/v3"


@pytest.mark.parametrize(
    "name",
    [
        "GITHUB_EVENT_NAME",
        "GITHUB_EVENT_PATH",
        "GITHUB_REPOSITORY",
        "GITHUB_SERVER_URL",
        "GITHUB_REF",
        "GITHUB_SHA",
        "GITHUB_RUN_ID",
        "GITHUB_RUN_ATTEMPT",
    ],
)
def test_a_missing_variable_is_told_by_name(name: str, tmp_path: Path) -> None:
    with pytest.raises(BadInputError, match=f"^{name} is not set"):
        Surroundings(variables(tmp_path, **{name: " "})).event()


@pytest.mark.parametrize("value", ["x", "-1", "1.0", "1 2", "²", "\u0661", "0x1", "9" * 5000])
def test_numbers_are_numbers(value: str, tmp_path: Path) -> None:
    with pytest.raises(BadInputError, match="GITHUB_RUN_ID must be a number") as caught:
        Surroundings(variables(tmp_path, GITHUB_RUN_ID=value)).event()
    assert len(str(caught.value)) < 200


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"null", b'"x"', b"\xff", b"[" * 5000, b'{"a":NaN}'])
def test_an_event_that_is_no_object(content: bytes, tmp_path: Path) -> None:
    given = variables(tmp_path)
    (tmp_path / "event.json").write_bytes(content)
    with pytest.raises(BadInputError, match="the event is no JSON") as caught:
        Surroundings(given).event()
    assert caught.value.where == given["GITHUB_EVENT_PATH"]
    assert len(str(caught.value).splitlines()) == 1


def test_an_event_that_is_no_file(tmp_path: Path) -> None:
    for path in (tmp_path / "nowhere", tmp_path):
        with pytest.raises(BadInputError):
            Surroundings(variables(tmp_path, GITHUB_EVENT_PATH=str(path))).event()


@pytest.mark.parametrize("value", INJECTIONS)
def test_outputs_are_read_back(value: str, tmp_path: Path) -> None:
    around = Surroundings(variables(tmp_path))
    around.put(first=value, plan_artifact="x")
    around.put(count="0")
    # As bytes: nothing between us and GitHub may turn a line end into another.
    text = (tmp_path / "output").read_bytes().decode()
    assert read_outputs(text) == {"first": value, "plan-artifact": "x", "count": "0"}


def test_a_path_that_is_no_text_goes_out_as_it_came_in(tmp_path: Path) -> None:
    around = Surroundings(variables(tmp_path))
    around.put(path=os.fsdecode(b"/tmp/\xff"))
    assert b"\n/tmp/\xff\n" in (tmp_path / "output").read_bytes()


def test_the_summary_grows(tmp_path: Path) -> None:
    around = Surroundings(variables(tmp_path))
    around.summarise("# one")
    around.summarise("two")
    assert (tmp_path / "summary").read_text() == "# one\ntwo\n"


def test_without_files_nothing_is_written(tmp_path: Path) -> None:
    around = Surroundings(variables(tmp_path, GITHUB_OUTPUT="", GITHUB_STEP_SUMMARY=""))
    around.put(count="0")
    around.summarise("x")
    assert [path.name for path in tmp_path.iterdir()] == ["event.json"]


def test_a_file_that_cannot_be_written_is_one_sentence(tmp_path: Path) -> None:
    around = Surroundings(variables(tmp_path, GITHUB_OUTPUT=str(tmp_path / "no" / "folder")))
    with pytest.raises(InfrastructureError, match="cannot write to GITHUB_OUTPUT"):
        around.put(count="0")


def test_the_variables_are_not_shown(tmp_path: Path) -> None:
    assert "consumer" not in repr(Surroundings(variables(tmp_path)))
