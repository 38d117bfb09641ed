"""The stage `verdict`: what all jobs left, checked against the plan, to one verdict (rule 26)."""

from __future__ import annotations

import shutil
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from replay_parity import __version__
from replay_parity.errors import EXIT_INFRASTRUCTURE, BadInputError
from replay_parity.parity.result import settle
from replay_parity.parity.verdict import Verdict, complete
from replay_parity.stages.builds import find_builds
from replay_parity.stages.collect import Collected, collect
from replay_parity.stages.plan import Plan
from replay_parity.stages.plan_folder import PlanFolder
from replay_parity.stages.verdict import assemble
from replay_parity.stages.workspace import Workspace
from replay_parity.system.files import remove_tree, storage_errors

# A build that failed says so in its rows, or they built for themselves; a cancelled one left nothing to trust.
_BROKEN: Mapping[str, frozenset[str]] = {
    "plan": frozenset({"failure", "cancelled", "skipped"}),
    "build": frozenset({"cancelled"}),
    "row": frozenset({"failure", "cancelled"}),
}


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
            return _without_plan(f"{refusal.label}: {refusal.message}", exit_code=refusal.exit_code)
        plan = left.plan.read()
    except BadInputError as error:
        return _without_plan("; ".join([*problems, error.message]), exit_code=EXIT_INFRASTRUCTURE)
    builds = find_builds(left.builds, plan, newest=left.attempt)
    # A row that found no artifact built for itself, and its record came with its result.
    own = find_builds(left.results, plan, newest=left.attempt)
    builds.add(own)
    collected = collect(left.results, plan, builds, newest=left.attempt)
    settled = {name: settle(attempts) for name, attempts in collected.attempts.items()}
    rows = complete([(item.row.name, item.runner) for item in plan.rows], settled, plan_sha256=plan.sha256)
    if plan.nothing_to_compare:
        rows = []
    _keep(collected, workspace)
    summaries = [] if plan.nothing_to_compare else [builds.of(runner) for runner in _runners(plan)]
    return assemble(
        plan,
        rows,
        summaries,
        seconds=time.monotonic() - started,
        problems=[*problems, *builds.problems, *collected.problems],
    )


def _broken_jobs(jobs: Mapping[str, str]) -> list[str]:
    return [f"the job '{name}' ended as '{result}'" for name, result in jobs.items() if result in _BROKEN.get(name, ())]


def _runners(plan: Plan) -> list[str]:
    return list(dict.fromkeys(planned.runner for planned in plan.rows))


def _keep(collected: Collected, workspace: Workspace) -> None:
    """Bring what the accepted results name into one folder, so that the verdict's paths lead somewhere."""
    for (name, attempt), folder in collected.folders.items():
        target = workspace.row_folder(name, attempt)
        with storage_errors("keep the results", target):
            shutil.copytree(folder, target, symlinks=True, copy_function=shutil.copyfile, ignore=_links)


def _links(folder: str, names: list[str]) -> list[str]:
    """Only folders and regular files travel on."""
    paths = [Path(folder) / name for name in names]
    return [path.name for path in paths if path.is_symlink() or not (path.is_dir() or path.is_file())]


def _without_plan(problem: str, *, exit_code: int) -> Verdict:
    return Verdict(tool_version=__version__, verdict="ERROR", exit_code=exit_code, problems=(problem,))
