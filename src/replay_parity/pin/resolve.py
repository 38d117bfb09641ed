"""Two sources to two immutable revisions, and the relationship between them (rule 1)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from replay_parity.campaign.sources import CrateSource, GitSource, Source
from replay_parity.errors import RevisionError
from replay_parity.pin.cargo import Cargo
from replay_parity.pin.git import Mirror
from replay_parity.pin.git_place import locate, recorded
from replay_parity.pin.models import CrateRevision, GitRevision, Revision
from replay_parity.pin.release import Releases
from replay_parity.system.files import remove_tree

# The relationship that was checked, not stated.
ANCESTRY = "the baseline is an ancestor of the candidate"


@dataclass
class Sources:
    """Where revisions are brought from; `base` is the campaign file's folder.

    `checkouts` maps the address of a git repository to a local clone that holds its objects: commits are read from
    there and nothing is fetched from the address, which stays the recorded one.
    """

    cache: Path
    base: Path
    environment: Mapping[str, str] = field(repr=False)
    cargo: Callable[[], Cargo]
    checkouts: Mapping[str, Path] = field(default_factory=dict)
    _mirrors: dict[str, Mirror] = field(default_factory=dict)

    def resolve(self, source: Source) -> Revision:
        """Resolve one source to an immutable revision; RevisionError when that is not possible."""
        if isinstance(source, CrateSource):
            return self.releases.resolve(source, cargo=self.cargo())
        return self.mirror(source).resolve(source)

    @property
    def releases(self) -> Releases:
        """Published releases in the cache."""
        return Releases(cache=self.cache, environment=self.environment)

    def mirror(self, source: GitSource | GitRevision) -> Mirror:
        """The mirror of a git source, or of a revision that was resolved before."""
        if isinstance(source, GitSource):
            repository = locate(source, base=self.base, checkouts=self.checkouts)
        else:
            repository = recorded(source.repository, checkouts=self.checkouts)
        if repository.url not in self._mirrors:
            self._mirrors[repository.url] = Mirror(repository, cache=self.cache, environment=self.environment)
        return self._mirrors[repository.url]

    def lay_out(self, revision: Revision, checkout: Path) -> None:
        """Write the revision's files to `checkout` so that the engine crate is found below it."""
        remove_tree(checkout)
        if isinstance(revision, GitRevision):
            self.mirror(revision).export(revision.commit, checkout)
        else:
            self.releases.lay_out(revision, checkout / "crates" / "core")


def check_relationship(stated: str | None, baseline: Revision, candidate: Revision, sources: Sources) -> str:
    """The relationship in words; RevisionError when a claimed ancestry does not hold or cannot be checked."""
    if stated is not None:
        return stated
    if isinstance(baseline, CrateRevision) or isinstance(candidate, CrateRevision):
        raise RevisionError(
            "ancestry is claimed, but releases carry no history to check it",
            where="/relationship",
            hint="state the relationship in words: 'relationship: {stated: ...}' in the campaign, or --relationship",
        )
    left, right = sources.mirror(baseline), sources.mirror(candidate)
    right.adopt(left, baseline.commit)
    if not right.is_ancestor(baseline.commit, candidate.commit):
        raise RevisionError(
            f"the baseline {baseline.commit} is not an ancestor of the candidate {candidate.commit}",
            where="/relationship",
            hint="swap them, choose the merge base, or state the relationship in words",
        )
    return ANCESTRY
