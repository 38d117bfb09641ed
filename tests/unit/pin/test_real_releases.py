"""AI Simulate's real releases, brought by cargo with the user's own registry; nothing is compiled."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from replay_parity.campaign.sources import CrateSource
from replay_parity.errors import RevisionError
from replay_parity.pin.builder import Builder, Side
from replay_parity.pin.lockfile import compare_locks, merge_locks, packages, parse_lock
from replay_parity.pin.models import CrateRevision, Toolchain
from replay_parity.pin.preparation import SIDES, Prepared
from replay_parity.pin.runner_source import shipped_lock
from replay_parity.pin.slot import Slot
from replay_parity.settings import Settings
from tests.support.tiny import Workshop

pytestmark = pytest.mark.engine

# Registry checksum and recorded commit of published releases.
RELEASES = {
    "0.12.0": (
        "7d266db788afdb866421aad39f8fbc7096dba9517105ff7d770ee83ad70f82bb",
        "1f728534910187ecb2f021ef5e4bd4949bd555d0",
    ),
    "0.12.1": (
        "e85996df5439800ba37693271b2c8c6a02de6c6fa41a3e033aa846c1832ba5de",
        "468f05de53b4eab330fb6e354017277350292825",
    ),
}


@pytest.fixture(scope="module")
def shop(
    tmp_path_factory: pytest.TempPathFactory, toolchain: Toolchain, user_environment: Mapping[str, str]
) -> Workshop:
    """A cache of its own, and the user's cargo."""
    environment = Settings.from_environment(user_environment).tool_environment
    return Workshop(tmp_path_factory.mktemp("releases"), toolchain, environment)


def resolve(shop: Workshop, version: str, *, checksum: str | None = None) -> CrateRevision:
    revision = shop.sources.resolve(CrateSource(version=version, checksum=checksum))
    assert isinstance(revision, CrateRevision)
    return revision


@pytest.mark.parametrize("version", RELEASES)
def test_a_release_has_the_published_checksum_and_commit(shop: Workshop, version: str) -> None:
    checksum, commit = RELEASES[version]
    revision = resolve(shop, version, checksum=checksum)
    assert (revision.checksum, revision.commit, revision.dirty) == (checksum, commit, False)


def test_an_unknown_version_is_refused_in_the_words_of_the_real_registry(shop: Workshop) -> None:
    with pytest.raises(RevisionError, match=r"no usable release aisimulate-core 0\.12\.99") as caught:
        resolve(shop, "0.12.99")
    assert caught.value.exit_code == 2
    assert len(str(caught.value).splitlines()) == 1


def prepared(shop: Workshop, *versions: str) -> tuple[Builder, dict[Side, Prepared], dict[str, bytes]]:
    """Both sides laid out one after the other with the shipped runner, and the seeds that cargo was given."""
    builder = shop.builder(profile="release")
    shop.logs.mkdir(parents=True, exist_ok=True)
    slot = Slot(shop.cargo.root)
    slot.clear()
    found: dict[Side, Prepared] = {}
    own: dict[str, bytes] = {}
    for side, version in zip(SIDES, versions, strict=True):
        found[side] = builder._prepare(slot, side, resolve(shop, version), found.get("baseline"))
        own[side] = (slot.checkout / "crates" / "core" / "Cargo.lock").read_bytes()
    slot.clear()
    return builder, found, own


def test_the_merged_locks_of_the_releases_are_kept_by_cargo_as_they_are(shop: Workshop) -> None:
    _, sides, own = prepared(shop, "0.12.0", "0.12.1")
    differences = compare_locks(sides["baseline"].packages, sides["candidate"].packages)
    assert [item.name for item in differences] == ["aisimulate-core"]
    baseline = [parse_lock(data, where="x") for data in (own["baseline"], shipped_lock())]
    seed = {(p.name, p.version, p.checksum) for p in packages(parse_lock(merge_locks(baseline), where="x"))}
    kept = {(p.name, p.version, p.checksum) for p in sides["baseline"].packages if p.source is not None}
    assert kept <= seed, "cargo took nothing that no lock names"
    assert sides["baseline"].verified == len(kept)


def test_the_candidate_changes_only_what_its_manifest_forces(shop: Workshop) -> None:
    _, sides, own = prepared(shop, "0.12.1", "0.13.0")
    differences = {
        item.name: (item.baseline, item.candidate)
        for item in compare_locks(sides["baseline"].packages, sides["candidate"].packages)
    }
    assert differences.pop("aisimulate-core") == (("0.12.1",), ("0.13.0",))
    theirs = packages(parse_lock(own["candidate"], where="x"))
    for name, (_, versions) in differences.items():
        # What is new or moved is what the candidate's own lock says, never the registry's newest of today.
        assert set(versions) <= {package.version for package in theirs if package.name == name}
    assert differences["parquet"] == (("55.2.0",), ("59.3.0",))
    assert differences["thrift"] == (("0.17.0",), ())
    assert differences["rustix"][0] == ()
    assert len(differences) == 21
