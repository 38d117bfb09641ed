"""Names in the cache: everything that goes into a build decides about its key, and nothing else does."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import orjson

from replay_parity.campaign.models import Build
from replay_parity.pin.models import ArtifactRecord, Revision, Toolchain
from replay_parity.pin.runner_source import runner_source_sha256, shipped_lock
from replay_parity.system.files import sha256_bytes

# Raised when the way of building changes, so that no artifact of the old way is taken for one of the new.
_BUILDER_VERSION = 2


@dataclass(frozen=True)
class Keys:
    """Keys of one campaign's build settings; all are SHA-256 in hex."""

    build: Build
    toolchain: Toolchain

    def artifact(self, revision: Revision, lock_sha256: str) -> str:
        """Key of a built runner."""
        return _artifact_key(
            common=self._common(),
            revision=revision,
            runner_source_sha256=runner_source_sha256(),
            lock_sha256=lock_sha256,
            patch_sha256=self._patch(),
            negative_control=self.build.negative_control,
        )

    def layer(self, tree_sha256: str, lock_sha256: str) -> str:
        """Key of a compiled engine with its dependencies: content only, so that git and crate sources share it."""
        return _digest({**self._common(), "tree": tree_sha256, "lock": lock_sha256})

    def resolution(self, revisions: Sequence[Revision]) -> str:
        """Key of what cargo resolved for a pair of revisions."""
        return _digest(
            {
                **self._common(),
                "revisions": [[revision.id, revision.content] for revision in revisions],
                "policy": self.build.lock,
                "shipped_lock": sha256_bytes(shipped_lock()),
                "runner": runner_source_sha256(),
                "patch": self._patch(),
            }
        )

    def _common(self) -> dict[str, object]:
        build = self.build
        return _common(self.toolchain, profile=build.profile, flags=build.flags, features=build.features)

    def _patch(self) -> str | None:
        return self.build.patch.sha256 if self.build.patch else None


def key_of(record: ArtifactRecord) -> str:
    """The key that a record's own words lead to: a record that was edited does not lead back to itself."""
    return _artifact_key(
        common=_common(record.toolchain, profile=record.profile, flags=record.flags, features=record.features),
        revision=record.revision,
        runner_source_sha256=record.runner_source_sha256,
        lock_sha256=record.lock_sha256,
        patch_sha256=record.patch_sha256,
        negative_control=record.negative_control,
    )


def _common(
    toolchain: Toolchain, *, profile: str, flags: tuple[str, ...], features: tuple[str, ...]
) -> dict[str, object]:
    return {
        "builder": _BUILDER_VERSION,
        "toolchain": toolchain.identity,
        "profile": profile,
        "flags": flags,
        "features": features,
    }


def _artifact_key(
    *,
    common: dict[str, object],
    revision: Revision,
    runner_source_sha256: str,
    lock_sha256: str,
    patch_sha256: str | None,
    negative_control: str | None,
) -> str:
    return _digest(
        {
            **common,
            "revision": revision.id,
            "core": revision.content,
            "runner": runner_source_sha256,
            "lock": lock_sha256,
            "patch": patch_sha256,
            "negative_control": negative_control,
        }
    )


def _digest(document: dict[str, object]) -> str:
    return sha256_bytes(orjson.dumps(document, option=orjson.OPT_SORT_KEYS))
