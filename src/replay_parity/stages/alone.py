"""Rows on one artifact: two processes each, one judgement each; nothing is compared but the two repetitions.

What a golden, a preflight and a qualification ask of a revision.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from replay_parity.campaign.row import Row
from replay_parity.canonical.model import Digests
from replay_parity.corpus.slice import VerifiedSlice
from replay_parity.corpus.totals import WorkloadTotals
from replay_parity.errors import BadInputError
from replay_parity.parity.result import SideResult
from replay_parity.pin.builder import Artifact
from replay_parity.pin.identity import expected_identity
from replay_parity.replay.alone import SIDE, AloneJob, replay_alone
from replay_parity.replay.evidence import RecordCounters
from replay_parity.replay.node import read_cores, record_node, usable_cpus
from replay_parity.replay.placement import Lanes, lanes
from replay_parity.replay.repetition import Repetition, Runner, Side
from replay_parity.replay.row_config import runner_config
from replay_parity.stages.row_records import RowRecords
from replay_parity.stages.sides import first_difference, side_result, words_of
from replay_parity.system.files import private_folder, remove_tree
from replay_parity.system.progress import Progress

AloneOutcome = Literal["qualified", "unqualified", "unstable", "refused", "replay_failed", "timed_out", "invalid"]
_OF_STATUS: dict[str, AloneOutcome] = {"refused": "refused", "timed_out": "timed_out"}


@dataclass(frozen=True)
class AloneRow:
    """A row with the verified slice that it replays and that slice's totals.

    `judged_as` the baseline its bounds of pressure apply; as a candidate a drift out of them is a note (rule 17).
    """

    row: Row
    slice: VerifiedSlice
    totals: WorkloadTotals
    judged_as: Side = SIDE


@dataclass(frozen=True)
class AloneResult:
    """What became of a row on one revision; `counters` are there when both processes gave one sound record."""

    outcome: AloneOutcome
    reason: str
    side: SideResult
    repetitions: tuple[Repetition, ...]
    counters: RecordCounters | None = None

    @property
    def digest(self) -> str:
        """The canonical SHA-256 that both processes gave; ValueError when there is no single one."""
        (digest,) = set(self.side.digests)
        return digest


def run_alone(
    rows: Sequence[AloneRow], artifact: Artifact, *, work: Path, locks: Path, progress: Progress
) -> list[AloneResult]:
    """Replay and judge each row on one artifact, on all cores; everything below `work` is removed again.

    Raises InfrastructureError when the artifact changed or nothing can be started.
    """
    runner = Runner(artifact.path, artifact.record.sha256, expected_identity(artifact.record))
    work = private_folder(work)
    try:
        jobs = [
            AloneJob(
                config=runner_config(item.row, item.slice.corpus, trace=item.slice.path),
                runner=runner,
                timeout_seconds=float(item.row.timeout_seconds),
                work=private_folder(work / str(number)),
            )
            for number, item in enumerate(rows)
        ]
        done = replay_alone(jobs, lanes=lanes_here(), locks=locks, progress=progress)
        return [
            judge_alone(
                repetitions,
                artifact.record.sha256,
                RowRecords(item.row, item.slice.corpus, item.totals),
                judged_as=item.judged_as,
            )
            for item, repetitions in zip(rows, done, strict=True)
        ]
    finally:
        remove_tree(work)


def lanes_here() -> Lanes:
    """One lane for each core of this machine that this process may use."""
    usable = usable_cpus()
    cores = read_cores(usable)
    node = record_node(cores, usable)
    return lanes(cores, pinning=node.pinning, quota=node.cpu_quota)


def judge_alone(
    repetitions: Sequence[Repetition], artifact_sha256: str, records: RowRecords, *, judged_as: Side = SIDE
) -> AloneResult:
    """Proof, stability and evidence, in this order."""
    digests: list[Digests | None] = []
    refused: str | None = None
    for repetition in repetitions:
        try:
            digests.append(records.prove(repetition) if repetition.status == "ok" else None)
        except BadInputError as error:
            digests.append(None)
            refused = refused or f"the record of repetition {repetition.index} is refused: {error}"
    side = side_result(repetitions, digests, artifact_sha256)

    def ended(outcome: AloneOutcome, reason: str) -> AloneResult:
        return AloneResult(outcome, reason, side, tuple(repetitions))

    broken = next((item for item in repetitions if item.status != "ok"), None)
    if broken is not None:
        return ended(_OF_STATUS.get(broken.status, "replay_failed"), words_of(broken))
    if refused is not None:
        return ended("invalid", refused)
    if len(set(side.digests)) > 1:
        leak = first_difference(records.compare(*side.digests))
        words = " and ".join(digest[:16] for digest in side.digests)
        return ended("unstable", f"two processes gave two digests, {words}{f'; first field: {leak}' if leak else ''}")
    try:
        counters = records.count(side.digests[0], judged_as)
    except BadInputError as error:
        return ended("invalid", f"the record is refused: {error}")
    side = records.with_evidence(side, judged_as, counters, repetitions[0])
    if side.evidence_problems:
        return AloneResult("unqualified", side.evidence_problems[0], side, tuple(repetitions), counters)
    return AloneResult("qualified", "one digest, evidence complete", side, tuple(repetitions), counters)
