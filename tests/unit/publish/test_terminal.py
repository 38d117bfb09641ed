"""What a person sees: everything that matters, on 80 columns, with nothing of a file taken as markup."""

from __future__ import annotations

import io

import pytest
from rich.console import Console
from tests.support.verdicts import build, row, verdict

from replay_parity.parity.result import DifferenceSummary
from replay_parity.parity.verdict import Verdict
from replay_parity.pin.models import LockDifference
from replay_parity.publish.plain import visible
from replay_parity.publish.terminal import print_verdict


def shown(document: Verdict, *, width: int = 80) -> str:
    out = io.StringIO()
    print_verdict(document, Console(file=out, width=width, highlight=False))
    return out.getvalue()


def test_a_pass_says_what_was_compared() -> None:
    text = shown(verdict(row()))
    for words in ("Old against new", "0.12.1", "main (eeeeeeeeeeee)", "vllm-aggregated", "aaaaaaaaaaaa", "1121624.687"):
        assert words in text
    assert "PASS  1 match" in text
    assert "not a performance result" in text
    assert max(map(len, text.splitlines())) <= 80


def test_a_mismatch_shows_both_digests_and_where_to_read_on() -> None:
    other = row().candidate.model_copy(update={"digests": ("b" * 64, "b" * 64)})
    summary = DifferenceSummary(
        file="rows/r/d.json",
        total=3,
        results=2,
        configuration=1,
        requests=2,
        top=("3 differences", "/summary/x: 1 -> 2"),
    )
    text = shown(
        verdict(
            row(outcome="mismatch", reason="2 fields differ", candidate=other, differences=summary, reports=("r.gz",)),
            verdict="FAIL",
            exit_code=1,
        )
    )
    for words in ("aaaaaa ≠ bbbbbb", "2 fields differ", "/summary/x: 1 -> 2", "rows/r/d.json", "r.gz", "FAIL"):
        assert words in text


def test_a_build_that_failed_is_quoted_on_the_screen() -> None:
    broken = build(error="it does not compile (log: b.log)\nerror: nope")
    text = shown(verdict(row(outcome="build_failed", reason="no"), builds=(broken,), verdict="FAIL", exit_code=1))
    assert "error: nope" in text
    assert "b.log" in text


def test_equal_trees_say_so() -> None:
    assert "nothing to compare" in shown(verdict(equal_trees=True, counts={}))


def test_dependencies_that_differ_are_listed_and_cut() -> None:
    differences = [LockDifference(name=f"p{number}", baseline=("1",), candidate=()) for number in range(9)]
    text = shown(verdict(row(), builds=(build(differences=tuple(differences)),)))
    assert "dependencies that differ: 9" in text
    assert "p0: 1 → absent" in text
    assert "and 4 more" in text


@pytest.mark.parametrize(
    "hostile", ["[bold red]x[/]", "\x1b[31mred", "a\u202eb", "line\nbreak", ":smile:", "[link=x]y"]
)
def test_hostile_text_stays_text(hostile: str) -> None:
    text = shown(verdict(row(outcome="mismatch", reason=hostile), verdict="FAIL", exit_code=1), width=200)
    assert visible(hostile) in text
    assert "\x1b" not in text
    assert "\u202e" not in text
