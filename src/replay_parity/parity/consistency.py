"""What a result must say of itself for its outcome to be possible (GITHUB.md, threat 3). No I/O.

The outcome is decided where PR code ran. It follows from the repetitions, the digests and the evidence that the result
holds, so it is worked out again here, and whatever another field contradicts is refused.
"""

from __future__ import annotations

from replay_parity.parity.result import Fault, Outcome, RepetitionResult, RowResult, SideResult

_REPETITIONS = 2
# Decided by the verdict alone.
_NEVER_REPORTED = frozenset({"excepted", "missing"})
# Rule 18: only what must be explained is kept.
_WITH_DIFFERENCES = frozenset({"mismatch", "unstable_baseline", "unstable_candidate"})
_WITH_REPORTS = _WITH_DIFFERENCES | {"invalid"}
# Rule 17: green needs evidence.
_WITH_EVIDENCE = frozenset({"match", "unqualified"})


def contradiction(result: RowResult) -> str | None:
    """Why the outcome cannot be what the other fields say; None when it can."""
    if result.outcome in _NEVER_REPORTED:
        return f"no row reports the outcome '{result.outcome}' itself"
    for name, side in _sides(result):
        found = _repetitions(side)
        if found is not None:
            return f"the {name} {found}"
    return (_build_failed(result) if result.outcome == "build_failed" else _replayed(result)) or _kept(result)


def _repetitions(side: SideResult) -> str | None:
    if [item.index for item in side.repetitions] != list(range(1, len(side.repetitions) + 1)):
        return "has repetitions that are not numbered one by one"
    if len(side.repetitions) > _REPETITIONS:
        return f"has more than {_REPETITIONS} repetitions"
    for item in side.repetitions:
        if (item.canonical_sha256 is None) != (item.results_sha256 is None):
            return "has a repetition with one of its two digests"
        if item.canonical_sha256 is not None and item.status != "ok":
            return "has the digest of a repetition that gave no record"
    return _digests(side)


def _digests(side: SideResult) -> str | None:
    told = tuple(item.canonical_sha256 for item in side.repetitions if item.canonical_sha256 is not None)
    if told != side.digests:
        return "has other digests than its repetitions"
    results = tuple(item.results_sha256 for item in side.repetitions if item.results_sha256 is not None)
    return None if results == side.results_digests else "has other digests of its results than its repetitions"


def _build_failed(result: RowResult) -> str | None:
    unbuilt = [name for name, side in _sides(result) if side.artifact_sha256 is None]
    if not unbuilt:
        return "it says that a build failed, and names both artifacts"
    if any(side.repetitions for _, side in _sides(result)):
        return "it says that a build failed, and has repetitions"
    wanted = "both" if len(unbuilt) > 1 else unbuilt[0]
    return None if result.fault == wanted else f"{wanted} could not be built, and the fault is '{result.fault}'"


def _replayed(result: RowResult) -> str | None:
    for name, side in _sides(result):
        if side.artifact_sha256 is None or not side.repetitions:
            return f"the {name} has {'no repetition' if side.artifact_sha256 else 'no artifact'}"
    if result.outcome == "invalid":
        return None if result.fault is not None else "it says that a record is refused, and not whose"
    implied = _implied(result)
    if isinstance(implied, str):
        return implied
    if (result.outcome, result.fault) != implied:
        return (
            f"its repetitions, digests and evidence say '{implied[0]}' ({implied[1] or 'no fault'}), "
            f"the outcome is '{result.outcome}' ({result.fault or 'no fault'})"
        )
    return None


def _implied(result: RowResult) -> tuple[Outcome, Fault | None] | str:
    """Outcome and fault as the repetitions give them; a sentence when they cannot be all."""
    baseline, candidate = _broken(result.baseline), _broken(result.candidate)
    if baseline is None and candidate is None:
        return _compared(result)
    if baseline is not None and baseline.status == "refused":
        if candidate is None:
            if len(result.candidate.digests) != _REPETITIONS:
                return "the candidate has not the digests of two whole repetitions"
            stable = len(set(result.candidate.digests)) == 1
            return ("baseline_unsupported", "baseline") if stable else ("unstable_candidate", "candidate")
        if candidate.status == "refused" and baseline.refusal is not None and baseline.refusal == candidate.refusal:
            return "unsupported", "both"
    fault: Fault = "both"
    if baseline is None or candidate is None:
        fault = "candidate" if baseline is None else "baseline"
    hung = all(item.status == "timed_out" for item in (baseline, candidate) if item is not None)
    return ("timed_out" if hung else "replay_failed"), fault


def _compared(result: RowResult) -> tuple[Outcome, Fault | None] | str:
    baseline, candidate = result.baseline, result.candidate
    for name, side in _sides(result):
        if len(side.digests) != _REPETITIONS:
            return f"the {name} has not the digests of two whole repetitions"
    if len(set(baseline.digests)) > 1:
        return "unstable_baseline", "baseline"
    if len(set(candidate.digests)) > 1:
        return "unstable_candidate", "candidate"
    if baseline.digests != candidate.digests:
        return "mismatch", None
    if len({*baseline.results_digests, *candidate.results_digests}) > 1:
        return "equal records have different digests of their results"
    return ("unqualified" if baseline.evidence_problems or candidate.evidence_problems else "match"), None


def _kept(result: RowResult) -> str | None:
    if (result.differences is not None) != (result.outcome in _WITH_DIFFERENCES):
        return f"the outcome '{result.outcome}' {'has no' if result.differences else 'has'} differences to keep"
    if result.reports and result.outcome not in _WITH_REPORTS:
        return f"the outcome '{result.outcome}' has no reports to keep"
    if result.outcome in _WITH_EVIDENCE and any(side.qualification is None for _, side in _sides(result)):
        return "it has no counters to be qualified by"
    return None


def _sides(result: RowResult) -> tuple[tuple[Fault, SideResult], ...]:
    return ("baseline", result.baseline), ("candidate", result.candidate)


def _broken(side: SideResult) -> RepetitionResult | None:
    return next((item for item in side.repetitions if item.status != "ok"), None)
