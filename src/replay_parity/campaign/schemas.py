"""JSON Schemas of the files that people write, for editors; `stages.schemas` writes all published schemas.

They are committed in `schemas/` and checked fresh by a test. The models stay the law: a schema cannot say everything.
"""

from __future__ import annotations

import json

from pydantic import BaseModel
from pydantic.json_schema import GenerateJsonSchema

from replay_parity.campaign.corpus_file import Corpus
from replay_parity.campaign.models import Campaign
from replay_parity.campaign.row import Row

_MODELS: dict[str, type[BaseModel]] = {"campaign": Campaign, "row": Row, "corpus": Corpus}


def rendered() -> dict[str, bytes]:
    """File name to bytes of every published schema of an input file."""
    return {f"{name}.schema.json": render(name, model, f"replay-parity {name} file") for name, model in _MODELS.items()}


def render(name: str, model: type[BaseModel], title: str) -> bytes:
    """Bytes of one schema, with a name that nothing is fetched from."""
    body = model.model_json_schema(mode="validation")
    head = {
        "$schema": GenerateJsonSchema.schema_dialect,
        # A name, not an address: nothing is fetched from it.
        "$id": f"urn:replay-parity:{name}:1",
        "title": title,
        "description": body.pop("description"),
    }
    body.pop("title")
    return (json.dumps({**head, **body}, indent=2, ensure_ascii=False) + "\n").encode()
