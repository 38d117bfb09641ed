"""The plan as it travels to other machines: the document, the patch and the traces that the policy itself holds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, ValidationError

from replay_parity.campaign.base import Model
from replay_parity.errors import BadInputError, ReplayParityError
from replay_parity.github.text import well_formed
from replay_parity.stages.plan import Plan
from replay_parity.system.files import read_capped, remove_tree, storage_errors, write_whole

# 10,000 rows of some kilobytes.
PLAN_CAP = 256 << 20
# A corpus that is larger belongs on the runners, not into every job's download.
TRACE_CAP = 64 << 20


class Refusal(Model):
    """Why no plan could be made."""

    schema_version: Literal[1] = 1
    label: str
    message: str
    exit_code: Annotated[int, Field(ge=1, le=255, strict=True, description="Of the error: a refusal is never green.")]


@dataclass(frozen=True)
class PlanFolder:
    """`FOLDER/{plan.json | refusal.json, patch.diff, traces/CORPUS.jsonl}`."""

    root: Path

    @property
    def traces(self) -> Path:
        """Traces by name of their corpus."""
        return self.root / "traces"

    @property
    def patch(self) -> Path | None:
        """The determinism patch, if there is one; its checksum is in the plan."""
        path = self.root / "patch.diff"
        return path if path.is_file() else None

    def write(self, plan: Plan, *, patch: bytes | None, traces: Mapping[str, Path]) -> None:
        """Write everything, the plan last; BadInputError for a trace that is too large to travel."""
        self.clear()
        if patch is not None:
            write_whole(self.root / "patch.diff", patch)
        for name, path in traces.items():
            write_whole(self.traces / f"{name}.jsonl", read_capped(path, cap=TRACE_CAP))
        write_whole(self.root / "plan.json", plan.model_dump_json(indent=2).encode())

    def write_refusal(self, error: ReplayParityError) -> None:
        """Keep why there is no plan, for the verdict to say."""
        self.clear()
        refusal = Refusal(label=error.label, message=well_formed(str(error)), exit_code=error.exit_code)
        write_whole(self.root / "refusal.json", refusal.model_dump_json(indent=2).encode())

    def clear(self) -> None:
        """An empty folder."""
        remove_tree(self.root)
        with storage_errors("make the folder of the plan", self.root):
            self.traces.mkdir(parents=True)

    def read(self) -> Plan:
        """The plan; BadInputError when there is none or it is damaged."""
        path = self.root / "plan.json"
        if not path.exists():
            raise BadInputError("there is no plan", where=str(path), hint="run the stage 'plan' first")
        try:
            return Plan.model_validate_json(read_capped(path, cap=PLAN_CAP))
        except ValidationError as error:
            first = error.errors()[0]
            place = "/".join(str(part) for part in first["loc"])
            raise BadInputError(f"the plan cannot be read: {first['msg']}", where=f"{path} /{place}") from None

    def read_refusal(self) -> Refusal | None:
        """Why there is no plan; None when nothing was written."""
        path = self.root / "refusal.json"
        if not path.exists():
            return None
        try:
            return Refusal.model_validate_json(read_capped(path, cap=PLAN_CAP))
        except ValidationError:
            raise BadInputError("is damaged", where=str(path)) from None
