"""Plans and planned rows of tests, without a repository."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

from replay_parity.campaign.loading import load_campaign
from replay_parity.github.origin import Origin
from replay_parity.parity.result import DEFAULT_RUNNER
from replay_parity.parity.verdict import CampaignSummary
from replay_parity.pin.models import GitRevision
from replay_parity.stages.plan import Plan, PlannedRow, rows_here


@cache
def _demo() -> tuple[PlannedRow, ...]:
    return rows_here(load_campaign(Path("demo")))


def planned_row(name: str = "red", *, runner: str = DEFAULT_RUNNER, requests: int = 5000) -> PlannedRow:
    """A row of the built-in demo under another name; its cost is the number of its requests."""
    demo = _demo()[0]
    part = demo.corpus.slice.model_copy(update={"rows": requests})
    corpus = demo.corpus.model_copy(update={"slice": part})
    return demo.model_copy(
        update={"row": demo.row.model_copy(update={"name": name}), "corpus": corpus, "runner": runner}
    )


def revision(digit: str, **changes: Any) -> GitRevision:
    """A commit whose ids repeat one digit."""
    fields = {"repository": "https://github.example/a/b", "asked": digit * 40, "asked_as": "commit"}
    return GitRevision(**{**fields, "commit": digit * 40, "tree": digit * 40, "core": "crates/core", **changes})


def plan(*rows: PlannedRow, **changes: Any) -> Plan:
    """A plan of two commits for a pull request."""
    origin = Origin(
        server_url="https://github.example",
        repository="a/b",
        event="pull_request",
        run_id=7,
        run_attempt=1,
        pull_request=12,
        head_sha="2" * 40,
    )
    fields: dict[str, Any] = {
        "campaign": CampaignSummary(name="nightly", title="Nightly", relationship="said so"),
        "baseline": revision("1"),
        "candidate": revision("2"),
        "equal_trees": False,
        "origin": origin,
        "build": load_campaign(Path("demo")).campaign.build,
        "runner_source_sha256": "3" * 64,
        "rows": rows or (planned_row(),),
    }
    return Plan(**(fields | changes))
