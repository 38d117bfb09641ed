"""Numbers and strings one by one, against orjson and Python."""

from __future__ import annotations

import json

import orjson
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from replay_parity.canonical.numbers import NUMBER, number_fault, positive_exponent
from replay_parity.canonical.shown import json_pointer, printable, shown
from replay_parity.canonical.strings import string_end

DIGITS = st.text("0123456789", min_size=1, max_size=25)
DECIMALS = st.builds(
    lambda sign, whole, fraction, exponent: sign + whole + fraction + exponent,
    st.sampled_from(["", "-"]),
    st.just("0") | DIGITS.filter(lambda digits: not digits.startswith("0")),
    st.just("") | DIGITS.map(lambda digits: f".{digits}"),
    st.just("") | st.builds(lambda mark, value: f"{mark}{value}", st.sampled_from(["e", "e-", "e+", "E"]), DIGITS),
)
FINITE = st.floats(allow_nan=False, allow_infinity=False)


def reproduced(token: str) -> bool:
    try:
        again = orjson.dumps(orjson.loads(token)).decode()
    except orjson.JSONDecodeError:
        return False
    return again.replace("e+", "e") == token.replace("e+", "e")


@given(DECIMALS | FINITE.map(repr) | FINITE.map(lambda value: orjson.dumps(value).decode()))
@example("1e999")
@example("1e-999999999999999999999999999")
@example("0.00001")
@example("1e-05")
def test_a_number_is_canonical_when_it_is_reproduced(token: str) -> None:
    assert NUMBER.fullmatch(token)
    assert (number_fault(token) is None) == reproduced(token)


@given(FINITE)
def test_python_and_orjson_pick_the_same_digits(value: float) -> None:
    written = orjson.dumps(value).decode()
    assert float(written) == value
    digits = [text.partition("e")[0].replace(".", "").strip("-").strip("0") for text in (written, repr(value))]
    assert digits[0] == digits[1]


@given(FINITE)
def test_both_spellings_of_an_exponent_are_canonical(value: float) -> None:
    written = orjson.dumps(value).decode()
    bare = written.replace("e+", "e")
    assert number_fault(written) is None
    assert number_fault(bare) is None
    assert positive_exponent(bare) == (None if abs(value) < 1e16 else "e")


@pytest.mark.parametrize(
    ("token", "spelling"), [("1e+16", "e+"), ("1e16", "e"), ("1e-7", None), ("1.5", None), ("12", None)]
)
def test_spelling_of_positive_exponents(token: str, spelling: str | None) -> None:
    assert positive_exponent(token) == spelling


@given(st.text(st.characters(exclude_categories=["Cs"])), st.booleans())
def test_a_string_is_canonical_when_it_is_reproduced(value: str, ascii_only: bool) -> None:
    token = json.dumps(value, ensure_ascii=ascii_only)
    canonical = orjson.dumps(orjson.loads(token)).decode() == token
    assert (string_end(token, 0) == len(token)) == canonical


@given(st.text(st.sampled_from(list('ab"\\/u0018dDfFcC\x00\n\x1f\x7f'))))
def test_any_string_token_is_judged_like_orjson_does(body: str) -> None:
    token = f'"{body}"'
    try:
        expected = orjson.dumps(orjson.loads(token)).decode() == token
    except orjson.JSONDecodeError:
        expected = False
    assert (string_end(token, 0) == len(token)) == expected


@given(st.text(), st.integers(2, 50))
def test_shown_text_is_printable_and_short(text: str, limit: int) -> None:
    assert printable(text, limit).isprintable()
    assert len(printable(text, limit)) <= limit


def test_shown_text_hides_nothing_else() -> None:
    assert printable("a\x1b[31m\u202eb", 40) == "a\\u001b[31m\\u202eb"
    assert printable("\U000e0001", 40) == "\\U000e0001"
    assert printable("abcdef", 6) == "abcdef"
    assert printable("abcdefg", 6) == "abcde…"
    assert shown({"b": 1.0, "a": None}, 80) == '{"a":null,"b":1.0}'


def test_json_pointer() -> None:
    assert json_pointer([]) == ""
    assert json_pointer(["per_request", 0, "a/b~c", ""]) == "/per_request/0/a~1b~0c/"
