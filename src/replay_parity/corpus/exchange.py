"""One GET for a trace: redirects only to https, no credentials, bytes as they are; what an answer says of itself."""

from __future__ import annotations

import contextlib
import email.utils
import re
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from urllib.parse import urljoin

import requests
from requests.auth import AuthBase

from replay_parity import __version__
from replay_parity.corpus.address import is_allowed
from replay_parity.errors import InfrastructureError

_HEADERS = {
    "User-Agent": f"replay-parity/{__version__}",
    "Accept": "*/*",
    # Ranges and lengths must be those of the file, not of a compressed copy.
    "Accept-Encoding": "identity",
}
_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_MOST_REDIRECTS = 5
_CONTENT_RANGE = re.compile(r"bytes (?:(\d{1,18})-\d{1,18}|\*)/(\d{1,18}|\*)")


class _Nobody(AuthBase):
    """Being there at all keeps requests from looking for a password in ~/.netrc."""

    def __call__(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        return request


@dataclass(frozen=True)
class Reply:
    """Status and headers of an answer: `start` and `total` in bytes of the file, `retry_after` in seconds."""

    status: int
    start: int
    total: int | None
    etag: str | None
    encoding: str
    retry_after: float | None


class Exchange:
    """The one session of a download."""

    def __init__(self, *, connect_seconds: float, read_seconds: float) -> None:
        self._connect, self._read = connect_seconds, read_seconds
        self._session = requests.Session()
        self._session.headers.clear()
        self._session.headers.update(_HEADERS)
        self._session.auth = _Nobody()

    @contextlib.contextmanager
    def get(self, url: str, *, headers: Mapping[str, str], seconds: float) -> Iterator[requests.Response]:
        """The answer behind all redirects, its body unread; InfrastructureError for a redirect that is refused."""
        timeout = (min(self._connect, seconds), min(self._read, seconds))
        asked = url
        for _ in range(_MOST_REDIRECTS + 1):
            with self._session.get(
                url, headers=dict(headers), timeout=timeout, allow_redirects=False, stream=True
            ) as response:
                if response.status_code not in _REDIRECTS:
                    yield response
                    return
                url = _redirected(url, response.headers.get("Location", ""), asked)
        raise InfrastructureError(f"cannot fetch {asked}: it redirects more than {_MOST_REDIRECTS} times")


def reply_of(response: requests.Response) -> Reply:
    """Read the headers; those that make no sense count as absent."""
    headers = response.headers
    found = _CONTENT_RANGE.fullmatch(headers.get("Content-Range", ""))
    start, total = 0, None
    if found is not None:
        start = int(found[1] or 0)
        total = None if found[2] == "*" else int(found[2])
    elif headers.get("Content-Length", "").isdecimal():
        total = int(headers["Content-Length"])
    return Reply(
        status=response.status_code,
        start=start,
        total=total,
        etag=headers.get("ETag"),
        encoding=headers.get("Content-Encoding", "").strip().lower(),
        retry_after=_seconds(headers.get("Retry-After", "")),
    )


def kind_of(error: Exception) -> str:
    """What went wrong with the connection, in words without an address."""
    if isinstance(error, requests.exceptions.SSLError):
        return "the certificate of the server is not trusted here"
    if isinstance(error, requests.exceptions.ProxyError):
        return "the proxy cannot be reached"
    if isinstance(error, requests.Timeout) or "timed out" in str(error).lower():
        return "it took too long"
    if isinstance(error, requests.ConnectionError):
        return "the connection failed"
    return f"it was cut off or garbled ({type(error).__name__})"


def _redirected(url: str, location: str, asked: str) -> str:
    target = urljoin(url, location)
    # An answer over https must not lead to plain http, not even on this machine.
    if not location or not is_allowed(target) or (url.startswith("https:") and not target.startswith("https:")):
        raise InfrastructureError(
            f"cannot fetch {asked}: it redirects to '{target[:200]}', which does not start with https://",
            hint="give a folder that holds the trace with --corpus-dir",
        )
    return target


def _seconds(text: str) -> float | None:
    """Retry-After, in seconds or as a date."""
    if text.isdecimal():
        return float(text[:9])
    try:
        return max(0.0, email.utils.parsedate_to_datetime(text).timestamp() - time.time())
    except (ValueError, TypeError):
        return None
