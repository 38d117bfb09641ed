"""A consumer's repository: real releases of the engine as commits, its policy, and the pull requests on it."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from tests.support.act import CONSUMER
from tests.support.github_server import GitHubServer
from tests.support.scratch import Scratch

ROWS = ("preflight-vllm-two-workers", "preflight-sglang-disaggregated")
# Long enough to be caught in the act.
SLOW = "demo-vllm-aggregated"
_CONFIGS = Path(__file__).resolve().parents[2] / "configs"


@dataclass
class Consumer:
    """`main` holds 0.12.0; `old` is its commit, `release` a branch with 0.12.1."""

    scratch: Scratch
    commits: dict[str, str] = field(default_factory=dict)

    @classmethod
    def make(cls, folder: Path) -> Consumer:
        """Policy and releases: main at 0.12.0, release/0.12 at 0.12.1, branches with what comes next."""
        made = cls(Scratch(folder))
        made.policy(rows=list(ROWS))
        made.policy(rows=[SLOW, ROWS[0]], name="slow")
        git = made.scratch.git
        made.commits["main"] = made.scratch.release("0.12.0")
        git("checkout", "--quiet", "-b", "release/0.12")
        made.commits["release/0.12"] = made.scratch.release("0.12.1")
        git("checkout", "--quiet", "-b", "red")
        # The change drops the row that will be red from its own policy.
        made.policy(rows=[ROWS[1]])
        made.commits["red"] = made.scratch.release("0.13.0")
        git("checkout", "--quiet", "main")
        git("checkout", "--quiet", "-b", "green")
        made.commits["green"] = made.scratch.release("0.12.1")
        git("checkout", "--quiet", "main")
        return made

    def policy(self, *, rows: list[str], name: str = "pr", **build: Any) -> None:
        """Write a campaign without revisions, and the rows that the consumer keeps itself."""
        place = self.scratch.folder / ".replay-parity"
        (place / "campaigns").mkdir(parents=True, exist_ok=True)
        (place / "rows").mkdir(exist_ok=True)
        campaign = {
            "schema_version": 1,
            "name": name,
            "title": "The check of pull requests",
            "build": {"toolchain": "path", "profile": "release", "flags": [], "features": [], **build},
            "rows": rows,
        }
        (place / "campaigns" / f"{name}.yaml").write_text(yaml.safe_dump(campaign, sort_keys=False))
        for row in ROWS:
            (place / "rows" / f"{row}.yaml").write_text((_CONFIGS / "rows" / f"{row}.yaml").read_text())

    def pull_request(self, number: int, head: str, base: str, *, fork: bool = False) -> dict[str, Any]:
        """The event of a pull request; `head` and `base` are branches."""
        owner = "somebody/aisimulate" if fork else CONSUMER
        return {
            "number": number,
            "pull_request": {
                "number": number,
                "head": {"sha": self.commits[head], "ref": head, "repo": {"full_name": owner}},
                "base": {"sha": self.commits[base], "ref": base, "repo": {"full_name": CONSUMER}},
            },
            "repository": {"full_name": CONSUMER, "default_branch": "main"},
        }

    def tell(self, server: GitHubServer, number: int, head: str, base: str) -> None:
        """Let GitHub know the pull request and its base branch."""
        pull = json.loads(json.dumps(server.description.example("pull-request")))
        pull |= {"number": number, "state": "open", "requested_teams": []}
        pull["head"] |= {"sha": self.commits[head], "ref": head}
        pull["base"] |= {"sha": self.commits[base], "ref": base}
        server.pulls[number] = pull
        server.branches[base] = self.commits[base]
