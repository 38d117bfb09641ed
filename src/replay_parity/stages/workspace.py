"""Where a campaign's results lie: plan, logs, attempts of rows, verdict; one run at a time."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from replay_parity.errors import BadInputError, InfrastructureError
from replay_parity.parity.result import RowResult
from replay_parity.parity.verdict import Verdict
from replay_parity.stages.plan import Plan
from replay_parity.system.files import read_capped, remove_tree, storage_errors, write_whole
from replay_parity.system.locks import host_lock

_CAP = 64 << 20
_VERDICT_CAP = 1 << 30
_LOCK_WAIT_SECONDS = 1.0


@dataclass(frozen=True)
class Workspace:
    """`OUTPUT/{plan.json, verdict.json, logs/, rows/ROW/attempt-N/{result.json, …}}`; ROW is a planned id."""

    root: Path

    @property
    def logs(self) -> Path:
        """Logs of fetching and building."""
        return self.root / "logs"

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """Keep other runs out of this folder; an old verdict is removed, so that it is never taken for a new one."""
        with storage_errors("make the folder for results", self.root):
            self.logs.mkdir(parents=True, exist_ok=True)
        with contextlib.ExitStack() as stack:
            try:
                stack.enter_context(host_lock(self.root / ".lock", "run", shared=False, timeout=_LOCK_WAIT_SECONDS))
            except InfrastructureError as error:
                raise InfrastructureError(
                    "another run writes to this folder", where=str(self.root), hint="wait for it, or use --output"
                ) from error
            self.verdict_path.unlink(missing_ok=True)
            self._remove_unfinished()
            yield

    def _remove_unfinished(self) -> None:
        """Attempts without a result are leftovers of a run that was ended: nobody else is at work here."""
        for folder in (self.root / "rows").glob("*/attempt-*"):
            if not (folder / "result.json").is_file():
                remove_tree(folder)

    @property
    def verdict_path(self) -> Path:
        """Where the verdict goes."""
        return self.root / "verdict.json"

    def read_plan(self) -> Plan | None:
        """The plan of an earlier run; None when there is none or it is of another version of this tool."""
        path = self.root / "plan.json"
        if not path.is_file():
            return None
        try:
            return Plan.model_validate_json(read_capped(path, cap=_CAP))
        except (ValidationError, BadInputError):
            return None

    def write_plan(self, plan: Plan) -> None:
        """Keep the plan."""
        write_whole(self.root / "plan.json", plan.model_dump_json(indent=2).encode())

    def write_verdict(self, verdict: Verdict) -> None:
        """Keep the verdict."""
        write_whole(self.verdict_path, verdict.model_dump_json(indent=2).encode())

    def read_verdict(self) -> Verdict:
        """The kept verdict; BadInputError when there is none or it is damaged."""
        try:
            return Verdict.model_validate_json(read_capped(self.verdict_path, cap=_VERDICT_CAP))
        except ValidationError as error:
            raise BadInputError(
                f"the verdict cannot be read: {error.errors()[0]['msg']}", where=str(self.verdict_path)
            ) from None

    def row_folder(self, row: str, attempt: int) -> Path:
        """Folder of one attempt."""
        return self.root / "rows" / row / f"attempt-{attempt}"

    def attempts(self, row: str) -> list[RowResult]:
        """Results of all attempts of a row, oldest first; what cannot be read was not finished and does not count."""
        found: list[RowResult] = []
        for path in sorted((self.root / "rows" / row).glob("attempt-*/result.json")):
            with contextlib.suppress(ValidationError, BadInputError):
                result = RowResult.model_validate_json(read_capped(path, cap=_CAP))
                found += [result] if result.seal_holds else []
        return sorted(found, key=lambda result: result.attempt)

    def next_attempt(self, row: str) -> int:
        """Number for a new attempt: above every folder that is there, finished or not."""
        numbers = [
            int(path.name.removeprefix("attempt-"))
            for path in (self.root / "rows" / row).glob("attempt-*")
            if path.name.removeprefix("attempt-").isdigit()
        ]
        return max(numbers, default=0) + 1

    def write_result(self, result: RowResult) -> None:
        """Keep the result of an attempt, last: its presence says that the attempt is complete."""
        path = self.row_folder(result.id, result.attempt) / "result.json"
        write_whole(path, result.sealed().model_dump_json(indent=2).encode())

    def relative(self, path: Path) -> str:
        """The path as the verdict shows it: below the folder for results."""
        return path.relative_to(self.root).as_posix()
