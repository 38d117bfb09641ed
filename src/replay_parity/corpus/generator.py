"""`sessions-v1`: a Mooncake-format trace of our own, for machines without network and without trace files.

It imitates a chat service with several tenants. Every session opens with the system prompt of its tenant, whose whole
blocks all sessions of that tenant share; every further turn repeats the former input and the former output and adds
a message. Sessions come in calm times and in bursts; lengths and pauses have heavy tails. All draws come from tables
in integer arithmetic, so the bytes depend on `rows` and `seed` alone, and a longer trace begins with the shorter one.

The checksum of the default trace is pinned in `configs/corpora/embedded-sessions-5000.yaml`: whoever changes a table
or the order of two draws makes another trace, which needs another name.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from dataclasses import dataclass

from replay_parity.corpus.splitmix import Band, SplitMix64

BLOCK_SIZE = 512

# Popularity of a tenant and the whole blocks of its system prompt.
_TENANTS: tuple[tuple[int, int], ...] = (
    (30, 4),
    (20, 2),
    (13, 6),
    (9, 1),
    (7, 3),
    (5, 8),
    (4, 2),
    (3, 5),
    (3, 1),
    (2, 12),
    (2, 3),
    (2, 2),
)
_SYSTEM_BLOCKS = sum(blocks for _, blocks in _TENANTS)

# Tokens.
_OPENING: tuple[Band, ...] = (
    (30, 40, 400),
    (30, 400, 1_500),
    (20, 1_500, 4_000),
    (12, 4_000, 8_000),
    (6, 8_000, 16_000),
    (2, 16_000, 30_000),
)
_FOLLOW_UP: tuple[Band, ...] = ((50, 10, 120), (30, 120, 600), (15, 600, 2_500), (5, 2_500, 8_000))
_OUTPUT: tuple[Band, ...] = ((25, 2, 40), (40, 40, 200), (25, 200, 500), (8, 500, 1_200), (2, 1_200, 2_400))
_LONGEST_INPUT = 32_000

# Milliseconds.
_CALM_GAP: tuple[Band, ...] = (
    (35, 0, 400),
    (30, 400, 1_200),
    (23, 1_200, 2_600),
    (10, 2_600, 5_000),
    (2, 5_000, 12_000),
)
_BURST_GAP: tuple[Band, ...] = ((70, 0, 60), (25, 60, 200), (5, 200, 600))
_PAUSE: tuple[Band, ...] = ((40, 2_000, 10_000), (40, 10_000, 40_000), (20, 40_000, 120_000))

_BURST_CHANCE = (1, 40)
_BURST_SESSIONS = (8, 40)
_NEXT_TURN_CHANCE = (5, 8)


@dataclass
class _Session:
    """A session whose next turn waits: input and output tokens of that turn, and the blocks of its input."""

    number: int
    blocks: list[int]
    input_length: int
    output_length: int


class _Arrivals:
    """Start times of sessions: a calm stream, broken by bursts of a few dozen sessions."""

    def __init__(self, random: SplitMix64) -> None:
        self._random = random
        self._burst_left = 0
        self.at_ms = 0

    def advance(self) -> None:
        """Move to the next start."""
        if self._burst_left > 0:
            self._burst_left -= 1
        elif self._random.chance(*_BURST_CHANCE):
            self._burst_left = self._random.between(*_BURST_SESSIONS)
        self.at_ms += self._random.draw(_BURST_GAP if self._burst_left > 0 else _CALM_GAP)


class _Blocks:
    """Numbers of trace blocks: the tenants' system prompts come first, then every new block in the order of its use."""

    def __init__(self) -> None:
        self._next = _SYSTEM_BLOCKS

    def system(self, tenant: int) -> list[int]:
        """The blocks of a tenant's system prompt."""
        first = sum(blocks for _, blocks in _TENANTS[:tenant])
        return list(range(first, first + _TENANTS[tenant][1]))

    def extend(self, blocks: list[int], input_length: int) -> None:
        """Append new blocks until `input_length` tokens are covered."""
        while len(blocks) * BLOCK_SIZE < input_length:
            blocks.append(self._next)
            self._next += 1


def sessions_v1(*, rows: int, seed: int) -> Iterator[bytes]:
    """Lines in the order of their timestamps, each with its newline; memory holds the open sessions only."""
    random = SplitMix64(seed)
    arrivals = _Arrivals(random)
    blocks = _Blocks()
    waiting: list[tuple[int, int, _Session]] = []
    opened = 0
    for _ in range(rows):
        if not waiting or arrivals.at_ms <= waiting[0][0]:
            at_ms, session = arrivals.at_ms, _open(random, blocks, opened)
            opened += 1
            arrivals.advance()
        else:
            at_ms, _, session = heapq.heappop(waiting)
            blocks.extend(session.blocks, session.input_length)
        yield _line(at_ms, session)
        pause_ms = _next_turn(random, session)
        if pause_ms is not None:
            heapq.heappush(waiting, (at_ms + pause_ms, session.number, session))


def _open(random: SplitMix64, blocks: _Blocks, number: int) -> _Session:
    tenant = random.index([weight for weight, _ in _TENANTS])
    own = blocks.system(tenant)
    input_length = len(own) * BLOCK_SIZE + random.draw(_OPENING)
    blocks.extend(own, input_length)
    return _Session(number=number, blocks=own, input_length=input_length, output_length=random.draw(_OUTPUT))


def _next_turn(random: SplitMix64, session: _Session) -> int | None:
    """Turn `session` into its next turn and return the pause before it in milliseconds, or None when it ends."""
    if not random.chance(*_NEXT_TURN_CHANCE):
        return None
    input_length = session.input_length + session.output_length + random.draw(_FOLLOW_UP)
    if input_length > _LONGEST_INPUT:
        return None
    session.input_length = input_length
    session.output_length = random.draw(_OUTPUT)
    return random.draw(_PAUSE)


def _line(at_ms: int, session: _Session) -> bytes:
    # Written by hand: the bytes must not depend on the habits of a JSON library.
    hash_ids = ",".join(map(str, session.blocks))
    return (
        f'{{"timestamp":{at_ms},"input_length":{session.input_length},"output_length":{session.output_length},'
        f'"hash_ids":[{hash_ids}],"session_id":"s{session.number}"}}\n'
    ).encode("ascii")
