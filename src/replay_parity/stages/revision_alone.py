"""One revision, pinned and built without a second side, and rows made ready for it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from replay_parity.campaign.loaded import LoadedRows
from replay_parity.campaign.models import Build
from replay_parity.campaign.sources import Source
from replay_parity.corpus.totals import totals
from replay_parity.errors import BuildError
from replay_parity.pin.builder import Artifact
from replay_parity.pin.models import Revision, Toolchain
from replay_parity.settings import Settings
from replay_parity.stages.alone import AloneRow
from replay_parity.stages.bench import Bench
from replay_parity.stages.corpora import provide_all
from replay_parity.stages.plan import PlannedRow
from replay_parity.system.progress import Progress


@dataclass(frozen=True)
class RevisionAlone:
    """What produces results: the revision, the toolchain and the runner that was built with it."""

    revision: Revision
    toolchain: Toolchain
    artifact: Artifact


def plain_build(toolchain: str = "path") -> Build:
    """A release build without flags and features, as the built-in campaigns have it."""
    return Build(toolchain=toolchain, profile="release", flags=(), features=())


def build_alone(
    source: Source, *, build: Build, base: Path, logs: Path, settings: Settings, progress: Progress
) -> RevisionAlone:
    """Resolve and build; `base` is the folder that a local repository's path starts from.

    Raises RevisionError when there is no such revision, BuildError when it does not compile.
    """
    bench = Bench(settings, build, base=base)
    # Before any time goes into a revision: without a toolchain nothing can be built.
    toolchain = bench.toolchain
    progress.step("resolving the revision")
    revision = bench.sources.resolve(source)
    built = bench.builder(logs=logs, progress=progress, patch=None).run({"baseline": revision}).sides["baseline"]
    if isinstance(built, BuildError):
        raise built
    return RevisionAlone(revision, toolchain, built)


def ready_rows(
    loaded: LoadedRows, *, folders: Sequence[Path], settings: Settings, progress: Progress
) -> list[AloneRow]:
    """The rows with their corpora, verified and summed up; all bad corpora are told in one error."""
    planned = [PlannedRow(row=item.row, corpus=loaded.corpora[item.row.corpus].corpus) for item in loaded.rows]
    own = {name: item.trace_file.parent for name, item in loaded.corpora.items() if item.trace_file is not None}
    slices = provide_all(planned, folders=folders, own=own, cache=settings.cache, progress=progress)
    sums = {name: totals(verified) for name, verified in slices.items()}
    return [AloneRow(item.row, slices[item.corpus.name], sums[item.corpus.name]) for item in planned]
