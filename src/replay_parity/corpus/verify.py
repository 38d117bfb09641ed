"""Proof that bytes are the trace that a corpus file names: one pass, constant memory, both checksums at once.

A trace may be given whole, or as exactly its slice: a contiguous range of whole lines. Rows are requests; the header
line of an agentic trace is no row, but it is part of the slice, which therefore starts at row 0. Problems of single
lines do not end the pass: a wrong checksum says more, and names the first broken line beside it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from replay_parity.campaign.corpus_file import Corpus, Inline, Upstream
from replay_parity.corpus.agentic import AgenticMooncake
from replay_parity.corpus.fields import RowError
from replay_parity.corpus.formats import Request, TraceFormat
from replay_parity.corpus.lines import form_problem
from replay_parity.corpus.mooncake import Mooncake
from replay_parity.errors import ConfigurationError, CorpusError

Sink = Callable[[bytes], object]
Tally = Callable[[Request], object]
# Told every problem with its line; without one, the format is not asked after the first.
Note = Callable[[int, str], object]

_FORMATS: dict[str, Callable[[int], TraceFormat]] = {"mooncake": Mooncake, "agentic_mooncake": AgenticMooncake}


def ignore(_: object) -> None:
    """A sink or a tally for a pass that only looks."""


@dataclass(frozen=True)
class Scan:
    """What one pass found: of the whole file, and of the slice in it; `rows` and `slice_rows` count requests."""

    sha256: str
    rows: int
    slice_sha256: str
    slice_rows: int
    ends_with_newline: bool
    problem: str | None


@dataclass
class _Pass:
    """The running state of one pass."""

    form: TraceFormat
    tally: Tally
    told: Note | None = None
    problem: str | None = None
    slice_rows: int = 0
    whole: hashlib._Hash = field(default_factory=hashlib.sha256)
    part: hashlib._Hash = field(default_factory=hashlib.sha256)

    def note(self, number: int, what: str) -> None:
        if self.problem is None:
            self.problem = f"line {number} {what}"
        if self.told is not None:
            self.told(number, what)

    def check(self, line: bytes, number: int) -> None:
        """Check one line of the slice; the format is not asked after the first problem unless all are wanted."""
        if self.problem is not None and self.told is None:
            return
        problem = form_problem(line, first=number == 1)
        if problem is not None:
            self.note(number, problem)
            return
        try:
            if number <= self.form.header_lines:
                self.form.header(line)
            else:
                self.tally(self.form.request(line))
        except RowError as error:
            self.note(number, str(error))


def scan(
    lines: Iterable[bytes],
    form: TraceFormat,
    *,
    start: int,
    rows: int,
    sink: Sink = ignore,
    tally: Tally = ignore,
    told: Note | None = None,
) -> Scan:
    """Hash all lines; hash, check, count and hand on to `sink` those of the slice.

    `start` is the first request of the slice, from zero; `rows` their number. Nothing is raised for what is found
    wrong: see `judge`; `told` gets every problem of the slice.
    """
    state = _Pass(form, tally, told)
    first, end = start, start + form.header_lines + rows
    number, line = 0, b""
    for number, line in enumerate(lines, start=1):
        state.whole.update(line)
        if first < number <= end:
            state.part.update(line)
            state.slice_rows += number > form.header_lines
            sink(line)
            state.check(line, number)
    if state.problem is None:
        try:
            form.finish()
        except RowError as error:
            state.note(min(number, end), str(error))
    return Scan(
        sha256=state.whole.hexdigest(),
        rows=max(number - form.header_lines, 0),
        slice_sha256=state.part.hexdigest(),
        slice_rows=state.slice_rows,
        ends_with_newline=line.endswith(b"\n"),
        problem=state.problem,
    )


def form_of(corpus: Corpus) -> TraceFormat:
    """A fresh checker for the corpus; ConfigurationError for an unknown format or a slice that loses its header."""
    where = f"corpus {corpus.name}"
    return make_form(corpus.format, corpus.block_size, start=corpus.slice.start, where=where)


def make_form(name: str, block_size: int, *, start: int, where: str | None) -> TraceFormat:
    """A fresh checker for a slice that starts at request `start`; ConfigurationError as `form_of`."""
    maker = _FORMATS.get(name)
    if maker is None:
        raise ConfigurationError(f"there is no trace format {name!r}", where=where, hint=f"use {' or '.join(_FORMATS)}")
    form = maker(block_size)
    if form.header_lines and start:
        raise ConfigurationError(
            f"a slice of an {name} trace must start at 0, because its header line belongs to it", where=where
        )
    return form


def is_slice(found: Scan, corpus: Corpus) -> bool:
    """Whether the whole file is exactly the slice."""
    return found.sha256 == corpus.slice.sha256


def judge(found: Scan, corpus: Corpus, *, where: str) -> None:
    """Raise CorpusError unless the pass proves that the file is the full trace or its slice, whole and well formed."""
    if found.sha256 == corpus.source.full_sha256:
        _same("rows", found.rows, corpus.source.full_rows, corpus, where)
        _same("rows in its slice", found.slice_rows, corpus.slice.rows, corpus, where)
        _same("a slice with SHA-256", found.slice_sha256, corpus.slice.sha256, corpus, where)
    elif is_slice(found, corpus):
        _same("rows", found.rows, corpus.slice.rows, corpus, where)
    else:
        raise _mismatch(found, corpus, where)
    if found.problem is not None:
        raise CorpusError(f"{found.problem}; the checksum is right, so the trace itself is unfit", where=where)


def _same(what: str, found: int | str, expected: int | str, corpus: Corpus, where: str) -> None:
    if found != expected:
        raise CorpusError(
            f"the checksum of the trace is right, but it has {_shown(what, found)}, where the corpus {corpus.name} "
            f"names {_shown('', expected)}",
            where=where,
            hint="correct the corpus file",
        )


def _shown(what: str, value: int | str) -> str:
    if isinstance(value, int):
        return f"{value:,} {what}".strip()
    return f"{what} {value}".strip()


def _mismatch(found: Scan, corpus: Corpus, where: str) -> CorpusError:
    source, wanted = corpus.source, corpus.slice
    expected = f"{source.full_sha256} ({source.full_rows:,} rows)"
    if wanted.sha256 != source.full_sha256:
        last = wanted.start + wanted.rows
        expected += f", or for its rows {wanted.start + 1:,} to {last:,} alone {wanted.sha256}"
    ending = "" if found.ends_with_newline or not found.rows else ", no newline at the end"
    message = f"SHA-256 is {found.sha256} ({found.rows:,} rows{ending}), but the corpus {corpus.name} names {expected}"
    if found.problem is not None:
        message += f"; {found.problem}"
    return CorpusError(message, where=where, hint=_remedy(found, corpus))


def _remedy(found: Scan, corpus: Corpus) -> str:
    if not isinstance(corpus.source, Upstream):
        kind = "lines" if isinstance(corpus.source, Inline) else "generator, seed and rows"
        return f"correct the {kind} or the checksums in the corpus file"
    if found.slice_sha256 == corpus.slice.sha256:
        return "the rows of the slice are in it, yet it is not the trace that the corpus names: give those rows alone"
    return f"a checksum cannot tell which line differs: get the file again, {origin(corpus.source)}"


def origin(source: Upstream) -> str:
    """Where the full trace comes from, in words."""
    return f"{source.path} of {source.repository} at commit {source.commit} (SHA-256 {source.full_sha256})"
