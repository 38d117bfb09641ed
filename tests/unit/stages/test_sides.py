"""What is decided before any record is compared: refusals, crashes, timeouts, and whose fault it is (rule 24)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from replay_parity.parity.result import Fault, Outcome
from replay_parity.replay.ending import Status
from replay_parity.replay.qualification import RunnerFailure
from replay_parity.replay.repetition import Repetition, Side
from replay_parity.stages.sides import side_result, undecided

REFUSED: dict[str, Any] = {
    "schema": "replay-parity.runner-error.v1",
    "kind": "engine_refused",
    "phase": "run",
    "variant": "Invariant",
    "message": "no TRT-LLM",
}


def repetition(side: Side, status: Status = "ok", **failure: Any) -> Repetition:
    return Repetition(
        side=side,
        index=1,
        status=status,
        reason="" if status == "ok" else "did something",
        folder=Path("nowhere"),
        qualification=None,
        failure=RunnerFailure.model_validate(failure) if failure else None,
        seconds=1.0,
        peak_threads=1,
        peak_rss_bytes=1,
        cpus=(0,),
    )


@pytest.mark.parametrize(
    ("baseline", "candidate", "outcome", "fault"),
    [
        (("refused", REFUSED), ("refused", REFUSED), "unsupported", "both"),
        (("refused", REFUSED), ("ok", {}), "baseline_unsupported", "baseline"),
        (("ok", {}), ("refused", REFUSED), "replay_failed", "candidate"),
        # Another phase, variant or message is another refusal: match the whole, never a part.
        (("refused", REFUSED), ("refused", REFUSED | {"message": "no TRT-LLM here"}), "replay_failed", "both"),
        (("refused", REFUSED), ("refused", REFUSED | {"variant": "InvalidSpec"}), "replay_failed", "both"),
        (("refused", REFUSED), ("refused", REFUSED | {"phase": "new"}), "replay_failed", "both"),
        (("refused", REFUSED), ("failed", {}), "replay_failed", "both"),
        (("failed", {}), ("ok", {}), "replay_failed", "baseline"),
        (("ok", {}), ("failed", {}), "replay_failed", "candidate"),
        (("ok", {}), ("timed_out", {}), "timed_out", "candidate"),
        (("timed_out", {}), ("timed_out", {}), "timed_out", "both"),
        (("timed_out", {}), ("failed", {}), "replay_failed", "both"),
        (("ok", {}), ("output_cap", {}), "replay_failed", "candidate"),
    ],
)
def test_outcome_and_fault(
    baseline: tuple[Status, dict[str, Any]], candidate: tuple[Status, dict[str, Any]], outcome: Outcome, fault: Fault
) -> None:
    judged = undecided(
        {
            "baseline": [repetition("baseline", baseline[0], **baseline[1])],
            "candidate": [repetition("candidate", candidate[0], **candidate[1])],
        }
    )
    assert judged is not None
    assert (judged.outcome, judged.fault) == (outcome, fault)
    assert judged.reason


def test_records_on_both_sides_are_to_be_compared() -> None:
    assert undecided({"baseline": [repetition("baseline")], "candidate": [repetition("candidate")]}) is None


def test_a_later_repetition_that_breaks_counts_too() -> None:
    sides: dict[Side, list[Repetition]] = {
        "baseline": [repetition("baseline"), repetition("baseline", "failed")],
        "candidate": [repetition("candidate")] * 2,
    }
    judged = undecided(sides)
    assert judged is not None
    assert (judged.outcome, judged.fault) == ("replay_failed", "baseline")


def test_a_side_keeps_how_each_process_ended() -> None:
    result = side_result([repetition("baseline", "refused", **REFUSED)], [None], "a" * 64)
    assert result.digests == ()
    assert result.repetitions[0].refusal is not None
    assert result.repetitions[0].refusal.message == "no TRT-LLM"
