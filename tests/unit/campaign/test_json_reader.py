from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from replay_parity.campaign.document import Document, Mark
from replay_parity.campaign.json_reader import read_json
from replay_parity.campaign.yaml_reader import DEPTH_CAP, SIZE_CAP
from replay_parity.errors import ConfigurationError

_PATH = Path("x.json")


def _read(text: str) -> Document:
    return read_json(text.encode(), path=_PATH)


def _refusal(text: str | bytes) -> str:
    with pytest.raises(ConfigurationError) as caught:
        read_json(text.encode() if isinstance(text, str) else text, path=_PATH)
    return str(caught.value)


def test_every_key_and_item_has_its_mark() -> None:
    document = _read('{\n "a": [1, {"b": []}],\n\n "c": {"d": "x,\\"]}"}\n}')
    assert document.data == {"a": [1, {"b": []}], "c": {"d": 'x,"]}'}}
    assert document.marks == {
        (): Mark(1, 1),
        ("a",): Mark(2, 2),
        ("a", 0): Mark(2, 8),
        ("a", 1): Mark(2, 11),
        ("a", 1, "b"): Mark(2, 12),
        ("c",): Mark(4, 2),
        ("c", "d"): Mark(4, 8),
    }


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('{"a": 1,\n "a": 2}', "x.json:2: has the key 'a' twice (first on line 1)"),
        ('{"b": [{"a": 1, "\\u0061": 2}]}', "x.json:1 /b/0: has the key 'a' twice"),
        ('{"a": NaN}', "x.json:1 /a: holds NaN, which is no JSON number"),
        ('{"a": [0, Infinity]}', "x.json:1 /a/1: holds Infinity, which is no JSON number"),
        ('{"a": -Infinity}', "holds -Infinity, which is no JSON number"),
        ('{"a": 1e999}', "which is too large"),
        (f'{{"a": {2**64}}}', "does not fit into 64 bits"),
        (f'{{"a": {"9" * 5000}}}', "does not fit into 64 bits"),
        ('{"a": "\\ud800"}', "x.json:1 /a: holds half a surrogate pair"),
        ('{"\\udc00": 1}', "x.json:1: holds half a surrogate pair"),
        ('{"a": 1', "is not JSON"),
        ('{"a": 1}\n{}', "x.json:2: is not JSON: Extra data"),
        ("{'a': 1}", "is not JSON"),
        ("", "is not JSON"),
        ("[]", "does not hold an object"),
        ("\ufeff{}", "byte order mark"),
        ('{"a": "\x07"}', "control character U+0007"),
        (b'{"a": "\xff"}', "is not UTF-8 text"),
        ('{"a": ' + "[" * DEPTH_CAP + "]" * DEPTH_CAP + "}", f"deeper than {DEPTH_CAP}"),
        ("[" * 200_000, f"deeper than {DEPTH_CAP}"),
        (b" " * (SIZE_CAP + 1), "at most 1,048,576 are read"),
    ],
)
def test_what_is_refused_is_told_in_one_sentence(text: str | bytes, words: str) -> None:
    refusal = _refusal(text)
    assert words in refusal
    assert "\n" not in refusal


_JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), inner)
    ),
    max_leaves=8,
)


@settings(max_examples=40, deadline=None)
@given(value=st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), _JSON), indent=st.none() | st.just(2))
def test_values_and_places_are_those_of_json(value: dict[str, Any], indent: int | None) -> None:
    document = _read(json.dumps(value, indent=indent))
    assert document.data == value
    assert set(document.marks) == set(_places(value, ()))


def _places(value: Any, place: tuple[str | int, ...]) -> list[tuple[str | int, ...]]:
    members = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [place, *(inner for key, item in members for inner in _places(item, (*place, key)))]
