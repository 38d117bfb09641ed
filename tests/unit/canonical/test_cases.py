"""The cases of tests/cases/canonical: bytes, and the digests or the refusal that they must give."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from replay_parity.canonical.proof import prove, prove_digest
from replay_parity.errors import CanonicalFormError

CASES = Path(__file__).parents[2] / "cases" / "canonical"
FOLDERS = sorted(path for path in CASES.iterdir() if path.is_dir())
UPDATE = "REPLAY_PARITY_UPDATE_CASES"


def test_there_are_cases() -> None:
    assert FOLDERS


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_case(folder: Path) -> None:
    expected = folder / "expected.json"
    outcome = _outcome((folder / "record.jsonl").read_bytes())
    if os.environ.get(UPDATE):
        expected.write_text(json.dumps(outcome, indent=2) + "\n", encoding="utf-8")
    assert expected.is_file(), f"{expected} is missing; see the README of the cases"
    assert outcome == json.loads(expected.read_text(encoding="utf-8"))
    assert ("size" in outcome) == folder.name.startswith("accepted")


def test_every_reason_has_a_case() -> None:
    shown = {json.loads((folder / "expected.json").read_text(encoding="utf-8")).get("reason") for folder in FOLDERS}
    documented = (prove.__globals__["__doc__"] or "").partition("Reasons: ")[2].replace(";", ",").rstrip(".\n")
    reasons = {reason.strip() for reason in documented.split(",")}
    # Both need more than bytes: a cap, and a disagreement of two parsers.
    assert reasons - shown == {"too_long", "not_reproduced"}
    assert shown - reasons == {None}


def test_a_file_is_proven_like_its_bytes() -> None:
    path = CASES / "accepted" / "record.jsonl"
    data = path.read_bytes()
    assert prove_digest(path, where="x") == prove_digest(data, where="x") == prove(data, where="x").digests


def _outcome(data: bytes) -> dict[str, object]:
    try:
        record = prove(data, where="record")
    except CanonicalFormError as error:
        return {"reason": error.reason, "where": error.where, "message": error.message}
    return {
        "canonical_sha256": record.canonical_sha256,
        "results_sha256": record.results_sha256,
        "size": record.size,
    }
