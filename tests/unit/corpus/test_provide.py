from __future__ import annotations

import errno
import hashlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from replay_parity.campaign.corpus_file import Corpus
from replay_parity.corpus.provide import provide
from replay_parity.corpus.slice import VerifiedSlice
from replay_parity.errors import BadInputError, ConfigurationError, CorpusError, InfrastructureError

MakeCorpus = Callable[..., Corpus]
MakeTrace = Callable[..., bytes]

CORPORA = Path(__file__).parents[3] / "configs" / "corpora"


def embedded() -> Corpus:
    return Corpus.model_validate(yaml.safe_load((CORPORA / "embedded-sessions-5000.yaml").read_text()))


def inline(*lines: str, **changes: Any) -> Corpus:
    data = "".join(f"{line}\n" for line in lines).encode()
    checksum = changes.get("sha256", hashlib.sha256(data).hexdigest())
    return Corpus.model_validate(
        {
            "schema_version": 1,
            "name": "written-here",
            "title": "A few lines",
            "format": "mooncake",
            "block_size": 4,
            "source": {
                "kind": "inline",
                "lines": lines,
                "licence": "Apache-2.0",
                "full_rows": len(lines),
                "full_sha256": checksum,
            },
            "slice": {"rows": len(lines), "sha256": checksum},
        }
    )


ROW = '{"timestamp": 0, "input_length": 4, "output_length": 2, "hash_ids": [1]}'


def assert_kept(found: VerifiedSlice, data: bytes, cache: Path) -> None:
    checksum = hashlib.sha256(data).hexdigest()
    assert found.path == cache / "corpora" / checksum / "slice.jsonl"
    assert found.path.read_bytes() == data
    assert found.sha256 == checksum
    assert found.path.stat().st_mode & 0o777 == 0o444
    assert [path.name for path in found.path.parent.iterdir()] == ["slice.jsonl"]


def assert_nothing_kept(cache: Path) -> None:
    assert [path for path in cache.rglob("*") if not path.is_dir()] == []


def test_the_embedded_corpus_needs_nothing(cache: Path) -> None:
    found = provide(embedded(), folders=[], cache=cache)
    assert_kept(found, found.path.read_bytes(), cache)
    assert (found.rows, found.block_size, found.format) == (5_000, 512, "mooncake")
    assert found.corpus.name == "embedded-sessions-5000"


def test_a_generator_with_another_seed_is_not_the_pinned_trace(cache: Path) -> None:
    corpus = embedded()
    other = corpus.model_copy(update={"source": corpus.source.model_copy(update={"seed": 2})})
    with pytest.raises(CorpusError, match="correct the generator, seed and rows or the checksums"):
        provide(other, folders=[], cache=cache)
    assert_nothing_kept(cache)


def test_shipped_inline_corpora_are_right(cache: Path) -> None:
    found = []
    for path in sorted(CORPORA.glob("*.yaml")):
        corpus = Corpus.model_validate(yaml.safe_load(path.read_text()))
        if corpus.source.kind == "inline":
            found.append(provide(corpus, folders=[], cache=cache).rows)
    assert found == [4, 1]


def test_inline_lines(cache: Path) -> None:
    assert_kept(provide(inline(ROW, ROW), folders=[], cache=cache), f"{ROW}\n{ROW}\n".encode(), cache)


def test_inline_lines_with_a_wrong_checksum(cache: Path) -> None:
    with pytest.raises(CorpusError, match=r"corpus written-here, inline lines: SHA-256 is .*correct the lines"):
        provide(inline(ROW, sha256="0" * 64), folders=[], cache=cache)
    assert_nothing_kept(cache)


@pytest.mark.parametrize("name", ["upstream.jsonl", "small.jsonl"])
@pytest.mark.parametrize("whole", [True, False])
def test_a_given_trace_whole_or_as_its_slice(
    *, name: str, whole: bool, folder: Path, cache: Path, make_trace: MakeTrace, make_corpus: MakeCorpus
) -> None:
    trace = make_trace(6)
    part = b"".join(trace.splitlines(keepends=True)[2:5])
    corpus = make_corpus(trace, start=2, rows=3)
    given = folder / name
    given.write_bytes(trace if whole else part)
    given.chmod(0o400)
    before = given.stat()
    assert_kept(provide(corpus, folders=[folder], cache=cache), part, cache)
    assert given.stat() == before
    # The cache alone is enough afterwards.
    given.unlink()
    assert_kept(provide(corpus, folders=[folder], cache=cache), part, cache)
    assert_kept(provide(corpus, folders=[], cache=cache), part, cache)


def test_a_missing_trace_says_where_it_comes_from(
    folder: Path, cache: Path, make_trace: MakeTrace, make_corpus: MakeCorpus
) -> None:
    corpus = make_corpus(make_trace(6))
    with pytest.raises(CorpusError) as caught:
        provide(corpus, folders=[folder], cache=cache)
    sentence = str(caught.value)
    for part in ("corpus small", "upstream.jsonl or small.jsonl", str(folder), "--corpus-dir", "folder/upstream.jsonl"):
        assert part in sentence
    for part in ("https://example.org/traces", "1" * 40, corpus.source.full_sha256):
        assert part in sentence
    with pytest.raises(CorpusError, match="no folder was given"):
        provide(corpus, folders=[], cache=cache)
    with pytest.raises(CorpusError, match="is not a folder with traces"):
        provide(corpus, folders=[folder / "nowhere"], cache=cache)


