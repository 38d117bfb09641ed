"""What GitHub tells a step by its environment: the event, and the files that take outputs and the summary."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson

from replay_parity.errors import BadInputError
from replay_parity.github.commands import output
from replay_parity.github.event import Event
from replay_parity.system.files import read_capped, storage_errors

_EVENT_CAP = 64 << 20
_NUMBER = re.compile(r"[0-9]{1,18}")
_DEFAULT_API = "https://api.github.com"


@dataclass(frozen=True)
class Surroundings:
    """The variables of one step, read once; a missing one is told when it is needed."""

    variables: Mapping[str, str] = field(repr=False)

    @property
    def run_attempt(self) -> int:
        """Which attempt of the run this is; a re-run raises it."""
        return self._number("GITHUB_RUN_ATTEMPT")

    @property
    def temporary(self) -> Path:
        """A folder that ends with the job."""
        return Path(self._need("RUNNER_TEMP"))

    @property
    def workspace(self) -> Path:
        """Where the job's checkout lies when nothing else is said."""
        return Path(self._need("GITHUB_WORKSPACE"))

    @property
    def api_url(self) -> str:
        """Base of the API; an Enterprise Server has its own."""
        return self.variables.get("GITHUB_API_URL", "").strip() or _DEFAULT_API

    @property
    def repository(self) -> str:
        """OWNER/NAME."""
        return self._need("GITHUB_REPOSITORY")

    def event(self) -> Event:
        """The event that started the run."""
        return Event(
            name=self._need("GITHUB_EVENT_NAME"),
            repository=self.repository,
            server_url=self._need("GITHUB_SERVER_URL").rstrip("/"),
            ref=self._need("GITHUB_REF"),
            sha=self._need("GITHUB_SHA"),
            run_id=self._number("GITHUB_RUN_ID"),
            run_attempt=self.run_attempt,
            payload=self.payload(),
        )

    def payload(self) -> dict[str, Any]:
        """The event's document."""
        path = Path(self._need("GITHUB_EVENT_PATH"))
        try:
            document = orjson.loads(read_capped(path, cap=_EVENT_CAP))
        except orjson.JSONDecodeError as error:
            raise BadInputError(f"the event is no JSON: {error}", where=str(path)) from None
        if not isinstance(document, dict):
            raise BadInputError("the event is no JSON object", where=str(path))
        return document

    def put(self, **outputs: str) -> None:
        """Set outputs of the step; `_` in a name is written as `-`."""
        self._append("GITHUB_OUTPUT", "".join(output(name.replace("_", "-"), value) for name, value in outputs.items()))

    def summarise(self, markdown: str) -> None:
        """Add to the summary of the step."""
        self._append("GITHUB_STEP_SUMMARY", f"{markdown}\n")

    def _append(self, name: str, text: str) -> None:
        path = self.variables.get(name, "").strip()
        if path:
            # A path of this machine may hold bytes that are no text; they go out as they came in.
            data = text.encode("utf-8", "surrogateescape")
            with storage_errors(f"write to {name}", Path(path)), Path(path).open("ab") as file:
                file.write(data)

    def _need(self, name: str) -> str:
        value = self.variables.get(name, "").strip()
        if not value:
            raise BadInputError(f"{name} is not set: this stage runs in a job of GitHub Actions")
        return value

    def _number(self, name: str) -> int:
        value = self._need(name)
        if not _NUMBER.fullmatch(value):
            raise BadInputError(f"{name} must be a number, it is {value[:40]!r}")
        return int(value)
