"""Where packages come from: the user's cargo configuration replaces crates-io, and every archive is still proven."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from pathlib import Path

import pytest

from replay_parity.errors import InfrastructureError
from replay_parity.pin.builder import SIDES, BuildOutcome
from tests.support.registry import Registry, library
from tests.support.tiny import Engines, Workshop, artifact, identity
from tests.unit.pin.test_release import registry, shop

__all__ = ["registry", "shop"]

SOURCE = "pub fn answer() -> u64 { part::part() }"
NEEDS = '[dependencies]\npart = "1"\n'


def home(environment: Mapping[str, str]) -> Path:
    return Path(environment["CARGO_HOME"])


def build(shop: Workshop, engines: Engines) -> BuildOutcome:
    """The first build, or one from the start: nothing of ours is left of an earlier one."""
    shutil.rmtree(shop.cache, ignore_errors=True)
    old = engines.broken(SOURCE, more=NEEDS)
    return shop.pair(engines.folder, old, engines.broken(SOURCE + "\n", more=NEEDS))


def answers(outcome: BuildOutcome) -> list[int]:
    return [identity(artifact(outcome, side))["answer"] for side in SIDES]


def test_a_replaced_registry_is_asked_and_its_archives_are_proven(
    shop: Workshop, registry: Registry, engines: Engines
) -> None:
    registry.publish("part", "1.0.0", library("part", "1.0.0", "pub fn part() -> u64 { 8 }"))
    outcome = build(shop, engines)
    assert answers(outcome) == [8, 8]
    assert [artifact(outcome, side).record.packages_verified for side in SIDES] == [1, 1]


def test_a_dependency_that_was_edited_on_this_machine_is_never_compiled(
    shop: Workshop, registry: Registry, engines: Engines, environment: Mapping[str, str]
) -> None:
    registry.publish("part", "1.0.0", library("part", "1.0.0", "pub fn part() -> u64 { 8 }"))
    build(shop, engines)
    edited = list(home(environment).glob("registry/src/*/part-1.0.0/src/lib.rs"))
    assert edited
    for path in edited:
        path.write_text("pub fn part() -> u64 { 666 }")
    # Some versions of cargo vendor from there, others from the archive.
    said = ""
    try:
        outcome = build(shop, engines)
    except InfrastructureError as error:
        said = error.message
    else:
        assert answers(outcome) == [8, 8]
    assert said in {"", "'src/lib.rs' of part 1.0.0 is not what the registry checksum names"}


def test_an_archive_that_the_index_does_not_name_is_refused(
    shop: Workshop, registry: Registry, engines: Engines, tmp_path: Path
) -> None:
    registry.publish("part", "1.0.0", library("part", "1.0.0", "pub fn part() -> u64 { 8 }"))
    archive = tmp_path / "registry" / "packages" / "part-1.0.0.crate"
    archive.write_bytes(archive.read_bytes() + b"\0")
    with pytest.raises(InfrastructureError, match="the dependencies of the baseline could not be brought") as caught:
        build(shop, engines)
    assert len(str(caught.value).splitlines()) == 1


def test_a_directory_in_place_of_the_registry(
    shop: Workshop, engines: Engines, environment: Mapping[str, str], tmp_path: Path
) -> None:
    """It keeps no archives; cargo checks its files one by one, and says so when they are not what they were."""
    files = library("part", "1.0.0", "pub fn part() -> u64 { 8 }")
    folder = tmp_path / "vendored" / "part"
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    (folder / ".cargo-checksum.json").write_text(json.dumps({"files": {}, "package": "0" * 64}))
    home(environment).mkdir(exist_ok=True)
    (home(environment) / "config.toml").write_text(
        f'[source.crates-io]\nreplace-with = "here"\n[source.here]\ndirectory = "{folder.parent}"\n'
    )
    outcome = build(shop, engines)
    assert answers(outcome) == [8, 8]
    assert artifact(outcome, "baseline").record.packages_verified == 0
    assert str(tmp_path) not in artifact(outcome, "baseline").path.read_bytes().decode("latin-1")
