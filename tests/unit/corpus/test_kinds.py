"""One test for each kind of hostile or broken trace: what is decided, in one clear sentence (docs/corpora.md)."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from replay_parity.campaign.corpus_file import Corpus
from replay_parity.corpus.cut import Wanted, cut
from replay_parity.corpus.examine import Examined, examine
from replay_parity.corpus.lines import LINE_CAP
from replay_parity.corpus.provide import file_lines, provide
from replay_parity.corpus.verify import make_form
from replay_parity.errors import BadInputError, ConfigurationError, CorpusError

MakeCorpus = Callable[..., Corpus]
MakeTrace = Callable[..., bytes]
ROW = b'{"timestamp": 1, "input_length": 600, "output_length": 1, "hash_ids": [0, 2]}\n'


def between(data: bytes, line: int, new: bytes) -> bytes:
    lines = list(io.BytesIO(data))
    return b"".join([*lines[:line], new, *lines[line:]])


def instead(data: bytes, line: int, new: bytes) -> bytes:
    lines = list(io.BytesIO(data))
    return b"".join([*lines[: line - 1], new, *lines[line:]])


# Kind -> the damage, and the sentence that `verify` and `slice` say of it when it is in the slice.
KINDS: dict[str, tuple[Callable[[bytes], bytes], str]] = {
    "CRLF": (
        lambda data: data.replace(b"\n", b"\r\n"),
        "line 1 holds a carriage return: line ends were converted, get the file again without conversion",
    ),
    "blank line at the start": (lambda data: between(data, 0, b"\n"), "line 1 is blank"),
    "blank line in the middle": (lambda data: between(data, 3, b" \t\n"), "line 4 is blank"),
    "blank line at the end": (lambda data: data + b"\n", "line 7 is blank"),
    "byte order mark": (
        lambda data: b"\xef\xbb\xbf" + data,
        "line 1 starts with a byte order mark: save the file as UTF-8 without one",
    ),
    "UTF-16": (
        lambda data: data.decode().encode("utf-16"),
        "line 1 starts with a byte order mark: save the file as UTF-8 without one",
    ),
    "truncated last line": (
        lambda data: data[:-20],
        "line 6 is cut off: it has neither an end of line nor a whole JSON object",
    ),
    "NUL bytes": (
        lambda data: instead(data, 2, b"\0" * 40 + b"\n"),
        "line 2 holds a NUL byte: the file is damaged, or it is not UTF-8",
    ),
    "invalid UTF-8": (
        lambda data: instead(data, 2, ROW.replace(b"}", b', "note": "\xff\xfe"}')),
        "line 2 is not UTF-8 (byte 88)",
    ),
    "duplicate keys": (
        lambda data: instead(data, 2, ROW.replace(b"}", b', "output_length": 7}')),
        "line 2 has the key 'output_length' twice in one object",
    ),
    "duplicate keys, one escaped": (
        lambda data: instead(data, 2, ROW.replace(b"}", b', "\\u006futput_length" : 7}')),
        "line 2 has the key 'output_length' twice in one object",
    ),
    "duplicate keys below": (
        lambda data: instead(data, 2, ROW.replace(b"}", b', "deep": [1, {"a": {"b": 1, "b": 2}}]}')),
        "line 2 has the key 'b' twice in one object",
    ),
    "a list instead of an object": (lambda data: instead(data, 2, b"[1, 2]\n"), "line 2 is not a JSON object"),
    "a text instead of an object": (lambda data: instead(data, 2, b'"row"\n'), "line 2 is not a JSON object"),
    "null instead of an object": (lambda data: instead(data, 2, b"null\n"), "line 2 is not a JSON object"),
    "no JSON": (lambda data: instead(data, 2, b"{'a': 1}\n"), "line 2 is not JSON"),
    "two objects in a line": (lambda data: instead(data, 2, ROW[:-1] + ROW), "line 2 is not JSON"),
    "NaN": (lambda data: instead(data, 2, ROW.replace(b": 1,", b": NaN,", 1)), "line 2 is not JSON"),
    "gzip": (gzip.compress, "line 1 is the beginning of a gzip file: unpack it first"),
    "zstd": (lambda data: b"\x28\xb5\x2f\xfd" + data, "line 1 is the beginning of a zstd file: unpack it first"),
    "negative time": (
        lambda data: instead(data, 2, ROW.replace(b": 1,", b": -1,", 1)),
        "line 2 has a bad timestamp: it must be a finite number from 0, in milliseconds",
    ),
    "no tokens": (
        lambda data: instead(data, 2, ROW.replace(b"600", b"0")),
        "line 2 has a bad input_length: it must be a whole number from 1",
    ),
    "a huge number": (
        lambda data: instead(data, 2, ROW.replace(b"600", b"9" * 40)),
        "line 2 has a bad input_length: it must be a whole number from 1",
    ),
    "fewer hashes than tokens": (
        lambda data: instead(data, 2, ROW.replace(b"600", b"1025")),
        "line 2 has an input_length of 1025, but hash_ids for 1024 tokens in blocks of 512",
    ),
    "deep nesting": (
        lambda data: instead(data, 2, b'{"a":' * 100_000 + b"1" + b"}" * 100_000 + b"\n"),
        "line 2 is not JSON",
    ),
}


def looked_at(data: bytes, folder: Path, corpus: Corpus) -> Examined:
    path = folder / "given.jsonl"
    path.write_bytes(data)
    return examine(corpus, file_lines(path), where=str(path))


@pytest.mark.parametrize("kind", KINDS)
def test_verify_says_what_is_wrong(kind: str, folder: Path, make_trace: MakeTrace, make_corpus: MakeCorpus) -> None:
    damage, sentence = KINDS[kind]
    data = damage(make_trace(6))
    # The checksums are those of the damaged bytes: the form alone must refuse them.
    found = looked_at(data, folder, make_corpus(data))
    assert str(found.problems[0]).startswith(sentence)
    assert found.error is not None
    assert str(found.error).count("\n") == 0
    assert "the trace itself is unfit" in str(found.error)
    assert sentence in str(found.error)


@pytest.mark.parametrize("kind", KINDS)
def test_slice_writes_nothing_of_it(kind: str, folder: Path, tmp_path: Path, make_trace: MakeTrace) -> None:
    damage, sentence = KINDS[kind]
    data = damage(make_trace(6))
    path = folder / "given.jsonl"
    path.write_bytes(data)
    wanted = Wanted(0, len(list(io.BytesIO(data))), "mooncake", 512)
    with pytest.raises(CorpusError) as caught:
        cut(file_lines(path), wanted, output=tmp_path / "out" / "slice.jsonl", where="given")
    assert str(caught.value).startswith(f"given: {sentence}")
    assert list((tmp_path / "out").iterdir()) == []


def test_a_missing_final_newline_is_accepted_when_the_checksum_was_taken_so(
    folder: Path, make_trace: MakeTrace, make_corpus: MakeCorpus
) -> None:
    data = make_trace(6)[:-1]
    found = looked_at(data, folder, make_corpus(data))
    assert (found.error, found.problems, found.scan.rows) == (None, (), 6)
    other = looked_at(data, folder, make_corpus(data + b"\n"))
    assert "6 rows, no newline at the end" in str(other.error)


def test_an_empty_file(folder: Path, make_trace: MakeTrace, make_corpus: MakeCorpus, tmp_path: Path) -> None:
    found = looked_at(b"", folder, make_corpus(make_trace(6)))
    assert found.error is not None
    assert "(0 rows)" in str(found.error)
    with pytest.raises(CorpusError, match="has 0 rows, so there are 0 from row 0 on, but 1 are asked for"):
        cut(file_lines(folder / "given.jsonl"), Wanted(0, 1, "mooncake", 512), output=tmp_path / "o", where="given")


def test_an_overlong_line_is_refused_before_it_is_held(
    folder: Path, make_trace: MakeTrace, make_corpus: MakeCorpus
) -> None:
    path = folder / "given.jsonl"
    path.write_bytes(make_trace(1))
    with path.open("ab") as file:
        # A hole of a broken copy: on disk it takes no room.
        file.truncate(40 * LINE_CAP)
    with pytest.raises(CorpusError, match=r"given\.jsonl: line 2 is longer than 16,777,216 bytes; this is no trace"):
        examine(make_corpus(make_trace(6)), file_lines(path), where=str(path))


def test_a_number_that_python_does_not_read_from_text(
    make_trace: MakeTrace, make_corpus: MakeCorpus, folder: Path
) -> None:
    # More digits than int() takes; the second colon sends the line to the slower reader of keys.
    line = b'{"timestamp": 1, "input_length": 6, "output_length": 1, "hash_ids": [0], "x:": ' + b"9" * 5_000 + b"}\n"
    data = make_trace(1) + line
    found = looked_at(data, folder, make_corpus(data))
    assert all(problem.line == 2 for problem in found.problems)


def test_an_unknown_format_names_those_that_there_are(make_trace: MakeTrace, make_corpus: MakeCorpus) -> None:
    with pytest.raises(
        ConfigurationError, match=r"there is no trace format 'weka' \(use mooncake or agentic_mooncake\)"
    ):
        make_form("weka", 512, start=0, where=None)
    with pytest.raises(ValidationError, match="'mooncake' or 'agentic_mooncake'"):
        make_corpus(make_trace(1), format="weka")


def place(kind: str, path: Path, data: bytes) -> None:
    if kind == "folder":
        path.mkdir()
    elif kind == "pipe":
        os.mkfifo(path)
    else:
        real = path.with_name("real")
        real.write_bytes(data)
        path.symlink_to(real)


@pytest.mark.parametrize(
    ("kind", "sentence"),
    [("folder", "is not a regular file"), ("pipe", "is not a regular file"), ("link", "is a symbolic link")],
)
@pytest.mark.timeout(20)
def test_something_else_in_place_of_a_file(
    kind: str, sentence: str, folder: Path, make_trace: MakeTrace, make_corpus: MakeCorpus, cache: Path
) -> None:
    data = make_trace(6)
    path = folder / "upstream.jsonl"
    place(kind, path, data)
    with pytest.raises(BadInputError, match=rf"upstream\.jsonl: {sentence}"):
        examine(make_corpus(data), file_lines(path), where=str(path))
    # In a folder that the user names, a link is followed: only bytes with the right checksum count.
    if kind == "link":
        assert provide(make_corpus(data), folders=[folder], cache=cache).rows == 6
    else:
        with pytest.raises(BadInputError, match=sentence):
            provide(make_corpus(data), folders=[folder], cache=cache)


@pytest.mark.parametrize("change", [b"more\n", b""])
def test_a_file_that_changes_while_it_is_read(change: bytes, folder: Path, make_trace: MakeTrace) -> None:
    path = folder / "given.jsonl"
    path.write_bytes(make_trace(6))
    lines = iter(file_lines(path)())
    next(lines)
    if change:
        with path.open("ab") as file:
            file.write(change)
    else:
        os.utime(path, ns=(0, 0))
    with pytest.raises(CorpusError, match="changed while it was read"):
        list(lines)


def test_every_distinct_problem_is_told_with_its_first_line(
    folder: Path, make_trace: MakeTrace, make_corpus: MakeCorpus
) -> None:
    data = make_trace(3) + b"[]\n\n" + make_trace(2, input_length=2_000) + b"[]\n" + make_trace(1, hash_ids=[])
    found = looked_at(data, folder, make_corpus(data))
    assert [str(problem) for problem in found.problems] == [
        "line 4 is not a JSON object (and 1 more lines like it)",
        "line 5 is blank",
        "line 6 has an input_length of 2000, but hash_ids for 1024 tokens in blocks of 512 (and 1 more lines like it)",
        "line 9 has bad hash_ids: they must be a list of at least one whole number",
    ]
    assert found.untold == 0


def test_the_number_of_kinds_that_are_told_is_bounded(
    folder: Path, make_trace: MakeTrace, make_corpus: MakeCorpus
) -> None:
    words = ["".join(chr(97 + int(digit)) for digit in str(number)) for number in range(150)]
    data = b"".join(f'{{"{word}": 1, "{word}": 1}}\n'.encode() for word in words)
    found = looked_at(data, folder, make_corpus(data))
    # Names in quotes do not make another kind.
    assert [problem.lines for problem in found.problems] == [150]


def test_fewer_rows_than_asked_for_are_refused(folder: Path, tmp_path: Path, make_trace: MakeTrace) -> None:
    path = folder / "given.jsonl"
    path.write_bytes(make_trace(6))
    with pytest.raises(CorpusError, match="has 6 rows, so there are 2 from row 4 on, but 3 are asked for"):
        cut(file_lines(path), Wanted(4, 3, "mooncake", 512), output=tmp_path / "slice.jsonl", where="given")
    assert not (tmp_path / "slice.jsonl").exists()


def test_a_slice_is_the_bytes_of_its_lines(folder: Path, tmp_path: Path, make_trace: MakeTrace) -> None:
    data = make_trace(6)
    path, output = folder / "given.jsonl", tmp_path / "slice.jsonl"
    path.write_bytes(data)
    first = cut(file_lines(path), Wanted(2, 3, "mooncake", 512), output=output, where="given")
    # The second time the same file is there already.
    found = cut(file_lines(path), Wanted(2, 3, "mooncake", 512), output=output, where="given")
    assert found == first
    assert output.read_bytes() == b"".join(data.splitlines(keepends=True)[2:5])
    assert found.scan.slice_sha256 == hashlib.sha256(output.read_bytes()).hexdigest()
    assert found.facts is not None
    assert found.facts.requests == 3


@pytest.mark.parametrize("kind", ["file", "folder", "pipe", "link"])
@pytest.mark.timeout(20)
def test_an_output_that_is_there_is_never_changed(
    kind: str, folder: Path, tmp_path: Path, make_trace: MakeTrace
) -> None:
    path, output = folder / "given.jsonl", tmp_path / "slice.jsonl"
    path.write_bytes(make_trace(6))
    if kind == "file":
        output.write_bytes(b"mine")
    else:
        place(kind, output, make_trace(6))
    with pytest.raises(BadInputError, match=r"slice\.jsonl: is (there already|a symbolic link)"):
        cut(file_lines(path), Wanted(0, 6, "mooncake", 512), output=output, where="given")
    if kind == "file":
        assert output.read_bytes() == b"mine"
    assert not list(tmp_path.glob(".*"))


def agentic(*changes: dict[str, Any]) -> bytes:
    header = {
        "schema": "dynamo.agentic_mooncake",
        "version": 2,
        "block_size": 512,
        "hash_id_scope": "local",
        "source": {"format": "made", "digest": "1"},
    }
    row = {"session_id": "s", "model": "m", "input_length": 5, "output_length": 2, "hash_ids": [1], "not_before_ms": 0}
    rows = [{"request_id": f"r{number}", "play_id": "p", **row, **change} for number, change in enumerate(changes)]
    return b"".join(json.dumps(line).encode() + b"\n" for line in [header, *rows])


def after(request: str) -> dict[str, Any]:
    return {"dependencies": [{"request_id": request, "trigger": "completion", "delay_ms": 0, "relation": "sequence"}]}


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        (agentic({}, {"play_id": "q"} | after("r0")), "line 3 is of play 'q', but waits for 'r0' of play 'p'"),
        (agentic(after("r1"), {"play_id": "q"}), "line 3 is of play 'q', but 'r0' of play 'p' waits for it"),
        (
            agentic(after("r2"), after("r0"), after("r1")),
            "line 4 ends the slice with requests that wait for each other",
        ),
        (agentic({}, after("r9")), "line 3 ends the slice without request 'r9', for which 'r1' waits"),
        (agentic({}, after("r1")), "line 3 waits for itself"),
        (agentic({}, {"request_id": "r0"}), "line 3 has the request_id 'r0' of an earlier line"),
    ],
)
def test_a_broken_graph(data: bytes, sentence: str, folder: Path, make_corpus: MakeCorpus) -> None:
    corpus = make_corpus(data, header=1, format="agentic_mooncake")
    found = looked_at(data, folder, corpus)
    assert sentence in str(found.error)
