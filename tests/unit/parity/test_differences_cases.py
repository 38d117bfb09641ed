"""The cases of tests/cases/differences: two documents, their difference as JSON and as a summary."""

from __future__ import annotations

import os
from pathlib import Path

import orjson
import pytest

from replay_parity.parity.differences import compare
from replay_parity.parity.differences_model import Differences, to_json
from replay_parity.parity.differences_text import summary_lines

CASES = Path(__file__).parents[2] / "cases" / "differences"
FOLDERS = sorted(path for path in CASES.iterdir() if path.is_dir())
UPDATE = "REPLAY_PARITY_UPDATE_CASES"


def test_there_are_cases() -> None:
    assert FOLDERS


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_case(folder: Path) -> None:
    left, right = (orjson.loads((folder / name).read_bytes()) for name in ("left.json", "right.json"))
    differences = compare(left, right)
    outcome = {
        "expected.json": to_json(differences),
        "expected.txt": "\n".join(summary_lines(differences)).encode() + b"\n",
    }
    for name, data in outcome.items():
        path = folder / name
        if os.environ.get(UPDATE):
            path.write_bytes(data)
        assert path.is_file(), f"{path} is missing; see the README of the cases"
        assert path.read_text(encoding="utf-8") == data.decode()
    assert Differences.model_validate_json(outcome["expected.json"]) == differences
