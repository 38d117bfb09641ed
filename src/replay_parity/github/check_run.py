"""A check run as this product publishes it; texts over GitHub's limits are cut, never refused (GITHUB.md, limits)."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, StringConstraints, model_validator

from replay_parity.github.shapes import CommitId
from replay_parity.github.text import shorten, well_formed

Conclusion = Literal["action_required", "cancelled", "failure", "neutral", "skipped", "success", "timed_out"]
_TITLE_CHARACTERS = 255
_ANNOTATION_BYTES = 65_535
_DOTS = "…"


def _clean(value: Any) -> Any:
    return well_formed(value) if isinstance(value, str) else value


def _title(value: Any) -> Any:
    """One line of at most 255 characters."""
    if not isinstance(value, str):
        return value
    line = " ".join(well_formed(value).split())
    return line if len(line) <= _TITLE_CHARACTERS else line[: _TITLE_CHARACTERS - len(_DOTS)] + _DOTS


def _detail(value: Any) -> Any:
    return shorten(well_formed(value), _ANNOTATION_BYTES) if isinstance(value, str) else value


Text = Annotated[str, BeforeValidator(_clean)]
Title = Annotated[str, BeforeValidator(_title), Field(min_length=1)]
Detail = Annotated[str, BeforeValidator(_detail), Field(min_length=1)]


class _Frozen(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class Annotation(_Frozen):
    """A remark at lines of a file; `path` is relative to the repository, lines count from 1."""

    path: Annotated[Text, Field(min_length=1)]
    start_line: Annotated[int, Field(ge=1)]
    end_line: Annotated[int, Field(ge=1)]
    level: Literal["notice", "warning", "failure"]
    title: Title
    message: Detail
    raw_details: Detail | None = None

    @model_validator(mode="after")
    def _lines_are_in_order(self) -> Annotation:
        if self.end_line < self.start_line:
            raise ValueError("must not end before it starts")
        return self


class CheckRun(_Frozen):
    """A finished check of one commit; `name`, `external_id` and `head_sha` together are its identity.

    `summary` and `text` are Markdown of any length; publishing cuts them.
    """

    name: Title
    head_sha: CommitId
    external_id: Annotated[Text, Field(min_length=1, max_length=255)]
    conclusion: Conclusion
    title: Title
    summary: Text
    text: Text | None = None
    annotations: tuple[Annotation, ...] = ()
    details_url: Annotated[str, StringConstraints(pattern=r"^https?://[!-~]+$")] | None = None
