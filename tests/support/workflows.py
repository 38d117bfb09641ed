"""The workflow files and action.yml of this repository, as documents."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parents[2]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
ACTION = ROOT / "action.yml"
OWN = "replay-parity/replay-parity"


def document(path: Path) -> dict[str, Any]:
    """A workflow or action file; the key `on`, which YAML 1.1 reads as true, is called `on` again."""
    found: dict[Any, Any] = yaml.safe_load(path.read_text("utf-8"))
    if True in found:
        found["on"] = found.pop(True)
    return found


def workflow(name: str) -> dict[str, Any]:
    """A workflow of ours by the name of its file, without `.yml`."""
    return document(ROOT / ".github" / "workflows" / f"{name}.yml")


def steps(found: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Every step of every job, or of a composite action."""
    for job in found.get("jobs", {}).values():
        yield from job.get("steps", [])
    yield from found.get("runs", {}).get("steps", [])


def uses(found: dict[str, Any]) -> Iterator[str]:
    """Everything that is used: actions by steps, workflows by jobs."""
    yield from (job["uses"] for job in found.get("jobs", {}).values() if "uses" in job)
    yield from (step["uses"] for step in steps(found) if "uses" in step)


def asked_permissions(found: dict[str, Any]) -> dict[str, str]:
    """What all jobs together ask for, which a caller must grant: `write` includes `read`."""
    asked: dict[str, str] = {}
    for job in found["jobs"].values():
        for scope, access in job["permissions"].items():
            if asked.get(scope) != "write":
                asked[scope] = access
    return asked
