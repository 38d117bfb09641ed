from __future__ import annotations

import hashlib
import io
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from replay_parity.campaign.corpus_file import Corpus, Derived, base_of
from replay_parity.corpus.agentic import AgenticMooncake
from replay_parity.corpus.derived import agentic_v1
from replay_parity.corpus.generator import sessions_v1
from replay_parity.corpus.provide import provide
from replay_parity.corpus.totals import totals
from replay_parity.errors import CorpusError

CORPORA = Path(__file__).parents[3] / "configs" / "corpora"
TRACES = Path(__file__).parents[4] / "shared" / "data" / "mooncake"
SOURCE = list(sessions_v1(rows=700, seed=3))


def corpus_of(name: str) -> Corpus:
    return Corpus.model_validate(document_of(name))


def document_of(name: str) -> dict[str, Any]:
    document: dict[str, Any] = yaml.safe_load((CORPORA / f"{name}.yaml").read_text())
    return document


def made(rows: int, seed: int, source: list[bytes] = SOURCE) -> list[bytes]:
    return list(agentic_v1(source, rows=rows, seed=seed, block_size=512, source_sha256="ab" * 32, where="source"))


def requests_of(lines: list[bytes]) -> list[dict[str, Any]]:
    return [json.loads(line) for line in lines[1:]]


@given(st.integers(1, 700), st.integers(0, 2**63 - 1))
def test_any_rows_and_seed_make_a_whole_trace(rows: int, seed: int) -> None:
    lines = made(rows, seed)
    form = AgenticMooncake(512)
    form.header(lines[0])
    for line in lines[1:]:
        form.request(line)
    form.finish()
    requests = requests_of(lines)
    assert len(requests) == rows
    assert lines == made(rows, seed)
    kept = [(row["timestamp"], row["input_length"], row["output_length"]) for row in map(json.loads, SOURCE[:rows])]
    assert [(row["not_before_ms"], row["input_length"], row["output_length"]) for row in requests] == kept
    # The engine takes requests and plays in the order of their ids: it must be the order of the lines.
    ids = [row["request_id"] for row in requests]
    assert ids == sorted(ids)
    plays = [row["play_id"] for row in requests]
    assert plays == sorted(plays)


@given(st.integers(0, 2**63 - 1))
def test_a_play_is_one_agent_whose_sub_agents_are_all_joined(seed: int) -> None:
    requests = requests_of(made(300, seed))
    by_id = {row["request_id"]: row for row in requests}
    joined: Counter[str] = Counter()
    last: dict[str, str] = {}
    spawned: set[str] = set()
    for row in requests:
        relations = [edge["relation"] for edge in row["dependencies"]]
        first_of_play = row["request_id"].endswith("-r000")
        assert (not relations) == first_of_play
        assert all(by_id[edge["request_id"]]["play_id"] == row["play_id"] for edge in row["dependencies"])
        for edge in row["dependencies"]:
            if edge["relation"] == "join":
                session = by_id[edge["request_id"]]["session_id"]
                assert last[session] == edge["request_id"]
                joined[session] += 1
            elif edge["relation"] == "sequence":
                assert last[row["session_id"]] == edge["request_id"]
            else:
                assert row["session_id"] not in last
                spawned.add(row["session_id"])
        assert relations.count("sequence") + relations.count("spawn") <= 1
        last[row["session_id"]] = row["request_id"]
    assert dict(joined) == dict.fromkeys(spawned, 1)


def test_a_turn_repeats_the_prompt_of_the_turn_before_it() -> None:
    requests = requests_of(made(700, 1))
    by_id = {row["request_id"]: row for row in requests}
    turns = 0
    for row in requests:
        for edge in row["dependencies"]:
            if edge["relation"] != "sequence":
                continue
            before = by_id[edge["request_id"]]
            whole = min(before["input_length"], row["input_length"]) // 512
            assert row["hash_ids"][:whole] == before["hash_ids"][:whole]
            turns += whole > 0
    assert turns > 100


def test_another_seed_makes_another_trace_and_the_header_names_its_source() -> None:
    assert made(50, 1)[1:] != made(50, 2)[1:]
    assert json.loads(made(1, 1)[0])["source"] == {"format": "mooncake", "digest": "sha256:" + "ab" * 32}


def test_too_few_rows_are_refused_never_repeated() -> None:
    with pytest.raises(CorpusError, match="source: has 9 rows, but 10 are to be used"):
        made(10, 1, SOURCE[:9])


