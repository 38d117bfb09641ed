"""Addresses in the cache change with every input, and with nothing else."""

from __future__ import annotations

from typing import Any

import pytest

from replay_parity.campaign.models import Build, Patch
from replay_parity.pin import keys as keys_module
from replay_parity.pin.keys import Keys, key_of
from replay_parity.pin.models import ArtifactRecord, CrateRevision, GitRevision, Toolchain

TOOLCHAIN = Toolchain(
    asked="1.0.0",
    sysroot="/a",
    rustc="r",
    cargo="c",
    host="h",
    release="1.0.0",
    commit_hash=None,
    c_compiler="cc",
    linker="ld",
)
BUILD = Build(toolchain="path", profile="release", flags=("-Cx",), features=("f",))
GIT = GitRevision(repository="/r", asked="main", asked_as="branch", commit="a" * 40, tree="b" * 40, core="crates/core")
CRATE = CrateRevision(crate="aisimulate-core", asked="^1", version="1.0.0", checksum="c" * 64, commit=None, dirty=False)
BUILDS: list[dict[str, Any]] = [
    {"profile": "dev"},
    {"flags": ()},
    {"flags": ("-Cx", "-Cy")},
    {"features": ()},
]
PATCHED: list[dict[str, Any]] = [{"patch": Patch(file="p", sha256="9" * 64)}]
TOOLCHAINS: list[dict[str, Any]] = [
    {"rustc": "x"},
    {"cargo": "x"},
    {"host": "x"},
    {"c_compiler": None},
    {"linker": "x"},
]


def artifact(
    build: Build = BUILD, toolchain: Toolchain = TOOLCHAIN, revision: Any = GIT, runner: str = "1", lock: str = "2"
) -> str:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(keys_module, "runner_source_sha256", lambda: runner * 64)
        return Keys(build, toolchain).artifact(revision, lock * 64)


def layer(build: Build = BUILD, toolchain: Toolchain = TOOLCHAIN, tree: str = "1", lock: str = "2") -> str:
    return Keys(build, toolchain).layer(tree * 64, lock * 64)


def resolution(
    build: Build = BUILD, toolchain: Toolchain = TOOLCHAIN, sides: tuple[Any, Any] = (GIT, CRATE), shipped: str = "1"
) -> str:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(keys_module, "runner_source_sha256", lambda: "3" * 64)
        patch.setattr(keys_module, "shipped_lock", shipped.encode)
        return Keys(build, toolchain).resolution(sides)


def test_every_input_counts() -> None:
    builds = [BUILD.model_copy(update=change) for change in BUILDS]
    patched = [BUILD.model_copy(update=change) for change in PATCHED]
    control = BUILD.model_copy(update={"negative_control": "determinism-off"})
    toolchains = [TOOLCHAIN.model_copy(update=change) for change in TOOLCHAINS]
    others = [
        GIT.model_copy(update={"commit": "d" * 40}),
        GIT.model_copy(update={"core": "engine"}),
        CRATE,
        CRATE.model_copy(update={"checksum": "d" * 64}),
    ]
    found = [artifact(), artifact(runner="9"), artifact(lock="9"), artifact(build=control)]
    found += [artifact(build=build) for build in builds + patched]
    found += [artifact(toolchain=toolchain) for toolchain in toolchains]
    found += [artifact(revision=revision) for revision in others]
    assert len(set(found)) == len(found)
    found = [layer(), layer(tree="9"), layer(lock="9"), *(layer(build=build) for build in builds)]
    found += [layer(toolchain=toolchain) for toolchain in toolchains]
    assert len(set(found)) == len(found)
    own = BUILD.model_copy(update={"lock": "own"})
    found = [resolution(), resolution(shipped="9"), *(resolution(build=build) for build in [*builds, *patched, own])]
    found += [resolution(toolchain=toolchain) for toolchain in toolchains]
    found += [resolution(sides=(revision, CRATE)) for revision in others]
    found += [resolution(sides=(CRATE, GIT))]
    assert len(set(found)) == len(found)


def test_where_things_lie_and_how_they_were_asked_for_does_not_count() -> None:
    elsewhere = TOOLCHAIN.model_copy(update={"sysroot": "/b", "asked": "path", "commit_hash": "d" * 40})
    asked = GIT.model_copy(update={"asked": "v1", "asked_as": "tag", "repository": "/elsewhere"})
    later = BUILD.model_copy(update={"timeout_minutes": 5, "toolchain": "1.0.0"})
    assert artifact() == artifact(toolchain=elsewhere, revision=asked, build=later)
    assert layer() == layer(toolchain=elsewhere, build=later)
    assert resolution() == resolution(toolchain=elsewhere, sides=(asked, CRATE), build=later)
    # The engine is shared by whatever is built on top of it: another revision, the negative control.
    assert layer() == layer(build=BUILD.model_copy(update={"negative_control": "determinism-off"}))


@pytest.mark.parametrize("revision", [GIT, CRATE])
def test_a_record_leads_back_to_its_key(revision: Any) -> None:
    build = BUILD.model_copy(update=PATCHED[0])
    record = ArtifactRecord(
        key=artifact(build=build, revision=revision),
        revision=revision,
        tree_sha256="5" * 64,
        runner_source_sha256="1" * 64,
        lock_sha256="2" * 64,
        patch_sha256="9" * 64,
        toolchain=TOOLCHAIN,
        profile=build.profile,
        flags=build.flags,
        features=build.features,
        negative_control=None,
        sha256="6" * 64,
        neutral_sha256="7" * 64,
        size_bytes=1,
        text_bytes=1,
        packages_verified=1,
    )
    assert key_of(record) == record.key
    assert key_of(ArtifactRecord.model_validate_json(record.model_dump_json())) == record.key
