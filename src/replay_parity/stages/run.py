"""`replay-parity run`: plan, build, rows and verdict on one machine."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from replay_parity.campaign.loading import LoadedCampaign, load_campaign
from replay_parity.corpus.provide import provide
from replay_parity.corpus.slice import VerifiedSlice
from replay_parity.corpus.totals import WorkloadTotals, totals
from replay_parity.errors import BadInputError, BuildError, ManyErrors, RevisionError
from replay_parity.parity.result import RETRIED, RowResult, settle
from replay_parity.parity.verdict import Verdict, complete
from replay_parity.pin.builder import SIDES, Builder, BuildOutcome, Side
from replay_parity.pin.cargo import Cargo
from replay_parity.pin.models import GitRevision, Revision, Toolchain
from replay_parity.pin.patch import load_patch
from replay_parity.pin.resolve import Sources
from replay_parity.pin.slot import choose_build_root
from replay_parity.pin.toolchain import resolve_toolchain
from replay_parity.settings import Settings
from replay_parity.stages.plan import Plan, PlannedRow, make_plan
from replay_parity.stages.row import RowInputs, run_row, unbuilt
from replay_parity.stages.verdict import assemble, summarise
from replay_parity.stages.workspace import Workspace
from replay_parity.system.progress import Progress

_DEFAULT_OUTPUT = "replay-parity-results"


@dataclass(frozen=True)
class RunOptions:
    """What the command line asks for besides the campaign."""

    corpus_folders: tuple[Path, ...] = ()
    rows: tuple[str, ...] = ()
    output: Path | None = None
    fresh: bool = False


@dataclass(frozen=True)
class Finished:
    """A campaign that was decided: its verdict, and the folder that holds it and everything that it names."""

    verdict: Verdict
    folder: Path


def run_campaign(campaign: str, *, options: RunOptions, settings: Settings, progress: Progress) -> Finished:
    """Run a campaign completely and keep its results; the verdict is returned and written.

    Raises a ReplayParityError when the campaign cannot be decided at all: bad input, infrastructure, an interrupt.
    """
    started = time.monotonic()
    loaded = _only(load_campaign(Path(campaign)), options.rows)
    workspace = Workspace((options.output or Path(_DEFAULT_OUTPUT) / loaded.campaign.name).absolute())
    with workspace.held():
        prepared = prepare(loaded, options=options, workspace=workspace, settings=settings, progress=progress)
        rows = _rows(prepared, workspace, settings, progress, fresh=options.fresh)
        builds = () if prepared.built is None else (summarise(prepared.built, prepared.toolchain),)
        verdict = assemble(prepared.plan, rows, builds, seconds=time.monotonic() - started)
        workspace.write_verdict(verdict)
    return Finished(verdict, workspace.root)


@dataclass(frozen=True)
class Prepared:
    """Everything that rows are replayed from; `built` is None when there is nothing to compare."""

    plan: Plan
    slices: dict[str, VerifiedSlice]
    totals: dict[str, WorkloadTotals]
    toolchain: Toolchain
    built: BuildOutcome | None


def prepare(
    loaded: LoadedCampaign, *, options: RunOptions, workspace: Workspace, settings: Settings, progress: Progress
) -> Prepared:
    """Verify the corpora, resolve the revisions, keep the plan and build what the cache does not hold."""
    slices = _provide_all(loaded, options.corpus_folders, settings.cache, progress)
    build_root = choose_build_root(settings.build_root, cache=settings.cache)
    toolchain = resolve_toolchain(
        loaded.campaign.build.toolchain, environment=settings.tool_environment, folder=build_root
    )
    cargo = Cargo(toolchain, build_root, settings.tool_environment)
    sources = Sources(settings.cache, loaded.path.parent, settings.tool_environment, cargo)
    progress.step("resolving the revisions")
    plan = make_plan(loaded, sources=sources)
    _refuse_moved(workspace.read_plan(), plan, fresh=options.fresh)
    workspace.write_plan(plan)
    sums = {name: totals(verified) for name, verified in slices.items()}
    if plan.equal_trees:
        return Prepared(plan, slices, sums, toolchain, None)
    revisions: dict[Side, Revision] = {"baseline": plan.baseline, "candidate": plan.candidate}
    builder = _builder(loaded, cargo, sources, settings, workspace, progress)
    return Prepared(plan, slices, sums, toolchain, builder.run(revisions))


def _only(loaded: LoadedCampaign, names: Sequence[str]) -> LoadedCampaign:
    if not names:
        return loaded
    known = {item.row.name for item in loaded.rows}
    unknown = [name for name in names if name not in known]
    if unknown:
        raise BadInputError(
            f"campaign {loaded.campaign.name} has no row '{unknown[0]}'", hint=f"it has {', '.join(sorted(known))}"
        )
    rows = tuple(item for item in loaded.rows if item.row.name in names)
    return LoadedCampaign(campaign=loaded.campaign, path=loaded.path, rows=rows, corpora=loaded.corpora)


def _provide_all(
    loaded: LoadedCampaign, folders: Sequence[Path], cache: Path, progress: Progress
) -> dict[str, VerifiedSlice]:
    """Every corpus that a row needs, verified before anything is built; all bad ones are told in one run."""
    slices: dict[str, VerifiedSlice] = {}
    errors: list[BadInputError] = []
    for name in dict.fromkeys(item.row.corpus for item in loaded.rows):
        progress.step(f"verifying corpus {name}")
        found = loaded.corpora[name]
        own = [found.trace_file.parent] if found.trace_file is not None else []
        try:
            slices[name] = provide(found.corpus, folders=[*folders, *own], cache=cache)
        except BadInputError as error:
            errors.append(error)
    if errors:
        raise errors[0] if len(errors) == 1 else ManyErrors(errors)
    return slices


def _refuse_moved(old: Plan | None, new: Plan, *, fresh: bool) -> None:
    """A branch or tag that moved since the folder's plan is never followed silently (rule 1)."""
    if old is None or fresh or old.campaign.name != new.campaign.name:
        return
    for side in SIDES:
        before, now = getattr(old, side), getattr(new, side)
        if not isinstance(before, GitRevision) or not isinstance(now, GitRevision):
            continue
        same_name = (before.repository, before.asked) == (now.repository, now.asked)
        if same_name and before.commit != now.commit:
            raise RevisionError(
                f"{now.asked_as} '{now.asked}' moved from {before.commit} to {now.commit} since this folder's plan",
                where=f"/{side}/revision",
                hint="write the full commit id, use another --output, or --fresh to plan anew",
            )


