"""The corpora of planned rows, verified before anything is built or replayed; all bad ones are told in one run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from replay_parity.campaign.corpus_file import Corpus
from replay_parity.corpus.provide import provide
from replay_parity.corpus.slice import VerifiedSlice
from replay_parity.errors import BadInputError, ManyErrors
from replay_parity.stages.plan import PlannedRow
from replay_parity.system.progress import Progress


def provide_all(
    rows: Iterable[PlannedRow],
    *,
    folders: Sequence[Path],
    own: Mapping[str, Path],
    cache: Path,
    progress: Progress,
) -> dict[str, VerifiedSlice]:
    """Every corpus that a row needs, by name; `own` maps a corpus to the folder that its file says holds the trace."""
    corpora: dict[str, Corpus] = {planned.corpus.name: planned.corpus for planned in rows}
    slices: dict[str, VerifiedSlice] = {}
    errors: list[BadInputError] = []
    for name, corpus in corpora.items():
        progress.step(f"verifying corpus {name}")
        try:
            slices[name] = provide(corpus, folders=[*folders, *([own[name]] if name in own else [])], cache=cache)
        except BadInputError as error:
            errors.append(error)
    if errors:
        raise errors[0] if len(errors) == 1 else ManyErrors(errors)
    return slices
