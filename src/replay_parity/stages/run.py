"""`replay-parity run`: plan, build, rows and verdict on one machine."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from replay_parity.campaign.loaded import LoadedCampaign
from replay_parity.campaign.loading import load_campaign
from replay_parity.corpus.slice import VerifiedSlice
from replay_parity.errors import BadInputError, RevisionError
from replay_parity.parity.result import RowResult
from replay_parity.parity.verdict import Verdict, complete
from replay_parity.pin.builder import SIDES, BuildOutcome, Side
from replay_parity.pin.models import GitRevision, Revision, Toolchain
from replay_parity.settings import Settings
from replay_parity.stages.bench import Bench
from replay_parity.stages.compared import Asked, choose
from replay_parity.stages.corpora import provide_all
from replay_parity.stages.plan import Plan, make_plan, rows_here
from replay_parity.stages.rows import Ready, run_rows
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
    asked: Asked = field(default_factory=Asked)


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
    loaded = only(load_campaign(Path(campaign)), options.rows)
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
    toolchain: Toolchain
    built: BuildOutcome | None


def prepare(
    loaded: LoadedCampaign, *, options: RunOptions, workspace: Workspace, settings: Settings, progress: Progress
) -> Prepared:
    """Verify the corpora, resolve the revisions, keep the plan and build what the cache does not hold."""
    rows = rows_here(loaded)
    own = {name: item.trace_file.parent for name, item in loaded.corpora.items() if item.trace_file is not None}
    slices = provide_all(rows, folders=options.corpus_folders, own=own, cache=settings.cache, progress=progress)
    base = loaded.path.parent
    bench = Bench(settings, loaded.campaign.build, base=base)
    compared = choose(loaded.campaign, options.asked, git=str(_repository_of(loaded.path)))
    # Before any time goes into a revision: without a toolchain nothing can be built.
    toolchain = bench.toolchain
    progress.step("resolving the revisions")
    self_compare = options.asked.self_compare
    plan = make_plan(loaded, compared, sources=bench.sources, rows=rows, self_compare=self_compare)
    _refuse_moved(workspace.read_plan(), plan, fresh=options.fresh)
    workspace.write_plan(plan)
    if plan.nothing_to_compare:
        return Prepared(plan, slices, toolchain, None)
    revisions: dict[Side, Revision] = {"baseline": plan.baseline, "candidate": plan.candidate}
    patch = base / plan.build.patch.file if plan.build.patch is not None else None
    builder = bench.builder(logs=workspace.logs, progress=progress, patch=patch)
    return Prepared(plan, slices, toolchain, builder.run(revisions))


def _rows(
    prepared: Prepared, workspace: Workspace, settings: Settings, progress: Progress, *, fresh: bool
) -> list[RowResult]:
    """Exactly the planned rows; none when there is nothing to compare."""
    plan, built = prepared.plan, prepared.built
    if built is None:
        return []
    ready = Ready(plan, prepared.slices, built.sides, workspace, settings, progress)
    results = run_rows(ready, plan.rows, fresh=fresh)
    return complete([(planned.row.name, planned.runner) for planned in plan.rows], results, plan_sha256=plan.sha256)


def _repository_of(campaign: Path) -> Path:
    """The repository that holds the campaign file, else the current folder: where given names of revisions belong."""
    holding = (folder for folder in campaign.parents if (folder / ".git").exists())
    return next(holding, Path.cwd())


def only(loaded: LoadedCampaign, names: Sequence[str]) -> LoadedCampaign:
    """The campaign with only the named rows; BadInputError for a name that it does not have."""
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
