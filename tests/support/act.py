"""A consumer's repository and ours in act, the local workflow engine: jobs run on this machine, artifacts are real.

`actions/checkout`, `setup-python` and the artifact actions cannot be fetched where tests run; tests/act/actions holds
stand-ins, those of the artifacts around the official client. Our own action and workflow are this very tree.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from tests.support.github_server import REPOSITORY, TOKEN
from tests.support.go_tools import go_tool
from tests.support.node_tools import node_tools
from tests.support.scratch import Scratch, settings

ROOT = Path(__file__).resolve().parents[2]
OWN = "replay-parity/replay-parity"
CONSUMER = REPOSITORY
WORKFLOW = ROOT / ".github" / "workflows" / "replay-parity.yml"
LABEL = "prod-aisimulate-default-amd64-v1"
RUNNERS = {"default": {"labels": [LABEL], "container": ""}}
_STAND_INS = ROOT / "tests" / "act" / "actions"
_TIMEOUT_SECONDS = 1800


@dataclass
class Finished:
    """A run: exit code, log, and the artifacts that are there now."""

    returncode: int
    log: str
    artifacts: Path

    def job(self, name: str) -> str:
        """`succeeded`, `failed`, or `absent`; `name` as in the workflow, a row's with its shard."""
        lines = [line for line in self.log.splitlines() if re.match(rf"\[[^\]]*?{re.escape(name)}[^\]/]*\]", line)]
        if any("Job failed" in line for line in lines):
            return "failed"
        return "succeeded" if any("Job succeeded" in line for line in lines) else "absent"

    def output(self, name: str) -> str:
        """The first value of an output of that name."""
        found = re.search(rf"::set-output:: {re.escape(name)}=(.+)", self.log)
        assert found is not None, f"no output {name}"
        return found[1].strip()

    def zipped(self, part: str) -> Path:
        """The archive of the one artifact whose name holds `part`."""
        found = [path for path in self.artifacts.rglob("*.zip") if part in path.name]
        assert len(found) == 1, sorted(path.name for path in self.artifacts.rglob("*.zip"))
        return found[0]

    def read(self, part: str, name: str) -> bytes:
        """A file of an artifact."""
        with zipfile.ZipFile(self.zipped(part)) as archive:
            return archive.read(name)

    def verdict(self, attempt: int = 1) -> dict[str, Any]:
        """The kept verdict of an attempt."""
        document: dict[str, Any] = json.loads(self.read(f"~verdict~{attempt}", "verdict.json"))
        return document


