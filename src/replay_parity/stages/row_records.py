"""The records of one row: proven once, counted, held against what row and corpus demand of them."""

from __future__ import annotations

from replay_parity.campaign.corpus_file import Corpus
from replay_parity.campaign.row import Row
from replay_parity.canonical.metadata import check_identity_order, check_metadata
from replay_parity.canonical.model import CanonicalRecord, Digests
from replay_parity.canonical.proof import MAX_BYTES, prove, read_record
from replay_parity.corpus.totals import WorkloadTotals
from replay_parity.errors import BadInputError, CanonicalFormError
from replay_parity.parity.differences import compare
from replay_parity.parity.differences_model import Differences
from replay_parity.parity.result import SideResult
from replay_parity.replay.evidence import RecordCounters, check_evidence, count_record
from replay_parity.replay.repetition import Repetition, Side
from replay_parity.replay.row_config import expected_metadata
from replay_parity.system.files import sha256_regular


class RowRecords:
    """Records of a row by their SHA-256; parsed ones stay in memory as long as this does."""

    def __init__(self, row: Row, corpus: Corpus, totals: WorkloadTotals) -> None:
        self._row = row
        self._corpus = corpus
        self._totals = totals
        self._proven: dict[str, CanonicalRecord] = {}

    def prove(self, repetition: Repetition) -> Digests:
        """Digests of the report; BadInputError when it is refused.

        Equal bytes have equal form: of equal reports only the first is parsed.
        """
        found = sha256_regular(repetition.report, cap=MAX_BYTES)
        if found not in self._proven:
            self._proven[found] = prove(read_record(repetition.report), where=repetition.report.name)
        if repetition.qualification is not None and repetition.qualification.canonical_sha256 != found:
            raise BadInputError("the runner names another SHA-256 than its record has", where="qualification.json")
        return self._proven[found].digests

    def count(self, digest: str, side: Side) -> RecordCounters:
        """Counters of a proven record; BadInputError when it tells of something else than the row."""
        where = f"{side} record"
        record = self._proven[digest].document
        check_metadata(record, expected_metadata(self._row, self._corpus), where=where)
        check_identity_order(record, where=where, authored=self._totals.authored() if self._totals.turns else None)
        try:
            return count_record(record)
        except (KeyError, TypeError, AttributeError) as error:
            raise CanonicalFormError("unknown_fields", f"lacks a field that is counted: {error}", where=where) from None

    def with_evidence(self, result: SideResult, side: Side, counters: RecordCounters, first: Repetition) -> SideResult:
        """The result with what its evidence lacks, and what is told beside the outcome."""
        if first.qualification is None:
            return result
        report = check_evidence(
            counters, row=self._row, totals=self._totals, side=side, qualification=first.qualification
        )
        wanted = self._row.expected.canonical_sha256
        if side == "baseline" and wanted is not None and wanted != result.digests[0]:
            report.problems.append(f"the canonical SHA-256 is {result.digests[0]}, the row expects {wanted}")
        update = {
            "evidence_problems": tuple(report.problems),
            "evidence_notes": (*result.evidence_notes, *report.notes),
        }
        return result.model_copy(update=update)

    def compare(self, left: str, right: str) -> Differences:
        """Differences of two proven records."""
        return compare(self._proven[left].document, self._proven[right].document)
