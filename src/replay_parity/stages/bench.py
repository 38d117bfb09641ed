"""The tools of one campaign on this machine: toolchain, cargo, sources, builder; each made when it is first needed."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from pathlib import Path

from replay_parity.campaign.models import Build
from replay_parity.errors import BadInputError
from replay_parity.pin.builder import Builder
from replay_parity.pin.cargo import Cargo
from replay_parity.pin.models import Toolchain
from replay_parity.pin.patch import read_patch
from replay_parity.pin.resolve import Sources
from replay_parity.pin.slot import choose_build_root
from replay_parity.pin.toolchain import resolve_toolchain
from replay_parity.settings import Settings
from replay_parity.system.progress import Progress


class Bench:
    """`base` is the folder that local paths of the campaign start from; `checkouts` hold the objects of addresses."""

    def __init__(
        self, settings: Settings, build: Build, *, base: Path, checkouts: Mapping[str, Path] | None = None
    ) -> None:
        self._settings = settings
        self._build = build
        self._base = base
        self._checkouts = checkouts or {}

    @cached_property
    def _build_root(self) -> Path:
        return choose_build_root(self._settings.build_root, cache=self._settings.cache)

    @cached_property
    def toolchain(self) -> Toolchain:
        """The toolchain that the campaign names, as it is on this machine."""
        environment = self._settings.tool_environment
        return resolve_toolchain(self._build.toolchain, environment=environment, folder=self._build_root)

    @cached_property
    def cargo(self) -> Cargo:
        """Cargo of that toolchain."""
        return Cargo(self.toolchain, self._build_root, self._settings.tool_environment)

    @cached_property
    def sources(self) -> Sources:
        """Where revisions come from. A plan that compares commits needs no toolchain, so cargo comes when asked for."""
        return Sources(
            cache=self._settings.cache,
            base=self._base,
            environment=self._settings.tool_environment,
            cargo=lambda: self.cargo,
            checkouts=self._checkouts,
        )

    def builder(self, *, logs: Path, progress: Progress, patch: Path | None) -> Builder:
        """A builder; BadInputError when the campaign has a patch and `patch` is not it."""
        if self._build.patch is not None:
            if patch is None:
                raise BadInputError("the campaign's patch is missing")
            read_patch(patch, sha256=self._build.patch.sha256)
        return Builder(
            build=self._build,
            cargo=self.cargo,
            sources=self.sources,
            cache=self._settings.cache,
            locks=self._settings.locks,
            logs=logs,
            progress=progress,
            patch=patch if self._build.patch is not None else None,
        )
