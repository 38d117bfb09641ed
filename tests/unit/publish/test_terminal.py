"""What a person sees: everything that matters, on 80 columns, with nothing of a file taken as markup."""

from __future__ import annotations

import io
from typing import Any

import pytest
from rich.console import Console

from replay_parity.parity.result import DifferenceSummary, RowResult, SideResult
from replay_parity.parity.verdict import CampaignSummary, SideSummary, Verdict
from replay_parity.pin.models import CrateRevision, GitRevision, LockDifference, Toolchain
from replay_parity.publish.plain import visible
from replay_parity.publish.terminal import print_verdict

TOOLCHAIN = Toolchain(
    asked="path",
    sysroot="/x",
    rustc="rustc 1.95.0",
    cargo="cargo 1.95.0",
    host="x86_64-unknown-linux-gnu",
    release="1.95.0",
    commit_hash=None,
    c_compiler=None,
    linker=None,
)


def row(**changes: Any) -> RowResult:
    side = SideResult(
        digests=("a" * 64, "a" * 64),
        qualification={"virtual_duration_ms": 1121624.6866249666, "vllm_preemptions": 2, "sglang_retractions": 0},
    )
    fields: dict[str, Any] = {
        "plan_sha256": "0" * 64,
        "input_sha256": "1" * 64,
        "row": "vllm-aggregated",
        "title": "t",
        "attempt": 1,
        "outcome": "match",
        "reason": "one digest on both sides",
        "baseline": side,
        "candidate": side,
        "seconds": 5.2,
    }
    return RowResult.model_validate(fields | changes)


def verdict(*rows: RowResult, **changes: Any) -> Verdict:
    fields: dict[str, Any] = {
        "tool_version": "0",
        "verdict": "PASS",
        "exit_code": 0,
        "plan_sha256": "0" * 64,
        "campaign": CampaignSummary(name="c", title="Old against new", relationship="said so"),
        "baseline": SideSummary(
            revision=CrateRevision(
                crate="aisimulate-core",
                asked="0.12.1",
                version="0.12.1",
                checksum="c" * 64,
                commit="d" * 40,
                dirty=False,
            )
        ),
        "candidate": SideSummary(
            revision=GitRevision(
                repository="r", asked="main", asked_as="branch", commit="e" * 40, tree="f" * 40, core="crates/core"
            )
        ),
        "toolchain": TOOLCHAIN,
        "runner_source_sha256": "2" * 64,
        "equal_trees": False,
        "counts": {"match": len(rows)},
        "failed_rows": (),
        "undecided_rows": (),
        "rows": rows,
        "seconds": 12.3,
    }
    return Verdict.model_validate(fields | changes)


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
    broken = verdict().candidate.model_copy(update={"build_error": "it does not compile (log: b.log)\nerror: nope"})
    text = shown(verdict(row(outcome="build_failed", reason="no"), candidate=broken, verdict="FAIL", exit_code=1))
    assert "error: nope" in text
    assert "b.log" in text


def test_equal_trees_say_so() -> None:
    assert "nothing to compare" in shown(verdict(equal_trees=True, counts={}))


def test_dependencies_that_differ_are_listed_and_cut() -> None:
    differences = [LockDifference(name=f"p{number}", baseline=("1",), candidate=()) for number in range(9)]
    text = shown(verdict(row(), lock_differences=tuple(differences)))
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
