"""The stage `verdict`: what all jobs left, checked against the plan, to one verdict (rule 26)."""

from __future__ import annotations

import contextlib
import shutil
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from replay_parity import __version__
from replay_parity.canonical.proof import MAX_BYTES
from replay_parity.errors import EXIT_BAD_INPUT, EXIT_INFRASTRUCTURE, BadInputError
from replay_parity.parity.result import RowResult, settle
from replay_parity.parity.verdict import Verdict, complete
from replay_parity.pin.builder import SIDES
from replay_parity.stages.builds import Builds, find_builds
from replay_parity.stages.collect import Collected, collect
from replay_parity.stages.plan import Plan
from replay_parity.stages.plan_folder import PlanFolder
from replay_parity.stages.untrusted import few
from replay_parity.stages.verdict import assemble, logs_of
from replay_parity.stages.workspace import Workspace
from replay_parity.system.files import open_regular, read_capped, remove_tree, storage_errors, write_whole

# A build that failed says so in its rows, or they built for themselves; a cancelled one left nothing to trust.
_BROKEN: Mapping[str, frozenset[str]] = {
    "plan": frozenset({"failure", "cancelled", "skipped"}),
    "build": frozenset({"cancelled"}),
    "row": frozenset({"failure", "cancelled"}),
}
# What a build writes beside its artifacts.
_LOGS = tuple(f"{step}-{side}.log" for step in ("fetch", "build") for side in SIDES)
_LOG_CAP = 64 << 20


@dataclass(frozen=True)
class Left:
    """Where the jobs of a run left what they made; `jobs` is how each ended, `attempt` the run's number now."""

    plan: PlanFolder
    builds: Path
    results: Path
    jobs: Mapping[str, str]
    attempt: int


def decide_run(left: Left, output: Path, *, advisory: bool = False) -> Verdict:
    """The verdict, written to `output` with every file that it names; never green by what is missing.

    `advisory` is what the workflow says; a plan that could be made says it too.
    """
    started = time.monotonic()
    workspace = Workspace(output)
    with storage_errors("make the folder of the verdict", output):
        remove_tree(output)
        output.mkdir(parents=True)
    verdict = _decide(left, workspace, started)
    if advisory and not verdict.advisory:
        verdict = verdict.model_copy(update={"advisory": True})
    workspace.write_verdict(verdict)
    return verdict


def _decide(left: Left, workspace: Workspace, started: float) -> Verdict:
    problems = _broken_jobs(left.jobs)
    try:
        refusal = left.plan.read_refusal()
        if refusal is not None:
            known = refusal.exit_code in {EXIT_BAD_INPUT, EXIT_INFRASTRUCTURE}
            exit_code = refusal.exit_code if known else EXIT_INFRASTRUCTURE
            return _without_plan(f"{refusal.label}: {refusal.message}", exit_code=exit_code)
        plan = left.plan.read()
    except BadInputError as error:
        return _without_plan("; ".join([*problems, error.message]), exit_code=EXIT_INFRASTRUCTURE)
    builds = find_builds(left.builds, plan, newest=left.attempt)
    # A row that found no artifact built for itself, and its record came with its result.
    builds.add(find_builds(left.results, plan, newest=left.attempt))
    collected = collect(left.results, plan, builds, newest=left.attempt)
    problems += [*_contradictions(plan, builds, collected), *builds.problems, *collected.problems]
    rows: list[RowResult] = []
    if not plan.nothing_to_compare:
        settled = {name: settle(attempts) for name, attempts in collected.attempts.items()}
        rows = complete([(item.row.name, item.runner) for item in plan.rows], settled, plan_sha256=plan.sha256)
    _keep_results(collected, workspace)
    _keep_logs(builds, workspace)
    summaries = [] if plan.nothing_to_compare else [builds.of(runner) for runner in _runners(plan)]
    return assemble(plan, rows, summaries, seconds=time.monotonic() - started, problems=few(problems))


def _contradictions(plan: Plan, builds: Builds, collected: Collected) -> list[str]:
    """What the plan as a whole does not allow."""
    if plan.nothing_to_compare and (builds.found or collected.attempts):
        return ["the plan has nothing to compare, and jobs left builds or results all the same"]
    if not plan.nothing_to_compare and not plan.rows:
        return ["the plan has no rows, so nothing was compared"]
    return []


def _broken_jobs(jobs: Mapping[str, str]) -> list[str]:
    return [f"the job '{name}' ended as '{result}'" for name, result in jobs.items() if result in _BROKEN.get(name, ())]


def _runners(plan: Plan) -> list[str]:
    return list(dict.fromkeys(planned.runner for planned in plan.rows))


def _keep_results(collected: Collected, workspace: Workspace) -> None:
    """Bring what the accepted results name, and nothing else, to where the verdict's paths lead."""
    for (name, attempt), folder in collected.folders.items():
        target = workspace.row_folder(name, attempt)
        accepted = next(item for item in collected.attempts[name] if item.attempt == attempt)
        kept = [*accepted.reports, *([accepted.differences.file] if accepted.differences else [])]
        prefix = f"{target.relative_to(workspace.root).as_posix()}/"
        for place in ["result.json", *(path.removeprefix(prefix) for path in kept)]:
            _copy(folder / place, target / place)


def _copy(source: Path, target: Path) -> None:
    """Copy a file that was checked, in constant memory."""
    with storage_errors("keep the results", target):
        target.parent.mkdir(parents=True, exist_ok=True)
        with open_regular(source, cap=MAX_BYTES) as file, target.open("wb") as copy:
            shutil.copyfileobj(file, copy)


def _keep_logs(builds: Builds, workspace: Workspace) -> None:
    """Logs of builds that failed, for people, where the builds' errors say; the newest attempt's stays."""
    for build in sorted(builds.found, key=lambda item: item.result.attempt):
        if all(side.error is None for side in (build.result.build.baseline, build.result.build.candidate)):
            continue
        for name in _LOGS:
            # A log that cannot be read explains nothing, and decides nothing.
            with contextlib.suppress(BadInputError):
                data = read_capped(build.folder / "logs" / name, cap=_LOG_CAP)
                write_whole(workspace.root / logs_of(build.runner) / name, data)


def _without_plan(problem: str, *, exit_code: int) -> Verdict:
    return Verdict(tool_version=__version__, verdict="ERROR", exit_code=exit_code, problems=(problem,))
