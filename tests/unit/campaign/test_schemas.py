from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from replay_parity.campaign.builtin import builtin_configs
from replay_parity.campaign.document import Place
from replay_parity.campaign.yaml_reader import read_yaml
from replay_parity.stages.schemas import rendered, write

_ROOT = Path(__file__).parents[3]
_SHELVES = {"campaigns": "campaign", "rows": "row", "corpora": "corpus"}
_FILES = sorted(path for shelf in _SHELVES for path in (builtin_configs() / shelf).iterdir())
# Mappings whose keys are not ours.
_FREE = {("spec",), ("metadata",), ("expected", "decode_workers"), ("expected", "prefill_workers")}


def _validator(path: Path) -> jsonschema.Draft202012Validator:
    name = f"{_SHELVES[path.parent.name]}.schema.json"
    return jsonschema.Draft202012Validator(json.loads((_ROOT / "schemas" / name).read_text(encoding="utf-8")))


def _mappings(value: Any, place: Place = ()) -> Iterator[dict[str, Any]]:
    if place in _FREE:
        return
    if isinstance(value, dict):
        yield value
        for key, inner in value.items():
            yield from _mappings(inner, (*place, key))
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from _mappings(inner, (*place, index))


def test_the_committed_schemas_are_fresh() -> None:
    committed = {path.name: path.read_bytes() for path in (_ROOT / "schemas").iterdir()}
    fresh = rendered()
    assert committed == fresh, "run `make schemas`"


def test_the_command_writes_them(tmp_path: Path) -> None:
    write(tmp_path)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == rendered()


@pytest.mark.parametrize("name", sorted(rendered()))
def test_they_are_schemas_with_a_name_and_fetch_nothing(name: str) -> None:
    schema = json.loads(rendered()[name])
    jsonschema.Draft202012Validator.check_schema(schema)
    assert schema["$id"].startswith("urn:replay-parity:")
    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert schema["title"]
    assert schema["description"]
    assert '"$ref": "http' not in rendered()[name].decode()


@pytest.mark.parametrize("path", _FILES, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_every_shipped_file_is_valid_and_names_its_schema(path: Path) -> None:
    first = path.read_text(encoding="utf-8").splitlines()[0]
    kind = _SHELVES[path.parent.name]
    assert first == f"# yaml-language-server: $schema=../../schemas/{kind}.schema.json"
    assert (path.parent / first.split("=")[1]).resolve() == _ROOT / "schemas" / f"{kind}.schema.json"
    _validator(path).validate(read_yaml(path.read_bytes(), path=path).data)


@pytest.mark.parametrize("path", _FILES, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_an_unknown_key_is_refused_at_every_place(path: Path) -> None:
    validator = _validator(path)
    data = read_yaml(path.read_bytes(), path=path).data
    for mapping in list(_mappings(data)):
        mapping["surprise"] = 1
        assert not validator.is_valid(data)
        del mapping["surprise"]
    assert validator.is_valid(data)
