"""Every published JSON Schema, files and documents: `python -m replay_parity.stages.schemas FOLDER`."""

from __future__ import annotations

import sys
from pathlib import Path

from pydantic import BaseModel

from replay_parity.campaign import schemas as files
from replay_parity.parity.differences_model import Differences
from replay_parity.parity.result import RowResult
from replay_parity.parity.verdict import Verdict
from replay_parity.pin.models import ArtifactRecord
from replay_parity.stages.plan import Plan
from replay_parity.system.files import write_whole

_DOCUMENTS: dict[str, type[BaseModel]] = {
    "plan": Plan,
    "artifact": ArtifactRecord,
    "result": RowResult,
    "differences": Differences,
    "verdict": Verdict,
}


def rendered() -> dict[str, bytes]:
    """File name to bytes of every published schema."""
    documents = {
        f"{name}.schema.json": files.render(name, model, f"replay-parity {name}.json")
        for name, model in _DOCUMENTS.items()
    }
    return {**files.rendered(), **documents}


def write(folder: Path) -> None:
    """Write all schemas into a folder."""
    for name, data in rendered().items():
        write_whole(folder / name, data)


if __name__ == "__main__":
    write(Path(sys.argv[1]))
