"""The focused difference of a real pair of reports, beside DeepDiff, jsonpatch and the two parses that it needs anyway.

The pair is two canonical records of one row from two revisions, made by the product itself (`engines`); other files
are measured with `python -m benchmarks.difference --left LEFT --right RIGHT`.
"""

from __future__ import annotations

import argparse
import gc
import statistics
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import jsonpatch
import orjson
from deepdiff import DeepDiff

from benchmarks.engines import differing_pair
from benchmarks.model import Ratio, ratio_of
from benchmarks.table import table
from replay_parity.parity.differences import compare

_ROUNDS = 7
_BOUND = 6.0
_COPIES = 20
# Linear is 1; the rest is for caches that 5,000 requests fit into and 100,000 do not, and for a shared machine.
_LINEAR_BOUND = 2.0


def run() -> list[Ratio]:
    """Measure the pair that the product made."""
    return measure(*differing_pair())


def measure(one: bytes, other: bytes) -> list[Ratio]:
    """Measure a pair of canonical records."""
    parses, ours = _parses_and_ours(one, other)
    documents = (orjson.loads(one), orjson.loads(other))
    count = compare(*documents).count
    name = f"{len(one) / 1e6:.1f} MB, {count:,} differences"
    return [
        ratio_of(f"focused difference ({name}) over two orjson parses", ours, parses, bound=_BOUND),
        _linearity(*documents),
        ratio_of("jsonpatch over two orjson parses", _seconds(lambda: jsonpatch.make_patch(*documents)), parses),
        ratio_of("DeepDiff over two orjson parses", _seconds(lambda: DeepDiff(*documents)), parses),
    ]


def _parses_and_ours(one: bytes, other: bytes) -> tuple[float, float]:
    """Medians of rounds that take turns, so that a slow moment of the machine meets both."""
    parses: list[float] = []
    ours: list[float] = []
    for _ in range(_ROUNDS):
        parses.append(_seconds(lambda: (orjson.loads(one), orjson.loads(other))))
        ours.append(_seconds(partial(compare, orjson.loads(one), orjson.loads(other))))
    return statistics.median(parses), statistics.median(ours)


def _linearity(left: dict[str, Any], right: dict[str, Any]) -> Ratio:
    """Time for each request when there are many times as many of them, over the time for each of the pair's."""
    few = min(_seconds(partial(compare, left, right)) for _ in range(_ROUNDS))
    many = partial(compare, _repeated(left), _repeated(right))
    taken = min(_seconds(many) for _ in range(3))
    requests = len(left["per_request"])
    what = f"focused difference of {_COPIES * requests:,} requests over {_COPIES} x {requests:,}"
    return ratio_of(what, taken, _COPIES * few, bound=_LINEAR_BOUND)


def _repeated(document: dict[str, Any]) -> dict[str, Any]:
    requests: list[dict[str, Any]] = []
    line = orjson.dumps(document["per_request"])
    for _ in range(_COPIES):
        for request in orjson.loads(line):
            requests.append(request | {"uuid": f"00000000-0000-0000-0000-{len(requests) + 1:012x}"})
    return document | {"per_request": requests}


def _seconds(work: Callable[[], object]) -> float:
    gc.collect()
    start = time.perf_counter()
    result = work()
    seconds = time.perf_counter() - start
    # What was made is freed off the clock.
    del result
    return seconds


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--left", type=Path, required=True)
    parser.add_argument("--right", type=Path, required=True)
    arguments = parser.parse_args()
    ratios = measure(arguments.left.read_bytes(), arguments.right.read_bytes())
    print("\n".join(table(ratios)))
    sys.exit(not all(ratio.met for ratio in ratios))
