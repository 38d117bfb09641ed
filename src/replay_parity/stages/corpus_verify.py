"""`corpus verify` and `corpus show`: what a trace is, and what its corpus file says of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from replay_parity.campaign.corpus_file import Corpus
from replay_parity.corpus.candidates import candidates
from replay_parity.corpus.examine import Examined, examine
from replay_parity.corpus.facts import Facts
from replay_parity.errors import BadInputError
from replay_parity.settings import Settings
from replay_parity.system.progress import Progress


@dataclass(frozen=True)
class Judged:
    """One trace that was looked at."""

    where: str
    examined: Examined


def verify_corpus(
    corpus: Corpus, *, given: Path | None, folders: Sequence[Path], settings: Settings, progress: Progress
) -> Judged:
    """The first candidate that is proven, else the first of all with everything that is wrong with it.

    Raises CorpusError when there is no trace to look at or it cannot be read to its end.
    """
    first: Judged | None = None
    for candidate in candidates(corpus, given=given, folders=folders, cache=settings.cache):
        progress.step(f"reading {candidate.where}")
        judged = Judged(candidate.where, examine(corpus, candidate.lines, where=candidate.where))
        if judged.examined.error is None:
            return judged
        first = first or judged
    assert first is not None  # noqa: S101 (there is at least one candidate, or an error was raised)
    return first


def facts_of(corpus: Corpus, *, folders: Sequence[Path], settings: Settings, progress: Progress) -> Facts | None:
    """Facts of the verified slice; None when there is no trace here that is proven."""
    try:
        judged = verify_corpus(corpus, given=None, folders=folders, settings=settings, progress=progress)
    except BadInputError:
        return None
    return judged.examined.facts if judged.examined.error is None else None


def shown_document(corpus: Corpus, facts: Facts | None) -> dict[str, Any]:
    """`corpus show --json`: the corpus file as it was read, and the facts or null."""
    return {
        "schema_version": 1,
        "corpus": corpus.model_dump(mode="json"),
        "facts": None if facts is None else facts.model_dump(mode="json"),
    }
