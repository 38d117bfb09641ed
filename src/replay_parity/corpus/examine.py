"""A trace looked at line by line, with every distinct problem told, not only the first."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from replay_parity.campaign.corpus_file import Corpus
from replay_parity.corpus.facts import Facing, Facts
from replay_parity.corpus.verify import Scan, form_of, is_slice, judge, scan
from replay_parity.errors import BadInputError

_MOST_PROBLEMS = 100
# Two lines have the same problem when their sentences differ in numbers and quoted names only.
_OWN = re.compile(r"'[^']*'|\d+(?:\.\d+)?(?:e[+-]?\d+)?")


@dataclass
class Problem:
    """A kind of problem: the first line that has it, its sentence there, and how many lines have it."""

    line: int
    sentence: str
    lines: int = 1

    def __str__(self) -> str:
        """One sentence."""
        more = f" (and {self.lines - 1:,} more lines like it)" if self.lines > 1 else ""
        return f"line {self.line} {self.sentence}{more}"


class Problems:
    """Distinct problems in the order of their first lines; a bounded number of kinds, so that memory is too."""

    def __init__(self) -> None:
        self._kinds: dict[str, Problem] = {}
        self.untold = 0

    def add(self, line: int, sentence: str) -> None:
        """Keep a problem."""
        kind = _OWN.sub("#", sentence)
        known = self._kinds.get(kind)
        if known is not None:
            known.lines += 1
        elif len(self._kinds) < _MOST_PROBLEMS:
            self._kinds[kind] = Problem(line, sentence)
        else:
            self.untold += 1

    @property
    def found(self) -> tuple[Problem, ...]:
        """All kinds."""
        return tuple(self._kinds.values())


@dataclass(frozen=True)
class Examined:
    """What was found: `error` is None when the trace is proven; `facts` are those of the slice."""

    scan: Scan
    problems: tuple[Problem, ...]
    untold: int
    error: BadInputError | None
    facts: Facts | None


def examine(corpus: Corpus, lines: Callable[[], Iterable[bytes]], *, where: str) -> Examined:
    """Read a trace, whole or as its slice, to its end. Raises CorpusError only when it cannot be read to its end."""
    found = _examined(corpus, lines, start=corpus.slice.start, where=where)
    if corpus.slice.start and is_slice(found.scan, corpus):
        return _examined(corpus, lines, start=0, where=where)
    return found


def _examined(corpus: Corpus, lines: Callable[[], Iterable[bytes]], *, start: int, where: str) -> Examined:
    problems, facing = Problems(), Facing()
    rows = corpus.slice.rows
    found = scan(lines(), form_of(corpus), start=start, rows=rows, tally=facing.add, told=problems.add)
    error: BadInputError | None = None
    try:
        judge(found, corpus, where=where)
    except BadInputError as refused:
        error = refused
    return Examined(found, problems.found, problems.untold, error, facing.facts())
