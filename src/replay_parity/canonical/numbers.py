"""Which JSON numbers are canonical: those that the engine's writer itself would have written.

The engine writes with serde_json, Python proves with orjson. Both were compared on 900,000 doubles (random bits,
every decimal exponent, scaled integers, extremes):

- Integers are plain digits in -2^63 .. 2^64-1. Anything wider is read as a double by both, so it loses digits, and
  "-0" loses its sign.
- A double has the shortest digits that read back to the same double, and the nearest of those: Python's `repr` picks
  the same ones. It is written in full for 1e-5 <= |x| < 1e16 ("0.00001", "1000000000000000.0", "-0.0"), with an
  exponent otherwise ("1e-6", "5e-324", "1e+16").
- The only freedom is the sign of a positive exponent. Writers on top of `zmij` (serde_json 1.0.151, orjson 3.11.7)
  write "1e+16"; those on top of `ryu` (older serde_json, orjson up to 3.11.6) write "1e16". A revision's lock file
  decides the one, our own environment the other, so either is canonical, as long as a record keeps to one.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import orjson

INTEGER_MINIMUM = -(2**63)
INTEGER_MAXIMUM = 2**64 - 1

NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*+)(?:\.[0-9]++)?(?:[eE][+-]?[0-9]++)?")
NON_FINITE = re.compile(r"[-+]?(?:nan|inf(?:inity)?)\b", re.IGNORECASE)
# No canonical number is longer ("-2.2250738585072014e-308"); more digits need no arithmetic to be refused.
_LONGEST = 24
_NEGATIVE_ZERO = "-0"
_DECIMAL = re.compile(r"-?([0-9]+)(?:\.([0-9]+))?(?:[eE]([+-]?[0-9]+))?")


@dataclass(frozen=True, slots=True)
class NumberFault:
    """Why a number is not canonical: the reason of the refusal, and a sentence."""

    reason: str
    message: str


def number_fault(token: str) -> NumberFault | None:
    """Judge one token that matches `NUMBER`; None when it is canonical in either spelling of the exponent."""
    is_float = any(char in token for char in ".eE")
    if len(token) > _LONGEST:
        return _too_long(token, is_float=is_float)
    return _float_fault(token) if is_float else _integer_fault(token)


def positive_exponent(token: str) -> str | None:
    """How the token spells a positive exponent: "e+", "e", or None when it has none."""
    _, mark, exponent = token.partition("e")
    if not mark or exponent.startswith("-"):
        return None
    return "e+" if exponent.startswith("+") else "e"


def _too_long(token: str, *, is_float: bool) -> NumberFault:
    if is_float and float(token) in (float("inf"), float("-inf")):
        return _non_finite(token)
    return NumberFault("number_loses_digits", f"has more digits than a 64-bit number keeps ({len(token)} characters)")


def _integer_fault(token: str) -> NumberFault | None:
    if token == _NEGATIVE_ZERO:
        return NumberFault("number_loses_digits", "is the integer -0, which loses its sign when it is read")
    if not INTEGER_MINIMUM <= int(token) <= INTEGER_MAXIMUM:
        return NumberFault("number_loses_digits", f"is the integer {token}, which does not fit into 64 bits")
    return None


def _float_fault(token: str) -> NumberFault | None:
    value = float(token)
    if value in (float("inf"), float("-inf")):
        return _non_finite(token)
    written = orjson.dumps(value).decode()
    if token.replace("e+", "e") == written.replace("e+", "e"):
        return None
    if _decimal(token) == _decimal(written):
        return NumberFault("number_form", f"is spelled {token}, where {written} is the canonical form")
    return NumberFault("number_loses_digits", f"is {token}, which is read as {written}")


def _non_finite(token: str) -> NumberFault:
    return NumberFault("non_finite_number", f"is {token[:_LONGEST]}, which is infinite as a 64-bit number")


def _decimal(token: str) -> tuple[bool, str, int]:
    """Sign, significant digits and exponent: equal for two spellings of one decimal value."""
    match = _DECIMAL.fullmatch(token)
    assert match is not None, token  # noqa: S101 (both callers pass JSON numbers)
    whole, fraction, exponent = match[1], match[2] or "", int(match[3] or 0)
    digits = (whole + fraction).lstrip("0")
    significant = digits.rstrip("0")
    scale = exponent - len(fraction) + len(digits) - len(significant)
    return token.startswith("-"), significant, scale if significant else 0
