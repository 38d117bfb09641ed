"""Which bytes somebody would take for a corpus: a given file, files of folders, the cache, or what we write."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from replay_parity.campaign.corpus_file import Corpus, Derived, Upstream
from replay_parity.corpus.provide import file_lines, files_of, missing, own_lines
from replay_parity.corpus.slice import SliceStore


@dataclass(frozen=True)
class Candidate:
    """Lines that may be read more than once, and where they are from."""

    lines: Callable[[], Iterable[bytes]]
    where: str


def candidates(corpus: Corpus, *, given: Path | None, folders: Sequence[Path], cache: Path) -> Iterator[Candidate]:
    """All of them; CorpusError when there is none.

    A given file stands alone; else those of the folders; else the cache. A trace of our own is written anew, a derived
    one only when the cache does not hold it: its base need not be there.
    """
    if given is not None:
        yield Candidate(file_lines(given), str(given))
        return
    store = SliceStore(cache, corpus.slice.sha256)
    if isinstance(corpus.source, Derived) and store.exists():
        yield Candidate(file_lines(store.path), str(store.path))
        return
    if not isinstance(corpus.source, Upstream):
        lines, where = own_lines(corpus, corpus.source, folders, cache)
        yield Candidate(lines, where)
        return
    found = files_of(corpus, corpus.source, folders)
    for path in found:
        yield Candidate(file_lines(path.resolve()), str(path))
    if found:
        return
    for sha256 in (corpus.slice.sha256, corpus.source.full_sha256):
        store = SliceStore(cache, sha256)
        if store.exists():
            yield Candidate(file_lines(store.path), str(store.path))
            return
    raise missing(corpus, corpus.source, folders)
