"""One remark for each row that is not green, on the policy file that plans it."""

from collections.abc import Mapping

from replay_parity.github.check_run import Annotation
from replay_parity.parity.result import RowResult
from replay_parity.parity.verdict import Verdict, is_failing, is_green
from replay_parity.publish.markdown import cut
from replay_parity.publish.plain import visible
from replay_parity.publish.words import by_urgency, digests

CAMPAIGN = ""
_TITLE = 255
# GitHub cuts a message of a log command there; escapes of hidden characters count.
_MESSAGE = 4_096
_REASON = 2_000
# 64 KB of UTF-8; an escape takes at most ten bytes.
_RAW_BYTES = 60_000


def row_annotations(verdict: Verdict, *, paths: Mapping[str, str]) -> list[Annotation]:
    """Remarks as plain text, failures first; undecided rows, and all rows of an advisory verdict, are warnings.

    `paths` has the file of each row by the row's name, and the campaign's under "" for rows that have none; a row
    without any file is left out.
    """
    found = []
    for row in by_urgency(verdict.rows):
        path = paths.get(row.row, paths.get(CAMPAIGN))
        if path is not None and not is_green(row):
            found.append(_annotation(row, path, advisory=verdict.advisory))
    return found


def _annotation(row: RowResult, path: str, *, advisory: bool) -> Annotation:
    return Annotation(
        path=path,
        start_line=1,
        end_line=1,
        level="failure" if is_failing(row) and not advisory else "warning",
        title=cut(f"{row.id}: {row.outcome}", _TITLE),
        message=cut(_message(row), _MESSAGE),
        raw_details=_raw(row),
    )


def _message(row: RowResult) -> str:
    lines = [cut(visible(row.reason), _REASON)]
    shown = digests(row)
    if len(shown) > 1:
        lines.append(f"canonical digests: {' ≠ '.join(shown)}")
    for name, side in (("baseline", row.baseline), ("candidate", row.candidate)):
        lines += [f"{name} evidence: {visible(problem)}" for problem in side.evidence_problems]
    if row.differences is not None:
        lines += [visible(line) for line in row.differences.top]
    return "\n".join(lines)


def _raw(row: RowResult) -> str | None:
    """The focused difference, which GitHub shows folded and in columns."""
    if row.differences is None or not row.differences.top:
        return None
    raw = "\n".join(map(visible, row.differences.top)).encode()
    return raw[:_RAW_BYTES].decode(errors="ignore")
