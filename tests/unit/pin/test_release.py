"""Published releases, by real cargo from a registry of our own that stands in for the usual one."""

from __future__ import annotations

import contextlib
import json
import shutil
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from replay_parity.campaign.sources import CrateSource
from replay_parity.errors import InfrastructureError, RevisionError
from replay_parity.pin import release as release_module
from replay_parity.pin.builder import SIDES
from replay_parity.pin.cargo import Cargo
from replay_parity.pin.models import CrateRevision, Revision
from replay_parity.pin.store import read_sealed, write_sealed
from replay_parity.system.files import copy_tree, sha256_tree
from tests.support.registry import Registry, library
from tests.support.tiny import ANSWERS, Engines, Workshop, artifact, identity

NAME = "aisimulate-core"
COMMIT = "a" * 40


def engine(version: str, answer: int, *, dirty: bool = False, needs: Mapping[str, str] | None = None) -> dict[str, str]:
    """Files of a release of a tiny engine."""
    git = {"sha1": COMMIT, **({"dirty": True} if dirty else {})}
    vcs = {".cargo_vcs_info.json": json.dumps({"git": git, "path_in_vcs": "crates/core"})}
    return {**library(NAME, version, ANSWERS.format(answer), needs=needs), **vcs}


@pytest.fixture
def registry(tmp_path: Path, environment: Mapping[str, str]) -> Iterator[Registry]:
    found = Registry(tmp_path / "registry")
    home = Path(environment["CARGO_HOME"])
    home.mkdir(parents=True)
    (home / "config.toml").write_text(found.configuration)
    yield found
    found.close()


@pytest.fixture
def shop(workshop: Workshop, registry: Registry) -> Workshop:
    """A workshop that may ask the registry."""
    workshop.environment = {**workshop.environment, "CARGO_NET_OFFLINE": "false"}
    return workshop


def resolve(shop: Workshop, version: str, *, dirty: bool = False, checksum: str | None = None) -> CrateRevision:
    revision = shop.sources.resolve(CrateSource(version=version, dirty=dirty, checksum=checksum))
    assert isinstance(revision, CrateRevision)
    return revision


