"""Verdicts and results for tests of what people see."""

from __future__ import annotations

from typing import Any

from replay_parity.parity.result import RowResult, SideResult
from replay_parity.parity.verdict import BuildSummary, CampaignSummary, SideBuild, Verdict
from replay_parity.pin.models import CrateRevision, GitRevision, LockDifference, Toolchain

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
        "baseline": CrateRevision(
            crate="aisimulate-core",
            asked="0.12.1",
            version="0.12.1",
            checksum="c" * 64,
            commit="d" * 40,
            dirty=False,
        ),
        "candidate": GitRevision(
            repository="r", asked="main", asked_as="branch", commit="e" * 40, tree="f" * 40, core="crates/core"
        ),
        "runner_source_sha256": "2" * 64,
        "counts": {"match": len(rows)},
        "failed_rows": (),
        "undecided_rows": (),
        "rows": rows,
        "seconds": 12.3,
    }
    return Verdict.model_validate(fields | changes)


def build(*, error: str | None = None, differences: tuple[LockDifference, ...] = ()) -> BuildSummary:
    """What was built on the default runner."""
    return BuildSummary(
        runner="default",
        toolchain=TOOLCHAIN,
        baseline=SideBuild(),
        candidate=SideBuild(error=error),
        lock_differences=differences,
    )
