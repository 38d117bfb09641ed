"""A trace from its pinned commit into the cache, proven by its full checksum before anybody can see it.

The full trace is kept beside its slices (`corpora/SHA256` of the whole file), so that another slice of it costs no
second download. Two processes that want one trace take turns; the second finds it there.
"""

from __future__ import annotations

import contextlib
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from replay_parity.campaign.corpus_file import Corpus, Derived, Upstream, base_of
from replay_parity.corpus.address import addresses
from replay_parity.corpus.download import Clock, Download, Limits
from replay_parity.corpus.exchange import Exchange
from replay_parity.corpus.partial import Partial
from replay_parity.corpus.provide import is_cached, provide
from replay_parity.corpus.slice import FILE_CAP, SliceStore, VerifiedSlice
from replay_parity.corpus.verify import origin
from replay_parity.errors import CorpusError, InfrastructureError
from replay_parity.system.files import read_capped, sha256_regular
from replay_parity.system.locks import host_lock
from replay_parity.system.progress import Progress

_POINTER_CAP = 1024
_POINTER = re.compile(rb"version https://git-lfs\.github\.com/spec/v1\n(?:.*\n)*oid sha256:([0-9a-f]{64})\n(?:.*\n)*")
_READ_ONLY = 0o444


@dataclass(frozen=True)
class FetchOptions:
    """Where traces are fetched from and what that may cost; templates of None are GitHub's own addresses."""

    template: str | None = None
    lfs_template: str | None = None
    limits: Limits = field(default_factory=Limits)
    clock: Clock = field(default_factory=lambda: Clock(time.monotonic, time.sleep))


def fetch(corpus: Corpus, *, cache: Path, options: FetchOptions, progress: Progress) -> VerifiedSlice:
    """The slice of `corpus`, downloaded when the cache has neither it nor its full trace.

    Raises CorpusError when the trace is not what the corpus names (nothing of it is kept), InfrastructureError when
    the network, the server or the disk fails (what has come is kept and continued later).
    """
    source = corpus.source
    if isinstance(source, Derived):
        if not is_cached(corpus, SliceStore(cache, corpus.slice.sha256)):
            fetch(base_of(corpus, source), cache=cache, options=options, progress=progress)
    elif isinstance(source, Upstream) and not is_cached(corpus, SliceStore(cache, corpus.slice.sha256)):
        with _turn(cache, source, options.limits, progress):
            full = SliceStore(cache, source.full_sha256)
            if not full.exists() or sha256_regular(full.path, cap=FILE_CAP) != source.full_sha256:
                _download(corpus, source, full, options, progress)
    return provide(corpus, folders=[], cache=cache)


@contextlib.contextmanager
def _turn(cache: Path, source: Upstream, limits: Limits, progress: Progress) -> Iterator[None]:
    """Be the only one who downloads this trace into this cache."""
    name = source.full_sha256[:16]
    with contextlib.ExitStack() as stack:
        try:
            lock = host_lock(
                cache / "downloads" / ".lock",
                name,
                shared=False,
                timeout=limits.total_seconds,
                waiting=lambda _: progress.notice("another process fetches this trace; waiting for it"),
            )
            stack.enter_context(lock)
        except InfrastructureError as error:
            raise InfrastructureError(
                f"another process has fetched the same trace for {limits.total_seconds:.0f} s",
                where=str(cache / "downloads"),
                hint="wait for it or end it",
            ) from error
        yield


def _download(corpus: Corpus, source: Upstream, full: SliceStore, options: FetchOptions, progress: Progress) -> None:
    where = f"corpus {corpus.name}"
    places = addresses(source, template=options.template, lfs_template=options.lfs_template, where=where)
    limits = options.limits
    exchange = Exchange(connect_seconds=limits.connect_seconds, read_seconds=limits.read_seconds)
    download = Download(exchange, limits, options.clock, progress, where=where)
    partial = Partial(full.cache / "downloads", source.full_sha256)
    progress.step(f"fetching corpus {corpus.name} from {source.repository} at {source.commit[:12]}")
    # What lies there may be the contents of a pointer that was read by an earlier call.
    url = places.lfs if places.lfs is not None and partial.url() == places.lfs else places.file
    download.run(url, partial)
    pointed = _pointer(partial)
    if pointed is not None and places.lfs is not None and pointed != source.full_sha256:
        found = pointed
    else:
        if pointed is not None and places.lfs is not None:
            partial.restart()
            url = places.lfs
            download.run(url, partial)
        found = _proven(url, partial, download, source, progress)
    if found != source.full_sha256:
        # Ours, in our cache: nothing of a wrong trace stays.
        partial.restart()
        raise CorpusError(
            f"the trace at {url} has SHA-256 {found}, but the corpus names {source.full_sha256}",
            where=where,
            hint=f"nothing of it was kept; the trace that is meant is {origin(source)}",
        )
    partial.keep(full.path, mode=_READ_ONLY)


def _proven(url: str, partial: Partial, download: Download, source: Upstream, progress: Progress) -> str:
    """The checksum of what came; a file joined from several answers that is wrong is fetched once more in one piece."""
    found = sha256_regular(partial.path, cap=FILE_CAP)
    if found != source.full_sha256 and partial.joined:
        progress.notice("the continued download is not the trace; fetching it once more from its beginning")
        partial.restart()
        download.run(url, partial)
        found = sha256_regular(partial.path, cap=FILE_CAP)
    return found


def _pointer(partial: Partial) -> str | None:
    """The checksum that a pointer of Git LFS holds, when that is what came."""
    if partial.size() > _POINTER_CAP:
        return None
    found = _POINTER.fullmatch(read_capped(partial.path, cap=_POINTER_CAP))
    return None if found is None else found[1].decode()
