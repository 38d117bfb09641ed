"""Fetching from a real HTTP server: whole, in pieces, refused, wrong."""

from __future__ import annotations

import email.utils
import hashlib
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.support.trace_server import (
    Act,
    Handler,
    TraceServer,
    dripping,
    endless,
    good,
    status,
    trace_server,
    without_ranges,
)

from replay_parity.campaign.corpus_file import Corpus
from replay_parity.corpus.download import Clock, Limits
from replay_parity.corpus.fetch import FetchOptions, fetch
from replay_parity.corpus.provide import provide
from replay_parity.corpus.slice import VerifiedSlice
from replay_parity.errors import CorpusError, InfrastructureError
from replay_parity.system.progress import Silent

MakeCorpus = Callable[..., Corpus]
MakeTrace = Callable[..., bytes]
GITHUB = {"repository": "https://github.com/some/traces"}
LIMITS = Limits(connect_seconds=5, read_seconds=5, total_seconds=60, attempts=3)


class Told(Silent):
    def __init__(self) -> None:
        self.details: list[str] = []
        self.notices: list[str] = []

    def detail(self, text: str) -> None:
        self.details.append(text)

    def notice(self, text: str) -> None:
        self.notices.append(text)


class Slept:
    """A clock that does not wait, but counts what it should have waited."""

    def __init__(self) -> None:
        self.seconds: list[float] = []

    def clock(self) -> Clock:
        return Clock(lambda: time.monotonic() + sum(self.seconds), self.seconds.append)


@pytest.fixture
def trace(make_trace: MakeTrace) -> bytes:
    return make_trace(4_000)


@pytest.fixture
def corpus(trace: bytes, make_corpus: MakeCorpus) -> Corpus:
    return make_corpus(trace, start=1, rows=10, source=GITHUB)


def fetched(
    corpus: Corpus,
    server: TraceServer,
    cache: Path,
    *,
    slept: Slept | None = None,
    told: Told | None = None,
    **limits: Any,
) -> VerifiedSlice:
    options = FetchOptions(server.template, None, replace(LIMITS, **limits), (slept or Slept()).clock())
    return fetch(corpus, cache=cache, options=options, progress=told or Told())


def kept(cache: Path) -> list[str]:
    """Files that hold bytes of traces; locks hold none."""
    return sorted(path.suffix for path in cache.rglob("*") if path.is_file() and ".lock" not in path.parts)


def assert_slice(found: VerifiedSlice, trace: bytes) -> None:
    assert found.path.read_bytes() == b"".join(trace.splitlines(keepends=True)[1:11])


def test_a_whole_trace_is_fetched_once_and_then_found(
    trace: bytes, corpus: Corpus, make_corpus: MakeCorpus, cache: Path
) -> None:
    told = Told()
    with trace_server(trace) as server:
        assert_slice(fetched(corpus, server, cache, told=told), trace)
        path, headers = server.asked[0]
        assert path == f"/some/traces/{'1' * 40}/folder/upstream.jsonl"
        assert headers["accept-encoding"] == "identity"
        assert not {"authorization", "cookie", "range"} & set(headers)
        assert "(100 %)" in told.details[-1]
        assert_slice(fetched(corpus, server, cache), trace)
        # Another slice of the same trace comes out of the cache, with and without fetch.
        other = make_corpus(trace, start=7, rows=3, source=GITHUB)
        assert fetched(other, server, cache).rows == 3
        assert len(server.asked) == 1
    third = make_corpus(trace, start=9, rows=2, source=GITHUB)
    assert provide(third, folders=[], cache=cache).rows == 2
    assert kept(cache) == [".jsonl"] * 4


