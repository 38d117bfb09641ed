"""One use of the action: inputs and surroundings to one stage, its outputs, its exit code."""

from __future__ import annotations

from collections.abc import Callable

import orjson

from replay_parity.errors import EXIT_INFRASTRUCTURE, EXIT_OK, BadInputError, BuildError, ReplayParityError
from replay_parity.github.inputs import Mode
from replay_parity.parity.result import RETRIED
from replay_parity.parity.verdict import Verdict
from replay_parity.stages.action_use import ActionUse
from replay_parity.stages.build import build_here, keep
from replay_parity.stages.builds import find_builds, usable
from replay_parity.stages.corpora import provide_all
from replay_parity.stages.decide import Left, decide_run
from replay_parity.stages.github_plan import GitHubPlanner
from replay_parity.stages.plan import Plan
from replay_parity.stages.publish import publish_verdict, write_badge
from replay_parity.stages.report import report
from replay_parity.stages.rows import Ready, run_rows
from replay_parity.stages.shards import Shard, pack
from replay_parity.stages.workspace import Workspace
from replay_parity.system.files import private_folder, scratch_folder

# Between the parts of an artifact's name; no identifier holds it (GITHUB.md: names never collide).
_SEPARATOR = "~"
_PLAN_DIGITS = 12


def run_action(use: ActionUse) -> int:
    """Run the stage that `mode` names; returns its exit code and raises a ReplayParityError like any stage."""
    stages: dict[Mode, Callable[[ActionUse], int]] = {
        "plan": _plan,
        "build": _build,
        "row": _row,
        "verdict": _verdict,
        "publish": _publish,
        "badge": _badge,
    }
    return stages[use.inputs.mode](use)


def _plan(use: ActionUse) -> int:
    """Outputs: matrix, builds, count, artifacts, plan-artifact, path. A refusal is kept for the verdict to say."""
    attempt = use.around.run_attempt
    place = str(use.plan_folder.root)
    try:
        event = use.around.event()
        private_folder(use.folder)
        with scratch_folder(use.folder, "policy-") as scratch:
            api = use.api() if use.inputs.token else None
            planner = GitHubPlanner(event, use.inputs, api=api, settings=use.settings, progress=use.progress)
            planned = planner.plan(use.checkout, scratch)
            planned.keep(use.plan_folder)
    except ReplayParityError as error:
        use.plan_folder.write_refusal(error)
        refused = _name("replay-parity", str(use.inputs.campaign), "refused", str(attempt))
        use.around.put(plan_artifact=refused, path=place, count="0")
        if not use.inputs.advisory:
            raise
        use.progress.notice(f"no plan: {error}")
        return EXIT_OK
    plan = planned.plan
    shards = () if plan.nothing_to_compare else pack(plan.rows)
    prefix = _prefix(plan)
    use.around.put(
        matrix=_matrix([{"shard": shard.id, "runner": shard.runner} for shard in shards]),
        builds=_matrix([{"runner": runner} for runner in dict.fromkeys(shard.runner for shard in shards)]),
        count=str(len(shards)),
        artifacts=prefix,
        plan_artifact=_name(prefix, "plan", str(attempt)),
        path=place,
    )
    use.progress.notice(
        "equal sources on both sides: nothing to compare"
        if plan.nothing_to_compare
        else f"{len(plan.rows)} rows in {len(shards)} jobs"
    )
    return EXIT_OK


def _build(use: ActionUse) -> int:
    """Outputs: artifact, path. A side that does not compile is a result; its rows and the verdict tell it."""
    plan = use.plan_folder.read()
    runner, attempt = use.inputs.runner, use.around.run_attempt
    name = f"build-{use.inputs.side}" if use.inputs.side else "build"
    place = use.folder / name
    use.around.put(artifact=_name(_prefix(plan), "build", runner, name, str(attempt)), path=str(place))
    bench = use.bench(plan)
    patch = use.plan_folder.patch
    outcome = build_here(plan, bench, only=use.inputs.side, patch=patch, logs=place / "logs", progress=use.progress)
    keep(outcome, place, plan=plan, bench=bench, runner=runner, attempt=attempt)
    for error in outcome.sides.values():
        if isinstance(error, BuildError):
            use.progress.notice(f"{error.message}: {error.excerpt}")
    return EXIT_OK