def test_a_release_has_its_checksum_and_the_commit_that_it_records(
    shop: Workshop, registry: Registry, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """That it is found at all shows that the user's mirror counts."""
    checksum = registry.publish(NAME, "1.2.3", engine("1.2.3", 1))
    registry.publish(NAME, "1.2.4", engine("1.2.4", 2))
    revision = resolve(shop, "1.2.3")
    assert revision == CrateRevision(
        crate=NAME, asked="1.2.3", version="1.2.3", checksum=checksum, commit=COMMIT, dirty=False
    )
    assert revision.id == f"crate:{NAME}@1.2.3:{checksum}"
    shop.sources.lay_out(revision, tmp_path / "out")
    laid_out = tmp_path / "out" / "crates" / "core"
    assert {path.relative_to(laid_out).as_posix() for path in laid_out.rglob("*") if path.is_file()} == {
        "Cargo.toml",
        "src/lib.rs",
        ".cargo_vcs_info.json",
    }
    # Nobody is asked a second time.
    monkeypatch.setattr(Cargo, "vendor", lambda *_, **__: pytest.fail("asked cargo"))
    registry.close()
    assert resolve(shop, "1.2.3") == revision
    assert resolve(shop, "1.2.3", checksum=checksum) == revision


def test_a_wrong_checksum_is_refused(shop: Workshop, registry: Registry) -> None:
    checksum = registry.publish(NAME, "1.2.3", engine("1.2.3", 1))
    for _ in range(2):
        with pytest.raises(RevisionError, match=f"has registry checksum {checksum}, the campaign demands {'0' * 64}"):
            resolve(shop, "1.2.3", checksum="0" * 64)
    assert resolve(shop, "1.2.3", checksum=checksum).checksum == checksum


def test_a_release_of_a_dirty_tree_needs_the_campaigns_word(shop: Workshop, registry: Registry) -> None:
    registry.publish(NAME, "0.1.0-dev.2", engine("0.1.0-dev.2", 1, dirty=True))
    for _ in range(2):
        with pytest.raises(RevisionError, match=r"0\.1\.0-dev\.2 was cut from a dirty tree") as caught:
            resolve(shop, "0.1.0-dev.2")
        assert "dirty: true" in str(caught.value)
    assert resolve(shop, "0.1.0-dev.2", dirty=True).dirty


def test_a_range_is_resolved_to_one_release_and_recorded(shop: Workshop, registry: Registry) -> None:
    for version in ("1.2.3", "1.3.0", "2.0.0"):
        registry.publish(NAME, version, engine(version, 1))
    found = {asked: resolve(shop, asked) for asked in ("^1.2", "<1.3.0", "=1.2.3", ">=1, <3")}
    assert {asked: revision.version for asked, revision in found.items()} == {
        "^1.2": "1.3.0",
        "<1.3.0": "1.2.3",
        "=1.2.3": "1.2.3",
        ">=1, <3": "2.0.0",
    }
    assert all(revision.asked == asked for asked, revision in found.items())


def test_what_the_registry_does_not_have_is_bad_input_in_one_sentence(shop: Workshop, registry: Registry) -> None:
    registry.publish(NAME, "1.2.3", engine("1.2.3", 1))
    registry.publish(NAME, "9.0.0", engine("9.0.0", 1), yanked=True)
    for version, words in {
        "1.2.4": "the registry has no usable release aisimulate-core 1.2.4: ",
        "^2": "the registry has no usable release",
        "9.0.0": "the registry has no usable release",
        "^": r"'\^' is not a version or a range that cargo understands",
        ">=1,,2": "is not a version or a range",
    }.items():
        with pytest.raises(RevisionError, match=words) as caught:
            resolve(shop, version)
        assert caught.value.exit_code == 2
        assert len(str(caught.value).splitlines()) == 1


def test_a_registry_that_knows_no_such_crate_or_does_not_answer(shop: Workshop, registry: Registry) -> None:
    with pytest.raises(RevisionError, match="no matching package named `aisimulate-core`"):
        resolve(shop, "1.2.3")
    registry.close()
    for environment in (shop.environment, {**shop.environment, "CARGO_NET_OFFLINE": "true"}):
        shop.environment = environment
        with pytest.raises(InfrastructureError, match=r"cargo cannot bring aisimulate-core 1\.2\.4: ") as caught:
            resolve(shop, "1.2.4")
        assert caught.value.exit_code == 3
        assert len(str(caught.value).splitlines()) == 1


@pytest.fixture
def kept(shop: Workshop, registry: Registry) -> tuple[Workshop, CrateRevision, Path]:
    """A release in the cache, and its folder."""
    registry.publish(NAME, "1.2.3", engine("1.2.3", 1))
    revision = resolve(shop, "1.2.3")
    (folder,) = (shop.cache / "releases").iterdir()
    return shop, revision, folder


def reseal(folder: Path, **changes: object) -> None:
    document = read_sealed(folder / "release.json")
    assert document is not None
    write_sealed(folder / "release.json", {**document, "tree_sha256": sha256_tree(folder / "source"), **changes})


def edit(folder: Path) -> None:
    lib = folder / "source" / "src" / "lib.rs"
    lib.write_text(lib.read_text().replace("1", "666"))


def edit_and_reseal(folder: Path) -> None:
    edit(folder)
    reseal(folder)


def drop_and_reseal(folder: Path) -> None:
    (folder / "source" / "src" / "lib.rs").unlink()
    reseal(folder)


def other_archive(folder: Path) -> None:
    (folder / "package.crate").write_bytes((folder / "package.crate").read_bytes() + b"\0")


def other_commit(folder: Path) -> None:
    document = read_sealed(folder / "release.json")
    assert document is not None
    reseal(folder, revision={**document["revision"], "commit": "b" * 40})


@pytest.mark.parametrize(
    "damage",
    [
        edit,
        edit_and_reseal,
        drop_and_reseal,
        other_archive,
        other_commit,
        lambda folder: (folder / "package.crate").unlink(),
        lambda folder: (folder / "release.json").unlink(),
        lambda folder: (folder / "release.json").write_bytes(b"{}"),
        lambda folder: (folder / "release.json").write_bytes(b"\xff"),
        lambda folder: shutil.rmtree(folder / "source"),
        lambda folder: (folder / "source" / "build.rs").write_text("fn main() {}"),
    ],
)
def test_an_edited_release_is_never_used(
    kept: tuple[Workshop, CrateRevision, Path], damage: Callable[[Path], object], tmp_path: Path
) -> None:
    shop, revision, folder = kept
    damage(folder)
    with pytest.raises(
        InfrastructureError, match=r"the cached sources of aisimulate-core 1\.2\.3 were changed"
    ) as caught:
        shop.sources.lay_out(revision, tmp_path / "out")
    assert "run again" in str(caught.value)
    assert not (tmp_path / "out" / "crates" / "core").exists()
    # Brought anew by the next run.
    assert resolve(shop, "1.2.3") == revision
    shop.sources.lay_out(revision, tmp_path / "out")
    # Or damaged before a run: noticed while resolving.
    damage(folder)
    assert resolve(shop, "1.2.3") == revision
    shop.sources.lay_out(revision, tmp_path / "again")
    assert "666" not in (tmp_path / "again" / "crates" / "core" / "src" / "lib.rs").read_text()


def test_a_record_in_another_releases_place_is_not_believed(kept: tuple[Workshop, CrateRevision, Path]) -> None:
    shop, revision, folder = kept
    fake = folder.with_name(f"{NAME}-1.2.3-{'0' * 16}")
    shutil.copytree(folder, fake)
    assert resolve(shop, "1.2.3") == revision
    assert not fake.exists()


def test_a_source_that_changes_while_it_is_copied_is_noticed(
    kept: tuple[Workshop, CrateRevision, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop, revision, folder = kept

    def edited_meanwhile(source: Path, target: Path) -> None:
        edit(folder)
        copy_tree(source, target)
        lib = folder / "source" / "src" / "lib.rs"
        lib.write_text(lib.read_text().replace("666", "1"))

    monkeypatch.setattr(release_module, "copy_tree", edited_meanwhile)
    with pytest.raises(InfrastructureError, match="changed while they were copied"):
        shop.sources.lay_out(revision, tmp_path / "out")


def test_a_downloaded_package_that_was_edited_is_noticed(
    shop: Workshop, registry: Registry, environment: Mapping[str, str]
) -> None:
    registry.publish(NAME, "1.2.3", engine("1.2.3", 1))
    resolve(shop, "1.2.3")
    shutil.rmtree(shop.cache / "releases")
    (archive,) = Path(environment["CARGO_HOME"]).glob("registry/cache/*/*.crate")
    data = bytearray(archive.read_bytes())
    data[len(data) // 2] ^= 1
    archive.write_bytes(data)
    with pytest.raises(InfrastructureError) as caught:
        resolve(shop, "1.2.3")
    assert "checksum" in str(caught.value)
    archive.unlink()
    # The unpacked sources, which cargo itself does not check again.
    (unpacked,) = Path(environment["CARGO_HOME"]).glob("registry/src/*/*/src/lib.rs")
    unpacked.write_text("pub fn answer() -> u64 { 666 }")
    # Some versions of cargo vendor from there, others from the archive.
    with contextlib.suppress(InfrastructureError):
        revision = resolve(shop, "1.2.3")
        text = (shop.sources.releases.folder(revision) / "src" / "lib.rs").read_text()
        assert "666" not in text


def test_several_runs_that_bring_a_release_at_once_agree(shop: Workshop, registry: Registry) -> None:
    registry.publish(NAME, "1.2.3", engine("1.2.3", 1))
    shops = [Workshop(shop.folder, shop.toolchain, shop.environment) for _ in range(3)]
    with ThreadPoolExecutor() as pool:
        found = list(pool.map(lambda one: resolve(one, "1.2.3"), shops))
    assert len(set(found)) == 1
    assert len(list((shop.cache / "releases").iterdir())) == 1


def test_git_and_crate_sources_of_equal_content_share_the_compiled_engine(
    shop: Workshop, registry: Registry, engines: Engines
) -> None:
    files = engine("1.2.3", 7)
    registry.publish(NAME, "1.2.3", files)
    for path, text in files.items():
        (engines.core / path).parent.mkdir(parents=True, exist_ok=True)
        (engines.core / path).write_text(text)
    commit = shop.pin(engines.folder, engines.commit("the same"))
    outcome = shop.builder().run({"baseline": resolve(shop, "1.2.3"), "candidate": commit})
    left, right = artifact(outcome, "baseline"), artifact(outcome, "candidate")
    assert left.record.tree_sha256 == right.record.tree_sha256
    assert identity(left)["answer"] == identity(right)["answer"] == 7
    assert "Compiling aisimulate-core" not in (shop.logs / "build-candidate.log").read_text()


def test_one_resolution_serves_both_sides(shop: Workshop, registry: Registry) -> None:
    """The baseline's lock decides; the candidate changes only what its own manifest forces (rule 7)."""
    for version in ("1.0.0", "1.0.1", "1.1.0"):
        for name in ("steady", "forced"):
            registry.publish(name, version, library(name, version, f'pub const V: &str = "{version}";'))

    def publish(version: str, needs: dict[str, str], **locked: str) -> Revision:
        lock = f'version = 4\n[[package]]\nname = "{NAME}"\nversion = "{version}"\n'
        for name, at in locked.items():
            checksum = next(
                json.loads(line)["cksum"]
                for line in (registry._folder / name[:2] / name[2:4] / name).read_text().splitlines()
                if json.loads(line)["vers"] == at
            )
            lock += (
                f'[[package]]\nname = "{name}"\nversion = "{at}"\nchecksum = "{checksum}"\n'
                'source = "registry+https://github.com/rust-lang/crates.io-index"\n'
            )
        registry.publish(NAME, version, {**engine(version, 1, needs=needs), "Cargo.lock": lock}, needs=needs)
        return resolve(shop, version)

    old = publish("1.0.0", {"steady": "1", "forced": "1"}, steady="1.0.0", forced="1.0.0")
    new = publish("2.0.0", {"steady": "1", "forced": "1.0.1"}, steady="1.1.0", forced="1.0.1")
    outcome = shop.builder().run({"baseline": old, "candidate": new})
    found = {item.name: (item.baseline, item.candidate) for item in outcome.lock_differences}
    assert found[NAME] == (("1.0.0",), ("2.0.0",))
    assert "steady" not in found
    # Not the newest of the registry: the candidate's own lock says which.
    assert found["forced"] == (("1.0.0",), ("1.0.1",))
    own = shop.builder(lock="own").run({"baseline": old, "candidate": new})
    found = {item.name: (item.baseline, item.candidate) for item in own.lock_differences}
    assert found == {
        NAME: (("1.0.0",), ("2.0.0",)),
        "steady": (("1.0.0",), ("1.1.0",)),
        "forced": (("1.0.0",), ("1.0.1",)),
    }
    for side in SIDES:
        assert artifact(own, side).record.packages_verified == 2
