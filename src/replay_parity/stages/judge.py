"""Repetitions to a row's outcome: proof, stability, metadata, equality, evidence, difference, in this order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from replay_parity.campaign.corpus_file import Corpus
from replay_parity.campaign.row import Row
from replay_parity.canonical.model import Digests
from replay_parity.corpus.totals import WorkloadTotals
from replay_parity.errors import BadInputError
from replay_parity.parity.differences_model import Differences, to_json
from replay_parity.parity.differences_text import summary_lines
from replay_parity.parity.result import DifferenceSummary, Fault, SideResult
from replay_parity.replay.evidence import RecordCounters
from replay_parity.replay.repetition import SIDES, Repetition, Side
from replay_parity.stages.row_records import RowRecords
from replay_parity.stages.sides import Judgement, first_difference, side_result, undecided
from replay_parity.system.files import compress, write_whole

_Repetitions = Mapping[Side, Sequence[Repetition]]
# Four such rows and the table fit on a screen; `replay-parity diff` shows more.
_SUMMARY_HEIGHT = 11
_SUMMARY_WIDTH = 76


class Judge:
    """Judges one attempt of a row; `folder` keeps reports and differences when there is something to explain."""

    def __init__(self, row: Row, corpus: Corpus, totals: WorkloadTotals, *, folder: Path, root: Path) -> None:
        self._records = RowRecords(row, corpus, totals)
        self._folder = folder
        self._root = root

    def judge(self, repetitions: _Repetitions, artifacts: Mapping[Side, str]) -> Judgement:
        """Outcome of all repetitions; `artifacts` are the SHA-256 of the runners."""
        digests, broken = self._prove_all(repetitions)
        sides = {side: side_result(repetitions[side], digests[side], artifacts[side]) for side in SIDES}
        failed = undecided(repetitions)
        if failed is not None:
            failed.sides = sides
            if failed.outcome != "baseline_unsupported":
                return failed
        # Beside a baseline that refuses the row, the candidate alone must be sound and stable all the same (rule 24).
        if broken:
            return self._invalid(broken, repetitions, sides)
        for side in SIDES:
            if len(set(sides[side].digests)) > 1:
                return self._unstable(side, repetitions[side], sides)
        return failed or self._stable(repetitions, sides)

    def _prove_all(self, repetitions: _Repetitions) -> tuple[dict[Side, list[Digests | None]], dict[Side, str]]:
        """Digests beside the repetitions (None without a record), and per side what its record is refused for."""
        digests: dict[Side, list[Digests | None]] = {side: [] for side in SIDES}
        broken: dict[Side, str] = {}
        for side in SIDES:
            for repetition in repetitions[side]:
                try:
                    digests[side].append(self._records.prove(repetition) if repetition.status == "ok" else None)
                except BadInputError as error:
                    digests[side].append(None)
                    broken.setdefault(side, f"repetition {repetition.index}: {error}")
        return digests, broken

    def _stable(self, repetitions: _Repetitions, sides: dict[Side, SideResult]) -> Judgement:
        equal = sides["baseline"].digests[0] == sides["candidate"].digests[0]
        counters: RecordCounters | None = None
        for side in SIDES:
            first = repetitions[side][0]
            # Equal bytes have equal counters: of a matching row one record is parsed, and only one is held at a time.
            if counters is None or not equal:
                try:
                    counters = self._records.count(sides[side].digests[0], side)
                except BadInputError as error:
                    return self._invalid({side: str(error)}, repetitions, sides)
            sides[side] = self._records.with_evidence(sides[side], side, counters, first)
        if not equal:
            return self._mismatch(repetitions, sides)
        problems = [f"{side}: {problem}" for side in SIDES for problem in sides[side].evidence_problems]
        if problems:
            reason = f"the digests match, but the evidence is missing: {problems[0]}"
            return Judgement(outcome="unqualified", reason=reason, sides=sides)
        return Judgement(outcome="match", reason="one digest on both sides, evidence complete", sides=sides)

    def _mismatch(self, repetitions: _Repetitions, sides: dict[Side, SideResult]) -> Judgement:
        differences = self._records.compare(sides["baseline"].digests[0], sides["candidate"].digests[0])
        summary = self._keep_differences(differences, left="baseline", right="candidate")
        same_results = sides["baseline"].results_digests == sides["candidate"].results_digests
        reason = (
            f"only the configuration's description differs ({summary.configuration:,} fields), the results are equal"
            if same_results
            else f"{summary.results:,} fields of the results differ, in {summary.requests:,} requests"
        )
        reports = tuple(self._keep_report(repetitions[side][0].report, side) for side in SIDES)
        return Judgement("mismatch", reason, sides=sides, differences=summary, reports=reports)

    def _unstable(self, side: Side, pair: Sequence[Repetition], sides: dict[Side, SideResult]) -> Judgement:
        differences = self._records.compare(*sides[side].digests)
        summary = self._keep_differences(differences, left="repetition 1", right="repetition 2")
        digests = " and ".join(digest[:16] for digest in sides[side].digests)
        example = first_difference(differences)
        leak = f"; the first field that leaks is {example}" if example else ""
        reports = tuple(
            self._keep_report(repetition.report, f"{side}-repetition-{repetition.index}") for repetition in pair
        )
        return Judgement(
            "unstable_baseline" if side == "baseline" else "unstable_candidate",
            f"two processes of the {side} gave two digests, {digests}{leak}; the sides were not compared",
            fault=side,
            sides=sides,
            differences=summary,
            reports=reports,
        )

    def _invalid(
        self, broken: Mapping[Side, str], repetitions: _Repetitions, sides: dict[Side, SideResult]
    ) -> Judgement:
        reports = tuple(
            self._keep_report(repetitions[side][0].report, side)
            for side in broken
            if repetitions[side][0].report.is_file()
        )
        reason = "; ".join(f"{side}: {words}" for side, words in broken.items())
        fault: Fault = "both" if len(broken) > 1 else next(iter(broken))
        return Judgement("invalid", f"the record is refused: {reason}", fault=fault, sides=sides, reports=reports)

    def _keep_differences(self, differences: Differences, *, left: str, right: str) -> DifferenceSummary:
        path = self._folder / "differences.json"
        write_whole(path, to_json(differences))
        return DifferenceSummary(
            file=path.relative_to(self._root).as_posix(),
            total=differences.count,
            results=differences.sections.results.count,
            configuration=differences.sections.configuration.count,
            requests=differences.requests.changed + differences.requests.removed + differences.requests.added,
            top=tuple(summary_lines(differences, width=_SUMMARY_WIDTH, height=_SUMMARY_HEIGHT, left=left, right=right)),
        )

    def _keep_report(self, report: Path, name: str) -> str:
        """Compress a report into the attempt's folder; returns its path below the folder for results."""
        target = self._folder / "reports" / f"{name}.jsonl.gz"
        compress(report, target)
        return target.relative_to(self._root).as_posix()
