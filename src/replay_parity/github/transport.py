"""One HTTP exchange with GitHub's API, with every limit that keeps a job from hanging: statuses become named errors.

A GET is repeated after lost answers and 5xx; a write never is: its caller looks whether it took effect.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import NoReturn

import orjson
import requests
from pydantic import SecretStr
from requests.auth import AuthBase
from requests.utils import parse_header_links
from urllib3.exceptions import HTTPError, MaxRetryError
from urllib3.util import Retry

from replay_parity import __version__
from replay_parity.errors import BadInputError, InfrastructureError
from replay_parity.github.address import ApiAddress
from replay_parity.github.failures import PermissionDenied, RateLimited, Unclear, Unprocessable
from replay_parity.github.rate import seconds_to_wait

_HEADERS = {
    "Accept": "application/vnd.github+json",
    "Content-Type": "application/json",
    "User-Agent": f"replay-parity/{__version__}",
    "X-GitHub-Api-Version": "2022-11-28",
}
_LOST = frozenset({500, 502, 503, 504})
_REDIRECTS = frozenset({301, 302, 307, 308})
_MOST_REDIRECTS = 3
_CHUNK = 1 << 16
_UNAUTHORIZED, _NOT_FOUND = 401, 404
_DENIED = frozenset({_UNAUTHORIZED, 403, _NOT_FOUND})
_UNPROCESSABLE = 422
_MESSAGE_LENGTH = 600
_MOST_WAITS = 10


@dataclass(frozen=True)
class Limits:
    """What one client may cost; times in seconds.

    `call_seconds` is for one request with all its repetitions and is looked at between reads; `waiting_seconds` is
    for all rate limits that this client ever waits for.
    """

    connect_seconds: float = 10.0
    read_seconds: float = 30.0
    call_seconds: float = 120.0
    attempts: int = 4
    body_bytes: int = 32 << 20
    waiting_seconds: float = 900.0


@dataclass(frozen=True)
class Answer:
    """A whole answer; names of `headers` in lower case."""

    status: int
    url: str
    headers: Mapping[str, str]
    body: bytes = field(repr=False)

    @property
    def next_page(self) -> str | None:
        """The address of the next page as GitHub's `Link` header gives it."""
        links = parse_header_links(self.headers.get("link", ""))
        return next((link["url"] for link in links if link.get("rel") == "next" and link.get("url")), None)


class _Oversized(Exception):  # noqa: N818 (never leaves this module)
    pass


