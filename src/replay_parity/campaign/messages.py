"""pydantic's findings as plain sentences: what is wrong, at which line of which file, and what was meant."""

from __future__ import annotations

import difflib
import types
from collections.abc import Callable, Iterator
from typing import Annotated, Any, Union, get_args, get_origin

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from replay_parity.campaign.document import Document, Finding, Place

_SHOWN_PROBLEMS = 50
_SHOWN_VALUE = 80

_SENTENCES: dict[str, Callable[[dict[str, Any]], str]] = {
    "missing": lambda _: "the key is missing",
    "says_text": lambda ctx: str(ctx["sentence"]),
    "says_value": lambda ctx: str(ctx["sentence"]),
    "value_error": lambda ctx: str(ctx["error"]),
    "literal_error": lambda ctx: "must be " + _plain(str(ctx["expected"])),
    "union_tag_invalid": lambda ctx: "must be one of " + _plain(str(ctx["expected_tags"])),
    "string_type": lambda _: "must be text",
    "int_type": lambda _: "must be a whole number",
    "float_type": lambda _: "must be a number",
    "bool_type": lambda _: "must be true or false",
    "tuple_type": lambda _: "must be a list",
    "dict_type": lambda _: "must be a mapping of keys to values",
    "model_type": lambda _: "must be a mapping of keys to values",
    "model_attributes_type": lambda _: "must be a mapping of keys to values",
    "greater_than": lambda ctx: f"must be above {ctx['gt']}",
    "greater_than_equal": lambda ctx: f"must be at least {ctx['ge']}",
    "less_than_equal": lambda ctx: f"must be at most {ctx['le']}",
    "too_short": lambda ctx: f"must hold at least {ctx['min_length']} of them",
    "too_long": lambda ctx: f"must hold at most {ctx['max_length']} of them",
}
# After these the value itself helps the reader; the others name what matters.
_SHOW_VALUE = frozenset(
    {
        *("says_text", "literal_error", "union_tag_invalid", "int_type", "float_type", "bool_type"),
        *("greater_than", "greater_than_equal", "less_than_equal"),
    }
)


def findings(error: ValidationError, document: Document, model: type[BaseModel]) -> list[Finding]:
    """One sentence for each thing that `model` finds wrong in `document`; a flood of them is cut."""
    details = error.errors(include_url=False)
    found = [_sentence(detail, document, model) for detail in details if not _is_echo(detail)]
    if len(found) > _SHOWN_PROBLEMS:
        found.sort(key=lambda item: document.mark(item.place))
        rest = len(found) - _SHOWN_PROBLEMS
        found[_SHOWN_PROBLEMS:] = [Finding(found[_SHOWN_PROBLEMS].place, f"this and {rest - 1} more places are wrong")]
    return found


def _is_echo(detail: ErrorDetails) -> bool:
    """A list is also called too short when its entries are wrong: then only those are told."""
    return detail["type"] == "too_short" and len(detail["input"]) >= detail["ctx"]["min_length"]


def _sentence(detail: ErrorDetails, document: Document, model: type[BaseModel]) -> Finding:
    kind, value = detail["type"], detail["input"]
    place, rest = _resolve(document.data, detail["loc"])
    if kind == "extra_forbidden":
        return Finding(place, *_unknown_key(model, place))
    if kind == "missing":
        return Finding(place, f"the key '{rest}' is missing")
    context = {**detail.get("ctx", {}), "sentence": detail["msg"]}
    if kind == "union_tag_not_found":
        return Finding(place, f"the key {context['discriminator']} is missing")
    if kind == "union_tag_invalid":
        key = str(context["discriminator"]).strip("'")
        place, value = (*place, key), context["tag"]
    say = _SENTENCES.get(kind)
    message = say(context) if say else f"is refused: {detail['msg']}"
    if kind in _SHOW_VALUE:
        message += _value(value)
    return Finding(place, message, _hint(kind, context, value))


def _resolve(data: Any, location: tuple[int | str, ...]) -> tuple[Place, int | str | None]:
    """The place of pydantic's location, and its last part when that is no place (a missing key).

    A location also holds the tags of unions; whatever is not in the data is one of them.
    """
    place: Place = ()
    for part in location:
        inside = part in data if isinstance(data, dict) else isinstance(data, list) and part in range(len(data))
        if inside:
            data = data[part]
            place = (*place, part)
    last = location[-1] if location else None
    return place, last


def _unknown_key(model: type[BaseModel], place: Place) -> tuple[str, str | None]:
    key = str(place[-1])
    known = _known_keys(model, place[:-1])
    if key in known:
        return f"the key '{key}' does not go together with the other keys here", None
    near = difflib.get_close_matches(key, known, n=1, cutoff=0.6)
    hint = f"did you mean '{near[0]}'?" if near else f"known here: {', '.join(known)}"
    return f"unknown key {_quoted(key)}", hint


def _known_keys(model: type[BaseModel], place: Place) -> list[str]:
    """Keys that the models at `place` have."""
    here: list[Any] = [model]
    for part in place:
        here = [inner for annotation in here for inner in _inside(annotation, part)]
    models = [item for item in here if isinstance(item, type) and issubclass(item, BaseModel)]
    return list(dict.fromkeys(name for item in models for name in item.model_fields))


def _inside(annotation: Any, part: int | str) -> Iterator[Any]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        if part in annotation.model_fields:
            yield from _members(annotation.model_fields[str(part)].annotation)
    elif get_origin(annotation) is tuple:
        yield from _members(get_args(annotation)[0])


def _members(annotation: Any) -> Iterator[Any]:
    if get_origin(annotation) is Annotated:
        yield from _members(get_args(annotation)[0])
    elif get_origin(annotation) in {Union, types.UnionType}:
        for member in get_args(annotation):
            yield from _members(member)
    else:
        yield annotation


def _plain(words: str) -> str:
    return {"True": "true", "False": "false"}.get(words, words)


def _hint(kind: str, context: dict[str, Any], value: Any) -> str | None:
    wants_text = kind in {"says_text", "string_type"} or str(context.get("expected", "")).startswith("'")
    if not wants_text:
        return None
    if value is None:
        return "nothing is written there"
    if isinstance(value, bool):
        return "it is read as true or false: put the text in quotes"
    return "it is read as a number: put the text in quotes" if isinstance(value, int | float) else None


def _value(value: Any) -> str:
    # A text with '@' might be an address with a password; one that is long says little.
    if isinstance(value, str) and value and len(value) <= _SHOWN_VALUE and "@" not in value:
        return f"; it is {_quoted(value)}"
    if isinstance(value, int | float) and not isinstance(value, bool):
        return f"; it is {value}"
    return ""


def _quoted(text: str) -> str:
    return f"'{text}'" if text.isprintable() and len(text) <= _SHOWN_VALUE else repr(text[:_SHOWN_VALUE])