@dataclass
class Act:
    """Two repositories and one artifact folder; every run is a run of the consumer's workflow."""

    folder: Path
    consumer: Scratch
    inputs: dict[str, Any] = field(default_factory=dict)
    api_url: str = "http://127.0.0.1:9"

    @property
    def log(self) -> Path:
        """What the engine printed last."""
        return self.folder / "act.log"

    @property
    def artifacts(self) -> Path:
        """Artifacts of the run, kept between attempts."""
        return self.folder / "artifacts"

    def _workflow(self, event: str) -> str:
        """The consumer's workflow file."""
        wanted = {
            "campaign": "pr",
            "runners": json.dumps(RUNNERS),
            "cache": str(settings().cache),
            "hosted_runner": "ubuntu-24.04",
        }
        document = {
            "name": "parity",
            "on": [event],
            "permissions": {},
            "jobs": {
                "parity": {
                    "permissions": {"contents": "read", "pull-requests": "read", "checks": "write"},
                    "uses": f"{OWN}/.github/workflows/replay-parity.yml@{own_pin()}",
                    "with": {**wanted, **self.inputs},
                }
            },
        }
        return yaml.safe_dump(document, sort_keys=False)

    def run(self, event: dict[str, Any], *, name: str = "pull_request", attempt: int = 1) -> Finished:
        """Run the consumer's workflow for an event."""
        return self.finish(self.start(event, name=name, attempt=attempt))

    def rerun(
        self, first: Finished, event: dict[str, Any], *, jobs: Sequence[str], attempt: int, shard: str = ""
    ) -> Finished:
        """Run some jobs of the workflow again, as "re-run failed jobs" does, with the outputs and artifacts there are.

        The engine has no such command, so the reusable workflow is cut down to these jobs, and what they need of the
        others is written in.
        """
        known = {f"needs.plan.outputs.{name}": f"'{first.output(name)}'" for name in ("plan-artifact", "artifacts")}
        known["needs.plan.outputs.count"] = "'1'"
        known |= {f"needs.{job}.result": "'success'" for job in {"plan", "build", "row"} - set(jobs)}
        cells = {"include": [{"shard": shard, "runner": "default"}]}
        known["fromJSON(needs.plan.outputs.matrix)"] = f"fromJSON('{json.dumps(cells)}')"
        document = _replaced(yaml.safe_load(WORKFLOW.read_text()), known)
        document["jobs"] = {name: job for name, job in document["jobs"].items() if name in jobs}
        for job in document["jobs"].values():
            job["needs"] = [need for need in _listed(job.get("needs", [])) if need in jobs]
            if not job["needs"]:
                del job["needs"]
        document["concurrency"] = f"rerun-{attempt}"
        # YAML 1.1 reads the key `on` as true.
        document["on"] = document.pop(True)
        return self.finish(
            self.start(event, attempt=attempt, own={WORKFLOW.name: yaml.safe_dump(document, sort_keys=False)})
        )

    def start(
        self, event: dict[str, Any], *, name: str = "pull_request", attempt: int = 1, own: dict[str, str] | None = None
    ) -> subprocess.Popen[str]:
        """Start a run; its log goes to `act.log`. `own` are workflow files in place of ours."""
        work = self._clone(event, name)
        event_file = self.folder / "event.json"
        event_file.write_text(json.dumps(event))
        argv = [str(go_tool("act")), name, "--eventpath", str(event_file), "--directory", str(work)]
        argv += ["--workflows", str(work / ".github" / "workflows" / "parity.yml")]
        argv += ["--artifact-server-path", str(self.artifacts), "--artifact-server-addr", "127.0.0.1"]
        argv += ["--artifact-server-port", _free_port(), "--no-skip-checkout", "--concurrent-jobs", "2"]
        argv += [f"--action-cache-path={self.folder / 'actions'}", "--pull=false", "--secret", f"GITHUB_TOKEN={TOKEN}"]
        for label in (LABEL, "ubuntu-24.04"):
            argv += ["--platform", f"{label}=-self-hosted"]
        repositories = {**self._stand_ins(), f"{OWN}@{own_pin()}": self._own(own or {})}
        for repository, place in repositories.items():
            argv += ["--local-repository", f"{repository}={place}"]
        variables = {
            "RP_ACT_ORIGIN": str(self.consumer.folder),
            "RP_ACT_PYTHON": sys.executable,
            "RP_ACT_NODE_MODULES": str(node_tools()),
            "GITHUB_RUN_ATTEMPT": str(attempt),
            "GITHUB_API_URL": self.api_url,
        }
        for key, value in variables.items():
            argv += ["--env", f"{key}={value}"]
        with self.log.open("w") as log:
            return subprocess.Popen(
                argv,
                cwd=self.folder,
                env=_host_environment(),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                text=True,
                start_new_session=True,
            )

    def finish(self, running: subprocess.Popen[str]) -> Finished:
        """Wait for a run, within a limit."""
        try:
            running.wait(timeout=_TIMEOUT_SECONDS)
        except subprocess.TimeoutExpired:
            os.killpg(running.pid, signal.SIGKILL)
            raise
        return Finished(running.returncode, self.log.read_text(), self.artifacts)

    def _clone(self, event: dict[str, Any], name: str) -> Path:
        """What act takes for the checkout: it reads the commit and the repository's name there."""
        work = self.folder / "work"
        shutil.rmtree(work, ignore_errors=True)
        subprocess.run(["git", "clone", "--quiet", str(self.consumer.folder), str(work)], check=True)
        git = ["git", "-C", str(work)]
        sha = event.get("pull_request", {}).get("head", {}).get("sha") or event.get("after") or "HEAD"
        subprocess.run([*git, "checkout", "--quiet", "--detach", sha], check=True)
        subprocess.run([*git, "remote", "set-url", "origin", f"https://github.com/{CONSUMER}"], check=True)
        place = work / ".github" / "workflows"
        place.mkdir(parents=True, exist_ok=True)
        (place / "parity.yml").write_text(self._workflow(name))
        return work

    def _own(self, workflows: dict[str, str]) -> Path:
        """This tree's tracked and new files, as the action's repository holds them."""
        place = self.folder / "own"
        shutil.rmtree(place, ignore_errors=True)
        listed = subprocess.run(
            ["git", "-C", str(ROOT), "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
            capture_output=True,
            text=True,
            check=True,
        )
        for name in filter(None, listed.stdout.split("\0")):
            source = ROOT / name
            if source.is_file() and not name.startswith(("tests/", "benchmarks/", "docs/")):
                target = place / name
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(source, target)
        for name, text in workflows.items():
            (place / ".github" / "workflows" / name).write_text(text)
        return _committed(place)

    def _stand_ins(self) -> dict[str, Path]:
        text = WORKFLOW.read_text() + (ROOT / "action.yml").read_text()
        found = sorted(set(re.findall(r"uses: (actions/[a-z-]+)@([0-9a-f]{40})", text)))
        places = {}
        for repository, commit in found:
            name = repository.partition("/")[2]
            place = self.folder / "stand-ins" / name
            shutil.rmtree(place, ignore_errors=True)
            shutil.copytree(_STAND_INS / name, place)
            places[f"{repository}@{commit}"] = _committed(place)
        return places


def own_pin() -> str:
    """The commit at which the reusable workflow takes its own action."""
    text = WORKFLOW.read_text()
    (pin,) = set(re.findall(rf"uses: {OWN}@([0-9a-f]{{40}})", text))
    return str(pin)


def _committed(place: Path) -> Path:
    git = ["git", "-c", "user.name=t", "-c", "user.email=t@example.invalid", "-C", str(place)]
    subprocess.run([*git, "init", "--quiet"], check=True)
    subprocess.run([*git, "add", "--all"], check=True)
    subprocess.run([*git, "commit", "--quiet", "--message", "all"], check=True)
    return place


def _host_environment() -> dict[str, str]:
    names = ("PATH", "HOME", "CARGO_HOME", "RUSTUP_HOME", "LANG", "SSL_CERT_FILE", "PIP_INDEX_URL", "TMPDIR")
    return {name: os.environ[name] for name in names if name in os.environ}


def _replaced(node: Any, known: dict[str, str]) -> Any:
    """The document with expressions of finished jobs as literals."""
    if isinstance(node, dict):
        return {key: _replaced(value, known) for key, value in node.items()}
    if isinstance(node, list):
        return [_replaced(value, known) for value in node]
    if isinstance(node, str):
        for old, new in known.items():
            node = node.replace(old, new)
    return node


def _listed(needs: str | list[str]) -> list[str]:
    return [needs] if isinstance(needs, str) else needs


def _free_port() -> str:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return str(probe.getsockname()[1])
