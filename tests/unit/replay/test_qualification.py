"""Files of a runner are untrusted data."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from replay_parity.errors import BadInputError
from replay_parity.replay.qualification import read_failure, read_qualification

_GOOD = {
    "schema": "replay-parity.qualification.v1",
    "row_name": "row",
    "canonical_sha256": "a" * 64,
    "canonical_bytes": 7,
    "timing_ms": {"load": 1.5},
    "identity": {"revision": "b" * 40},
    "virtual_duration_ms": 14,
    "a_later_counter": 1,
}
_ERROR = {"schema": "replay-parity.runner-error.v1", "kind": "engine_refused", "phase": "run", "message": "no"}


def write(folder: Path, name: str, document: Any) -> Path:
    (folder / name).write_text(document if isinstance(document, str) else json.dumps(document))
    return folder


def test_counters_are_read_and_unknown_ones_pass(tmp_path: Path) -> None:
    found = read_qualification(write(tmp_path, "qualification.json", _GOOD))
    assert (found.row_name, found.virtual_duration_ms, found.completed_requests) == ("row", 14.0, None)
    assert "schema_" not in found.model_dump()


@pytest.mark.parametrize(
    ("document", "words"),
    [
        ("{", "is not JSON"),
        ('{"virtual_duration_ms": NaN}', "is not JSON"),
        ("[]", "has another form"),
        ({**_GOOD, "schema": "another.v1"}, "qualification.json /schema"),
        ({**_GOOD, "canonical_bytes": "7"}, "/canonical_bytes"),
        ({**_GOOD, "canonical_bytes": True}, "/canonical_bytes"),
        ({**_GOOD, "num_requests": -1}, "/num_requests"),
        ({**_GOOD, "canonical_sha256": "A" * 64}, "/canonical_sha256"),
        ({**_GOOD, "terminal_counts": {"completed": 1.5}}, "/terminal_counts/completed"),
        ({key: value for key, value in _GOOD.items() if key != "identity"}, "/identity"),
        ("[" * 100_000, "is not JSON"),
        ("x" * (5 << 20), "at most"),
    ],
)
def test_another_form_is_named(tmp_path: Path, document: Any, words: str) -> None:
    with pytest.raises(BadInputError, match=words) as caught:
        read_qualification(write(tmp_path, "qualification.json", document))
    assert len(str(caught.value)) < 500


def test_missing_and_linked_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInputError, match="no such file"):
        read_qualification(tmp_path)
    write(tmp_path, "elsewhere.json", _GOOD)
    (tmp_path / "qualification.json").symlink_to(tmp_path / "elsewhere.json")
    with pytest.raises(BadInputError, match="symbolic link"):
        read_qualification(tmp_path)
    (tmp_path / "error.json").symlink_to(tmp_path / "nowhere")
    with pytest.raises(BadInputError, match="symbolic link"):
        read_failure(tmp_path)


def test_typed_errors(tmp_path: Path) -> None:
    assert read_failure(tmp_path) is None
    found = read_failure(write(tmp_path, "error.json", {**_ERROR, "variant": "Invariant"}))
    assert found is not None
    assert (found.kind, found.phase, found.variant, found.message) == ("engine_refused", "run", "Invariant", "no")
    assert set(found.model_dump()) == {"kind", "phase", "variant", "message"}
    with pytest.raises(BadInputError, match="/kind"):
        read_failure(write(tmp_path, "error.json", {**_ERROR, "kind": "parity"}))


def test_another_row_or_runner_is_named(tmp_path: Path) -> None:
    found = read_qualification(write(tmp_path, "qualification.json", _GOOD))
    assert found.names_another(row_name="row", identity={"revision": "b" * 40}) == []
    assert found.names_another(row_name="other", identity={}) == ["it says row_name = 'row', it was given 'other'"]
    assert len(found.names_another(row_name="row", identity={"revision": "c" * 40, "profile": "release"})) == 2
