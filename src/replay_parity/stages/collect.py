"""Results of row jobs, hostile until checked (GITHUB.md, threats 3, 4 and 6): exactly the plan's set, every byte named.

Each result comes out as it was, or as `invalid` with the reason. What belongs to no planned row is a problem of the
whole campaign.
"""

from __future__ import annotations

import gzip
import re
import zlib
from dataclasses import dataclass, field
from pathlib import Path

import orjson
from pydantic import ValidationError

from replay_parity.canonical.proof import MAX_BYTES
from replay_parity.errors import BadInputError
from replay_parity.parity.consistency import contradiction
from replay_parity.parity.result import DifferenceSummary, RowResult
from replay_parity.parity.verdict import absent
from replay_parity.pin.builder import SIDES, Side
from replay_parity.stages.builds import Builds
from replay_parity.stages.plan import Plan, PlannedRow
from replay_parity.stages.row import input_digest
from replay_parity.stages.untrusted import documents
from replay_parity.system.files import open_regular, read_capped, sha256_bytes

_RESULT_CAP = 16 << 20
_DIFFERENCES_CAP = 1 << 30
# What an attempt keeps: the difference, and reports in a folder of their own.
_PLAIN = re.compile(r"(?:reports/)?[A-Za-z0-9][A-Za-z0-9._-]*")


@dataclass
class Collected:
    """Attempts by planned id, the folder that each accepted one came from, and problems of the campaign."""

    attempts: dict[str, list[RowResult]] = field(default_factory=dict)
    folders: dict[tuple[str, int], Path] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)


def collect(root: Path, plan: Plan, builds: Builds, *, newest: int) -> Collected:
    """All results below a folder of downloaded artifacts; `newest` is the attempt of the run now."""
    planned = {item.id: item for item in plan.rows}
    collected = Collected()
    seen: set[tuple[str, int]] = set()
    for path in documents(root, "result.json"):
        where = path.relative_to(root).as_posix()
        result = _read(path)
        if isinstance(result, str):
            collected.problems.append(f"result {where}: {result}")
            continue
        row = planned.get(result.id)
        if row is None:
            collected.problems.append(f"result {where}: the plan has no row {result.id!r}")
            continue
        reason = _refusal(result, row, path, plan=plan, builds=builds, newest=newest)
        if (result.id, result.attempt) in seen:
            reason = f"there are two results for attempt {result.attempt}"
        seen.add((result.id, result.attempt))
        if reason is not None:
            result = absent(
                row.row.name, row.runner, plan_sha256=plan.sha256, outcome="invalid", reason=reason
            ).model_copy(update={"attempt": min(max(result.attempt, 1), newest)})
        else:
            collected.folders[result.id, result.attempt] = path.parent
        collected.attempts.setdefault(result.id, []).append(result)
    return collected


def _read(path: Path) -> RowResult | str:
    try:
        return RowResult.model_validate_json(read_capped(path, cap=_RESULT_CAP))
    except ValidationError as error:
        first = error.errors()[0]
        return f"cannot be read: /{'/'.join(str(part) for part in first['loc'])}: {first['msg']}"
    except BadInputError as error:
        return error.message


def _refusal(result: RowResult, row: PlannedRow, path: Path, *, plan: Plan, builds: Builds, newest: int) -> str | None:
    """Why a result cannot be used; None when everything that can be recomputed agrees."""
    if not result.seal_holds:
        return "the result was edited after it was sealed"
    if result.plan_sha256 != plan.sha256:
        return "the result belongs to another plan"
    return (
        _place(result, row, path, newest=newest)
        or _inputs(result, row, builds)
        or contradiction(result)
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


def _files(result: RowResult, folder: Path) -> str | None:
    """Kept reports are re-hashed, the difference must say what the result says."""
    prefix = f"rows/{result.id}/attempt-{result.attempt}/"
    names = [*result.reports, *([result.differences.file] if result.differences else [])]
    for name in names:
        if not name.startswith(prefix) or not _PLAIN.fullmatch(name.removeprefix(prefix)):
            return f"the result names the file {name!r}, which is not in its own folder"
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
    with open_regular(path, cap=MAX_BYTES) as raw:
        try:
            with gzip.GzipFile(fileobj=raw) as file:
                data = file.read(MAX_BYTES + 1)
        except (OSError, EOFError, zlib.error) as error:
            raise BadInputError(f"is damaged: {error}") from None
    if len(data) > MAX_BYTES:
        raise BadInputError(f"has more than {MAX_BYTES:,} bytes")
    return sha256_bytes(data)


def _differences(told: DifferenceSummary, path: Path) -> str | None:
    try:
        document = orjson.loads(read_capped(path, cap=_DIFFERENCES_CAP))
    except orjson.JSONDecodeError:
        return "the kept difference is no JSON"
    found = document.get("count") if isinstance(document, dict) else None
    return None if found == told.total else f"the kept difference counts {found!r}, the result {told.total}"
