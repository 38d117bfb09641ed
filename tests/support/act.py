"""A consumer's repository and ours in act, the local workflow engine: jobs run on this machine, artifacts are real.

`actions/checkout`, `setup-python` and the artifact actions cannot be fetched where tests run; tests/act/actions holds
stand-ins, those of the artifacts around the official client. Our own action and workflow are this very tree.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from tests.support.go_tools import go_tool
from tests.support.node_tools import node_tools
from tests.support.scratch import Scratch, settings

ROOT = Path(__file__).resolve().parents[2]
OWN = "replay-parity/replay-parity"
CONSUMER = "consumer/aisimulate"
LABEL = "prod-aisimulate-default-amd64-v1"
RUNNERS = {"default": {"labels": [LABEL], "container": ""}}
_STAND_INS = ROOT / "tests" / "act" / "actions"
_TIMEOUT_SECONDS = 1800


@dataclass
class Finished:
    """A run: exit code, log, and per job what the engine said of it."""

    returncode: int
    log: str
    artifacts: Path

    def job(self, name: str) -> str:
        """`succeeded`, `failed`, or `absent`."""
        lines = [line for line in self.log.splitlines() if line.startswith(f"[{name}]") or f"/{name}" in line[:160]]
        if any("Job failed" in line for line in lines):
            return "failed"
        return "succeeded" if any("Job succeeded" in line for line in lines) else "absent"

    def unpacked(self, part: str) -> Path:
        """The artifact whose name holds `part`, unpacked."""
        found = [path for path in self.artifacts.glob("*/*") if part in path.name]
        assert len(found) == 1, [path.name for path in self.artifacts.glob("*/*")]
        return unpack(found[0])

    @property
    def verdict(self) -> dict[str, Any]:
        """The kept verdict."""
        document: dict[str, Any] = json.loads((self.unpacked("~verdict~") / "verdict.json").read_bytes())
        return document


def unpack(artifact: Path) -> Path:
    """Folder of an artifact as act's server keeps it: a zip below its name."""
    archive = next(iter(artifact.rglob("*.zip")), None)
    if archive is None:
        return artifact
    target = artifact / "unpacked"
    shutil.rmtree(target, ignore_errors=True)
    shutil.unpack_archive(archive, target)
    return target


@dataclass
class Act:
    """Two repositories and one artifact folder; every run is a run of the consumer's workflow."""

    folder: Path
    consumer: Scratch
    inputs: dict[str, Any] = field(default_factory=dict)
    event_names: str = "pull_request"
    environment: dict[str, str] = field(default_factory=dict)

    @property
    def artifacts(self) -> Path:
        """Artifacts of the run, kept between attempts."""
        return self.folder / "artifacts"

    def workflow(self) -> str:
        """The consumer's workflow file."""
        wanted = {
            "campaign": "pr",
            "runners": json.dumps(RUNNERS),
            "cache": str(settings().cache),
            "hosted_runner": "ubuntu-24.04",
        }
        document = {
            "name": "parity",
            "on": [self.event_names],
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

    def run(self, event: dict[str, Any], *, name: str = "pull_request", attempt: int = 1, **env: str) -> Finished:
        """Run the consumer's workflow for an event."""
        work = self._clone(event)
        event_file = self.folder / "event.json"
        event_file.write_text(json.dumps(event))
        own = self._own()
        argv = [str(go_tool("act")), name, "--eventpath", str(event_file), "--directory", str(work)]
        argv += ["--workflows", str(work / ".github" / "workflows" / "parity.yml")]
        argv += ["--artifact-server-path", str(self.artifacts), "--no-skip-checkout", "--concurrent-jobs", "2"]
        argv += [
            f"--action-cache-path={self.folder / 'actions'}",
            "--pull=false",
            "--artifact-server-port",
            self._port(),
        ]
        for label in (LABEL, "ubuntu-24.04"):
            argv += ["--platform", f"{label}=-self-hosted"]
        for repository, place in {**self._stand_ins(), f"{OWN}@{own_pin()}": own}.items():
            argv += ["--local-repository", f"{repository}={place}"]
        variables = {
            "RP_ACT_ORIGIN": str(self.consumer.folder),
            "RP_ACT_PYTHON": sys.executable,
            "RP_ACT_NODE_MODULES": str(node_tools()),
            "GITHUB_RUN_ATTEMPT": str(attempt),
            "PYTHONDONTWRITEBYTECODE": "1",
            **self.environment,
            **env,
        }
        for key, value in variables.items():
            argv += ["--env", f"{key}={value}"]
        done = subprocess.run(
            argv,
            cwd=self.folder,
            env={**_host_environment(), "DOCKER_HOST": ""},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=_TIMEOUT_SECONDS,
            check=False,
        )
        (self.folder / "act.log").write_text(done.stdout)
        return Finished(done.returncode, done.stdout, self.artifacts)

    def _clone(self, event: dict[str, Any]) -> Path:
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
        (place / "parity.yml").write_text(self.workflow())
        return work

    def _own(self) -> Path:
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
        return _committed(place)

    def _stand_ins(self) -> dict[str, Path]:
        text = (ROOT / ".github" / "workflows" / "replay-parity.yml").read_text() + (ROOT / "action.yml").read_text()
        found = sorted(set(re.findall(r"uses: (actions/[a-z-]+)@([0-9a-f]{40})", text)))
        places = {}
        for repository, commit in found:
            name = repository.partition("/")[2]
            place = self.folder / "stand-ins" / name
            shutil.rmtree(place, ignore_errors=True)
            shutil.copytree(_STAND_INS / name, place)
            places[f"{repository}@{commit}"] = _committed(place)
        return places

    def _port(self) -> str:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            return str(probe.getsockname()[1])


def own_pin() -> str:
    """The commit at which the reusable workflow takes its own action."""
    text = (ROOT / ".github" / "workflows" / "replay-parity.yml").read_text()
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
