"""A corpus for people: its provenance, and the facts of its slice."""

from __future__ import annotations

from collections.abc import Iterator

from replay_parity.campaign.corpus_file import Corpus, Derived, Generator, Upstream
from replay_parity.corpus.facts import Facts, Lengths
from replay_parity.publish.plain import visible


def provenance_lines(corpus: Corpus) -> Iterator[str]:
    """One line a fact, safe to print."""
    source, part = corpus.source, corpus.slice
    yield _line("corpus", f"{corpus.name}: {corpus.title}")
    yield from _origin(corpus)
    yield _line("licence", source.licence)
    yield _line("full trace", f"{source.full_rows:,} rows, SHA-256 {source.full_sha256}")
    yield _line("slice", f"{part.rows:,} rows from row {part.start}, SHA-256 {part.sha256}")
    yield _line("format", f"{corpus.format}, blocks of {corpus.block_size} tokens")


def facts_lines(facts: Facts) -> Iterator[str]:
    """What the slice holds."""
    yield _line("requests", f"{facts.requests:,} in {facts.sessions:,} sessions")
    yield _line("input tokens", _lengths(facts.input_tokens))
    yield _line("output tokens", _lengths(facts.output_tokens))
    if facts.seconds is not None:
        yield _line("duration", f"{facts.seconds:,.3f} s from the first time to the last")


def _origin(corpus: Corpus) -> Iterator[str]:
    source = corpus.source
    if isinstance(source, Upstream):
        yield _line("repository", source.repository)
        yield _line("commit", source.commit)
        yield _line("path", source.path)
    elif isinstance(source, Generator):
        yield _line("generator", f"{source.name}, seed {source.seed}")
    elif isinstance(source, Derived):
        base = source.derived_from
        yield _line("derived", f"{source.name}, seed {source.seed}, from {base.name} (SHA-256 {base.slice.sha256})")
    else:
        yield _line("lines", "written in the corpus file")


def _lengths(lengths: Lengths) -> str:
    shares = ", ".join(f"{name} {value:,}" for name, value in lengths.percentiles.items())
    return f"{lengths.total:,} (smallest {lengths.smallest:,}, {shares}, largest {lengths.largest:,})"


def _line(name: str, text: str) -> str:
    return f"{name:<14}{visible(text)}"
