"""A GitHub of one repository on this machine: a real HTTP server that keeps check runs as GitHub does.

Every request and every answer is judged by GitHub's own description; what it refuses is listed in `problems`, and the
server does not close in peace then. Faults are put in front of any request: before or after it takes effect.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import re
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache
from typing import Any
from urllib.parse import parse_qsl, unquote, urlencode

from pydantic import SecretStr
from pytest_httpserver import HTTPServer
from werkzeug import Request, Response

from replay_parity.github.client import GitHub
from replay_parity.github.transport import Limits
from tests.support.openapi import Description, github_description

TOKEN = "ghs_notARealTokenButAsSecretAsOne0123"
REPOSITORY = "octocat/Hello-World"
SHA = "0123456789abcdef0123456789abcdef01234567"
PREFIX = "/api/v3"
_BYTES = 65_535
_DOCUMENTATION = "https://docs.github.com/rest"
_HANG_SECONDS = 10.0
# Status, document, headers.
Reply = tuple[int, Any, dict[str, str]]


@dataclass
class Fault:
    """What happens in place of a proper answer, `times` times, to requests that `method` and `path` match."""

    status: int = 502
    message: str = "Server Error"
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes | None = None
    method: str = ""
    path: str = ""
    times: int = 1
    after_effect: bool = False
    cut_off: bool = False
    hangs: bool = False
    drips: bool = False


@dataclass(frozen=True)
class Seen:
    """A request as it arrived; `path` is percent-encoded and without the prefix."""

    method: str
    path: str
    query: dict[str, str]
    authorization: str | None
    document: Any


class FakeTime:
    """Time that only sleeping moves."""

    def __init__(self) -> None:
        self.slept: list[float] = []
        self.epoch = 1_800_000_000.0

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)

    def clock(self) -> float:
        return sum(self.slept)

    def now(self) -> float:
        return self.epoch + sum(self.slept)


class GitHubServer:
    """State of a repository, and the requests that came."""

    def __init__(self, server: HTTPServer, description: Description) -> None:
        self.description = description
        self.api_url = server.url_for(PREFIX)
        self.time = FakeTime()
        self.problems: list[str] = []
        self.seen: list[Seen] = []
        self.faults: list[Fault] = []
        self.runs: dict[int, dict[str, Any]] = {}
        self.annotations: dict[int, list[dict[str, Any]]] = {}
        self.history: list[tuple[int, str, int]] = []
        self.pulls: dict[int, dict[str, Any]] = {}
        self.files: dict[int, list[dict[str, Any]]] = {}
        self.branches: dict[str, str] = {}
        self.per_page = 100
        self.released = threading.Event()
        self._state = threading.Lock()
        server.expect_request(re.compile(".*")).respond_with_handler(self._handle)

    def client(self, limits: Limits | None = None, token: str | None = TOKEN) -> GitHub:
        secret = SecretStr(token) if token is not None else None
        time = self.time
        return GitHub(self.api_url, secret, REPOSITORY, sleep=time.sleep, clock=time.clock, now=time.now, limits=limits)

    def fail(self, **fault: Any) -> None:
        self.faults.append(Fault(**fault))

    def sent(self, method: str) -> list[Seen]:
        return [seen for seen in self.seen if seen.method == method]

    def run(self, **changes: Any) -> dict[str, Any]:
        """Put a check run there that somebody made before."""
        return self._new_run({"name": "parity", "head_sha": SHA, "external_id": "1", **changes})

    def _handle(self, request: Request) -> Response:
        raw = str(request.environ["REQUEST_URI"])
        path, _, query = raw.partition("?")
        body = request.get_data()
        assert path.startswith(f"{PREFIX}/")
        path = path.removeprefix(PREFIX)
        document = json.loads(body) if body else None
        with self._state:
            self.seen.append(
                Seen(request.method, path, dict(parse_qsl(query)), request.headers.get("Authorization"), document)
            )
            self.problems += self.description.request_problems(request.method, path, query, body)
            fault = self._fault(request.method, path)
            served = None
            if fault is None or fault.after_effect:
                served = self._served(request.method, path, dict(parse_qsl(query)), document)
                self.problems += self.description.answer_problems(request.method, path, served[0], served[1])
        if fault is not None or served is None:
            return self._faulty(fault or Fault())
        status, answer, headers = served
        return Response(json.dumps(answer), status=status, headers=headers, content_type="application/json")

    def _fault(self, method: str, path: str) -> Fault | None:
        for fault in self.faults:
            if fault.times > 0 and fault.method in {"", method} and fault.path in path:
                fault.times -= 1
                return fault
        return None

    def _faulty(self, fault: Fault) -> Response:
        body = fault.body
        if body is None:
            body = json.dumps({"message": fault.message, "documentation_url": _DOCUMENTATION}).encode()
        if fault.hangs:
            self.released.wait(_HANG_SECONDS)
        content: Any = self._drops(body) if fault.drips else body
        response = Response(content, status=fault.status, headers=fault.headers, content_type="application/json")
        if fault.cut_off:
            response.headers["Content-Length"] = str(len(body) + 1000)
        return response

    def _drops(self, body: bytes) -> Iterator[bytes]:
        for byte in body:
            self.released.wait(0.01)
            yield bytes([byte])

    def _served(self, method: str, path: str, query: dict[str, str], document: Any) -> Reply:
        rest = path.removeprefix(f"/repos/{REPOSITORY}")
        routes: list[tuple[str, str, Callable[[str], Reply]]] = [
            ("POST", r"/check-runs()", lambda _: self._created(document)),
            ("PATCH", r"/check-runs/(\d+)", lambda run: self._updated(int(run), document)),
            ("GET", r"/check-runs/(\d+)/annotations", lambda run: self._paged(path, query, self._listed(int(run)))),
            ("GET", r"/commits/([0-9a-f]+)/check-runs", lambda sha: self._runs_of(sha, path, query)),
            ("GET", r"/pulls/(\d+)", lambda number: self._pull(int(number))),
            ("GET", r"/pulls/(\d+)/files", lambda number: self._paged(path, query, self.files[int(number)])),
            ("GET", r"/git/ref/heads%2F([^/]+)", lambda name: self._branch(unquote(name))),
        ]
        for wanted, pattern, reply in routes:
            match = re.fullmatch(pattern, rest)
            if match and method == wanted:
                return reply(match[1])
        return _not_found()

    def _created(self, document: dict[str, Any]) -> Reply:
        refusal = _refusal(document)
        return (422, refusal, {}) if refusal else (201, self._new_run(document), {})

    def _pull(self, number: int) -> Reply:
        return (200, self.pulls[number], {}) if number in self.pulls else _not_found()

    def _branch(self, name: str) -> Reply:
        if name not in self.branches:
            return _not_found()
        answer = self.description.example("git-ref")
        answer["ref"] = f"refs/heads/{name}"
        answer["object"] |= {"type": "commit", "sha": self.branches[name]}
        return 200, answer, {}

    def _listed(self, run: int) -> list[dict[str, Any]]:
        absent = dict.fromkeys(("start_column", "end_column", "title", "raw_details"))
        return [{**absent, "blob_href": "https://example.com/blob", **item} for item in self.annotations[run]]

    def _runs_of(self, sha: str, path: str, query: dict[str, str]) -> Reply:
        runs = [run for run in self.runs.values() if run["head_sha"] == sha and run["name"] == query.get("check_name")]
        status, page, headers = self._paged(path, query, runs)
        return status, {"total_count": len(runs), "check_runs": page}, headers

    def _paged(self, path: str, query: dict[str, str], items: list[Any]) -> Reply:
        size = min(int(query.get("per_page", "30")), self.per_page)
        page = int(query.get("page", "1"))
        last = max(1, -(-len(items) // size))
        headers = {}
        if page < last:
            address = f"{self.api_url}{path}?"
            links = ((page + 1, "next"), (last, "last"))
            headers["Link"] = ", ".join(
                f'<{address}{urlencode({**query, "page": number})}>; rel="{rel}"' for number, rel in links
            )
        return 200, items[(page - 1) * size : page * size], headers

    def _new_run(self, document: dict[str, Any]) -> dict[str, Any]:
        number = len(self.runs) + 1
        self.annotations[number] = []
        address = f"{self.api_url}/repos/{REPOSITORY}/check-runs/{number}"
        run = {
            **self.description.example("check-run"),
            "id": number,
            "url": address,
            "html_url": f"https://github.com/{REPOSITORY}/runs/{number}",
            "details_url": "https://example.com",
            "status": "queued",
            "conclusion": None,
            "external_id": "",
            "pull_requests": [],
            "output": {
                "title": None,
                "summary": None,
                "text": None,
                "annotations_count": 0,
                "annotations_url": f"{address}/annotations",
            },
        }
        self.runs[number] = run
        self._apply(run, document)
        return run

    def _updated(self, number: int, document: dict[str, Any]) -> Reply:
        if number not in self.runs:
            return _not_found()
        refusal = _refusal(document)
        if refusal:
            return 422, refusal, {}
        self._apply(self.runs[number], document)
        return 200, self.runs[number], {}

    def _apply(self, run: dict[str, Any], document: dict[str, Any]) -> None:
        run |= {key: value for key, value in document.items() if key != "output"}
        if run["status"] != "completed":
            run["conclusion"] = None
        output = dict(document.get("output", {}))
        self.annotations[run["id"]] += output.pop("annotations", [])
        run["output"] |= output | {"annotations_count": len(self.annotations[run["id"]])}
        self.history.append((run["id"], run["status"], run["output"]["annotations_count"]))


def _refusal(document: dict[str, Any]) -> dict[str, Any] | None:
    """GitHub counts bytes, whatever its description says about characters."""
    output = document.get("output", {})
    words = []
    for key in ("summary", "text"):
        size = len((output.get(key) or "").encode())
        if size > _BYTES:
            words.append(f"Only {_BYTES} characters are allowed; {size} were supplied.")
    annotations = output.get("annotations", [])
    if len(annotations) > 50:
        words.append(f"No more than 50 items are allowed; {len(annotations)} were supplied.")
    if any(len(item["message"].encode()) > 65_536 or len(item.get("title", "")) > 255 for item in annotations):
        words.append("An annotation is too long.")
    if document.get("status") == "completed" and "conclusion" not in document:
        words.append("A conclusion is missing.")
    if not words:
        return None
    return {"message": "Invalid request.\n\n" + " ".join(words), "documentation_url": _DOCUMENTATION}


def _not_found() -> Reply:
    return 404, {"message": "Not Found", "documentation_url": _DOCUMENTATION, "status": "404"}, {}


@cache
def _listening(name: str) -> HTTPServer:
    """One server per name for all tests: stopping one takes half a second."""
    server = HTTPServer(host="127.0.0.1", threaded=True)
    server.start()
    atexit.register(server.stop)
    return server


@contextlib.contextmanager
def github_server() -> Iterator[GitHubServer]:
    """Serve until the test is over; requests that GitHub does not describe make it fail then."""
    server = _listening("github")
    server.clear()
    github = GitHubServer(server, github_description())
    try:
        yield github
    finally:
        github.released.set()
    server.check_assertions()
    assert github.problems == []


def other_host() -> HTTPServer:
    """A server that is not GitHub's; its `log` holds what came."""
    server = _listening("other")
    server.clear()
    return server
