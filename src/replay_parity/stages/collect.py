"""Results of row jobs, hostile until checked (GITHUB.md, threats 3, 4 and 6): exactly the plan's set, every byte named.

Each result comes out as it was, or as `invalid` with the reason. What belongs to no planned row is a problem of the
whole campaign.
"""

from __future__ import annotations

import gzip
import hashlib
import re
import zlib
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from replay_parity.canonical.proof import MAX_BYTES
from replay_parity.errors import BadInputError
from replay_parity.parity.consistency import contradiction
from replay_parity.parity.differences_model import Differences
from replay_parity.parity.result import DifferenceSummary, RowResult
from replay_parity.parity.verdict import absent
from replay_parity.pin.builder import SIDES, Side
from replay_parity.stages.builds import Builds
from replay_parity.stages.plan import Plan, PlannedRow
from replay_parity.stages.row import input_digest
from replay_parity.stages.untrusted import documents, place, read_document
from replay_parity.system.files import open_regular

_RESULT_CAP = 4 << 20
# Groups of alike differences are few, whatever the records are.
_DIFFERENCES_CAP = 16 << 20
_CHUNK = 1 << 20
# What an attempt keeps: the difference, and reports in a folder of their own.
_PLAIN = re.compile(r"(?:reports/)?[A-Za-z0-9][A-Za-z0-9._-]*")


@dataclass
class Collected:
    """Attempts by planned id, the folder that each accepted one came from, and problems of the campaign."""

    attempts: dict[str, list[RowResult]] = field(default_factory=dict)
    folders: dict[tuple[str, int], Path] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)

    def refuse(self, result: RowResult, row: PlannedRow, reason: str, *, plan_sha256: str, newest: int) -> None:
        """Take it in as one that cannot be used."""
        refused = absent(row.row.name, row.runner, plan_sha256=plan_sha256, outcome="invalid", reason=reason)
        number = {"attempt": min(result.attempt, newest)}
        self.attempts.setdefault(row.id, []).append(refused.model_copy(update=number))

    def accept(self, result: RowResult, folder: Path) -> None:
        """Take it in as it is."""
        self.attempts.setdefault(result.id, []).append(result)
        self.folders[result.id, result.attempt] = folder


def collect(root: Path, plan: Plan, builds: Builds, *, newest: int) -> Collected:
    """All results below a folder of downloaded artifacts; `newest` is the attempt of the run now.

    Two results for one attempt of a row are both refused, and the campaign with them: nothing tells which is right.
    """
    planned = {item.id: item for item in plan.rows}
    plan_sha256 = plan.sha256
    found = documents(root, "result.json")
    collected = Collected(problems=list(found.problems))
    # One for each attempt of a planned row and how many there were: more is never held, however many files there are.
    read: dict[tuple[str, int], tuple[Path, RowResult]] = {}
    counts: Counter[tuple[str, int]] = Counter()
    for path in found.paths:
        try:
            result = read_document(RowResult, path, cap=_RESULT_CAP)
        except BadInputError as error:
            collected.problems.append(f"result {place(path, root)}: {error.message}")
            continue
        if result.id in planned:
            key = (result.id, min(result.attempt, newest + 1))
            read.setdefault(key, (path, result))
            counts[key] += 1
        else:
            collected.problems.append(f"result {place(path, root)}: the plan has no row '{result.id}'")
    for key, (path, result) in read.items():
        row = planned[result.id]
        reason = _refusal(result, row, path, plan_sha256=plan_sha256, builds=builds, newest=newest)
        if counts[key] > 1:
            reason = f"there are {counts[key]} results for attempt {result.attempt}"
            collected.problems.append(f"row {row.id}: {reason}")
        if reason is None:
            collected.accept(result, path.parent)
        else:
            collected.refuse(result, row, reason, plan_sha256=plan_sha256, newest=newest)
    return collected


