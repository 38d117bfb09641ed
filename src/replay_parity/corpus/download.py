"""One file over HTTP into a partial file that a later call continues: time limits, retries, resume, a cap.

Nothing is believed of what a server says: the caller proves the checksum of the whole file. What is asked for is only
how much work a break costs. No credentials are sent, not even those of ~/.netrc.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import requests
from urllib3.exceptions import HTTPError

from replay_parity.corpus.exchange import Exchange, Reply, kind_of, reply_of
from replay_parity.corpus.partial import Partial
from replay_parity.errors import CorpusError, InfrastructureError
from replay_parity.system.files import storage_errors
from replay_parity.system.progress import Progress

_CHUNK = 1 << 18
_BUSY = frozenset({408, 425, 429, 500, 502, 503, 504})
_OK, _PARTIAL, _NOT_FOUND, _GONE, _RANGE = 200, 206, 404, 410, 416
_LONGEST_PAUSE = 30.0
_SPARE_BYTES = 64 << 20


@dataclass(frozen=True)
class Limits:
    """What a download may cost; times in seconds. `attempts` without a new byte end it."""

    connect_seconds: float = 10.0
    read_seconds: float = 60.0
    total_seconds: float = 4 * 3600.0
    attempts: int = 5
    size_bytes: int = 64 << 30


@dataclass(frozen=True)
class Clock:
    """Time, so that tests need not wait."""

    now: Callable[[], float]
    sleep: Callable[[float], None]


@dataclass(frozen=True)
class Sink:
    """An open file and its name."""

    file: BinaryIO
    path: Path


class _Again(Exception):  # noqa: N818 (never leaves this module)
    """Worth another try; `pause` when the server says how long to wait."""

    def __init__(self, words: str, pause: float | None = None) -> None:
        super().__init__(words)
        self.pause = pause


class Download:
    """One download; `where` names the corpus in sentences."""

    def __init__(self, exchange: Exchange, limits: Limits, clock: Clock, progress: Progress, *, where: str) -> None:
        self._exchange, self._limits, self._clock, self._progress = exchange, limits, clock, progress
        self._where = where
        self._deadline = clock.now() + limits.total_seconds

    def run(self, url: str, partial: Partial) -> None:
        """Fill `partial` until it is whole.

        Raises CorpusError when there is no such file, InfrastructureError when the network or the server fails; what
        has come stays in `partial`.
        """
        failures = 0
        while True:
            before = partial.size()
            try:
                self._attempt(url, partial)
            except _Again as error:
                failures = 1 if partial.size() > before else failures + 1
                self._pause(url, error, failures)
            else:
                return

    def _attempt(self, url: str, partial: Partial) -> None:
        start = partial.offer(url)
        try:
            with self._exchange.get(url, headers=partial.conditions(start), seconds=self._left(url)) as response:
                self._take(url, response, partial, start)
        except (requests.RequestException, HTTPError) as error:
            raise _Again(kind_of(error)) from error

    def _take(self, url: str, response: requests.Response, partial: Partial, start: int) -> None:
        reply = reply_of(response)
        if reply.status == _RANGE and start:
            if reply.total != start:
                partial.restart()
                raise _Again("it refused the rest of the file")
            return
        self._judge(url, reply)
        if reply.status == _OK or reply.start != start:
            if reply.status == _PARTIAL and reply.start != 0:
                partial.restart()
                raise _Again("it answered with another part of the file")
            start = 0
        self._fits(url, reply, partial, start)
        with partial.opened(url, reply.etag, start) as file:
            self._copy(url, response, Sink(file, partial.path), done=start, total=reply.total)

    def _judge(self, url: str, reply: Reply) -> None:
        """Refuse every status but those that carry the file."""
        if reply.status in _BUSY:
            raise _Again(f"it answered {reply.status}", reply.retry_after)
        if reply.status in {_NOT_FOUND, _GONE}:
            raise CorpusError(
                f"the server answered {reply.status} for {url}: there is no such file at that commit",
                where=self._where,
                hint="correct repository, commit and path in the corpus file",
            )
        if reply.status not in {_OK, _PARTIAL}:
            raise self._failed(url, f"the server answered {reply.status}")
        if reply.encoding not in {"", "identity"}:
            raise self._failed(url, f"the server answered with '{reply.encoding}' bytes, which were not asked for")

    def _fits(self, url: str, reply: Reply, partial: Partial, start: int) -> None:
        if reply.total is None:
            return
        if reply.total > self._limits.size_bytes:
            raise self._too_long(url, f"it is {reply.total:,} bytes long")
        free = shutil.disk_usage(partial.folder).free
        if reply.total - start + _SPARE_BYTES > free:
            raise InfrastructureError(
                f"the trace needs {reply.total - start:,} more bytes, but only {free:,} are free",
                where=str(partial.folder),
                hint="free some space, or set REPLAY_PARITY_CACHE to a larger disk",
            )

    def _copy(self, url: str, response: requests.Response, sink: Sink, *, done: int, total: int | None) -> None:
        began, first = self._clock.now(), done
        # read1 comes back with what is there, so that a body which drips cannot outlast the deadline.
        while chunk := response.raw.read1(_CHUNK, decode_content=False):
            with storage_errors("write the download", sink.path):
                sink.file.write(chunk)
            done += len(chunk)
            if done > self._limits.size_bytes:
                raise self._too_long(url, "it goes on")
            self._left(url)
            self._tell(done, total, done - first, self._clock.now() - began)
        if total is not None and done != total:
            raise _Again(f"it ended after {done:,} of {total:,} bytes")

    def _tell(self, done: int, total: int | None, come: int, seconds: float) -> None:
        text = f"{done / 1e6:,.1f} MB"
        if total:
            text = f"{done / 1e6:,.1f} of {total / 1e6:,.1f} MB ({100 * done // total} %)"
            if come and seconds > 1:
                text += f", about {seconds * (total - done) / come:,.0f} s left"
        self._progress.detail(text)

    def _pause(self, url: str, error: _Again, failures: int) -> None:
        if failures >= self._limits.attempts:
            raise self._failed(url, f"{error}, {failures} times in a row") from error
        pause = error.pause if error.pause is not None else min(2.0 ** (failures - 1), _LONGEST_PAUSE)
        if pause >= self._left(url):
            raise self._failed(url, f"{error}, and asks to wait {pause:.0f} s, longer than the time limit") from error
        self._progress.detail(f"{error}; trying again in {pause:.0f} s")
        self._clock.sleep(pause)

    def _left(self, url: str) -> float:
        left = self._deadline - self._clock.now()
        if left <= 0:
            raise self._failed(url, f"{self._limits.total_seconds:.0f} s are over")
        return left

    def _too_long(self, url: str, words: str) -> InfrastructureError:
        return self._failed(url, f"{words}, at most {self._limits.size_bytes:,} bytes are fetched")

    def _failed(self, url: str, words: str) -> InfrastructureError:
        return InfrastructureError(
            f"cannot fetch {url}: {words}",
            where=self._where,
            hint="what has come is kept and the same command continues; or give a folder with --corpus-dir",
        )
