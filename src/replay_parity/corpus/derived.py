"""`agentic-v1`: an agentic Mooncake trace made from the rows of a Mooncake slice, one request a row.

Contiguous rows become a play: one agent that works in turns, hands work to sub-agents and waits for their answers.
Every request keeps the time, the lengths and the number of blocks of its row; what is added is the graph:

- `sequence`: a turn waits for the turn before it in its session. Its prompt begins with the whole blocks of that
  turn's prompt, as a conversation does, so the prefix is there to be reused.
- `spawn`: a sub-agent opens a session of its own, at the dispatch or at the completion of the agent's last turn.
- `join`: a turn of the agent that also waits for the last turn of every sub-agent at work.

A play is never cut: it is laid out for the rows that are left. A play whose last request could not join a sub-agent
opens none, so nobody's answer is lost. Draws come from tables in integer arithmetic, and the bytes depend on the rows,
their number and `seed` alone; whoever changes a table or the order of two draws makes another trace, which needs
another name.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from replay_parity.corpus import fields
from replay_parity.corpus.splitmix import Band, SplitMix64
from replay_parity.errors import CorpusError

_PLAY_REQUESTS: tuple[Band, ...] = ((10, 1, 1), (20, 2, 3), (40, 4, 8), (22, 9, 16), (8, 17, 40))
_MOST_AGENTS = 4

# Milliseconds between what a request waits for and its start: a tool runs, a sub-agent is set up, answers are merged.
_TOOL: tuple[Band, ...] = ((40, 10, 200), (35, 200, 1_500), (20, 1_500, 8_000), (5, 8_000, 30_000))
_SETUP: tuple[Band, ...] = ((70, 0, 20), (30, 20, 200))
_MERGE: tuple[Band, ...] = ((60, 0, 50), (40, 50, 500))

_AGENT, _SPAWN, _SUB_AGENT, _JOIN = range(4)
_MOVES = (30, 30, 28, 12)


@dataclass(frozen=True)
class _Row:
    """What a request keeps of its row; `blocks` cover the input exactly."""

    at_ms: int
    input_length: int
    output_length: int
    blocks: list[int]


@dataclass
class _Session:
    """A session at its last turn: the id of that request, and the whole blocks of its prompt."""

    name: str
    last: str = ""
    prefix: list[int] = field(default_factory=list)


@dataclass(frozen=True)
class _Edge:
    """One dependency of a request."""

    request: str
    trigger: str
    delay_ms: int
    relation: str

    def text(self) -> str:
        return (
            f'{{"request_id":"{self.request}","trigger":"{self.trigger}","delay_ms":{self.delay_ms},'
            f'"relation":"{self.relation}"}}'
        )


def agentic_v1(
    lines: Iterable[bytes], *, rows: int, seed: int, block_size: int, source_sha256: str, where: str
) -> Iterator[bytes]:
    """The header, then `rows` requests, each with its newline; memory holds one play.

    `lines` are those of a verified Mooncake slice with `source_sha256`. Raises CorpusError when there are fewer than
    `rows`, or when one has no time in whole milliseconds: `where` names the slice.
    """
    yield (
        f'{{"schema":"dynamo.agentic_mooncake","version":2,"block_size":{block_size},"hash_id_scope":"local",'
        f'"source":{{"format":"mooncake","digest":"sha256:{source_sha256}"}}}}\n'
    ).encode("ascii")
    random = SplitMix64(seed)
    read = _read(lines, block_size, where)
    left, number = rows, 0
    while left:
        size = min(random.draw(_PLAY_REQUESTS), left)
        taken = list(islice(read, size))
        if len(taken) < size:
            raise CorpusError(f"has {rows - left + len(taken):,} rows, but {rows:,} are to be used", where=where)
        yield from _Play(random, f"p{number:06d}", block_size).requests(taken)
        left -= size
        number += 1


class _Play:
    """One agent and its sub-agents."""

    def __init__(self, random: SplitMix64, name: str, block_size: int) -> None:
        self._random = random
        self._name = name
        self._block_size = block_size
        self._agent = _Session(f"{name}-agent")
        self._at_work: list[_Session] = []
        self._opened = 0

    def requests(self, rows: list[_Row]) -> Iterator[bytes]:
        """One request a row, the first without a dependency."""
        for index, row in enumerate(rows):
            left = len(rows) - index - 1
            session, edges = self._next(left) if index else (self._agent, [])
            blocks = self._blocks(session, row)
            request = f"{self._name}-r{index:03d}"
            yield self._line(request, session, row, blocks, edges)
            session.last = request
            session.prefix = blocks[: row.input_length // self._block_size]

    def _next(self, left: int) -> tuple[_Session, list[_Edge]]:
        """The session of the next request and what it waits for; `left` requests come after it."""
        move = self._move(left)
        if move == _SPAWN:
            self._opened += 1
            session = _Session(f"{self._name}-sub{self._opened:02d}")
            self._at_work.append(session)
            trigger = "dispatch" if self._random.chance(1, 2) else "completion"
            return session, [_Edge(self._agent.last, trigger, self._random.draw(_SETUP), "spawn")]
        if move == _SUB_AGENT:
            session = self._at_work[self._random.below(len(self._at_work))]
            return session, [_Edge(session.last, "completion", self._random.draw(_TOOL), "sequence")]
        edges = [_Edge(self._agent.last, "completion", self._random.draw(_TOOL), "sequence")]
        if move == _JOIN:
            edges += [_Edge(sub.last, "completion", self._random.draw(_MERGE), "join") for sub in self._at_work]
            self._at_work = []
        return self._agent, edges

    def _move(self, left: int) -> int:
        if not left:
            return _JOIN if self._at_work else _AGENT
        weights = list(_MOVES)
        if len(self._at_work) >= _MOST_AGENTS:
            weights[_SPAWN] = 0
        if not self._at_work:
            weights[_SUB_AGENT] = weights[_JOIN] = 0
        return self._random.index(weights)

    def _blocks(self, session: _Session, row: _Row) -> list[int]:
        """The row's blocks, those at the front replaced by the session's prompt as far as both are whole blocks."""
        kept = session.prefix[: row.input_length // self._block_size]
        return kept + row.blocks[len(kept) :]

    def _line(self, request: str, session: _Session, row: _Row, blocks: list[int], edges: list[_Edge]) -> bytes:
        # Written by hand: the bytes must not depend on the habits of a JSON library.
        hash_ids = ",".join(map(str, blocks))
        dependencies = ",".join(edge.text() for edge in edges)
        return (
            f'{{"request_id":"{request}","play_id":"{self._name}","session_id":"{session.name}","model":"agent",'
            f'"input_length":{row.input_length},"output_length":{row.output_length},"hash_ids":[{hash_ids}],'
            f'"not_before_ms":{row.at_ms},"dependencies":[{dependencies}]}}\n'
        ).encode("ascii")


def _read(lines: Iterable[bytes], block_size: int, where: str) -> Iterator[_Row]:
    for number, line in enumerate(lines, start=1):
        try:
            row = fields.json_object(line)
            input_length = fields.length(row, "input_length", smallest=1)
            needed = -(-input_length // block_size)
            yield _Row(
                at_ms=_whole_milliseconds(row),
                input_length=input_length,
                output_length=fields.length(row, "output_length", smallest=0),
                blocks=fields.hash_ids(row)[:needed],
            )
        except fields.RowError as error:
            raise CorpusError(f"line {number} {error}", where=where) from None


def _whole_milliseconds(row: dict[str, Any]) -> int:
    at_ms = fields.milliseconds(row, "timestamp")
    if at_ms is None or at_ms != int(at_ms):
        raise fields.RowError("has no timestamp in whole milliseconds, which an agentic trace is made from")
    return int(at_ms)
