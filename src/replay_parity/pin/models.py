"""What pinning yields: immutable revisions, the toolchain, locks and artifact records."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from replay_parity.campaign.base import CommitId, Model, Sha256


class GitRevision(Model):
    """A full commit of a repository with its tree; `asked` keeps the name that was resolved (rule 1)."""

    kind: Literal["git"] = "git"
    repository: str
    asked: str
    asked_as: Literal["commit", "short commit", "branch", "tag", "HEAD"]
    commit: CommitId
    tree: CommitId
    core: str

    @property
    def id(self) -> str:
        """The immutable id that is compiled into the runner."""
        return f"git:{self.commit}"

    @property
    def content(self) -> str:
        """Equal for revisions whose sources are equal (rule 8, equal trees)."""
        return f"git-tree:{self.tree}:{self.core}"

    @property
    def short(self) -> str:
        """A short name for a table; never used to find anything."""
        return self.commit[:12] if self.asked_as in {"commit", "short commit"} else f"{self.asked} ({self.commit[:12]})"


class CrateRevision(Model):
    """A published release with its registry checksum and the git commit that it records."""

    kind: Literal["crate"] = "crate"
    crate: str
    asked: str
    version: str
    checksum: Sha256
    commit: str | None
    dirty: bool

    @property
    def id(self) -> str:
        """The immutable id that is compiled into the runner."""
        return f"crate:{self.crate}@{self.version}:{self.checksum}"

    @property
    def content(self) -> str:
        """Equal for revisions whose sources are equal (rule 8, equal trees)."""
        return f"crate:{self.checksum}"

    @property
    def short(self) -> str:
        """A short name for a table; never used to find anything."""
        return self.version


Revision = Annotated[GitRevision | CrateRevision, Field(discriminator="kind")]


class Toolchain(Model):
    """The resolved toolchain: sysroot and the exact words of rustc, cargo, C compiler and linker (rule 2)."""

    asked: str
    sysroot: str
    rustc: str
    cargo: str
    host: str
    release: str
    commit_hash: str | None
    c_compiler: str | None
    linker: str | None

    @property
    def identity(self) -> dict[str, str | None]:
        """What decides about the machine code; where the toolchain lies does not."""
        return {
            "rustc": self.rustc,
            "cargo": self.cargo,
            "host": self.host,
            "c_compiler": self.c_compiler,
            "linker": self.linker,
        }


class LockedPackage(Model):
    """One entry of a Cargo.lock."""

    name: str
    version: str
    source: str | None = None
    checksum: str | None = None


class LockDifference(Model):
    """One dependency whose locked versions differ between the two sides (rule 7)."""

    name: str
    baseline: tuple[str, ...]
    candidate: tuple[str, ...]


class ArtifactRecord(Model):
    """The built runner: what went in, what came out (DESIGN.md, words)."""

    schema_version: Literal[1] = 1
    key: Sha256
    revision: Revision
    tree_sha256: Sha256
    runner_source_sha256: Sha256
    lock_sha256: Sha256
    patch_sha256: Sha256 | None
    toolchain: Toolchain
    profile: str
    flags: tuple[str, ...]
    features: tuple[str, ...]
    negative_control: str | None
    sha256: Sha256
    neutral_sha256: Sha256 = Field(
        description="SHA-256 with the compiled-in revision and the build id blanked: equal when only those differ."
    )
    size_bytes: int
    text_bytes: int | None
    packages_verified: int