@pytest.mark.parametrize("time", ['"timestamp":0.5,', ""])
def test_a_row_without_a_whole_time_is_refused(time: str) -> None:
    row = f'{{{time}"input_length":5,"output_length":1,"hash_ids":[1]}}\n'.encode()
    with pytest.raises(CorpusError, match="source: line 2 has no timestamp in whole milliseconds"):
        made(2, 1, [SOURCE[0], row])


@pytest.mark.parametrize("name", ["agentic-conversation-5000", "agentic-sessions-400"])
def test_what_a_shipped_corpus_is_derived_from_is_shipped_too(name: str) -> None:
    corpus = corpus_of(name)
    assert isinstance(corpus.source, Derived)
    base, shipped = base_of(corpus, corpus.source), corpus_of(corpus.source.derived_from.name)
    assert base.model_copy(update={"title": shipped.title}) == shipped


def edges(path: Path) -> Counter[tuple[str, str]]:
    rows = requests_of(path.read_bytes().splitlines(keepends=True))
    return Counter((edge["relation"], edge["trigger"]) for row in rows for edge in row["dependencies"])


def test_the_small_corpus_needs_nothing(cache: Path) -> None:
    found = provide(corpus_of("agentic-sessions-400"), folders=[], cache=cache)
    assert totals(found).requests == 400
    assert totals(found).sessions == 159
    assert edges(found.path) == {
        ("sequence", "completion"): 241,
        ("spawn", "completion"): 51,
        ("spawn", "dispatch"): 41,
        ("join", "completion"): 92,
    }


@pytest.mark.skipif(not TRACES.is_dir(), reason="the conversation trace is not here")
def test_the_conversation_corpus_has_the_pinned_bytes_and_the_tokens_of_its_trace(cache: Path) -> None:
    found = provide(corpus_of("agentic-conversation-5000"), folders=[TRACES], cache=cache)
    sums = totals(found)
    # The totals of mooncake-conversation-5000.
    assert (sums.requests, sums.input_tokens, sums.requested_output_tokens) == (5_000, 65_330_959, 1_730_337)
    assert edges(found.path) == {
        ("sequence", "completion"): 3_079,
        ("spawn", "completion"): 647,
        ("spawn", "dispatch"): 629,
        ("join", "completion"): 1_276,
    }


def test_without_its_trace_a_derived_corpus_says_what_is_missing(cache: Path) -> None:
    with pytest.raises(CorpusError, match=r"corpus mooncake-conversation-5000: there is no .*corpus fetch"):
        provide(corpus_of("agentic-conversation-5000"), folders=[], cache=cache)


def test_once_made_it_needs_its_trace_no_more(cache: Path, folder: Path) -> None:
    data = b"".join(SOURCE)
    checksum = hashlib.sha256(data).hexdigest()
    derived = b"".join(made(100, 5, SOURCE)).replace(b"ab" * 32, checksum.encode())
    document = document_of("agentic-conversation-5000")
    base = document["source"]["derived_from"]
    base["source"] |= {"full_rows": 700, "full_sha256": checksum}
    base["slice"] = {"start": 0, "rows": 700, "sha256": checksum}
    document["source"] |= {"seed": 5, "full_rows": 100, "full_sha256": hashlib.sha256(derived).hexdigest()}
    document["slice"] = {"start": 0, "rows": 100, "sha256": document["source"]["full_sha256"]}
    trace = folder / "conversation_trace.jsonl"
    trace.write_bytes(data)
    corpus = Corpus.model_validate(document)
    assert provide(corpus, folders=[folder], cache=cache).path.read_bytes() == derived
    trace.unlink()
    for path in (cache / "corpora" / checksum).iterdir():
        path.unlink()
    assert provide(corpus, folders=[], cache=cache).path.read_bytes() == derived


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"format": "mooncake"}, "must have 'format' agentic_mooncake"),
        ({"slice": {"rows": 399, "sha256": "0" * 64}}, "must have its slice be the whole trace, as a play must not be"),
    ],
)
def test_a_derived_corpus_that_cannot_be(change: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ValidationError, match=sentence):
        Corpus.model_validate(document_of("agentic-sessions-400") | change)


def test_more_rows_than_there_are_to_derive_from() -> None:
    document = document_of("agentic-sessions-400")
    document["source"]["derived_from"]["slice"] |= {"rows": 399, "sha256": "0" * 64}
    with pytest.raises(ValidationError, match=r"'source.full_rows' of at most 399"):
        Corpus.model_validate(document)


def test_the_trace_is_the_lines_of_a_file() -> None:
    data = b"".join(made(60, 9))
    assert list(io.BytesIO(data)) == made(60, 9)