def test_an_edited_trace_stops_even_when_the_cache_could_help(
    folder: Path, cache: Path, make_trace: MakeTrace, make_corpus: MakeCorpus
) -> None:
    trace = make_trace(6)
    corpus = make_corpus(trace)
    given = folder / "upstream.jsonl"
    given.write_bytes(trace)
    provide(corpus, folders=[folder], cache=cache)
    given.write_bytes(trace.replace(b'"output_length": 3', b'"output_length": 4'))
    with pytest.raises(CorpusError, match="a checksum cannot tell which line differs"):
        provide(corpus, folders=[folder], cache=cache)
    assert given.exists()
    # Another folder with the right file settles it: traces are found by checksum.
    right = folder / "right"
    right.mkdir()
    (right / "small.jsonl").write_bytes(trace)
    assert_kept(provide(corpus, folders=[folder, right], cache=cache), trace, cache)


def test_a_damaged_slice_in_the_cache_is_made_anew(
    folder: Path, cache: Path, make_trace: MakeTrace, make_corpus: MakeCorpus
) -> None:
    trace = make_trace(6)
    corpus = make_corpus(trace)
    (folder / "upstream.jsonl").write_bytes(trace)
    path = provide(corpus, folders=[folder], cache=cache).path
    for damage in (trace[:-1], b"", trace + trace, trace.replace(b"600", b"601")):
        path.chmod(0o644)
        path.write_bytes(damage)
        assert_kept(provide(corpus, folders=[folder], cache=cache), trace, cache)
    path.unlink()
    path.symlink_to(folder / "upstream.jsonl")
    assert_kept(provide(corpus, folders=[folder], cache=cache), trace, cache)
    assert (folder / "upstream.jsonl").read_bytes() == trace
    path.chmod(0o644)
    path.write_bytes(b"damaged")
    with pytest.raises(CorpusError, match="the cache does not hold the slice"):
        provide(corpus, folders=[], cache=cache)
    assert_nothing_kept(cache)


def test_a_slice_in_the_cache_is_checked_by_the_format_that_asks_for_it(
    folder: Path, cache: Path, make_trace: MakeTrace, make_corpus: MakeCorpus
) -> None:
    trace = make_trace(6)
    (folder / "upstream.jsonl").write_bytes(trace)
    provide(make_corpus(trace), folders=[folder], cache=cache)
    smaller = make_corpus(trace, block_size=256)
    with pytest.raises(CorpusError, match="line 1 has an input_length of 600, but hash_ids for 512 tokens"):
        provide(smaller, folders=[], cache=cache)


def test_links_of_the_user_are_followed(
    folder: Path, cache: Path, make_trace: MakeTrace, make_corpus: MakeCorpus
) -> None:
    trace = make_trace(6)
    corpus = make_corpus(trace)
    (folder / "kept-elsewhere").write_bytes(trace)
    (folder / "upstream.jsonl").symlink_to(folder / "kept-elsewhere")
    assert_kept(provide(corpus, folders=[folder], cache=cache), trace, cache)


def test_what_is_not_a_file_is_named(folder: Path, cache: Path, make_trace: MakeTrace, make_corpus: MakeCorpus) -> None:
    corpus = make_corpus(make_trace(6))
    given = folder / "upstream.jsonl"
    given.symlink_to(folder / "gone")
    with pytest.raises(BadInputError, match="there is no such file"):
        provide(corpus, folders=[folder], cache=cache)
    given.unlink()
    given.symlink_to(given)
    with pytest.raises(BadInputError, match="is a symbolic link"):
        provide(corpus, folders=[folder], cache=cache)
    given.unlink()
    os.mkfifo(given)
    with pytest.raises(BadInputError, match="is not a regular file"):
        provide(corpus, folders=[folder], cache=cache)
    given.unlink()
    given.mkdir()
    with pytest.raises(BadInputError, match="is not a regular file"):
        provide(corpus, folders=[folder], cache=cache)
    assert_nothing_kept(cache)


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"\xef\xbb\xbf{}\n", "line 1 starts with a byte order mark"),
        (b"x" * ((16 << 20) + 1), "line 1 is longer than 16,777,216 bytes"),
    ],
    ids=["byte order mark", "over-long line"],
)
def test_a_broken_file_leaves_nothing_in_the_cache(
    *, data: bytes, expected: str, folder: Path, cache: Path, make_trace: MakeTrace, make_corpus: MakeCorpus
) -> None:
    (folder / "upstream.jsonl").write_bytes(data)
    with pytest.raises(CorpusError, match=expected):
        provide(make_corpus(make_trace(6)), folders=[folder], cache=cache)
    assert_nothing_kept(cache)


def test_a_full_disk_is_a_clear_sentence(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(InfrastructureError, match=r"cannot write the slice: No space left on device .*free some space"):
        provide(inline(ROW), folders=[], cache=cache)
    assert_nothing_kept(cache)


def test_a_cache_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "cache").write_bytes(b"")
    with pytest.raises(InfrastructureError, match="cannot write the slice"):
        provide(inline(ROW), folders=[], cache=tmp_path / "cache")


def test_a_contradicting_corpus_is_refused_before_anything_is_read(
    cache: Path, make_trace: MakeTrace, make_corpus: MakeCorpus
) -> None:
    corpus = make_corpus(make_trace(4), start=1, format="agentic_mooncake")
    with pytest.raises(ConfigurationError, match="must start at 0"):
        provide(corpus, folders=[], cache=cache)
