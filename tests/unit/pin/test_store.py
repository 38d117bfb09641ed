"""Artifacts and layers in the cache: intact or made anew, whole or not there."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from replay_parity.errors import InfrastructureError
from replay_parity.pin import store
from replay_parity.pin.keys import key_of
from replay_parity.pin.models import ArtifactRecord, GitRevision, Toolchain
from replay_parity.pin.store import ArtifactStore, LayerStore, read_sealed, write_sealed
from replay_parity.system.files import copy_tree, sha256_bytes, sha256_tree

TOOLCHAIN = Toolchain(
    asked="path",
    sysroot="/somewhere",
    rustc="rustc 1.0.0",
    cargo="cargo 1.0.0",
    host="here",
    release="1.0.0",
    commit_hash=None,
    c_compiler=None,
    linker=None,
)
RUNNER = b"#!/bin/sh\nexit 0\n"


def record_of(runner: bytes = RUNNER, *, lock: str = "1") -> ArtifactRecord:
    record = ArtifactRecord(
        key="0" * 64,
        revision=GitRevision(
            repository="/r", asked="main", asked_as="branch", commit="a" * 40, tree="b" * 40, core="crates/core"
        ),
        tree_sha256="c" * 64,
        runner_source_sha256="d" * 64,
        lock_sha256=lock * 64,
        patch_sha256=None,
        toolchain=TOOLCHAIN,
        profile="dev",
        flags=(),
        features=(),
        negative_control=None,
        sha256=sha256_bytes(runner),
        neutral_sha256="e" * 64,
        size_bytes=len(runner),
        text_bytes=None,
        packages_verified=0,
    )
    return record.model_copy(update={"key": key_of(record)})


@pytest.fixture
def built(tmp_path: Path) -> tuple[Path, Path]:
    """A runner and its log, as a build leaves them."""
    binary, log = tmp_path / "built", tmp_path / "build.log"
    binary.write_bytes(RUNNER)
    log.write_text("compiled")
    return binary, log


@pytest.fixture
def kept(tmp_path: Path, built: tuple[Path, Path]) -> tuple[ArtifactStore, ArtifactRecord, Path]:
    artifacts, record = ArtifactStore(tmp_path / "cache"), record_of()
    path = artifacts.add(record, binary=built[0], log=built[1])
    return artifacts, record, path.parent


def test_an_artifact_is_found_as_it_was_kept(kept: tuple[ArtifactStore, ArtifactRecord, Path]) -> None:
    artifacts, record, folder = kept
    path, found = artifacts.find(record.key) or (None, None)
    assert path == folder / "runner"
    assert found == record
    assert path.read_bytes() == RUNNER
    assert os.access(path, os.X_OK)
    assert not path.stat().st_mode & 0o222
    assert artifacts.find("f" * 64) is None


def flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.chmod(0o644)
    path.write_bytes(data)


def truncate(path: Path) -> None:
    path.chmod(0o644)
    path.write_bytes(path.read_bytes()[:-1])


def to_link(path: Path) -> None:
    other = path.with_name("other")
    path.rename(other)
    path.symlink_to(other)


def to_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


@pytest.mark.parametrize("name", ["runner", "artifact.json", "seal.json"])
@pytest.mark.parametrize("damage", [flip, truncate, Path.unlink, to_link, to_folder])
def test_a_damaged_artifact_is_removed_and_can_be_kept_again(
    kept: tuple[ArtifactStore, ArtifactRecord, Path],
    built: tuple[Path, Path],
    name: str,
    damage: Callable[[Path], None],
) -> None:
    artifacts, record, folder = kept
    damage(folder / name)
    assert artifacts.find(record.key) is None
    assert not folder.exists()
    artifacts.add(record, binary=built[0], log=built[1])
    assert artifacts.find(record.key) is not None


def test_a_flipped_byte_anywhere_in_a_record_is_noticed(kept: tuple[ArtifactStore, ArtifactRecord, Path]) -> None:
    artifacts, record, folder = kept
    copy = folder.parent / "copy"
    for position in range(0, (folder / "artifact.json").stat().st_size, 7):
        shutil.copytree(folder, copy)
        data = bytearray((folder / "artifact.json").read_bytes())
        data[position] ^= 1
        (folder / "artifact.json").write_bytes(data)
        assert artifacts.find(record.key) is None, position
        copy.rename(folder)


@pytest.mark.parametrize(
    ("field", "value"),
    [("profile", "release"), ("lock_sha256", "9" * 64), ("features", ["x"]), ("patch_sha256", "9" * 64)],
)
def test_a_record_that_is_edited_with_its_seal_does_not_lead_back_to_itself(
    kept: tuple[ArtifactStore, ArtifactRecord, Path], field: str, value: object
) -> None:
    artifacts, record, folder = kept
    document = json.loads((folder / "artifact.json").read_bytes())
    document[field] = value
    edited = json.dumps(document).encode()
    (folder / "artifact.json").write_bytes(edited)
    write_sealed(folder / "seal.json", {"record_sha256": sha256_bytes(edited)})
    assert artifacts.find(record.key) is None


def test_an_artifact_does_not_serve_under_another_key(kept: tuple[ArtifactStore, ArtifactRecord, Path]) -> None:
    artifacts, _, folder = kept
    other = record_of(lock="2").key
    shutil.copytree(folder, folder.with_name(other))
    assert artifacts.find(other) is None


def test_a_lost_run_bit_is_given_back(kept: tuple[ArtifactStore, ArtifactRecord, Path]) -> None:
    artifacts, record, folder = kept
    (folder / "runner").chmod(0o444)
    found = artifacts.find(record.key)
    assert found is not None
    assert os.access(found[0], os.X_OK)


def test_unequal_runners_from_equal_inputs_are_an_alarm(
    kept: tuple[ArtifactStore, ArtifactRecord, Path], built: tuple[Path, Path]
) -> None:
    artifacts, record, folder = kept
    other = b"#!/bin/sh\nexit 1\n"
    built[0].write_bytes(other)
    with pytest.raises(InfrastructureError, match="from equal inputs gave different runners") as caught:
        artifacts.add(record_of(other), binary=built[0], log=built[1])
    assert record.sha256 in str(caught.value)
    assert sha256_bytes(other) in str(caught.value)
    assert (folder / "runner").read_bytes() == RUNNER


def test_two_runs_that_keep_the_same_artifact_at_once_agree_or_one_is_alarmed(
    tmp_path: Path, built: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    record = record_of()
    with ThreadPoolExecutor(8) as pool:
        paths = list(
            pool.map(lambda _: ArtifactStore(tmp_path / "c").add(record, binary=built[0], log=built[1]), range(16))
        )
    assert len(set(paths)) == 1
    assert [entry.name for entry in (tmp_path / "c" / "artifacts").iterdir()] == [record.key]
    # Another run keeps other bytes between our look and our rename.
    other = b"#!/bin/sh\nexit 1\n"
    theirs = tmp_path / "theirs"
    theirs.write_bytes(other)
    artifacts = ArtifactStore(tmp_path / "d")
    put = ArtifactStore._put

    def slower(self: ArtifactStore, mine: ArtifactRecord, *, binary: Path, log: Path) -> None:
        put(self, record_of(other), binary=theirs, log=log)
        put(self, mine, binary=binary, log=log)

    monkeypatch.setattr(ArtifactStore, "_put", slower)
    with pytest.raises(InfrastructureError, match="from equal inputs gave different runners"):
        artifacts.add(record, binary=built[0], log=built[1])


def test_what_cannot_be_copied_leaves_nothing_behind(tmp_path: Path, built: tuple[Path, Path]) -> None:
    artifacts = ArtifactStore(tmp_path / "cache")
    with pytest.raises(InfrastructureError, match="cannot keep the artifact"):
        artifacts.add(record_of(), binary=tmp_path / "absent", log=built[1])
    assert list((tmp_path / "cache" / "artifacts").iterdir()) == []


def test_scratch_of_killed_runs_is_swept_once_it_is_old(tmp_path: Path, built: tuple[Path, Path]) -> None:
    artifacts = ArtifactStore(tmp_path / "cache")
    old, young = (tmp_path / "cache" / "artifacts" / name for name in ("new-old", "new-young"))
    for folder in (old, young):
        folder.mkdir()
        (folder / "runner").touch()
    os.utime(old, (0, 0))
    artifacts.add(record_of(), binary=built[0], log=built[1])
    assert not old.exists()
    assert young.exists()


@pytest.fixture
def target(tmp_path: Path) -> Path:
    """A small target folder."""
    folder = tmp_path / "target"
    (folder / "debug" / "deps").mkdir(parents=True)
    (folder / "debug" / "deps" / "libx.rlib").write_bytes(b"compiled")
    (folder / "debug" / "runner").write_bytes(b"run")
    (folder / "debug" / "runner").chmod(0o755)
    (folder / "debug" / "link").symlink_to("deps")
    os.utime(folder / "debug" / "runner", (1000, 1000))
    return folder


def test_a_layer_is_restored_as_it_was_times_included(tmp_path: Path, target: Path) -> None:
    layers = LayerStore(tmp_path / "cache")
    assert not layers.restore("k", tmp_path / "out")
    layers.save("k", target)
    layers.save("k", target)
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "stale").touch()
    assert layers.restore("k", tmp_path / "out")
    assert sha256_tree(tmp_path / "out") == sha256_tree(target)
    assert (tmp_path / "out" / "debug" / "runner").stat().st_mtime == 1000
    assert (tmp_path / "out" / "debug" / "link").readlink() == Path("deps")


@pytest.mark.parametrize(
    "damage",
    [
        lambda layer: flip(layer / "target" / "debug" / "deps" / "libx.rlib"),
        lambda layer: truncate(layer / "target" / "debug" / "deps" / "libx.rlib"),
        lambda layer: (layer / "target" / "debug" / "deps" / "libx.rlib").unlink(),
        lambda layer: (layer / "target" / "debug" / "deps" / "more.rlib").touch(),
        lambda layer: (layer / "target" / "debug" / "runner").chmod(0o644),
        lambda layer: shutil.rmtree(layer / "target"),
        lambda layer: (layer / "target.sha256").unlink(),
        lambda layer: flip(layer / "target.sha256"),
    ],
)
def test_a_damaged_layer_is_removed_and_never_used(
    tmp_path: Path, target: Path, damage: Callable[[Path], object]
) -> None:
    layers = LayerStore(tmp_path / "cache")
    layers.save("k", target)
    damage(tmp_path / "cache" / "layers" / "k")
    assert not layers.restore("k", tmp_path / "out")
    assert not (tmp_path / "out").exists()
    assert not layers.has("k")
    layers.save("k", target)
    assert layers.restore("k", tmp_path / "out")


def test_only_the_layers_used_last_are_kept(tmp_path: Path, target: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "_LAYERS_KEPT", 2)
    layers = LayerStore(tmp_path / "cache")
    for number, key in enumerate(("a", "b")):
        layers.save(key, target)
        os.utime(tmp_path / "cache" / "layers" / key, (number, number))
    layers.restore("a", tmp_path / "out")
    layers.save("c", target)
    assert [layers.has(key) for key in "abc"] == [True, False, True]


def test_a_layer_that_is_pruned_while_it_is_copied_is_no_layer(
    tmp_path: Path, target: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    layers = LayerStore(tmp_path / "cache")
    layers.save("k", target)

    def pruned_meanwhile(source: Path, out: Path) -> None:
        shutil.rmtree(source.parent)
        copy_tree(source, out)

    monkeypatch.setattr(store, "copy_tree", pruned_meanwhile)
    assert not layers.restore("k", tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_sealed_document_is_what_was_written_or_nothing(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    assert read_sealed(path) is None
    document = {"b": [1, 2], "a": {"c": "é"}}
    write_sealed(path, document)
    assert read_sealed(path) == document
    data = path.read_bytes()
    for position in range(len(data)):
        changed = bytearray(data)
        changed[position] ^= 1
        path.write_bytes(changed)
        # White space may change without harm; the document may not.
        assert read_sealed(path) in (None, document)
        path.write_bytes(data[:position])
        assert read_sealed(path) is None
    for other in (b"[]", b"{}", b"null", b'{"document": 1, "sha256": "x"}', b"\xff"):
        path.write_bytes(other)
        assert read_sealed(path) is None