def _refusal(
    result: RowResult, row: PlannedRow, path: Path, *, plan_sha256: str, builds: Builds, newest: int
) -> str | None:
    """Why a result cannot be used; None when everything that can be recomputed agrees."""
    if not result.seal_holds:
        return "the result was edited after it was sealed"
    if result.plan_sha256 != plan_sha256:
        return "the result belongs to another plan"
    return (
        _place(result, row, path, newest=newest)
        or _inputs(result, row, builds)
        or contradiction(result)
        or _golden(result, row)
        or _files(result, path.parent)
    )


def _place(result: RowResult, row: PlannedRow, path: Path, *, newest: int) -> str | None:
    if result.attempt > newest:
        return f"the result claims attempt {result.attempt} in attempt {newest} of the run"
    if (path.parent.name, path.parent.parent.name) != (f"attempt-{result.attempt}", result.id):
        return "the result lies in the folder of another row or attempt"
    return None if result.title == row.row.title else "the result has another title than the planned row"


def _inputs(result: RowResult, row: PlannedRow, builds: Builds) -> str | None:
    """The result must be made from the planned row and corpus, with artifacts that a build made."""
    named: dict[Side, str] = {}
    for side in SIDES:
        sha256 = getattr(result, side).artifact_sha256
        if sha256 is None:
            continue
        if sha256 not in builds.artifacts(row.runner, side):
            return f"the result names an artifact of the {side} that no build made"
        named[side] = sha256
    if result.input_sha256 != input_digest(row, named):
        return "the result was not made from the planned row, corpus and artifacts by this version"
    return None


def _golden(result: RowResult, row: PlannedRow) -> str | None:
    """A row that names its digest is green with no other."""
    wanted = row.row.expected.canonical_sha256
    if result.outcome != "match" or wanted is None or result.baseline.digests[0] == wanted:
        return None
    return "the result is a match, but not of the digest that the row expects"


def _files(result: RowResult, folder: Path) -> str | None:
    """Kept reports are re-hashed, the difference must say what the result says."""
    prefix = f"rows/{result.id}/attempt-{result.attempt}/"
    names = [*result.reports, *([result.differences.file] if result.differences else [])]
    for name in names:
        if not name.startswith(prefix) or not _PLAIN.fullmatch(name.removeprefix(prefix)):
            return f"the result names the file {name[:100]!r}, which is not in its own folder"
    try:
        kept = {_report_digest(folder / name.removeprefix(prefix)) for name in result.reports}
        # The report of a refused record has no digest that was told.
        if result.outcome != "invalid" and not kept <= {*result.baseline.digests, *result.candidate.digests}:
            return "a kept report has none of the result's digests"
        if result.outcome == "mismatch" and kept != {result.baseline.digests[0], result.candidate.digests[0]}:
            return "a mismatch must keep the reports of both sides"
        if result.differences is not None:
            return _differences(result.differences, folder / result.differences.file.removeprefix(prefix))
    except BadInputError as error:
        return f"a kept file {error.message}"
    return None


def _report_digest(path: Path) -> str:
    digest = hashlib.sha256()
    left = MAX_BYTES
    with open_regular(path, cap=MAX_BYTES) as raw:
        try:
            with gzip.GzipFile(fileobj=raw) as file:
                while chunk := file.read(_CHUNK):
                    left -= len(chunk)
                    if left < 0:
                        raise BadInputError(f"has more than {MAX_BYTES:,} bytes")
                    digest.update(chunk)
        except (OSError, EOFError, zlib.error) as error:
            raise BadInputError(f"is damaged: {error}") from None
    return digest.hexdigest()


def _differences(told: DifferenceSummary, path: Path) -> str | None:
    found = read_document(Differences, path, cap=_DIFFERENCES_CAP)
    requests = found.requests.changed + found.requests.removed + found.requests.added
    counted = (found.count, found.sections.results.count, found.sections.configuration.count, requests)
    if counted != (told.total, told.results, told.configuration, told.requests):
        return "the kept difference has other counts than the result"
    return None if found.count else "the kept difference holds no difference"
