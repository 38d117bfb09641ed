"""The block for the "Evidence" part of a pull request: exact command, commits, digests, counts, differences."""

from __future__ import annotations

from replay_parity.parity.result import RowResult
from replay_parity.parity.verdict import Verdict, is_green
from replay_parity.pin.models import Revision
from replay_parity.publish import words
from replay_parity.publish.markdown import block, code, cut, text
from replay_parity.publish.page import Page, fitted

# A description of a pull request has 65,536 characters, and this is a part of it.
LIMIT_BYTES = 16_000

_ROWS_BYTES = 7_000
_SENTENCE = 300
_DIFFERING_SHOWN = 3
_LINES = 12
_NOT_COVERED = "Rows that are not listed were not compared."


def evidence(verdict: Verdict, *, command: str) -> str:
    """Markdown of at most 16,000 bytes; `command` is the exact command that gave this verdict."""
    page = Page(LIMIT_BYTES)
    page.add(f"**Replay parity, {text(words.headline(verdict))}**", "")
    page.add(block(command, "console"), "the command")
    page.add("\n".join(f"- {item}" for item in _tested(verdict)), "what was tested")
    page.add("\n".join(f"- problem: {text(cut(problem, _SENTENCE))}" for problem in verdict.problems), "problems")
    page.add(_rows(verdict), "rows")
    differing = [row for row in words.by_urgency(verdict.rows) if not is_green(row)]
    for row in differing[:_DIFFERING_SHOWN]:
        page.add(_differing(row), "differences")
    if len(differing) > _DIFFERING_SHOWN:
        page.leave_out(f"the reasons of {words.rows_in_words(len(differing) - _DIFFERING_SHOWN)}")
    page.add(f"{_NOT_COVERED} {words.NO_ACCURACY}", "what parity does not say")
    return page.text()


def _tested(verdict: Verdict) -> list[str]:
    sides = (("baseline", verdict.baseline), ("candidate", verdict.candidate))
    lines = [f"{name}: {_revision(revision)}" for name, revision in sides if revision is not None]
    if verdict.campaign is not None:
        lines.append(f"relationship: {text(cut(verdict.campaign.relationship, _SENTENCE))}")
    toolchains = dict.fromkeys(build.toolchain.rustc for build in verdict.builds if build.toolchain)
    lines += [f"toolchain: {text(cut(toolchain, _SENTENCE))}" for toolchain in list(toolchains)[:4]]
    ids = (("runner source", verdict.runner_source_sha256), ("plan", verdict.plan_sha256))
    lines += [f"{name} SHA-256: {code(value)}" for name, value in ids if value]
    return lines


def _revision(revision: Revision) -> str:
    if revision.kind == "git":
        return f"commit {code(revision.commit)} of {code(cut(revision.repository, _SENTENCE))}"
    commit = f", commit {code(revision.commit)}" if revision.commit else ""
    return f"{code(cut(f'{revision.crate} {revision.version}', _SENTENCE))}{commit}"


def _rows(verdict: Verdict) -> str:
    if not verdict.rows:
        return ""
    lines = [_row(row) for row in words.by_urgency(verdict.rows)]
    kept = fitted(lines, _ROWS_BYTES, lambda number: f"- and {number:,} more in `verdict.json`")
    # Own words between two lists keep them apart.
    return "\n".join((f"{words.rows_in_words(len(lines))}: {text(words.outcomes(verdict.rows))}", "", *kept))


def _row(row: RowResult) -> str:
    unique = dict.fromkeys((*row.baseline.digests, *row.candidate.digests))
    digests = f", canonical SHA-256 {' ≠ '.join(map(code, unique))}" if unique else ""
    counters = words.evidence(row)
    return f"- {code(row.id)}: {text(row.outcome)}{digests}{f' ({counters})' if counters != words.NONE else ''}"


def _differing(row: RowResult) -> str:
    reason = f"{code(row.id)}: {text(cut(row.reason, _SENTENCE))}"
    top = [cut(found, _SENTENCE) for found in row.differences.top[:_LINES]] if row.differences else []
    return f"{reason}\n\n{block(chr(10).join(top), 'text')}" if top else reason