def _builder(
    loaded: LoadedCampaign,
    cargo: Cargo,
    sources: Sources,
    settings: Settings,
    workspace: Workspace,
    progress: Progress,
) -> Builder:
    build = loaded.campaign.build
    patch = loaded.path.parent / build.patch.file if build.patch is not None else None
    if build.patch is not None:
        load_patch(build.patch, base=loaded.path.parent)
    return Builder(
        build=build,
        cargo=cargo,
        sources=sources,
        cache=settings.cache,
        locks=settings.locks,
        logs=workspace.logs,
        progress=progress,
        patch=patch,
    )


def _rows(
    prepared: Prepared, workspace: Workspace, settings: Settings, progress: Progress, *, fresh: bool
) -> list[RowResult]:
    """Exactly the planned rows; none when there is nothing to compare."""
    plan, built = prepared.plan, prepared.built
    if built is None:
        return []
    results: dict[str, RowResult] = {}
    for number, planned in enumerate(plan.rows, start=1):
        inputs = RowInputs(
            plan_sha256=plan.sha256,
            planned=planned,
            corpus=prepared.slices[planned.corpus.name],
            totals=prepared.totals[planned.corpus.name],
            sides=built.sides,
            workspace=workspace,
            locks_folder=settings.locks,
            progress=progress,
            label=f"row {number} of {len(plan.rows)}: {planned.row.name}",
        )
        results[planned.id] = _row(planned, inputs, fresh=fresh)
    return complete([(planned.row.name, planned.runner) for planned in plan.rows], results, plan_sha256=plan.sha256)


def _row(planned: PlannedRow, inputs: RowInputs, *, fresh: bool) -> RowResult:
    """The settled result of a row: kept when it is decided for exactly these inputs, replayed otherwise (rule 26)."""
    if any(isinstance(side, BuildError) for side in inputs.sides.values()):
        return unbuilt(inputs)
    known = [
        result.model_copy(update={"plan_sha256": inputs.plan_sha256})
        for result in inputs.workspace.attempts(planned.row.name)
        if result.input_sha256 == inputs.sha256
    ]
    if not known or fresh or settle(known).outcome in RETRIED:
        known.append(run_row(inputs, attempt=inputs.workspace.next_attempt(planned.row.name)))
    return settle(known)
