"""What all models share: frozen, unknown keys refused, safe names, and a sentence for every refusal."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, GetCoreSchemaHandler, StringConstraints
from pydantic_core import core_schema


class Model(BaseModel):
    """A frozen document in which an unknown key is an error."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False, validate_default=True)


class InputModel(Model):
    """A document that a person writes: no value is converted, so `"4"` is no number and `1` is not true."""

    model_config = ConfigDict(strict=True)


@dataclass(frozen=True)
class Says:
    """Puts `sentence` in place of pydantic's words for whatever is wrong with the value.

    It begins with "must" and holds no braces. `kind` tells whether text or something else was wanted.
    """

    sentence: str
    kind: Literal["text", "value"] = "text"

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> core_schema.CoreSchema:
        """Wrap the annotated type; its JSON Schema stays the one of that type."""
        return core_schema.custom_error_schema(handler(source), f"says_{self.kind}", custom_error_message=self.sentence)


def _only_one(value: object) -> object:
    # `True == 1 == 1.0`, so a literal 1 alone would take all three.
    if type(value) is not int or value != 1:
        raise ValueError("must be the number 1")
    return value


SchemaVersion = Annotated[Literal[1], BeforeValidator(_only_one)]

# Safe in file names, artifact names, job outputs and Markdown alike (GITHUB.md: ids never collide after cleaning).
Identifier = Annotated[
    str,
    StringConstraints(pattern=r"^[a-z0-9](?:[a-z0-9._-]{0,78}[a-z0-9])?$", strict=True),
    Says(
        "must be a name of at most 80 lower-case letters, digits, '.', '_' and '-', "
        "with a letter or a digit at both ends"
    ),
]
Sha256 = Annotated[
    str,
    StringConstraints(pattern=r"^[0-9a-f]{64}$", strict=True),
    Says("must be a SHA-256: 64 lower-case hexadecimal digits"),
]
CommitId = Annotated[
    str,
    StringConstraints(pattern=r"^(?:[0-9a-f]{40}|[0-9a-f]{64})$", strict=True),
    Says("must be a full commit id: 40 (or 64) lower-case hexadecimal digits"),
]
# One line of visible text: titles and reasons are printed in terminals, Markdown and workflow commands, so neither
# control characters nor line separators nor marks that turn the reading direction (GITHUB.md, threat 9).
_VISIBLE = r"[^\u0000-\u001f\u007f-\u009f\u200e\u200f\u2028-\u202e\u2066-\u2069]"
Sentence = Annotated[
    str,
    StringConstraints(min_length=1, max_length=500, pattern=rf"^{_VISIBLE}+$", strict=True),
    Says("must be one line of 1 to 500 visible characters"),
]
ShortText = Annotated[
    str,
    StringConstraints(min_length=1, max_length=100, pattern=rf"^{_VISIBLE}+$", strict=True),
    Says("must be one line of 1 to 100 visible characters"),
]
# A path or an address as one argument: nothing that ends a line, nothing that looks like an option (threat 7).
Location = Annotated[
    str,
    StringConstraints(
        min_length=1, max_length=1000, pattern=r"^[^\u0000-\u001f\u007f-][^\u0000-\u001f\u007f]*$", strict=True
    ),
    Says("must be one line of at most 1,000 characters that does not start with '-'"),
]
