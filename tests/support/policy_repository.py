"""A consumer's repository with a policy and a history, its clones as a job has them, and plans made from both."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from replay_parity.github.event import Event
from replay_parity.github.inputs import Inputs, Machines
from replay_parity.settings import Settings
from replay_parity.stages.github_change import Api
from replay_parity.stages.github_plan import GitHubPlanner, Planned
from tests.support.github_server import REPOSITORY
from tests.support.scratch import Scratch
from tests.support.tiny import Told

ROOT = Path(__file__).resolve().parents[2]
SERVER = "https://github.example"
ADDRESS = f"{SERVER}/{REPOSITORY}"
POLICY = ".replay-parity"
OWN = {"default": Machines(labels=("prod-aisimulate-default-amd64-v1",))}
HOSTED = {"default": Machines(labels=("ubuntu-24.04",))}
BUILD = {"toolchain": "path", "profile": "release", "flags": [], "features": []}
ZERO = "0" * 40


class Consumer(Scratch):
    """A repository whose commits hold a tiny engine and a policy."""

    def write(self, name: str, document: Any) -> None:
        """A file of the policy."""
        path = self.folder / POLICY / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(document if isinstance(document, str) else yaml.safe_dump(document, sort_keys=False))

    def campaign(self, *rows: Any, name: str = "nightly", **changes: Any) -> None:
        """A campaign of these rows, without revisions of its own."""
        document = {"schema_version": 1, "name": name, "title": f"The campaign {name}", "build": BUILD}
        self.write(f"campaigns/{name}.yaml", {**document, "rows": list(rows), **changes})

    def row(self, name: str, **changes: Any) -> None:
        """A row of the embedded corpus."""
        document = yaml.safe_load((ROOT / "configs" / "rows" / "demo-vllm-aggregated.yaml").read_text())
        self.write(f"rows/{name}.yaml", {**document, "name": name, "title": f"The row {name}", **changes})

    def start(self, branch: str, at: str) -> None:
        """Go on from a commit under a new name."""
        self.git("checkout", "--quiet", "-B", branch, at)


def clone(repository: Scratch, folder: Path, *options: str, commit: str) -> Scratch:
    """As actions/checkout leaves it: HEAD detached, remote-tracking branches, none of its own."""
    made = Scratch.__new__(Scratch)
    made.folder = folder
    repository.git("clone", "--quiet", "--no-checkout", *options, f"file://{repository.folder}", str(folder))
    made.git("checkout", "--quiet", "--detach", commit)
    for branch in made.git("branch", "--format=%(refname:short)").split("\n"):
        if not branch.startswith("("):
            made.git("branch", "--quiet", "--delete", "--force", branch)
    return made


def event(name: str, payload: Mapping[str, Any], **changes: Any) -> Event:
    """An event of the repository; the commit of the run is a merge that nobody has, unless said otherwise."""
    fields: dict[str, Any] = {
        "name": name,
        "repository": REPOSITORY,
        "server_url": SERVER,
        "ref": "refs/heads/main",
        "sha": "d" * 40,
        "run_id": 77,
        "run_attempt": 1,
        "payload": payload,
    }
    return Event(**(fields | changes))


def pull_request(
    head: str, base: str, *, repository: str = REPOSITORY, base_ref: str = "main", **changes: Any
) -> Event:
    """A plain `pull_request`."""
    pull = {
        "number": 12,
        "head": {"sha": head, "ref": "topic", "repo": {"full_name": repository}},
        "base": {"sha": base, "ref": base_ref, "repo": {"full_name": REPOSITORY}},
    }
    return event("pull_request", {"pull_request": pull}, ref="refs/pull/12/merge", **changes)


def push(before: str, after: str, branch: str = "main") -> Event:
    """A push to a branch; of a copy the list of commits is empty."""
    return event("push", {"before": before, "after": after, "commits": []}, ref=f"refs/heads/{branch}", sha=after)


def manual(commit: str, **changes: Any) -> Event:
    """A run that somebody started by hand."""
    return event("workflow_dispatch", {"inputs": {}}, sha=commit, **changes)


@dataclass
class Desk:
    """Where plans are made: a cache, a checkout, a folder for what passes."""

    settings: Settings
    checkout: Path
    scratch: Path
    told: Told = field(default_factory=Told)

    def plan(self, given: Event, *, api: Api | None = None, checkout: Path | None = None, **inputs: Any) -> Planned:
        """The plan; `inputs` are those of the action."""
        use = Inputs(**{"mode": "plan", "campaign": "nightly", "runners": OWN, **inputs})
        self.scratch.mkdir(mode=0o700, exist_ok=True)
        planner = GitHubPlanner(given, use, api=api, settings=self.settings, progress=self.told)
        return planner.plan(checkout or self.checkout, self.scratch)