def _row(use: ActionUse) -> int:
    """Outputs: artifact, path. Fails only for what a re-run may change; the verdict judges everything else."""
    plan = use.plan_folder.read()
    shard = _shard(plan, use.inputs.shard)
    attempt = use.around.run_attempt
    place = use.folder / "row"
    use.around.put(artifact=_name(_prefix(plan), "row", shard.id, str(attempt)), path=str(place))
    rows = [planned for planned in plan.rows if planned.id in shard.rows]
    folders = [use.inputs.corpus_dir] if use.inputs.corpus_dir else []
    slices = provide_all(
        rows,
        folders=[*folders, use.plan_folder.traces],
        own={},
        cache=use.settings.cache,
        progress=use.progress,
    )
    builds = find_builds(use.folder / "builds", plan, newest=attempt)
    if builds.problems:
        raise BadInputError(builds.problems[0])
    workspace = Workspace(place)
    with workspace.held(), scratch_folder(private_folder(use.folder), "runners-") as scratch:
        sides = usable(builds, shard.runner, scratch=scratch)
        if sides is None:
            use.progress.notice(f"no artifact came for the runner '{shard.runner}': building here")
            bench = use.bench(plan)
            outcome = build_here(
                plan,
                bench,
                only=None,
                patch=use.plan_folder.patch,
                logs=workspace.logs,
                progress=use.progress,
            )
            keep(outcome, place / "build", plan=plan, bench=bench, runner=shard.runner, attempt=attempt)
            sides = outcome.sides
        ready = Ready(plan, slices, sides, workspace, use.settings, use.progress)
        results = run_rows(ready, rows, attempt=attempt)
        for result in results.values():
            workspace.write_result(result)
    for name, result in results.items():
        use.progress.notice(f"{name}: {result.outcome}: {result.reason}")
    undecided = any(result.outcome in RETRIED for result in results.values())
    return EXIT_INFRASTRUCTURE if undecided and not plan.advisory else EXIT_OK


def _verdict(use: ActionUse) -> int:
    """Outputs: verdict, exit-code, counts, report, artifact, path. An advisory verdict never fails the job."""
    left = Left(
        plan=use.plan_folder,
        builds=use.folder / "builds",
        results=use.folder / "results",
        jobs=use.inputs.jobs,
        attempt=use.around.run_attempt,
    )
    place = use.folder / "verdict"
    verdict = decide_run(left, place, advisory=use.inputs.advisory)
    use.commands.extend(report(verdict, place, around=use.around, campaign=use.inputs.campaign))
    use.around.put(
        verdict=verdict.verdict,
        exit_code=str(verdict.exit_code),
        counts=orjson.dumps(verdict.counts).decode(),
        report=str(place / "summary.md"),
        artifact=_name(_verdict_prefix(use), "verdict", str(use.around.run_attempt)),
        path=str(place),
    )
    return EXIT_OK if verdict.advisory else verdict.exit_code


def _publish(use: ActionUse) -> int:
    """Outputs: check-url. What GitHub refuses is told, and never changes the verdict."""
    published = publish_verdict(
        _read_verdict(use),
        check_name=use.inputs.check_name,
        around=use.around,
        api=use.api(),
        progress=use.progress,
        commands=use.commands,
    )
    use.around.put(check_url=published or "")
    return EXIT_OK


def _badge(use: ActionUse) -> int:
    """Outputs: path, empty elsewhere than on the default branch."""
    written = write_badge(_read_verdict(use), use.folder / "badge.json", around=use.around)
    use.around.put(path=str(use.folder / "badge.json") if written else "")
    return EXIT_OK


def _read_verdict(use: ActionUse) -> Verdict:
    return Workspace(use.folder / "verdict").read_verdict()


def _shard(plan: Plan, name: str | None) -> Shard:
    shards = {shard.id: shard for shard in pack(plan.rows)}
    if name not in shards:
        raise BadInputError(f"the plan has no shard '{name}'", where="input shard")
    return shards[name]


def _matrix(cells: list[dict[str, str]]) -> str:
    return orjson.dumps({"include": cells}).decode()


def _prefix(plan: Plan) -> str:
    """Of one plan: two calls of the workflow in one run never mix."""
    return _name("replay-parity", plan.campaign.name, plan.sha256[:_PLAN_DIGITS])


def _verdict_prefix(use: ActionUse) -> str:
    try:
        return _prefix(use.plan_folder.read())
    except BadInputError:
        return _name("replay-parity", "refused", str(use.inputs.campaign or "campaign"))


def _name(*parts: str) -> str:
    return _SEPARATOR.join(parts)
