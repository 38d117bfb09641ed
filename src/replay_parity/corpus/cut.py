"""A contiguous range of whole lines of any trace, written as a file of its own, byte for byte."""

from __future__ import annotations

import filecmp
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from replay_parity.corpus.facts import Facing, Facts
from replay_parity.corpus.slice import staged_file
from replay_parity.corpus.verify import Scan, make_form, scan
from replay_parity.errors import BadInputError, CorpusError


@dataclass(frozen=True)
class Wanted:
    """Which requests to take of a trace: the first from zero, how many, and how to read them."""

    start: int
    rows: int
    format: str
    block_size: int


@dataclass(frozen=True)
class Cut:
    """A slice that was written, and what its trace is."""

    wanted: Wanted
    scan: Scan
    facts: Facts | None


def cut(lines: Callable[[], Iterable[bytes]], wanted: Wanted, *, output: Path, where: str) -> Cut:
    """Write the slice to `output`, whole or not at all.

    Raises CorpusError when the trace has fewer rows than are asked for or a broken one among them, BadInputError when
    `output` is there with other bytes or is no regular file. A file with the same bytes is left as it is.
    """
    form = make_form(wanted.format, wanted.block_size, start=wanted.start, where=where)
    facing = Facing()
    with staged_file(output) as staged:
        found = scan(lines(), form, start=wanted.start, rows=wanted.rows, sink=staged.write, tally=facing.add)
        _judge(found, wanted, where)
        if output.is_symlink() or output.exists():
            _refuse_other(staged.flushed(), output)
        else:
            staged.keep()
    return Cut(wanted, found, facing.facts())


def _judge(found: Scan, wanted: Wanted, where: str) -> None:
    if found.slice_rows < wanted.rows:
        raise CorpusError(
            f"has {found.rows:,} rows, so there are {found.slice_rows:,} from row {wanted.start} on, "
            f"but {wanted.rows:,} are asked for; rows are never repeated to make up for it",
            where=where,
            hint="ask for fewer with --rows, or start earlier",
        )
    if found.problem is not None:
        raise CorpusError(found.problem, where=where, hint="such a row cannot be replayed; nothing was written")


def _refuse_other(made: Path, output: Path) -> None:
    if output.is_symlink():
        raise BadInputError("is a symbolic link; nothing is written through one", where=str(output))
    if not output.is_file() or not filecmp.cmp(made, output, shallow=False):
        raise BadInputError(
            "is there already and is not this slice", where=str(output), hint="remove it or choose another --output"
        )
