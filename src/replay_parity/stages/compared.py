"""Which two sources a campaign compares: its own, or those that a command or an event names."""

from __future__ import annotations

from dataclasses import dataclass

from pydantic import TypeAdapter, ValidationError

from replay_parity.campaign.base import Sentence
from replay_parity.campaign.models import Campaign
from replay_parity.campaign.sources import CrateSource, GitSource, Source
from replay_parity.errors import BadInputError

_CRATE = "crate:"
_SENTENCE: TypeAdapter[str] = TypeAdapter(Sentence)


@dataclass(frozen=True)
class Asked:
    """Revisions by name, as a person or an event gives them; None leaves the campaign's own.

    A name is a commit, a branch or a tag of the repository, or `crate:VERSION` for a published release. `stated` is
    the relationship in words; without it ancestry is checked. `git` is the repository that the names belong to; None
    leaves that to the campaign.
    """

    baseline: str | None = None
    candidate: str | None = None
    stated: str | None = None
    self_compare: bool = False
    git: str | None = None


@dataclass(frozen=True)
class Compared:
    """Two sources and how they are said to relate; `stated` None means that ancestry must be proven."""

    baseline: Source
    candidate: Source
    stated: str | None


def choose(campaign: Campaign, asked: Asked, *, git: str) -> Compared:
    """The two sources; `git` is the repository for names from outside when neither they nor the campaign tell one.

    Raises BadInputError when a side is named neither by the campaign nor from outside, or not well.
    """
    own = campaign.baseline
    repository = asked.git or (own.git if isinstance(own, GitSource) else git)
    core = own.core if isinstance(own, GitSource) else campaign.core
    candidate = _source(asked.candidate, campaign.candidate, "candidate", repository, core)
    if asked.self_compare:
        _refuse_two(asked)
        return Compared(candidate, candidate, "one revision on both sides")
    baseline = _source(asked.baseline, campaign.baseline, "baseline", repository, core)
    if asked.stated is not None:
        return Compared(baseline, candidate, _words(asked.stated))
    # The campaign's words are about its own revisions, not about others.
    others = asked.baseline is not None or asked.candidate is not None
    words = None if others or campaign.relationship is None else campaign.relationship.stated
    return Compared(baseline, candidate, words)


def _source(name: str | None, own: Source | None, side: str, repository: str, core: str) -> Source:
    if name is None:
        if own is None:
            raise BadInputError(
                f"the campaign names no {side}, and none was given",
                hint=f"give --{side} REVISION; on GitHub the input '{side}', or an event of a pull request",
            )
        return own
    return source_named(name, option=side, git=repository, core=core, dirty=isinstance(own, CrateSource) and own.dirty)


def source_named(name: str, *, option: str, git: str, core: str = "crates/core", dirty: bool = False) -> Source:
    """A revision by the name that was given as `--OPTION`; BadInputError when it can be none.

    `git` is the repository for commits, branches and tags, `dirty` allows a release that was cut from a dirty tree.
    """
    try:
        if name.startswith(_CRATE):
            return CrateSource(version=name.removeprefix(_CRATE), dirty=dirty)
        return GitSource(git=git, revision=name, core=core)
    except ValidationError as error:
        reason = error.errors()[0]["msg"].removeprefix("Value error, ")
        raise BadInputError(f"the {option} {name!r} {reason}", where=f"--{option}") from None


def _refuse_two(asked: Asked) -> None:
    if asked.baseline not in {None, asked.candidate}:
        raise BadInputError(
            f"a self-comparison has the candidate on both sides, the baseline {asked.baseline!r} was given too",
            hint="give only the candidate",
        )


def _words(stated: str) -> str:
    try:
        return _SENTENCE.validate_python(stated)
    except ValidationError as error:
        raise BadInputError(f"the relationship {error.errors()[0]['msg']}", where="--relationship") from None
