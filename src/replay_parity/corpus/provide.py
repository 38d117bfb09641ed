"""From a corpus file to a verified slice on disk.

Where a trace comes from:

- generator and inline: written by us into the cache; derived: made from its base, which is provided first;
- upstream: looked for in the folders that the user gives, under the name of the upstream file or `CORPUS.jsonl`, whole
  or as exactly the slice; else the slice in the cache. Files of the user are copied from, never changed or removed.
  When a folder holds such a file and none of them has the right checksum, we stop, even if the cache could help:
  somebody believes that this file is the trace.

The slice in the cache is hashed and its rows are checked again at every call; a damaged one is removed and made anew.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path, PurePosixPath

from replay_parity.campaign.corpus_file import Corpus, Derived, Generator, Inline, Upstream, base_of
from replay_parity.corpus.derived import agentic_v1
from replay_parity.corpus.generator import sessions_v1
from replay_parity.corpus.lines import trace_lines
from replay_parity.corpus.slice import FILE_CAP, SliceStore, VerifiedSlice
from replay_parity.corpus.verify import Scan, form_of, ignore, is_slice, judge, origin, scan
from replay_parity.errors import BadInputError, CorpusError
from replay_parity.system.files import open_regular, sha256_regular

# A trace that can be read again from its beginning.
_Lines = Callable[[], Iterable[bytes]]


def provide(corpus: Corpus, *, folders: Sequence[Path], cache: Path) -> VerifiedSlice:
    """The slice of `corpus`, proven byte for byte and row for row.

    Raises CorpusError when a trace is missing, is another one or has a broken row; ConfigurationError when the corpus
    file contradicts itself; InfrastructureError when the cache cannot be written.
    """
    form_of(corpus)
    store = SliceStore(cache, corpus.slice.sha256)
    cached = is_cached(corpus, store)
    if isinstance(corpus.source, Upstream):
        _from_folders(corpus, corpus.source, folders, store, cached=cached)
    elif not cached:
        lines, where = own_lines(corpus, corpus.source, folders, cache)
        _prove(corpus, lines, store, where=where, cached=False)
    return VerifiedSlice(
        path=store.path,
        sha256=corpus.slice.sha256,
        rows=corpus.slice.rows,
        block_size=corpus.block_size,
        format=corpus.format,
        corpus=corpus,
    )


def is_cached(corpus: Corpus, store: SliceStore) -> bool:
    """Whether the cache holds the slice; a right checksum with a broken row is the corpus file's fault and raised."""
    if not store.exists():
        return False
    found = _scan_whole(corpus, file_lines(store.path))
    if not is_slice(found, corpus):
        store.discard()
        return False
    judge(found, corpus, where=f"corpus {corpus.name}")
    return True


def own_lines(
    corpus: Corpus, source: Generator | Inline | Derived, folders: Sequence[Path], cache: Path
) -> tuple[_Lines, str]:
    """Lines of a trace that we write ourselves, and its name in sentences; the base of a derived one is provided."""
    if isinstance(source, Derived):
        base = provide(base_of(corpus, source), folders=folders, cache=cache)
        return _derived_lines(source, base), f"corpus {corpus.name}, {source.name} of {base.corpus.name}"
    if isinstance(source, Generator):
        return (
            lambda: sessions_v1(rows=source.full_rows, seed=source.seed),
            f"corpus {corpus.name}, generator {source.name}",
        )
    return lambda: (f"{line}\n".encode() for line in source.lines), f"corpus {corpus.name}, inline lines"


def _derived_lines(source: Derived, base: VerifiedSlice) -> _Lines:
    return lambda: agentic_v1(
        file_lines(base.path)(),
        rows=source.full_rows,
        seed=source.seed,
        block_size=base.block_size,
        source_sha256=base.sha256,
        where=f"corpus {base.corpus.name}",
    )


