"""Plan, builds and rows to the verdict document."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from replay_parity import __version__
from replay_parity.errors import BuildError
from replay_parity.parity.result import DEFAULT_RUNNER, RowResult
from replay_parity.parity.verdict import BuildSummary, SideBuild, Verdict, count, decide, is_failing, is_green
from replay_parity.pin.builder import Artifact, BuildOutcome
from replay_parity.pin.models import Toolchain
from replay_parity.stages.plan import Plan

# The sources themselves are at fault, not the machine.
IN_THE_SOURCES = frozenset({"revision", "runner_api"})


def assemble(
    plan: Plan,
    rows: Sequence[RowResult],
    builds: Sequence[BuildSummary],
    *,
    seconds: float,
    problems: Sequence[str] = (),
) -> Verdict:
    """The verdict over exactly these rows; `problems` of the campaign as a whole keep it from being green."""
    unbuildable = any(build.baseline.error_kind in IN_THE_SOURCES for build in builds)
    name, exit_code = decide(
        rows, equal_trees=plan.nothing_to_compare, baseline_unbuildable=unbuildable, problems=bool(problems)
    )
    return Verdict(
        tool_version=__version__,
        verdict=name,
        exit_code=exit_code,
        plan_sha256=plan.sha256,
        campaign=plan.campaign,
        baseline=plan.baseline,
        candidate=plan.candidate,
        runner_source_sha256=plan.runner_source_sha256,
        equal_trees=plan.equal_trees,
        self_compare=plan.self_compare,
        advisory=plan.advisory,
        origin=plan.origin,
        problems=tuple(problems),
        notes=tuple(_notes(plan, builds)),
        counts=count(rows),
        failed_rows=tuple(row.id for row in rows if is_failing(row)),
        undecided_rows=tuple(row.id for row in rows if not is_failing(row) and not is_green(row)),
        rows=tuple(rows),
        builds=tuple(builds),
        files={planned.row.name: planned.file for planned in plan.rows if planned.file is not None},
        seconds=seconds,
    )


def summarise(outcome: BuildOutcome, toolchain: Toolchain, *, runner: str = DEFAULT_RUNNER) -> BuildSummary:
    """What was built on one runner, as the verdict shows it."""
    return BuildSummary(
        runner=runner,
        toolchain=toolchain,
        baseline=_side(outcome.sides.get("baseline"), runner),
        candidate=_side(outcome.sides.get("candidate"), runner),
        lock_differences=outcome.lock_differences,
    )


def logs_of(runner: str) -> str:
    """Folder of a runner's logs, below the folder for results like every path in the verdict."""
    return "logs" if runner == DEFAULT_RUNNER else f"logs/{runner}"


def _side(built: Artifact | BuildError | None, runner: str) -> SideBuild:
    if built is None:
        return SideBuild()
    if isinstance(built, BuildError):
        log = f"{logs_of(runner)}/{Path(built.log).name}"
        return SideBuild(error=f"{built.message} (log: {log})\n{built.excerpt}", error_kind=built.kind)
    return SideBuild(artifact=built.record)


def _notes(plan: Plan, builds: Sequence[BuildSummary]) -> list[str]:
    notes = []
    if plan.build.negative_control is not None:
        notes.append(f"negative control '{plan.build.negative_control}': this campaign must not be green")
    if plan.self_compare:
        notes.append("a self-comparison: it shows that the check is sound, nothing about a change")
    for build in builds if not plan.equal_trees else ():
        left, right = build.baseline.artifact, build.candidate.artifact
        if left is not None and right is not None and left.neutral_sha256 == right.neutral_sha256:
            notes.append("the trees differ, the artifacts are equal but for the revision that is compiled into them")
    return list(dict.fromkeys(notes))
