"""Valid files for tests to spoil."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

_CAMPAIGN = """schema_version: 1
name: mine
title: A campaign
baseline: {version: 0.12.0}
candidate: {git: /some/repository, revision: main}
relationship: {stated: one after the other}
build: {toolchain: path, profile: release, flags: [], features: []}
rows:
"""

_ROW = {
    "schema_version": "1",
    "title": "A row",
    "corpus": "preflight-one-request",
    "workload": "{kind: trace}",
    "spec": "{topology: {kind: aggregated, workers: {initial_workers: 1}}, engine: {}, requests: []}",
    "evidence": "{pressure: {kind: none}}",
}


@dataclass(frozen=True)
class Desk:
    """A folder in which a user keeps campaigns and rows; all paths are given from it."""

    folder: Path

    def campaign(self, *rows: str, at: str = "c.yaml") -> Path:
        """Write a campaign file that lists `rows`, each as it is written in YAML."""
        return self.write(at, _CAMPAIGN + "".join(f"  - {row}\n" for row in rows))

    def row(self, at: str, **changes: str) -> Path:
        """Write a row file that is named after its file; `changes` take the place of top-level keys."""
        keys = {"name": Path(at).stem, **_ROW, **changes}
        return self.write(at, "".join(f"{key}: {value}\n" for key, value in keys.items()))

    def write(self, at: str, text: str) -> Path:
        """Write any file."""
        path = self.folder / at
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return path


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    """An empty desk."""
    return Desk(tmp_path)