def files_of(corpus: Corpus, source: Upstream, folders: Sequence[Path]) -> list[Path]:
    """Files of the user's folders that have a name of the trace; CorpusError when a folder is none."""
    for folder in folders:
        if not folder.is_dir():
            raise CorpusError("is not a folder with traces", where=str(folder), hint="correct --corpus-dir")
    paths = (folder / name for folder in folders for name in _names(corpus, source))
    return [path for path in paths if path.exists() or path.is_symlink()]


def missing(corpus: Corpus, source: Upstream, folders: Sequence[Path]) -> CorpusError:
    """What to say when no trace is there."""
    places = ", ".join(map(str, folders)) or "no folder was given"
    return CorpusError(
        f"there is no {' or '.join(_names(corpus, source))} ({places}), and the cache does not hold the slice",
        where=f"corpus {corpus.name}",
        hint=f"`replay-parity corpus fetch {corpus.name}` gets it; or get {origin(source)} "
        "and give its folder with --corpus-dir",
    )


def _names(corpus: Corpus, source: Upstream) -> Iterable[str]:
    return dict.fromkeys((PurePosixPath(source.path).name, f"{corpus.name}.jsonl"))


def _from_folders(
    corpus: Corpus, source: Upstream, folders: Sequence[Path], store: SliceStore, *, cached: bool
) -> None:
    """Prove one of the user's files, or be content with the cache when there is none."""
    errors: list[BadInputError] = []
    for path in files_of(corpus, source, folders):
        try:
            # A link that the user put into their own folder is followed: only bytes with the right checksum count.
            _prove(corpus, file_lines(Path(os.path.realpath(path))), store, where=str(path), cached=cached)
        except BadInputError as error:
            errors.append(error)
        else:
            return
    if errors:
        raise errors[0]
    if not cached and not _from_full(corpus, source, store):
        raise missing(corpus, source, folders)


def _from_full(corpus: Corpus, source: Upstream, store: SliceStore) -> bool:
    """Cut the slice from the full trace in the cache; False when that is not there or damaged."""
    full = SliceStore(store.cache, source.full_sha256)
    if full.path == store.path or not full.exists():
        return False
    if sha256_regular(full.path, cap=FILE_CAP) != source.full_sha256:
        full.discard()
        return False
    _prove(corpus, file_lines(full.path), store, where=f"corpus {corpus.name}", cached=False)
    return True


def _prove(corpus: Corpus, lines: _Lines, store: SliceStore, *, where: str, cached: bool) -> None:
    """Judge one trace and bring its slice into the store unless it is there already."""
    if not _bring(corpus, lines, store, where=where, start=corpus.slice.start, cached=cached):
        _bring(corpus, lines, store, where=where, start=0, cached=cached)


def _bring(corpus: Corpus, lines: _Lines, store: SliceStore, *, where: str, start: int, cached: bool) -> bool:
    """One pass with the slice at row `start`; False when the file is the slice alone, whose rows begin at row 0."""
    with contextlib.nullcontext() if cached else store.staged() as staged:
        sink = ignore if staged is None else staged.write
        found = scan(lines(), form_of(corpus), start=start, rows=corpus.slice.rows, sink=sink)
        if start and is_slice(found, corpus):
            return False
        judge(found, corpus, where=where)
        if staged is not None:
            staged.keep()
    return True


def _scan_whole(corpus: Corpus, lines: _Lines) -> Scan:
    return scan(lines(), form_of(corpus), start=0, rows=corpus.slice.rows)


def file_lines(path: Path) -> _Lines:
    """Lines of a regular file; CorpusError at the end when it changed meanwhile, for then nothing is proven."""

    def read() -> Iterator[bytes]:
        with open_regular(path, cap=FILE_CAP) as file:
            before = os.fstat(file.fileno())
            yield from trace_lines(file, where=str(path))
            after = os.fstat(file.fileno())
        if (before.st_size, before.st_mtime_ns) != (after.st_size, after.st_mtime_ns):
            raise CorpusError("changed while it was read", where=str(path), hint="run again when nobody writes to it")

    return read
