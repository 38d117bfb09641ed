"""One remark for each row that is not green, on the file that plans it."""

import pytest
from tests.support.hostile import INJECTIONS, hostile_row
from tests.support.verdicts import row, verdict

from replay_parity.parity.result import DifferenceSummary
from replay_parity.parity.verdict import Verdict
from replay_parity.publish.annotations import row_annotations

PATHS = {"red": "rows/red.yaml", "lost": "rows/lost.yaml", "vllm-aggregated": "rows/green.yaml"}


def document(**changes: object) -> Verdict:
    top = ("3 differences", "/summary/x: 1 -> 2")
    differences = DifferenceSummary(file="d.json", total=3, results=3, configuration=0, requests=1, top=top)
    other = row().candidate.model_copy(update={"digests": ("b" * 64,), "evidence_problems": ("no pressure",)})
    return verdict(
        row(),
        row(row="lost", outcome="missing", reason="no result"),
        row(row="red", outcome="mismatch", reason="3 fields differ", differences=differences, candidate=other),
        **{"verdict": "FAIL", "exit_code": 1, **changes},
    )


def test_failures_come_first_and_green_rows_have_none() -> None:
    found = row_annotations(document(), paths=PATHS)
    assert [(item.path, item.level) for item in found] == [("rows/red.yaml", "failure"), ("rows/lost.yaml", "warning")]
    assert found[0].title == "red: mismatch"
    for words in ("3 fields differ", "aaaaaaaa ≠ bbbbbbbb", "candidate evidence: no pressure", "/summary/x: 1 -> 2"):
        assert words in found[0].message
    assert found[0].raw_details == "3 differences\n/summary/x: 1 -> 2"
    assert found[1].raw_details is None


def test_an_advisory_verdict_only_warns() -> None:
    assert {item.level for item in row_annotations(document(advisory=True), paths=PATHS)} == {"warning"}


def test_a_row_without_a_file_goes_to_the_campaign_or_nowhere() -> None:
    assert [item.path for item in row_annotations(document(), paths={"": "c.yaml", "red": "r.yaml"})] == [
        "r.yaml",
        "c.yaml",
    ]
    assert row_annotations(document(), paths={}) == []


def test_a_row_on_two_runners_names_the_runner() -> None:
    found = row_annotations(verdict(row(outcome="missing", runner="arm64")), paths=PATHS)
    assert found[0].title == "vllm-aggregated@arm64: missing"


@pytest.mark.parametrize("words", [*INJECTIONS, "\x00" * 5_000, "é" * 90_000])
def test_hostile_text_is_bounded_and_visible(words: str) -> None:
    (found,) = row_annotations(verdict(hostile_row(words), verdict="FAIL", exit_code=1), paths={"": "c.yaml"})
    assert len(found.message) <= 4_096
    assert len(found.title) <= 255
    assert len((found.raw_details or "").encode()) <= 64_000
    for text in (found.message, found.raw_details or ""):
        assert not set(text) & set("\r\x00\x1b\u202e\u2066")
