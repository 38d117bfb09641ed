"""Traces from their pinned commits into the cache, for `corpus fetch` and for whoever needs them before a run."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from replay_parity.campaign.corpus_file import Corpus
from replay_parity.corpus.download import Limits
from replay_parity.corpus.fetch import FetchOptions, fetch
from replay_parity.corpus.slice import VerifiedSlice
from replay_parity.errors import BadInputError, ManyErrors
from replay_parity.settings import Settings
from replay_parity.stages.corpus_named import campaign_corpora, named_corpus
from replay_parity.system.progress import Progress


def wanted_corpora(names: Iterable[str], campaigns: Iterable[str]) -> list[Corpus]:
    """The corpora of names, files and campaigns, each slice once; BadInputError when none is asked for."""
    found = [named_corpus(name) for name in names]
    found += [corpus for campaign in campaigns for corpus in campaign_corpora(campaign)]
    if not found:
        raise BadInputError("no corpus is named", hint="give a name, a corpus file or --campaign FILE")
    return list({(corpus.name, corpus.slice.sha256): corpus for corpus in found}.values())


def fetch_corpora(
    corpora: Iterable[Corpus],
    *,
    settings: Settings,
    progress: Progress,
    seconds: float | None = None,
    size_bytes: int | None = None,
) -> list[VerifiedSlice]:
    """Bring every corpus into the cache, after which `run` needs no --corpus-dir; limits are for each of them.

    A wrong trace does not keep the others from being fetched: those errors are told together at the end. Raises
    InfrastructureError at once when the network fails.
    """
    limits = Limits()
    if seconds is not None:
        limits = replace(limits, total_seconds=seconds)
    if size_bytes is not None:
        limits = replace(limits, size_bytes=size_bytes)
    options = FetchOptions(settings.trace_url, settings.trace_lfs_url, limits)
    slices: list[VerifiedSlice] = []
    errors: list[BadInputError] = []
    for corpus in corpora:
        try:
            slices.append(fetch(corpus, cache=settings.cache, options=options, progress=progress))
        except BadInputError as error:
            errors.append(error)
    if errors:
        raise errors[0] if len(errors) == 1 else ManyErrors(errors)
    return slices