def test_no_password_of_the_user_is_sent(
    trace: bytes, corpus: Corpus, cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    netrc = tmp_path / "netrc"
    netrc.write_text("machine 127.0.0.1 login me password secret\n")
    monkeypatch.setenv("NETRC", str(netrc))
    with trace_server(trace) as server:
        fetched(corpus, server, cache)
        assert "authorization" not in server.asked[0][1]


def test_a_cut_off_download_is_continued_where_it_ended(trace: bytes, corpus: Corpus, cache: Path) -> None:
    with trace_server(trace, good(trace, sent=1_000), good(trace, sent=5_000), good(trace)) as server:
        assert_slice(fetched(corpus, server, cache), trace)
        assert server.ranges() == [None, "bytes=1000-", "bytes=6000-"]
        assert server.asked[1][1]["if-range"] == '"one"'


def test_a_later_command_continues_what_an_earlier_one_left(trace: bytes, corpus: Corpus, cache: Path) -> None:
    with trace_server(trace, good(trace, sent=1_000), status(503)) as server:
        with pytest.raises(InfrastructureError, match=r"it answered 503, 3 times in a row \(what has come is kept"):
            fetched(corpus, server, cache)
        assert kept(cache) == [".json", ".part"]
    with trace_server(trace) as again:
        again.asked.clear()
        part = next(cache.glob("downloads/*.part"))
        assert part.stat().st_size == 1_000
        note = part.with_suffix(".json")
        note.write_text(note.read_text().replace(server.address, again.address))
        assert_slice(fetched(corpus, again, cache), trace)
        assert again.ranges() == ["bytes=1000-"]


def test_what_another_address_left_is_not_continued(trace: bytes, corpus: Corpus, cache: Path) -> None:
    with trace_server(trace, good(trace, sent=1_000), status(503)) as server, pytest.raises(InfrastructureError):
        fetched(corpus, server, cache)
    with trace_server(trace) as other:
        assert_slice(fetched(corpus, other, cache), trace)
        assert other.ranges() == [None]


def test_a_server_without_ranges_starts_again(trace: bytes, corpus: Corpus, cache: Path) -> None:
    with trace_server(trace, without_ranges(trace, sent=1_000), without_ranges(trace)) as server:
        assert_slice(fetched(corpus, server, cache), trace)
        assert server.ranges() == [None, "bytes=1000-"]


def test_a_file_that_changed_midway_starts_again(trace: bytes, corpus: Corpus, cache: Path) -> None:
    with trace_server(trace, good(b"x" * len(trace), '"old"', sent=1_000), good(trace, '"new"')) as server:
        assert_slice(fetched(corpus, server, cache), trace)
        assert server.asked[1][1]["if-range"] == '"old"'
        assert len(server.asked) == 2


def test_pieces_that_do_not_fit_together_are_fetched_once_more_as_one(
    trace: bytes, corpus: Corpus, cache: Path
) -> None:
    told = Told()
    # A weak tag proves nothing, so the pieces are joined, and the checksum finds out.
    with trace_server(trace, good(b"x" * len(trace), 'W/"a"', sent=1_000), good(trace, 'W/"b"')) as server:
        assert_slice(fetched(corpus, server, cache, told=told), trace)
        assert server.ranges() == [None, "bytes=1000-", None]
        assert "if-range" not in server.asked[1][1]
    assert told.notices == ["the continued download is not the trace; fetching it once more from its beginning"]


def test_a_partial_file_that_is_too_long_starts_again(trace: bytes, corpus: Corpus, cache: Path) -> None:
    longer = trace + b"more"
    with trace_server(trace, good(longer, sent=len(trace) + 2), good(trace)) as server:
        assert_slice(fetched(corpus, server, cache), trace)
        assert server.ranges() == [None, f"bytes={len(trace) + 2}-", None]


def test_a_wrong_checksum_names_both_and_keeps_nothing(trace: bytes, corpus: Corpus, cache: Path) -> None:
    wrong = trace.replace(b"600", b"601", 1)
    with trace_server(wrong, good(wrong)) as server:
        with pytest.raises(CorpusError) as caught:
            fetched(corpus, server, cache)
        assert len(server.asked) == 1
    sentence = str(caught.value)
    assert hashlib.sha256(wrong).hexdigest() in sentence
    assert hashlib.sha256(trace).hexdigest() in sentence
    assert caught.value.exit_code == 2
    assert kept(cache) == []


def test_a_corpus_file_that_contradicts_the_trace_keeps_no_slice(
    trace: bytes, make_corpus: MakeCorpus, cache: Path
) -> None:
    corpus = make_corpus(trace, start=1, rows=10, source=GITHUB, slice={"sha256": "0" * 64})
    with trace_server(trace) as server, pytest.raises(CorpusError, match="correct the corpus file"):
        fetched(corpus, server, cache)
    assert not (cache / "corpora" / ("0" * 64) / "slice.jsonl").exists()


def test_no_such_file_is_the_corpus_files_fault(trace: bytes, corpus: Corpus, cache: Path) -> None:
    with trace_server(trace, status(404)) as server:
        with pytest.raises(CorpusError, match=r"answered 404 .*: there is no such file at that commit") as caught:
            fetched(corpus, server, cache)
        assert len(server.asked) == 1
    assert caught.value.exit_code == 2


@pytest.mark.parametrize("code", [401, 403, 451])
def test_a_refusal_is_not_repeated(code: int, trace: bytes, corpus: Corpus, cache: Path) -> None:
    with trace_server(trace, status(code)) as server:
        with pytest.raises(InfrastructureError, match=f"the server answered {code}"):
            fetched(corpus, server, cache)
        assert len(server.asked) == 1


def test_retry_after_is_obeyed_in_seconds_and_as_a_date(trace: bytes, corpus: Corpus, cache: Path) -> None:
    slept = Slept()
    date = email.utils.formatdate(time.time() + 20, usegmt=True)
    acts = [status(429, Retry_After="7"), status(503, Retry_After=date), good(trace)]
    with trace_server(trace, *acts) as server:
        assert_slice(fetched(corpus, server, cache, slept=slept), trace)
    assert slept.seconds[0] == 7
    assert 15 < slept.seconds[1] <= 20


def test_a_wait_beyond_the_time_limit_is_not_begun(trace: bytes, corpus: Corpus, cache: Path) -> None:
    slept = Slept()
    with trace_server(trace, status(429, Retry_After="3600")) as server:
        with pytest.raises(InfrastructureError, match="asks to wait 3600 s, longer than the time limit"):
            fetched(corpus, server, cache, slept=slept)
        assert len(server.asked) == 1
    assert slept.seconds == []


def test_a_server_error_is_tried_again_with_growing_pauses(trace: bytes, corpus: Corpus, cache: Path) -> None:
    slept = Slept()
    with trace_server(trace, status(500), status(502), good(trace)) as server:
        assert_slice(fetched(corpus, server, cache, slept=slept), trace)
    assert slept.seconds == [1, 2]


def test_nobody_listens(trace: bytes, corpus: Corpus, cache: Path) -> None:
    with trace_server(trace) as server:
        pass
    with pytest.raises(InfrastructureError, match="the connection failed, 3 times in a row") as caught:
        fetched(corpus, server, cache)
    assert caught.value.exit_code == 3


def test_a_server_that_drips_meets_the_time_limit(trace: bytes, corpus: Corpus, cache: Path) -> None:
    began = time.monotonic()
    with (
        trace_server(trace, dripping(trace, seconds=0.05)) as server,
        pytest.raises(InfrastructureError, match="1 s are over"),
    ):
        fetched(corpus, server, cache, total_seconds=1)
    assert time.monotonic() - began < 10


def test_a_server_that_falls_silent_meets_the_read_limit(trace: bytes, corpus: Corpus, cache: Path) -> None:
    def silent(handler: Handler) -> None:
        time.sleep(3)
        handler.close_connection = True

    with trace_server(trace, silent) as server, pytest.raises(InfrastructureError, match="it took too long"):
        fetched(corpus, server, cache, read_seconds=0.3, attempts=1)


@pytest.mark.parametrize("make", [good, endless])
def test_more_bytes_than_the_limit_are_refused(
    make: Callable[[bytes], Act], trace: bytes, corpus: Corpus, cache: Path
) -> None:
    with (
        trace_server(trace, make(trace)) as server,
        pytest.raises(InfrastructureError, match="at most 5,000 bytes are fetched"),
    ):
        fetched(corpus, server, cache, size_bytes=5_000)
    assert sum(path.stat().st_size for path in cache.rglob("*.part")) < 1_000_000


def test_a_redirect_within_the_rules_is_followed(trace: bytes, corpus: Corpus, cache: Path) -> None:
    with trace_server(trace, status(302, Location="/elsewhere?x=1"), good(trace)) as server:
        assert_slice(fetched(corpus, server, cache), trace)
        assert [path for path, _ in server.asked][1] == "/elsewhere?x=1"


@pytest.mark.parametrize("target", ["http://example.org/trace", "file:///etc/passwd", "ftp://127.0.0.1/trace", ""])
def test_a_redirect_to_another_scheme_is_refused(target: str, trace: bytes, corpus: Corpus, cache: Path) -> None:
    with (
        trace_server(trace, status(301, Location=target)) as server,
        pytest.raises(InfrastructureError, match=r"redirects to .*, which does not start with https://"),
    ):
        fetched(corpus, server, cache)


def test_a_circle_of_redirects_ends(trace: bytes, corpus: Corpus, cache: Path) -> None:
    with (
        trace_server(trace, status(302, Location="/again")) as server,
        pytest.raises(InfrastructureError, match="redirects more than 5 times"),
    ):
        fetched(corpus, server, cache)


def test_compressed_bytes_that_nobody_asked_for_are_refused(trace: bytes, corpus: Corpus, cache: Path) -> None:
    with (
        trace_server(trace, status(200, Content_Encoding="gzip")) as server,
        pytest.raises(InfrastructureError, match="answered with 'gzip' bytes"),
    ):
        fetched(corpus, server, cache)


def pointer(sha256: str) -> bytes:
    return f"version https://git-lfs.github.com/spec/v1\noid sha256:{sha256}\nsize 12345\n".encode()


def with_lfs(server: TraceServer) -> FetchOptions:
    return FetchOptions(server.template, f"{server.address}/media/{{commit}}/{{path}}", LIMITS, Slept().clock())


def test_a_pointer_of_git_lfs_is_followed_and_continued(trace: bytes, corpus: Corpus, cache: Path) -> None:
    pointing = pointer(hashlib.sha256(trace).hexdigest())
    acts = [good(pointing, '"p"'), good(trace, sent=1_000), status(500), status(500), status(500), good(trace)]
    with trace_server(trace, *acts) as server:
        with pytest.raises(InfrastructureError):
            fetch(corpus, cache=cache, options=with_lfs(server), progress=Told())
        assert_slice(fetch(corpus, cache=cache, options=with_lfs(server), progress=Told()), trace)
        assert server.asked[-1][0].startswith("/media/")
        assert server.ranges()[-1] == "bytes=1000-"


def test_a_pointer_to_another_file_is_refused_before_it_is_fetched(trace: bytes, corpus: Corpus, cache: Path) -> None:
    with trace_server(trace, good(pointer("a" * 64))) as server:
        with pytest.raises(CorpusError, match=f"has SHA-256 {'a' * 64}"):
            fetch(corpus, cache=cache, options=with_lfs(server), progress=Told())
        assert len(server.asked) == 1
    assert kept(cache) == []


def test_a_damaged_full_trace_in_the_cache_is_fetched_anew(trace: bytes, corpus: Corpus, cache: Path) -> None:
    with trace_server(trace) as server:
        fetched(corpus, server, cache)
        for path in cache.rglob("slice.jsonl"):
            path.chmod(0o600)
            path.write_bytes(b"damaged")
        assert_slice(fetched(corpus, server, cache), trace)
        assert len(server.asked) == 2
