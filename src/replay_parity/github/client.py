"""GitHub's API as this product uses it: facts of one repository, and the requests that publishing is made of."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Literal, TypeVar
from urllib.parse import quote

import orjson
from pydantic import SecretStr, TypeAdapter

from replay_parity.errors import BadInputError, InfrastructureError
from replay_parity.github.address import ApiAddress
from replay_parity.github.failures import Unclear
from replay_parity.github.pull_request import ChangedFile, PullRequest, PullRequestAnswer, RefAnswer
from replay_parity.github.shapes import is_branch_name, shaped
from replay_parity.github.transport import Limits, Transport

T = TypeVar("T")
PER_PAGE = "100"
# GitHub lists no more files of a pull request than this.
_MOST_FILES = 3000
_FILE_PAGES = 31
_READ_PULLS = "pull-requests: read"
_READ_CONTENTS = "contents: read"
_PULL = TypeAdapter(PullRequestAnswer)
_FILES = TypeAdapter(list[ChangedFile])
_REF = TypeAdapter(RefAnswer)


class GitHub:
    """One repository's API; the token stays inside.

    `api_url` is https (`https://api.github.com`, or `https://HOST/api/v3` of an Enterprise Server), plain http only to
    this machine. `sleep` takes seconds, `clock` is monotonic, `now` gives seconds of the UTC epoch.
    Every call may raise PermissionDenied, Unprocessable, RateLimited (github/failures.py) or InfrastructureError;
    the constructor raises BadInputError.
    """

    def __init__(
        self,
        api_url: str,
        token: SecretStr | None,
        repository: str,
        *,
        sleep: Callable[[float], None] = time.sleep,
        clock: Callable[[], float] = time.monotonic,
        now: Callable[[], float] = time.time,
        limits: Limits | None = None,
    ) -> None:
        self._address = ApiAddress.checked(api_url, repository)
        self._transport = Transport(self._address, token, sleep=sleep, clock=clock, now=now, limits=limits or Limits())
        self.repository = repository
        self.pause = sleep

    def __repr__(self) -> str:
        return f"GitHub({self._address.root!r}, {self.repository!r})"

    def pull_request(self, number: int) -> PullRequest:
        """The pull request as it is now."""
        answer = self.get(f"/pulls/{number}", _PULL, needs=_READ_PULLS)
        if answer.number != number:
            raise InfrastructureError(f"GitHub answered with pull request {answer.number} in place of {number}")
        return answer.facts()

    def branch_head(self, name: str) -> str:
        """Commit id at the head of a branch; BadInputError when no branch can have that name."""
        if not is_branch_name(name):
            raise BadInputError(f"no branch can be named {name[:80]!r}")
        answer = self.get(f"/git/ref/{quote(f'heads/{name}', safe='')}", _REF, needs=_READ_CONTENTS)
        if answer.ref != f"refs/heads/{name}":
            raise InfrastructureError(f"GitHub answered with {answer.ref[:80]!r} in place of the branch {name[:80]!r}")
        return answer.object.sha

    def changed_files(self, number: int) -> list[str] | None:
        """Names of the files that a pull request touches, of renamed ones both; None when GitHub does not list all."""
        names: dict[str, None] = {}
        files = 0
        for page in self.pages(f"/pulls/{number}/files", _FILES, needs=_READ_PULLS, most=_FILE_PAGES):
            files += len(page)
            if files >= _MOST_FILES:
                return None
            for file in page:
                names[file.filename] = None
                if file.previous_filename is not None:
                    names[file.previous_filename] = None
        return list(names)

    def get(self, path: str, kind: TypeAdapter[T], *, needs: str) -> T:
        """One document below the repository; `path` is percent-encoded, `needs` is the permission that it takes."""
        answer = self._transport.call("GET", self._address.of(path, {}), needs=needs)
        return shaped(kind, answer.body, where=f"GET {path}")

    def pages(
        self, path: str, kind: TypeAdapter[T], *, needs: str, most: int, query: dict[str, str] | None = None
    ) -> Iterator[T]:
        """Each page of a list, by GitHub's `Link` header; InfrastructureError when there are more than `most`."""
        url = self._address.of(path, {**(query or {}), "per_page": PER_PAGE})
        for _ in range(most):
            answer = self._transport.call("GET", url, needs=needs)
            yield shaped(kind, answer.body, where=f"GET {path}")
            following = answer.next_page
            if following is None:
                return
            url = self._address.within(url, following)
        raise InfrastructureError(f"GitHub lists more than {most} pages", where=f"GET {path}")

    def write(
        self, method: Literal["POST", "PATCH"], path: str, document: object, kind: TypeAdapter[T], *, needs: str
    ) -> T:
        """Send a document once, rate limits apart; Unclear when it may have taken effect and no proper answer came."""
        body = orjson.dumps(document)
        answer = self._transport.call(method, self._address.of(path, {}), needs=needs, body=body)
        try:
            return shaped(kind, answer.body, where=f"{method} {path}")
        except InfrastructureError as error:
            raise Unclear(error.message, where=error.where) from None
