"""Inputs of the action: environment to one frozen object; each is `REPLAY_PARITY_` and the input's name."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Literal, get_args

import orjson
from pydantic import Field, TypeAdapter, ValidationError

from replay_parity.campaign.base import Identifier, Model, Sentence
from replay_parity.errors import BadInputError
from replay_parity.github.text import well_formed

Mode = Literal["plan", "build", "row", "verdict", "publish", "badge"]
_PREFIX = "REPLAY_PARITY_"
_TRUE, _FALSE = frozenset({"true"}), frozenset({"", "false"})
_NAME: TypeAdapter[str] = TypeAdapter(Identifier)
_JOB = re.compile(r"(plan|build|row)=(success|failure|cancelled|skipped)?")


class Machines(Model):
    """A class of machines as the workflow gives it: labels, and perhaps a container, by image or with its options."""

    labels: tuple[Sentence, ...] = Field(min_length=1, strict=False)
    container: Literal[""] | Sentence | dict[str, Any] = ""


@dataclass(frozen=True)
class Inputs:
    """What `action.yml` hands over; every field is an input of that name, with `-` for `_`. Blank means not given."""

    mode: Mode
    campaign: str | None = None
    rows: tuple[str, ...] = ()
    baseline: str | None = None
    candidate: str | None = None
    relationship: str | None = None
    expected_sha: str | None = None
    self_compare: bool = False
    advisory: bool = False
    allow_forks: bool = False
    runners: Mapping[str, Machines] = field(default_factory=dict)
    checkout: Path | None = None
    folder: Path | None = None
    runner: str = "default"
    side: Literal["baseline"] | None = None
    shard: str | None = None
    corpus_dir: Path | None = None
    jobs: Mapping[str, str] = field(default_factory=dict)
    check_name: str = "Replay Parity report"
    token: str | None = field(default=None, repr=False)

    @classmethod
    def from_environment(cls, environment: Mapping[str, str], *, mode: str | None = None) -> Inputs:
        """Read a mapping such as `os.environ`; BadInputError names the input that is wrong.

        `mode` stands in for the input of that name.
        """
        given = {**environment, f"{_PREFIX}MODE": mode} if mode is not None else environment
        return _Reader(given).inputs()

    @classmethod
    def names(cls) -> tuple[str, ...]:
        """Names as `action.yml` writes them."""
        return tuple(item.name.replace("_", "-") for item in fields(cls))


class _Reader:
    def __init__(self, environment: Mapping[str, str]) -> None:
        self._environment = environment

    def inputs(self) -> Inputs:
        mode = self._text("mode") or ""
        if mode not in get_args(Mode):
            raise self._wrong("mode", f"must be one of {', '.join(get_args(Mode))}; it is {mode!r}")
        side = self._text("side")
        if side not in {None, "baseline"}:
            raise self._wrong("side", "must be 'baseline', or left out for both sides")
        given = Inputs(
            mode=mode,  # type: ignore[arg-type]  # checked above
            campaign=self._identifier("campaign"),
            rows=tuple(re.findall(r"[^\s,]+", self._text("rows") or "")),
            baseline=self._text("baseline"),
            candidate=self._text("candidate"),
            relationship=self._text("relationship"),
            expected_sha=self._text("expected_sha"),
            self_compare=self._flag("self_compare"),
            advisory=self._flag("advisory"),
            allow_forks=self._flag("allow_forks"),
            runners=self._runners(),
            checkout=self._folder("checkout"),
            folder=self._folder("folder"),
            runner=self._identifier("runner") or "default",
            side="baseline" if side else None,
            shard=self._text("shard"),
            corpus_dir=self._folder("corpus_dir"),
            jobs=self._jobs(),
            check_name=self._text("check_name") or "Replay Parity report",
            token=self._text("token"),
        )
        if given.mode == "plan" and given.campaign is None:
            raise self._wrong("campaign", "is needed to plan")
        return given

    def _text(self, name: str) -> str | None:
        return self._environment.get(f"{_PREFIX}{name.upper()}", "").strip() or None

    def _flag(self, name: str) -> bool:
        value = (self._text(name) or "").lower()
        if value not in _TRUE | _FALSE:
            raise self._wrong(name, f"must be 'true' or 'false', it is {value!r}")
        return value in _TRUE

    def _identifier(self, name: str) -> str | None:
        value = self._text(name)
        try:
            return None if value is None else _NAME.validate_python(value)
        except ValidationError as error:
            raise self._wrong(name, error.errors()[0]["msg"]) from None

    def _folder(self, name: str) -> Path | None:
        value = self._text(name)
        if value is not None and (not Path(value).is_absolute() or well_formed(value) != value):
            raise self._wrong(name, f"must be an absolute path in UTF-8, it is {value!r}")
        return Path(value) if value else None

    def _runners(self) -> dict[str, Machines]:
        text = self._text("runners")
        if text is None:
            return {}
        wanted = 'must be JSON such as {"default": {"labels": ["my-runner"], "container": ""}}'
        try:
            document = orjson.loads(text)
            if not isinstance(document, dict) or not document:
                raise self._wrong("runners", wanted)
            return {_NAME.validate_python(name): Machines.model_validate(item) for name, item in document.items()}
        except orjson.JSONDecodeError as error:
            raise self._wrong("runners", f"{wanted}: {error}") from None
        except ValidationError as error:
            raise self._wrong("runners", f"{wanted}: {error.errors()[0]['msg']}") from None

    def _jobs(self) -> dict[str, str]:
        jobs: dict[str, str] = {}
        for word in (self._text("jobs") or "").split():
            found = _JOB.fullmatch(word)
            if found is None:
                raise self._wrong("jobs", f"must be words such as 'plan=success', not {word!r}")
            # A job that never came to an end has no result at all.
            jobs[found[1]] = found[2] or "cancelled"
        return jobs

    @staticmethod
    def _wrong(name: str, message: str) -> BadInputError:
        return BadInputError(message, where=f"input {name.replace('_', '-')}")
