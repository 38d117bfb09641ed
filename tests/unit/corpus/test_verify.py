from __future__ import annotations

import hashlib
import io
import json
import tracemalloc
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from replay_parity.campaign.corpus_file import Corpus
from replay_parity.corpus.agentic import AgenticMooncake
from replay_parity.corpus.formats import Request, TraceFormat
from replay_parity.corpus.lines import trace_lines
from replay_parity.corpus.mooncake import Mooncake
from replay_parity.corpus.verify import Scan, form_of, judge, scan
from replay_parity.errors import ConfigurationError, CorpusError

MakeCorpus = Callable[..., Corpus]
MakeTrace = Callable[..., bytes]


class AnyLine:
    """A format without rules."""

    def __init__(self, header_lines: int) -> None:
        self.header_lines = header_lines

    def header(self, line: bytes) -> None:
        assert line.count(b"\n") <= 1

    def request(self, line: bytes) -> Request:
        return Request(len(line), 1, None)

    def finish(self) -> None:
        pass


def passes(data: bytes, form: TraceFormat, start: int, rows: int) -> tuple[Scan, bytes, int]:
    kept: list[bytes] = []
    requests: list[Request] = []
    lines = trace_lines(io.BytesIO(data), where="t")
    found = scan(lines, form, start=start, rows=rows, sink=kept.append, tally=requests.append)
    return found, b"".join(kept), len(requests)


def look(data: bytes, corpus: Corpus) -> Scan:
    return passes(data, form_of(corpus), corpus.slice.start, corpus.slice.rows)[0]


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


files = st.tuples(
    st.lists(st.binary(max_size=5).map(lambda line: line.replace(b"\n", b"")), max_size=12), st.booleans()
)


@given(files, st.integers(0, 14), st.integers(1, 14), st.integers(0, 1))
def test_the_slice_is_a_byte_range_of_whole_lines(
    file: tuple[list[bytes], bool], start: int, rows: int, header: int
) -> None:
    bodies, newline = file
    data = b"\n".join(bodies) + (b"\n" if newline and bodies else b"")
    naive = [line + b"\n" for line in data.split(b"\n")]
    naive[-1] = naive[-1][:-1]
    naive = [line for line in naive if line]
    first = 0 if header else start
    expected = b"".join(naive[first : first + rows + header])
    found, kept, _ = passes(data, AnyLine(header), first, rows)
    assert kept == expected
    assert kept in data
    assert (found.sha256, found.slice_sha256) == (digest(data), digest(expected))
    assert found.rows == max(len(naive) - header, 0)
    assert found.slice_rows == max(len(naive[first : first + rows + header]) - header, 0)
    assert found.ends_with_newline == data.endswith(b"\n")


def test_a_good_trace_and_its_slice(make_trace: MakeTrace, make_corpus: MakeCorpus) -> None:
    trace = make_trace(6)
    corpus = make_corpus(trace, start=2, rows=3)
    found, kept, requests = passes(trace, Mooncake(512), 2, 3)
    judge(found, corpus, where="t")
    assert requests == 3
    alone = scan([kept], Mooncake(512), start=0, rows=3)
    judge(scan(kept.splitlines(keepends=True), Mooncake(512), start=0, rows=3), corpus, where="t")
    with pytest.raises(CorpusError, match="it has 1 rows, where the corpus small names 3"):
        judge(alone, corpus, where="t")


def broken(data: bytes, old: bytes, new: bytes) -> bytes:
    assert data.count(old) == 1
    return data.replace(old, new)


ROW_2 = b'{"timestamp": 1,'

# What happens to a trace in the wild -> what the sentence must say, beside the two checksums.
DAMAGES: dict[str, tuple[Callable[[bytes], bytes], str]] = {
    "edited byte": (lambda data: broken(data, ROW_2, b'{"timestamp": 2,'), "which line differs"),
    "line ends converted": (lambda data: data.replace(b"\n", b"\r\n"), "line 1 holds a carriage return"),
    "blank line": (lambda data: broken(data, ROW_2, b"\n" + ROW_2), "line 2 is blank"),
    "byte order mark": (lambda data: b"\xef\xbb\xbf" + data, "line 1 starts with a byte order mark"),
    "NUL bytes": (lambda data: broken(data, ROW_2, b"\0" * len(ROW_2)), "line 2 holds a NUL byte"),
    "UTF-16": (lambda data: data.decode().encode("utf-16"), "line 1 starts with a byte order mark"),
    "no newline at the end": (lambda data: data[:-1], "6 rows, no newline at the end"),
    "cut off": (lambda data: data[:-20], "line 6 is cut off"),
    "line lost": (lambda data: data[data.index(b"\n") + 1 :], "(5 rows)"),
    "line added": (lambda data: data + data[: data.index(b"\n") + 1], "give those rows alone"),
    "lines swapped": (lambda data: b"".join(reversed(data.splitlines(keepends=True))), "(6 rows)"),
    "no JSON": (lambda data: broken(data, ROW_2, b'{"timestamp": 01,'), "line 2 is not JSON"),
    "another type": (lambda data: broken(data, ROW_2, b'{"timestamp": "1",'), "line 2 has a bad timestamp"),
    "a web page": (lambda _: b"<html>404</html>\n", "line 1 is not JSON"),
    "empty": (lambda _: b"", "(0 rows)"),
}


