"""Everything that a stage on GitHub may look at, in one object."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from pydantic import SecretStr

from replay_parity.github.client import GitHub
from replay_parity.github.inputs import Inputs
from replay_parity.github.surroundings import Surroundings
from replay_parity.settings import Settings
from replay_parity.stages.bench import Bench
from replay_parity.stages.plan import Plan
from replay_parity.stages.plan_folder import PlanFolder
from replay_parity.system.progress import Progress


@dataclass(frozen=True)
class ActionUse:
    """Everything that a stage may look at."""

    inputs: Inputs
    around: Surroundings
    settings: Settings
    progress: Progress
    # Workflow commands for GitHub, to be printed when nothing untrusted is printed any more.
    commands: list[str] = field(default_factory=list)

    @property
    def folder(self) -> Path:
        """Where stages leave and find their documents."""
        return self.inputs.folder or self.around.temporary / "replay-parity"

    @property
    def checkout(self) -> Path:
        """The clone that holds the repository's objects."""
        return self.inputs.checkout or self.around.workspace

    @property
    def plan_folder(self) -> PlanFolder:
        """Where the plan lies."""
        return PlanFolder(self.folder / "plan")

    def api(self, repository: str | None = None) -> GitHub:
        """GitHub's API for the repository of the run."""
        token = SecretStr(self.inputs.token) if self.inputs.token else None
        return GitHub(self.around.api_url, token, repository or self.around.repository)

    def bench(self, plan: Plan) -> Bench:
        """Tools to build what the plan names from the job's clone."""
        checkouts: Mapping[str, Path] = {}
        if plan.origin is not None:
            checkouts = {f"{plan.origin.server_url}/{plan.origin.repository}": self.checkout}
        return Bench(self.settings, plan.build, base=self.folder, checkouts=checkouts)
