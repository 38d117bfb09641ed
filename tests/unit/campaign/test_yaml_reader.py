from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from replay_parity.campaign import yaml_reader
from replay_parity.campaign.document import Mark
from replay_parity.campaign.yaml_reader import DEPTH_CAP, SIZE_CAP, VALUES_CAP, read_yaml
from replay_parity.errors import ConfigurationError

_PATH = Path("x.yaml")


@pytest.fixture(params=[yaml.CSafeLoader, yaml.SafeLoader], ids=["compiled", "pure"], autouse=True)
def _both_parsers(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(yaml_reader, "_LOADER", request.param)


def _read(text: str) -> dict[str, Any]:
    return read_yaml(text.encode(), path=_PATH).data


def _refusal(text: str | bytes) -> str:
    with pytest.raises(ConfigurationError) as caught:
        read_yaml(text.encode() if isinstance(text, str) else text, path=_PATH)
    return str(caught.value)


@pytest.mark.parametrize(
    ("written", "value"),
    [
        *[(word, True) for word in ("true", "True", "TRUE")],
        *[(word, False) for word in ("false", "False", "FALSE")],
        *[(word, None) for word in ("null", "Null", "NULL", "~", "")],
        *[(word, word) for word in ("on", "off", "yes", "no", "y", "n", "On", "YES", "tRUE", "nULL")],
        *[(word, word) for word in ("010", "0o17", "0x1f", "0b1", "1_000", "1:30", "190:20:30", "+", ".", "e5")],
        *[(word, word) for word in ("2026-01-31", "2026-01-31T00:00:00Z", "0.12.1", "1.2.3", ".inf", "-.inf", ".nan")],
        *[(word, word) for word in ("=", "1e", "1e+", "--1", "1-", "٣")],
        *[("0", 0), ("-0", 0), ("7", 7), ("-7", -7), ("+7", 7), (str(2**64 - 1), 2**64 - 1), (str(-(2**63)), -(2**63))],
        *[("0.5", 0.5), (".5", 0.5), ("1.", 1.0), ("1e3", 1000.0), ("1E-3", 0.001), ("-1.5e+2", -150.0)],
        *[("'1'", "1"), ('"true"', "true"), ("'~'", "~"), ("''", ""), ('"\\u00e9"', "é")],
    ],
)
def test_plain_scalars_are_what_json_has_a_word_for(written: str, value: object) -> None:
    read = _read(f"key: {written}\n")["key"]
    assert read == value
    assert type(read) is type(value)


def test_block_scalars_are_text() -> None:
    assert _read("a: |\n  1\nb: >-\n  true\n") == {"a": "1\n", "b": "true"}


def test_keys_are_text_as_written() -> None:
    assert _read("{0: a, true: b, null: c, 1.50: d, '0x1': e}") == {
        "0": "a",
        "true": "b",
        "null": "c",
        "1.50": "d",
        "0x1": "e",
    }
    assert "twice" in _refusal("0: a\n'0': b\n")


def test_every_key_and_item_has_its_mark() -> None:
    document = read_yaml(b"a: 1\nb:\n  - x\n  - {c: 2, d/e~f: [3]}\n", path=_PATH)
    assert document.marks == {
        (): Mark(1, 1),
        ("a",): Mark(1, 1),
        ("b",): Mark(2, 1),
        ("b", 0): Mark(3, 5),
        ("b", 1): Mark(4, 5),
        ("b", 1, "c"): Mark(4, 6),
        ("b", 1, "d/e~f"): Mark(4, 12),
        ("b", 1, "d/e~f", 0): Mark(4, 20),
    }
    assert document.mark(("b", 1, "absent", 4)) == Mark(4, 5)


def test_an_alias_bomb_is_refused_before_anything_is_expanded(monkeypatch: pytest.MonkeyPatch) -> None:
    names = "abcdefghi"
    lines = ["a: &a [x, x, x, x, x, x, x, x, x]"]
    lines += [f"{name}: &{name} [{', '.join([f'*{last}'] * 9)}]" for last, name in itertools.pairwise(names)]
    seen = 0
    parse = yaml.parse

    def counted(*arguments: Any, **named: Any) -> Iterator[Any]:
        nonlocal seen
        for event in parse(*arguments, **named):
            seen += 1
            yield event

    monkeypatch.setattr(yaml, "parse", counted)
    bomb = "\n".join(lines)
    assert len(bomb) < 500
    assert "anchor" in _refusal(bomb)
    assert seen == 5


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a: &x 1", "x.yaml:1: has the anchor '&x'"),
        ("a: {b: &x {}}", "x.yaml:1 /a: has the anchor '&x'"),
        ("&x a: 1", "has the anchor '&x'"),
        ("a: *x", "uses the alias '*x'"),
        ("*x : 1", "uses the alias '*x'"),
        ("a: !!str 1", "has the tag"),
        ("a: !local 1", "has the tag '!local'"),
        ("a: ! 1", "has the tag '!'"),
        ("!!map {a: 1}", "has the tag"),
        ("a: !!python/name:os.system ''", "has the tag"),
        ("%TAG ! tag:x,2000:\n---\na: 1", "directive"),
        ("a: 1\n---\nb: 1", "x.yaml:2: holds a second document"),
        ("a: 1\n---\n", "second document"),
        ("a: 1\nb: {c: 1,\n  c: 2}", "x.yaml:3 /b: has the key 'c' twice (first on line 2)"),
        ("? [a]\n: 1", "has a key that is no plain text"),
        ("? {a: 1}\n: 1", "has a key that is no plain text"),
        ("?\n: 1", "has an empty key"),
        ("'': 1", "has an empty key"),
        ("<<: {a: 1}", "merge key"),
        ("a:\n\t- b", "x.yaml:2: is indented with a tab; YAML wants spaces"),
        ("a: 1\n\tb: 2", "x.yaml:2: is indented with a tab; YAML wants spaces"),
        ("a: b: c", "put a text that holds ': ' in quotes"),
        ("a: @b", "put a text that starts with '@'"),
        ("a: 'b", "is not YAML"),
        ("a: [1,", "is not YAML"),
        ("a: 1e999", "holds the number 1e999, which is too large (if it is a text, put it in quotes)"),
        (f"a: {2**64}", "does not fit into 64 bits"),
        (f"a: {'9' * 5000}", "does not fit into 64 bits"),
        ('a: "\\ud800"', ""),
        ("", "is empty"),
        ("# c", "is empty"),
        ("null", "is empty"),
        ("- a", "does not hold a mapping"),
        ("text", "does not hold a mapping"),
        ("a: x\u2028b", "control character U+2028"),
        ("a: x\x85b", "control character U+0085"),
        ("a: 1\nb: \x1b[31m", "x.yaml:2: holds the control character U+001B"),
        ("\ufeffa: 1", "byte order mark"),
        ("a: \ufeff", "control character U+FEFF"),
        (b"a: 1\nb: \xff", "x.yaml:2: is not UTF-8 text (byte 0xff)"),
        (b"a: \xed\xa0\x80", "is not UTF-8 text"),
        ("a: 1".encode("utf-16-be"), "control character U+0000"),
        ("a: 1".encode("utf-16"), "UTF-16"),
    ],
)
def test_what_is_refused_is_told_in_one_sentence(text: str | bytes, words: str) -> None:
    refusal = _refusal(text)
    assert words in refusal
    assert refusal.startswith("x.yaml")
    assert "\n" not in refusal


