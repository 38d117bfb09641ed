"""JSON Schemas of the files that people write, for editors: `python -m replay_parity.campaign.schemas FOLDER`.

They are committed in `schemas/` and checked fresh by a test. The models stay the law: a schema cannot say everything.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from pydantic import BaseModel
from pydantic.json_schema import GenerateJsonSchema

from replay_parity.campaign.corpus_file import Corpus
from replay_parity.campaign.models import Campaign
from replay_parity.campaign.row import Row
from replay_parity.system.files import write_whole

_MODELS: dict[str, type[BaseModel]] = {"campaign": Campaign, "row": Row, "corpus": Corpus}


def rendered() -> dict[str, bytes]:
    """File name to bytes of every published schema of an input file."""
    return {f"{name}.schema.json": _render(name, model) for name, model in _MODELS.items()}


def _render(name: str, model: type[BaseModel]) -> bytes:
    body = model.model_json_schema(mode="validation")
    head = {
        "$schema": GenerateJsonSchema.schema_dialect,
        # A name, not an address: nothing is fetched from it.
        "$id": f"urn:replay-parity:{name}:1",
        "title": f"replay-parity {name} file",
        "description": body.pop("description"),
    }
    body.pop("title")
    return (json.dumps({**head, **body}, indent=2, ensure_ascii=False) + "\n").encode()


def main(arguments: list[str]) -> None:
    """Write the schemas into the folder that is the only argument."""
    if len(arguments) != 1:
        raise SystemExit("usage: python -m replay_parity.campaign.schemas FOLDER")
    for name, data in rendered().items():
        write_whole(Path(arguments[0]) / name, data)


if __name__ == "__main__":
    main(sys.argv[1:])
