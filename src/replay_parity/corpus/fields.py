"""Typed fields of one row of a trace; a refusal says which field is wrong and how, the caller knows the line."""

from __future__ import annotations

import json
import math
from typing import Any

import orjson

# Integers of the engine: hash ids are unsigned 64-bit, lengths stay exact in every JSON reader.
_LARGEST_HASH = 2**64 - 1
_LARGEST_LENGTH = 2**53 - 1

# Other names that the engine's loader accepts for a field.
ALIASES = {
    "input_length": "input_tokens",
    "output_length": "output_tokens",
    "timestamp": "created_time",
    "delay": "delay_ms",
}


class RowError(ValueError):
    """A row is not of its format; the message completes "line 7 ..."."""


def json_object(line: bytes) -> dict[str, Any]:
    """One line as a JSON object, or RowError."""
    try:
        value = orjson.loads(line)
    except orjson.JSONDecodeError as error:
        if not line.endswith(b"\n"):
            raise RowError("is cut off: it has neither an end of line nor a whole JSON object") from None
        raise RowError(f"is not JSON ({error.msg} at column {error.colno})") from None
    if not isinstance(value, dict):
        raise RowError("is not a JSON object")
    # Every key has a colon after it: when there are no more colons than keys that were read, no key was dropped.
    if line.count(b":") != _keys(value):
        _refuse_twice(line)
    return value


def _keys(value: dict[str, Any]) -> int:
    """Keys of an object and of the objects in its values and lists; deeper ones only make the caller look closer."""
    count = len(value)
    for item in value.values():
        if isinstance(item, dict):
            count += len(item)
        elif isinstance(item, list) and item and isinstance(item[0], dict):
            count += sum(len(each) for each in item if isinstance(each, dict))
    return count


def _refuse_twice(line: bytes) -> None:
    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        made: dict[str, Any] = {}
        for key, item in pairs:
            if key in made:
                raise RowError(f"has the key {key[:100]!r} twice in one object")
            made[key] = item
        return made

    try:
        # Numbers are not looked at here; as text they have no limit of digits.
        json.loads(line, object_pairs_hook=once, parse_int=str)
    except RecursionError:
        raise RowError("is nested too deeply") from None


def value_of(row: dict[str, Any], name: str) -> Any:
    """The value of a field under its name or its alias; None when it is absent or null. Both at once are refused."""
    alias = ALIASES.get(name)
    if alias is None or alias not in row:
        return row.get(name)
    if name in row:
        raise RowError(f"has both {name} and {alias}, which are one field")
    return row[alias]


def length(row: dict[str, Any], name: str, *, smallest: int) -> int:
    """A required number of tokens."""
    value = value_of(row, name)
    if value is None:
        raise RowError(f"has no {name}")
    if type(value) is not int or not smallest <= value <= _LARGEST_LENGTH:
        raise RowError(f"has a bad {name}: it must be a whole number from {smallest}")
    return value


def milliseconds(row: dict[str, Any], name: str) -> float | None:
    """A time or a delay: finite and not negative; None when it is absent or null."""
    value = value_of(row, name)
    if value is None:
        return None
    if type(value) not in (int, float) or not math.isfinite(value) or value < 0:
        raise RowError(f"has a bad {name}: it must be a finite number from 0, in milliseconds")
    return float(value)


def hash_ids(row: dict[str, Any]) -> list[int]:
    """The required block hashes: at least one, all unsigned 64-bit integers."""
    value = row.get("hash_ids")
    if value is None:
        raise RowError("has no hash_ids")
    if not isinstance(value, list) or not value:
        raise RowError("has bad hash_ids: they must be a list of at least one whole number")
    if not all(type(item) is int and 0 <= item <= _LARGEST_HASH for item in value):
        raise RowError("has bad hash_ids: each must be a whole number from 0 to 2**64 - 1")
    return value


def text(row: dict[str, Any], name: str) -> str:
    """A required text with something in it."""
    value = row.get(name)
    if not isinstance(value, str) or not value.strip():
        raise RowError(f"has no {name}: it must be a text that is not blank")
    return value


def output_ids(row: dict[str, Any], output_length: int) -> None:
    """Planned output tokens are optional; when given, there are exactly as many as the row asks for."""
    value = row.get("output_token_ids")
    if value is None:
        return
    if not isinstance(value, list) or not all(type(item) is int and 0 <= item < 2**32 for item in value):
        raise RowError("has bad output_token_ids: each must be a whole number from 0 to 2**32 - 1")
    if len(value) != output_length:
        raise RowError(f"has {len(value)} output_token_ids for an output_length of {output_length}")