class _Bearer(AuthBase):
    """Being there at all keeps requests from putting a password of ~/.netrc in place of the token."""

    def __init__(self, token: SecretStr | None) -> None:
        self._token = token

    def __call__(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        if self._token is not None:
            request.headers["Authorization"] = f"Bearer {self._token.get_secret_value()}"
        return request


class Transport:
    """The one session of a client."""

    def __init__(
        self,
        address: ApiAddress,
        token: SecretStr | None,
        *,
        sleep: Callable[[float], None],
        clock: Callable[[], float],
        now: Callable[[], float],
        limits: Limits,
    ) -> None:
        if token is not None and not re.fullmatch(r"[\x21-\x7e]+", token.get_secret_value()):
            raise BadInputError("the token is empty or holds a space, a line break or another character that none has")
        self._address = address
        self._token = token
        self._sleep, self._clock, self._now, self._limits = sleep, clock, now, limits
        self._left_to_wait = limits.waiting_seconds
        self._session = requests.Session()
        self._session.headers.update(_HEADERS)
        self._session.auth = _Bearer(token)

    def call(self, method: str, url: str, *, needs: str, body: bytes | None = None) -> Answer:
        """The answer of a request that GitHub accepted (2xx); `needs` is the permission that it takes.

        Raises PermissionDenied, Unprocessable, RateLimited, Unclear (writes only) or InfrastructureError.
        """
        for waited in range(_MOST_WAITS):
            answer = self._answered(method, url, body)
            words = self._words(answer)
            wait = seconds_to_wait(answer.status, answer.headers, words, now=self._now(), waited=waited)
            if wait is None:
                if 200 <= answer.status < 300:  # noqa: PLR2004 (the class of statuses)
                    return answer
                self._refuse(method, answer, words, needs)
            if wait > self._left_to_wait:
                break
            self._left_to_wait -= wait
            self._sleep(wait)
        raise RateLimited(
            f"GitHub's rate limit lasts longer than the {self._limits.waiting_seconds:.0f} s that are waited for",
            where=self._where(method, url),
            hint="run the job again later",
        )

    def _answered(self, method: str, url: str, body: bytes | None) -> Answer:
        deadline = self._clock() + self._limits.call_seconds
        retry = Retry(total=self._limits.attempts - 1, backoff_factor=1, backoff_max=30)
        while True:
            try:
                answer = self._followed(method, url, body, deadline)
            except _Oversized:
                words = f"the answer is longer than {self._limits.body_bytes:,} bytes"
                raise self._lost(method, url, words) from None
            except (requests.RequestException, HTTPError) as error:
                words = _kind_of(error)
            else:
                if answer.status not in _LOST:
                    return answer
                words = f"it answered {answer.status}"
            if method != "GET":
                raise self._lost(method, url, words)
            try:
                retry = retry.increment(method, url)
            except MaxRetryError:
                raise self._lost(method, url, f"{words}, {self._limits.attempts} times in a row") from None
            pause = retry.get_backoff_time()
            if self._clock() + pause >= deadline:
                raise self._lost(method, url, f"{words}, and {self._limits.call_seconds:.0f} s are over")
            self._sleep(pause)

    def _followed(self, method: str, url: str, body: bytes | None, deadline: float) -> Answer:
        """Follow redirects within the API, the request unchanged, as GitHub's documentation asks."""
        for _ in range(_MOST_REDIRECTS + 1):
            answer = self._exchange(method, url, body, deadline)
            if answer.status not in _REDIRECTS:
                return answer
            url = self._address.within(url, answer.headers.get("location", ""))
        raise InfrastructureError("GitHub redirects too often", where=self._where(method, url))

    def _exchange(self, method: str, url: str, body: bytes | None, deadline: float) -> Answer:
        read = min(self._limits.read_seconds, deadline - self._clock())
        if read <= 0:
            raise requests.Timeout
        timeout = (self._limits.connect_seconds, read)
        with self._session.request(
            method, url, data=body, timeout=timeout, allow_redirects=False, stream=True
        ) as response:
            headers = {name.lower(): value for name, value in response.headers.items()}
            return Answer(response.status_code, url, headers, self._read(response, deadline))

    def _read(self, response: requests.Response, deadline: float) -> bytes:
        content = bytearray()
        # read1 comes back with what is there, so that a body which drips cannot outlast the deadline.
        while chunk := response.raw.read1(_CHUNK, decode_content=True):
            content += chunk
            if len(content) > self._limits.body_bytes:
                raise _Oversized
            if self._clock() > deadline:
                raise requests.Timeout
        return bytes(content)

    def _refuse(self, method: str, answer: Answer, words: str, needs: str) -> NoReturn:
        where = self._where(method, answer.url)
        sentence = f"GitHub answered {answer.status}: {words or 'without a reason'}"
        if answer.status in _DENIED:
            hint = f"grant `{needs}` to the token"
            if answer.status == _UNAUTHORIZED:
                hint = "the token is missing, wrong or expired"
            elif answer.status == _NOT_FOUND:
                hint = f"it is not there, or the token may not see it: {hint}"
            raise PermissionDenied(sentence, status=answer.status, where=where, hint=hint)
        if answer.status == _UNPROCESSABLE:
            raise Unprocessable(sentence, where=where)
        raise InfrastructureError(sentence, where=where)

    def _lost(self, method: str, url: str, words: str) -> InfrastructureError:
        kind = InfrastructureError if method == "GET" else Unclear
        return kind(f"GitHub's API gave no usable answer: {words}", where=self._where(method, url))

    def _where(self, method: str, url: str) -> str:
        return f"{method} {self._address.shown(url)}"

    def _words(self, answer: Answer) -> str:
        """GitHub's own words in one line, the token taken out should somebody echo it."""
        if answer.status < 400:  # noqa: PLR2004 (the class of statuses)
            return ""
        try:
            document = orjson.loads(answer.body)
        except orjson.JSONDecodeError:
            return "no JSON came with it"
        if not isinstance(document, dict):
            return ""
        errors = document.get("errors")
        parts = [document.get("message"), *(errors if isinstance(errors, list) else [errors])]
        text = "; ".join(part if isinstance(part, str) else orjson.dumps(part).decode() for part in parts if part)
        if self._token is not None:
            text = text.replace(self._token.get_secret_value(), "***")
        return "".join(character if character.isprintable() else " " for character in text)[:_MESSAGE_LENGTH]


def _kind_of(error: Exception) -> str:
    """What went wrong, in words that hold neither an address nor a header."""
    if isinstance(error, requests.exceptions.SSLError):
        return "its certificate is not trusted here"
    if isinstance(error, requests.exceptions.ProxyError):
        return "the proxy cannot be reached"
    if isinstance(error, requests.Timeout) or "timed out" in str(error).lower():
        return "it took too long"
    if isinstance(error, requests.ConnectionError):
        return "the connection failed"
    return f"it was cut off or garbled ({type(error).__name__})"