@pytest.mark.parametrize("name", DAMAGES)
def test_every_damage_has_a_clear_sentence(name: str, make_trace: MakeTrace, make_corpus: MakeCorpus) -> None:
    damage, expected = DAMAGES[name]
    trace = make_trace(6)
    data = damage(trace)
    corpus = make_corpus(trace)
    with pytest.raises(CorpusError) as caught:
        judge(look(data, corpus), corpus, where="some/t.jsonl")
    sentence = str(caught.value)
    assert sentence.startswith(f"some/t.jsonl: SHA-256 is {digest(data)}")
    assert digest(trace) in sentence
    assert expected in sentence
    assert "\n" not in sentence


def test_problems_beyond_the_slice_are_covered_by_the_checksum_alone(
    make_trace: MakeTrace, make_corpus: MakeCorpus
) -> None:
    trace = make_trace(2) + b"\r\n\xff not read\n"
    corpus = make_corpus(trace, rows=2, source={"full_rows": 4})
    judge(look(trace, corpus), corpus, where="t")


def test_a_pinned_trace_without_a_newline_at_its_end(make_trace: MakeTrace, make_corpus: MakeCorpus) -> None:
    trace = make_trace(3)[:-1]
    corpus = make_corpus(trace)
    judge(look(trace, corpus), corpus, where="t")


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"source": {"full_rows": 7}}, "it has 6 rows, where the corpus small names 7"),
        ({"slice": {"sha256": "0" * 64}}, f"where the corpus small names {'0' * 64}"),
    ],
)
def test_a_corpus_file_that_contradicts_its_trace(
    changes: dict[str, Any], expected: str, make_trace: MakeTrace, make_corpus: MakeCorpus
) -> None:
    trace = make_trace(6)
    corpus = make_corpus(trace, rows=4, **changes)
    with pytest.raises(CorpusError, match="the checksum of the trace is right") as caught:
        judge(look(trace, corpus), corpus, where="t")
    assert expected in str(caught.value)
    assert "correct the corpus file" in str(caught.value)


def test_a_pinned_trace_with_a_broken_row(make_trace: MakeTrace, make_corpus: MakeCorpus) -> None:
    trace = make_trace(2) + make_trace(1, input_length=2_000)
    corpus = make_corpus(trace)
    with pytest.raises(CorpusError, match=r"t: line 3 has an input_length of 2000.*the trace itself is unfit"):
        judge(look(trace, corpus), corpus, where="t")


def test_an_agentic_slice_keeps_its_header(make_corpus: MakeCorpus) -> None:
    header = {
        "schema": "dynamo.agentic_mooncake",
        "version": 2,
        "block_size": 512,
        "hash_id_scope": "local",
        "source": {"format": "made", "digest": "1"},
    }
    row = {"play_id": "p", "session_id": "s", "model": "m", "input_length": 5, "output_length": 2, "hash_ids": [1]}
    rows = [row | {"request_id": f"r{number}", "not_before_ms": 0} for number in range(3)]
    waiting = {"request_id": "r2", "trigger": "completion", "delay_ms": 0, "relation": "sequence"}
    rows[1]["dependencies"] = [waiting]
    trace = b"".join(json.dumps(line).encode() + b"\n" for line in [header, *rows])
    whole = make_corpus(trace, header=1, format="agentic_mooncake")
    judge(look(trace, whole), whole, where="t")
    one = make_corpus(trace, header=1, rows=1, format="agentic_mooncake")
    found, kept, requests = passes(trace, form_of(one), 0, 1)
    judge(found, one, where="t")
    assert (kept.count(b"\n"), requests) == (2, 1)
    two = make_corpus(trace, header=1, rows=2, format="agentic_mooncake")
    with pytest.raises(CorpusError, match="line 3 ends the slice without request 'r2'"):
        judge(look(trace, two), two, where="t")
    headless = make_corpus(trace[trace.index(b"\n") + 1 :], header=1, format="agentic_mooncake")
    with pytest.raises(CorpusError, match="line 1 is not the header"):
        judge(look(trace[trace.index(b"\n") + 1 :], headless), headless, where="t")


def test_a_slice_that_loses_its_header_is_refused(make_trace: MakeTrace, make_corpus: MakeCorpus) -> None:
    corpus = make_corpus(make_trace(4), start=1, format="agentic_mooncake")
    with pytest.raises(ConfigurationError, match="must start at 0"):
        form_of(corpus)


def test_an_unknown_format_is_refused(make_trace: MakeTrace, make_corpus: MakeCorpus) -> None:
    corpus = make_corpus(make_trace(4)).model_copy(update={"format": "sharegpt"})
    with pytest.raises(ConfigurationError, match=r"no trace format 'sharegpt' \(use mooncake or agentic_mooncake\)"):
        form_of(corpus)


def test_memory_does_not_grow_with_the_trace() -> None:
    row = b'{"timestamp": 0, "input_length": 5, "output_length": 1, "hash_ids": [1]}'
    line = row + b" " * 2_000 + b"\n"

    def lines() -> Iterator[bytes]:
        for _ in range(20_000):
            yield bytes(bytearray(line))

    tracemalloc.start()
    try:
        found = scan(lines(), Mooncake(512), start=100, rows=10_000)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert found.rows == 20_000
    assert peak < 200_000


def test_the_formats_are_trace_formats() -> None:
    forms: list[TraceFormat] = [Mooncake(512), AgenticMooncake(512)]
    assert [form.header_lines for form in forms] == [0, 1]
