"""What a result must say of itself for its outcome to be possible (GITHUB.md, threat 3). No I/O.

The outcome is decided where PR code ran. Whatever the other fields contradict is refused here.
"""

from __future__ import annotations

from replay_parity.parity.result import RowResult, SideResult

_REPETITIONS = 2
# Decided by the verdict alone.
_NEVER_REPORTED = frozenset({"excepted", "missing", "invalid"})


def contradiction(result: RowResult) -> str | None:
    """Why the outcome cannot be what the other fields say; None when it can."""
    if result.outcome in _NEVER_REPORTED:
        return None if result.outcome == "invalid" else f"no row reports the outcome '{result.outcome}' itself"
    for name, side in (("baseline", result.baseline), ("candidate", result.candidate)):
        found = _repetitions(side)
        if found is not None:
            return f"the {name} {found}"
    return _outcome(result)


def _repetitions(side: SideResult) -> str | None:
    told = tuple(item.canonical_sha256 for item in side.repetitions if item.canonical_sha256 is not None)
    if told != side.digests:
        return "has other digests than its repetitions"
    results = tuple(item.results_sha256 for item in side.repetitions if item.results_sha256 is not None)
    if results != side.results_digests:
        return "has other digests of its results than its repetitions"
    if [item.index for item in side.repetitions] != list(range(1, len(side.repetitions) + 1)):
        return "has repetitions that are not numbered one by one"
    return None


def _outcome(result: RowResult) -> str | None:
    baseline, candidate = result.baseline, result.candidate
    if result.outcome == "build_failed":
        built = baseline.artifact_sha256 is not None and candidate.artifact_sha256 is not None
        return "it says that a build failed, and names both artifacts" if built else None
    if baseline.artifact_sha256 is None or candidate.artifact_sha256 is None:
        return "it names no artifact"
    if result.outcome in {"unstable_baseline", "unstable_candidate"}:
        side = baseline if result.outcome == "unstable_baseline" else candidate
        return None if len(set(side.digests)) > 1 else "it is called unstable with one digest"
    if result.outcome in {"match", "mismatch", "unqualified"}:
        return _compared(result)
    return None


def _compared(result: RowResult) -> str | None:
    baseline, candidate = result.baseline, result.candidate
    for name, side in (("baseline", baseline), ("candidate", candidate)):
        if len(side.digests) != _REPETITIONS or any(item.status != "ok" for item in side.repetitions):
            return f"the {name} has not the digests of two whole repetitions"
        if len(set(side.digests)) != 1:
            return f"the {name} has two digests, so it is unstable"
    equal = baseline.digests == candidate.digests
    if equal != (result.outcome != "mismatch"):
        return f"its digests are {'equal' if equal else 'different'}, and the outcome is '{result.outcome}'"
    if (result.differences is not None) != (result.outcome == "mismatch"):
        return "only a mismatch comes with differences, and always does"
    problems = bool(baseline.evidence_problems or candidate.evidence_problems)
    if result.outcome != "mismatch" and problems != (result.outcome == "unqualified"):
        return f"its evidence has {'' if problems else 'no '}problems, and the outcome is '{result.outcome}'"
    return None
