"""The folder that travels: a plan or a refusal, never both, and nothing of an earlier one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.support.planned import plan, planned_row

from replay_parity.errors import BadInputError, ConfigurationError, InfrastructureError, ManyErrors
from replay_parity.stages.plan_folder import TRACE_CAP, PlanFolder


@pytest.fixture
def folder(tmp_path: Path) -> PlanFolder:
    return PlanFolder(tmp_path / "below" / "plan")


def files(folder: PlanFolder) -> set[str]:
    return {path.relative_to(folder.root).as_posix() for path in folder.root.rglob("*") if path.is_file()}


def test_what_is_written_is_read(folder: PlanFolder, tmp_path: Path) -> None:
    (tmp_path / "t").write_bytes(b"{}\n")
    made = plan(planned_row(), planned_row("green", runner="arm64"))
    folder.write(made, patch=b"a patch", traces={"frozen-1": tmp_path / "t"})
    assert files(folder) == {"plan.json", "patch.diff", "traces/frozen-1.jsonl"}
    assert folder.read() == made
    assert folder.read().sha256 == made.sha256
    assert folder.patch is not None
    assert folder.patch.read_bytes() == b"a patch"
    assert (folder.traces / "frozen-1.jsonl").read_bytes() == b"{}\n"
    assert folder.read_refusal() is None


def test_nothing_of_an_earlier_plan_stays(folder: PlanFolder, tmp_path: Path) -> None:
    (tmp_path / "t").write_bytes(b"{}\n")
    folder.write(plan(), patch=b"a patch", traces={"frozen-1": tmp_path / "t"})
    folder.write(plan(), patch=None, traces={})
    assert files(folder) == {"plan.json"}
    assert folder.patch is None
    folder.write_refusal(BadInputError("wrong"))
    assert files(folder) == {"refusal.json"}
    folder.write(plan(), patch=None, traces={})
    assert files(folder) == {"plan.json"}


def test_a_refusal(folder: PlanFolder) -> None:
    folder.write_refusal(ConfigurationError("must be one", where="a.yaml:3 /x", hint="write one"))
    found = folder.read_refusal()
    assert found is not None
    assert (found.label, found.message) == ("bad configuration", "a.yaml:3 /x: must be one (write one)")
    assert found.exit_code == 2
    with pytest.raises(BadInputError, match="there is no plan"):
        folder.read()


def test_refusals_of_all_kinds(folder: PlanFolder) -> None:
    folder.write_refusal(ManyErrors([BadInputError("one"), BadInputError("two")]))
    several = folder.read_refusal()
    assert several is not None
    assert several.message == "one\ntwo"
    folder.write_refusal(InfrastructureError("no network", where="a\udcff"))
    found = folder.read_refusal()
    assert found is not None
    assert (found.message, found.exit_code) == ("a\ufffd: no network", 3)


@pytest.mark.parametrize("code", [0, -1, 256, "0", None])
def test_a_refusal_is_never_green(code: object, folder: PlanFolder) -> None:
    folder.write_refusal(BadInputError("wrong"))
    path = folder.root / "refusal.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"exit_code": code}))
    with pytest.raises(BadInputError, match="is damaged"):
        folder.read_refusal()


@pytest.mark.parametrize("data", [b"", b"{", b"[]", b"null", b'{"schema_version":2}', b"\xff"])
def test_damaged_documents(data: bytes, folder: PlanFolder) -> None:
    folder.clear()
    for name in ("plan.json", "refusal.json"):
        (folder.root / name).write_bytes(data)
    with pytest.raises(BadInputError, match="the plan cannot be read"):
        folder.read()
    with pytest.raises(BadInputError, match="is damaged"):
        folder.read_refusal()


def test_a_plan_with_a_key_too_many(folder: PlanFolder) -> None:
    folder.write(plan(), patch=None, traces={})
    path = folder.root / "plan.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"more": 1}))
    with pytest.raises(BadInputError, match=r"plan\.json /more"):
        folder.read()


def test_links_are_not_followed(folder: PlanFolder, tmp_path: Path) -> None:
    folder.write(plan(), patch=None, traces={})
    path = folder.root / "plan.json"
    path.rename(tmp_path / "elsewhere.json")
    path.symlink_to(tmp_path / "elsewhere.json")
    with pytest.raises(BadInputError, match="symbolic link"):
        folder.read()


def test_a_trace_that_is_too_large_to_travel(folder: PlanFolder, tmp_path: Path) -> None:
    with (tmp_path / "t").open("wb") as file:
        file.truncate(TRACE_CAP + 1)
    with pytest.raises(BadInputError, match="at most 67,108,864"):
        folder.write(plan(), patch=None, traces={"frozen-1": tmp_path / "t"})
    with pytest.raises(BadInputError, match="there is no plan"):
        folder.read()


def test_no_folder_no_plan(folder: PlanFolder) -> None:
    assert folder.read_refusal() is None
    assert folder.patch is None
    with pytest.raises(BadInputError, match="run the stage 'plan' first"):
        folder.read()