def test_caps_on_size_depth_and_values() -> None:
    assert _read("a: " + "[" * (DEPTH_CAP - 1) + "]" * (DEPTH_CAP - 1))
    for opening in ("[", "{a: "):
        assert f"deeper than {DEPTH_CAP}" in _refusal("a: " + opening * 100_000)
    assert f"deeper than {DEPTH_CAP}" in _refusal("".join("  " * depth + "a:\n" for depth in range(DEPTH_CAP + 1)))
    assert "at most 1,048,576 are read" in _refusal(b"a: " + b"x" * SIZE_CAP)
    if yaml_reader._LOADER is yaml.CSafeLoader:  # the other one takes seconds
        assert f"more than {VALUES_CAP:,} values" in _refusal("a: [" + "1," * (VALUES_CAP + 1) + "]")


_TEXT = st.text(st.characters(min_codepoint=32, max_codepoint=0x10FFF, exclude_categories=["Cs", "Cc", "Zl", "Zp"]))
_NUMBERS = st.integers(-(2**63), 2**64 - 1) | st.floats(allow_nan=False, allow_infinity=False)
_JSON = st.recursive(
    st.none() | st.booleans() | _NUMBERS | _TEXT.filter(lambda text: "\ufeff" not in text),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.from_regex(r"[a-z0-9 ]{1,9}", fullmatch=True), inner)
    ),
    max_leaves=8,
)


def _typed(value: Any) -> Any:
    """The value with the type of every scalar, since `1 == 1.0 == True`; -0 has no sign as an integer."""
    if isinstance(value, dict):
        return {key: _typed(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_typed(inner) for inner in value]
    return type(value), repr(value)


@settings(max_examples=40, deadline=None)
@given(value=st.dictionaries(st.from_regex(r"[a-z]{1,9}", fullmatch=True), _JSON, min_size=1))
def test_json_is_read_as_json_means_it(value: dict[str, Any]) -> None:
    assert _typed(_read(json.dumps(value, ensure_ascii=False))) == _typed(value)


@settings(deadline=None)
@given(data=st.binary(max_size=60) | st.text("ab:-[]{},&*!|>'\"%@`#? \n\t01.e~<", max_size=60).map(str.encode))
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    try:
        assert isinstance(read_yaml(data, path=_PATH).data, dict)
    except ConfigurationError as error:
        assert str(error).startswith("x.yaml")  # noqa: PT017 (either outcome is fine)
