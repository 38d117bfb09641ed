from __future__ import annotations

import ast
import hashlib
import inspect
import itertools
import json
from collections import Counter
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from replay_parity.campaign.corpus_file import Corpus, Generator
from replay_parity.corpus import generator, splitmix
from replay_parity.corpus.generator import BLOCK_SIZE, sessions_v1

EMBEDDED = Path(__file__).parents[3] / "configs" / "corpora" / "embedded-sessions-5000.yaml"
SYSTEM_BLOCKS = 49


def parse(lines: list[bytes]) -> list[dict[str, Any]]:
    return [json.loads(line) for line in lines]


def turns_by_session(rows: list[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    turns: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        turns.setdefault(row["session_id"], []).append(row)
    return turns


@pytest.fixture(scope="module")
def embedded() -> list[dict[str, Any]]:
    return parse(list(sessions_v1(rows=5_000, seed=1)))


def test_the_pinned_checksum_of_the_embedded_corpus() -> None:
    corpus = Corpus.model_validate(yaml.safe_load(EMBEDDED.read_text()))
    source = corpus.source
    assert isinstance(source, Generator)
    data = b"".join(sessions_v1(rows=source.full_rows, seed=source.seed))
    assert hashlib.sha256(data).hexdigest() == source.full_sha256 == corpus.slice.sha256
    assert corpus.block_size == BLOCK_SIZE
    assert len(data) < 1_500_000


@pytest.mark.parametrize("module", [generator, splitmix])
def test_arithmetic_is_integer_only(module: ModuleType) -> None:
    tree = ast.parse(inspect.getsource(module))
    imported = {
        name
        for node in ast.walk(tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
        for name in ([node.module] if isinstance(node, ast.ImportFrom) else [alias.name for alias in node.names])
    }
    allowed = {"__future__", "heapq", "collections.abc", "dataclasses", "replay_parity.corpus.splitmix"}
    assert imported <= allowed
    for node in ast.walk(tree):
        assert not isinstance(node, ast.Div | ast.Pow)
        assert not (isinstance(node, ast.Constant) and isinstance(node.value, float))
        assert not (isinstance(node, ast.Name) and node.id in {"float", "round", "hash", "set"})


def check_structure(rows: list[dict[str, Any]]) -> None:
    """Timestamps never go back, blocks cover the input exactly, every turn extends the one before it."""
    for row in rows:
        assert list(row) == ["timestamp", "input_length", "output_length", "hash_ids", "session_id"]
        assert len(row["hash_ids"]) == -(-row["input_length"] // BLOCK_SIZE)
        assert len(set(row["hash_ids"])) == len(row["hash_ids"])
        assert row["output_length"] >= 2
    assert all(one["timestamp"] <= other["timestamp"] for one, other in itertools.pairwise(rows))
    for turns in turns_by_session(rows).values():
        for one, other in itertools.pairwise(turns):
            assert other["input_length"] > one["input_length"] + one["output_length"]
            assert other["hash_ids"][: len(one["hash_ids"])] == one["hash_ids"]
            assert other["timestamp"] >= one["timestamp"] + 2_000


@given(st.integers(0, 2**63 - 1), st.integers(1, 120))
@settings(deadline=None, max_examples=40)
def test_structure_for_any_seed(seed: int, rows: int) -> None:
    lines = list(sessions_v1(rows=rows, seed=seed))
    assert len(lines) == rows
    assert all(line.endswith(b"\n") and line.count(b"\n") == 1 for line in lines)
    check_structure(parse(lines))


def test_structure_of_the_embedded_trace(embedded: list[dict[str, Any]]) -> None:
    check_structure(embedded)


@given(st.integers(0, 2**63 - 1), st.integers(0, 60), st.integers(0, 60))
@settings(deadline=None, max_examples=20)
def test_a_longer_trace_begins_with_the_shorter_one(seed: int, rows: int, more: int) -> None:
    longer = list(sessions_v1(rows=rows + more, seed=seed))
    assert longer[:rows] == list(sessions_v1(rows=rows, seed=seed))


def test_another_seed_is_another_trace() -> None:
    assert list(sessions_v1(rows=20, seed=1)) != list(sessions_v1(rows=20, seed=2))


def test_it_streams() -> None:
    assert len(list(itertools.islice(sessions_v1(rows=10**15, seed=1), 3))) == 3


def test_blocks_are_numbered_in_the_order_of_their_use(embedded: list[dict[str, Any]]) -> None:
    own = [block for row in embedded for block in row["hash_ids"] if block >= SYSTEM_BLOCKS]
    first_uses = list(dict.fromkeys(own))
    assert first_uses == list(range(SYSTEM_BLOCKS, SYSTEM_BLOCKS + len(first_uses)))


def test_sessions_share_the_prompts_of_popular_tenants(embedded: list[dict[str, Any]]) -> None:
    openings = [turns[0]["hash_ids"][0] for turns in turns_by_session(embedded).values()]
    tenants = Counter(openings)
    assert len(tenants) == 12
    assert all(block < SYSTEM_BLOCKS for block in tenants)
    (_, most), *_, (_, least) = tenants.most_common()
    assert 0.25 < most / len(openings) < 0.35
    assert least >= 10


def test_share_of_blocks_that_were_seen_before(embedded: list[dict[str, Any]]) -> None:
    seen: set[int] = set()
    blocks = repeated = 0
    for row in embedded:
        blocks += len(row["hash_ids"])
        repeated += sum(block in seen for block in row["hash_ids"])
        seen.update(row["hash_ids"])
    assert 0.65 < repeated / blocks < 0.8


def test_many_sessions_have_several_turns(embedded: list[dict[str, Any]]) -> None:
    turns = [len(rows) for rows in turns_by_session(embedded).values()]
    assert 1_500 < len(turns) < 2_500
    assert sum(count > 1 for count in turns) > 900
    assert max(turns) >= 10


def test_lengths_have_heavy_tails(embedded: list[dict[str, Any]]) -> None:
    for field, times in (("input_length", 5), ("output_length", 12)):
        values = sorted(row[field] for row in embedded)
        assert values[-50] > times * values[len(values) // 2]


def test_sessions_come_in_bursts(embedded: list[dict[str, Any]]) -> None:
    starts = [turns[0]["timestamp"] for turns in turns_by_session(embedded).values()]
    per_second = Counter(start // 1_000 for start in starts)
    mean = len(starts) / (starts[-1] / 1_000)
    assert max(per_second.values()) > 8 * mean
