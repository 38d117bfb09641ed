"""The job summary: what an engineer must find in it, inside GitHub's limit, whatever text comes from elsewhere."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.hostile import INJECTIONS, SPICE, hostile_row, hostile_verdict
from tests.support.markdown import seen
from tests.support.verdicts import build, row, verdict

from replay_parity.github.origin import Origin, PolicyEdit
from replay_parity.parity.result import DifferenceSummary, RowResult, SideResult
from replay_parity.parity.verdict import Verdict
from replay_parity.pin.models import GitRevision, LockDifference
from replay_parity.publish.summary import LIMIT_BYTES, summary

OTHER = row().candidate.model_copy(update={"digests": ("b" * 64, "b" * 64)})
OWN_ELEMENTS = {
    *("h2", "h4", "p", "br", "strong", "ul", "li", "code", "pre", "details", "summary"),
    *("table", "thead", "tbody", "tr", "th", "td"),
}


def reproduce(result: RowResult) -> str:
    return f"replay-parity run c --row {result.id}"


def shown(document: Verdict, **changes: Any) -> str:
    return seen(summary(document, reproduce=reproduce, **changes)).text


def mismatch(**changes: Any) -> RowResult:
    differences = DifferenceSummary(
        file="rows/r/d.json",
        total=3,
        results=2,
        configuration=1,
        requests=2,
        top=("3 differences", "/summary/x: 1 -> 2"),
    )
    fields: dict[str, Any] = {
        "outcome": "mismatch",
        "reason": "2 fields differ",
        "candidate": OTHER,
        "differences": differences,
    }
    return row(**(fields | changes))


def test_a_pass_says_what_was_compared_and_on_what_evidence() -> None:
    text = shown(verdict(row(), row(row="second")))
    for words in (
        "PASS: all 2 rows match",
        "Old against new: baseline aisimulate-core 0.12.1 (a release, commit dddddddddddd)",
        "against candidate main (commit eeeeeeeeeeee)",
        "Relationship: said so.",
        "aaaaaaaaaaaa",
        "1,121,624.687",
        "2 preemptions",
        "times are not a performance result",
        "no claim that the simulation is accurate",
    ):
        assert words in text
    assert "Reproduce" not in text


def test_the_verdict_is_the_first_thing() -> None:
    assert summary(verdict(row()), reproduce=reproduce).startswith("## ✅ PASS: the row matches\n")


def test_a_mismatch_comes_first_with_digests_differences_and_one_command() -> None:
    document = verdict(row(), mismatch(row="red", reports=("r.gz",)), verdict="FAIL", exit_code=1)
    text = shown(document)
    assert "FAIL: 1 of 2 rows differs" in text
    assert text.index("red") < text.index("vllm-aggregated")
    for words in ("aaaaaaaa ≠ bbbbbbbb", "a" * 64, "b" * 64, "/summary/x: 1 -> 2", "rows/r/d.json", "r.gz"):
        assert words in text
    assert text.count("replay-parity run") == 1
    assert "replay-parity run c --row red\n" in text


def test_each_red_row_has_exactly_one_command() -> None:
    alike = [row(row=f"r{number}", outcome="missing", reason="no result", title="t") for number in range(3)]
    text = shown(verdict(*alike, mismatch(row="own"), row(row="green"), verdict="FAIL", exit_code=1))
    for name in ("r0", "r1", "r2", "own"):
        assert text.count(f"--row {name}\n") == 1
    assert "--row green" not in text
    assert "missing: 3 rows" in text.replace("\u00a0", " ")


def test_both_virtual_times_and_counters_show_when_they_differ() -> None:
    side = SideResult(qualification={"virtual_duration_ms": 1.5, "vllm_preemptions": 3, "completed_requests": 5000})
    text = shown(verdict(row(candidate=side)))
    assert "1,121,624.687 → 1.500" in text
    assert "2 → 3 preemptions" in text


def test_a_newer_attempt_is_said() -> None:
    assert "(attempt 2)" in shown(verdict(row(attempt=2)))
    assert "attempt" not in shown(verdict(row()))


def test_without_a_plan_the_problems_say_why() -> None:
    document = Verdict(tool_version="0", verdict="ERROR", exit_code=2, problems=("campaign.yaml: no rows <b>",))
    text = shown(document)
    assert "ERROR (bad input): no plan could be made" in text
    assert "Why it cannot be green" in text
    assert "campaign.yaml: no rows <b>" in text


@pytest.mark.parametrize(
    ("exit_code", "words"),
    [(2, "ERROR (bad input)"), (3, "ERROR (infrastructure)"), (130, "ERROR (interrupted)")],
)
def test_kinds_of_errors_never_look_alike(exit_code: int, words: str) -> None:
    assert words in shown(verdict(row(outcome="missing"), verdict="ERROR", exit_code=exit_code))


def test_advisory_and_self_comparison_stand_in_the_heading() -> None:
    document = verdict(mismatch(), verdict="FAIL", exit_code=1, advisory=True, self_compare=True)
    heading = summary(document, reproduce=reproduce).splitlines()[0]
    assert "advisory: shown, stands in nobody's way" in heading
    assert "self-comparison" in heading


def test_equal_trees_are_said() -> None:
    assert "nothing to compare, equal sources" in shown(verdict(equal_trees=True))


def test_excepted_rows_come_first_in_a_pass_with_their_reason() -> None:
    document = verdict(
        row(),
        row(row="ex", outcome="excepted", reason="record 7 explains it"),
        verdict="PASS_WITH_SEMANTIC_EXCEPTIONS",
    )
    text = shown(document)
    assert "PASS with semantic exceptions: 1 of 2 rows by a reviewed exception" in text
    assert text.index("ex") < text.index("vllm-aggregated")
    assert "record 7 explains it" in text


def test_a_build_that_failed_is_quoted_before_the_rows() -> None:
    error = "it does not compile (log: logs/b.log)\nerror[E0308]: mismatched `types`\n  --> x.rs:1"
    text = shown(verdict(row(outcome="build_failed"), builds=(build(error=error),), verdict="FAIL", exit_code=1))
    assert "The candidate was not built" in text
    assert "error[E0308]: mismatched `types`\n  --> x.rs:1\n" in text
    assert text.index("E0308") < text.index("vllm-aggregated")


def origin(**changes: Any) -> Origin:
    fields: dict[str, Any] = {
        "server_url": "https://github.example",
        "repository": "o/n",
        "event": "push",
        "run_id": 1,
        "run_attempt": 1,
        "base_ref": "main",
        "head_sha": "e" * 40,
        "policy_commit": "c" * 40,
    }
    return Origin.model_validate(fields | changes)


def test_policy_edits_are_shown_as_proposed() -> None:
    edits = tuple(PolicyEdit(path=f"rows/{number}.yaml", change="removed") for number in range(12))
    text = shown(verdict(row(), origin=origin(policy_edits=edits)))
    assert "commit cccccccccccc of main" in text
    assert "Proposed by this change, not in force: 12 edits of the policy: rows/0.yaml removed" in text
    assert "and 2 more" in text
    assert "not in force" not in shown(verdict(row(), origin=origin()))


@pytest.mark.parametrize(
    ("repository", "linked"),
    [
        ("https://github.com/o/n.git", "https://github.com/o/n"),
        ("https://github.example/o/n", "https://github.example/o/n"),
        ("https://evil.example/o/n", None),
        ("https://github.com/o/n)[x](https://evil.example", None),
        ("https://github.com/../n", None),
        ("/srv/n", None),
    ],
)
def test_a_commit_is_linked_only_where_the_run_is(repository: str, linked: str | None) -> None:
    side = GitRevision(
        repository=repository, asked="main", asked_as="branch", commit="e" * 40, tree="f" * 40, core="crates/core"
    )
    links = seen(summary(verdict(row(), candidate=side, origin=origin()), reproduce=reproduce)).links
    assert links == ([f"{linked}/commit/{'e' * 40}"] if linked else [])


def test_dependencies_are_listed_and_cut() -> None:
    differences = [LockDifference(name=f"p{number}", baseline=("1",), candidate=()) for number in range(2_000)]
    text = shown(verdict(row(), builds=(build(differences=tuple(differences)),)))
    assert "2,000 dependencies differ" in text
    assert "absent" in text
    assert "more in verdict.json" in text
    assert "p1999" not in text


def test_many_matching_rows_are_folded_away_from_the_red_one() -> None:
    rows = [row(row=f"g{number}") for number in range(30)]
    markdown = summary(verdict(*rows, mismatch(row="red"), verdict="FAIL", exit_code=1), reproduce=reproduce)
    assert "<summary>30 rows that match</summary>" in markdown
    assert markdown.index("`red`") < markdown.index("<details>")


def test_notes_of_green_rows_are_told() -> None:
    side = row().candidate.model_copy(update={"evidence_notes": ("evidence drifted",)})
    text = shown(verdict(row(candidate=side), notes=("a note",)))
    assert "a note" in text
    assert "vllm-aggregated: candidate: evidence drifted" in text


def assert_only_our_elements(markdown: str) -> None:
    reader = seen(markdown)
    assert set(reader.elements) <= OWN_ELEMENTS
    assert reader.links == []
    assert reader.acted_on == []
    assert reader.elements.count("h2") == 1


@pytest.mark.parametrize("words", INJECTIONS)
def test_nothing_breaks_out_of_its_place(words: str) -> None:
    plain = seen(summary(hostile_verdict("x"), reproduce=reproduce))
    markdown = summary(hostile_verdict(words), reproduce=reproduce)
    assert_only_our_elements(markdown)
    tables = [
        element for element in seen(markdown).elements if element in {"table", "tr", "td", "th", "h2", "h4", "pre"}
    ]
    # What is empty is left out altogether.
    if words.strip():
        assert tables == [element for element in plain.elements if element in set(tables)]


@given(SPICE)
@settings(max_examples=30)
def test_no_text_breaks_out_of_its_place(words: str) -> None:
    assert_only_our_elements(summary(hostile_verdict(words), reproduce=reproduce))


@given(
    st.integers(0, 1_000), st.integers(4_096, 60_000), st.sampled_from(["é", "\x00", "`", "|", "a b ", "\U000e0001"])
)
@settings(max_examples=25)
def test_never_over_the_limit_and_the_verdict_and_problems_stay(number: int, limit: int, filling: str) -> None:
    rows = [hostile_row(filling * 3_000, row=f"r{index}") for index in range(min(number, 5))]
    rows += [row(row=f"s{index}", outcome="missing", reason=filling * 50) for index in range(number)]
    document = verdict(*rows, verdict="FAIL", exit_code=1, problems=("the problem", filling * 9_000))
    markdown = summary(document, reproduce=reproduce, limit_bytes=limit)
    assert len(markdown.encode()) <= limit
    reader = seen(markdown)
    assert reader.text.startswith("❌ FAIL")
    assert "the problem" in reader.text
    assert set(reader.elements) <= OWN_ELEMENTS


def test_a_thousand_long_reasons_fit_and_what_was_cut_is_said() -> None:
    rows = [mismatch(row=f"red{index}", reason=f"{index} " + "€" * 5_000) for index in range(1_000)]
    rows += [row(row=f"green{index}") for index in range(1_000)]
    markdown = summary(verdict(*rows, verdict="FAIL", exit_code=1), reproduce=reproduce)
    assert len(markdown.encode()) <= LIMIT_BYTES < 1 << 20
    text = seen(markdown).text
    assert "Cut to GitHub's limit, left out:" in text
    assert "verdict.json holds all of it" in text
    assert "red0" in text
    assert "1,000 match" in text or "green999" in text


def test_what_fits_is_not_called_cut() -> None:
    assert "left out" not in shown(verdict(row(), mismatch(row="red"), verdict="FAIL", exit_code=1))
