"""Cached documents that are damaged, edited, or of another version: made anew or refused; never a bug."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest

from replay_parity.campaign.sources import CrateSource
from replay_parity.errors import ReplayParityError
from replay_parity.pin.models import CrateRevision, Revision
from replay_parity.pin.preparation import Side
from replay_parity.pin.release import Releases
from replay_parity.pin.store import ArtifactStore, LayerStore, read_sealed, write_sealed
from replay_parity.system.files import remove_tree, sha256_bytes
from tests.support.registry import Registry
from tests.support.tiny import Engines, Workshop, artifact, identity
from tests.unit.pin.test_release import NAME, engine, registry, shop

__all__ = ["registry", "shop"]

RAW = [
    b"",
    b"{}",
    b"[]",
    b"null",
    b"1",
    b'"x"',
    b"\xff\xfe",
    b"{" * 100_000,
    b"[" * 100_000,
    b'{"document":{}}',
    b"\0" * 99,
]
ODD: list[Any] = [None, 5, -1.5, True, "x", "\u0000", [], {}, [[]], {"x": {}}]


def variants(document: Any) -> Iterator[Any]:
    """The document with each of its values left out, exchanged for something odd, or with something added."""
    yield from ODD
    if isinstance(document, dict):
        yield {**document, "of_a_later_version": 1}
        for key, value in document.items():
            yield {name: other for name, other in document.items() if name != key}
            for odd in variants(value) if isinstance(value, dict) else ODD:
                yield {**document, key: odd}
    if isinstance(document, list) and document:
        for odd in variants(document[0]):
            yield [odd, *document[1:]]


def essence(document: Any) -> Any:
    """The document without the keys that nobody reads, or that have one value only."""
    if not isinstance(document, dict):
        return document
    return {key: essence(value) for key, value in document.items() if key not in _UNREAD}


def keep(path: Path) -> None:
    """In place of removing: each document is damaged on its own."""


_UNREAD = {"of_a_later_version", "asked", "kind"}


class Cache:
    """A cache with one of each document, restored before each damage."""

    def __init__(self, shop: Workshop, revisions: dict[Side, Revision]) -> None:
        self.shop = shop
        self.revisions = revisions
        self.outcome = shop.builder().run(revisions)
        found = [path for path in shop.cache.rglob("*.json") if "target" not in path.parts]
        self.kept = {path: path.read_bytes() for path in found}

    def document(self, name: str) -> Path:
        return next(path for path in sorted(self.kept) if name in str(path.relative_to(self.shop.cache)))

    def each(self, name: str) -> Iterator[tuple[Path, object]]:
        """The document once in every wrong form; what it is, for a message."""
        path = self.document(name)
        plain = orjson.loads(self.kept[path])
        for raw in RAW:
            yield self._damaged(path, Path.write_bytes, raw), raw[:20]
        for other in variants(plain):
            yield self._damaged(path, Path.write_bytes, orjson.dumps(other)), other
        if set(plain) == {"document", "sha256"}:
            for other in variants(plain["document"]):
                yield self._damaged(path, write_sealed, other), ("sealed", other)
        path.unlink()
        yield path, "missing"
        path.mkdir()
        yield path, "a folder"
        path.rmdir()
        path.symlink_to("nowhere")
        yield path, "a link"
        self.restore()

    def _damaged(self, path: Path, damage: Callable[[Path, Any], object], given: object) -> Path:
        self.restore()
        damage(path, given)
        return path

    def restore(self) -> None:
        for path, data in self.kept.items():
            remove_tree(path)
            path.write_bytes(data)


@pytest.fixture
def cache(shop: Workshop, registry: Registry, engines: Engines) -> Cache:
    registry.publish(NAME, "1.2.3", engine("1.2.3", 1))
    revision = shop.sources.resolve(CrateSource(version="1.2.3"))
    return Cache(shop, {"baseline": revision, "candidate": shop.pin(engines.folder, engines.engine(2))})


def test_records_of_releases(cache: Cache, monkeypatch: pytest.MonkeyPatch) -> None:
    brought: list[CrateSource] = []
    right = cache.revisions["baseline"]

    def bring(_: Releases, source: CrateSource, __: object) -> Revision:
        brought.append(source)
        return right

    monkeypatch.setattr(Releases, "_bring", bring)
    # The sources stay: they are not what is looked at here.
    monkeypatch.setattr("replay_parity.pin.release.remove_tree", keep)
    source = CrateSource(version="1.2.3")
    path = cache.document("release.json")
    right_words = essence(read_sealed(path))
    for _, form in cache.each("release.json"):
        count = len(brought)
        assert cache.shop.sources.resolve(source) == right, form
        if len(brought) == count:
            assert essence(read_sealed(path)) == right_words, form
    assert cache.shop.sources.resolve(source) == right


def test_records_of_artifacts(cache: Cache, monkeypatch: pytest.MonkeyPatch) -> None:
    built = artifact(cache.outcome, "baseline")
    store = ArtifactStore(cache.shop.cache)
    monkeypatch.setattr("replay_parity.pin.store.remove_tree", keep)
    for name in (f"{built.record.key}/artifact.json", f"{built.record.key}/seal.json"):
        for _, form in cache.each(name):
            found = store.find(built.record.key)
            assert found is None or found[1] == built.record, form
    # With a seal that fits: what the record says must lead back to its own name.
    path = cache.document(f"{built.record.key}/artifact.json")
    for other in variants(orjson.loads(cache.kept[path])):
        path.write_bytes(orjson.dumps(other))
        write_sealed(path.with_name("seal.json"), {"record_sha256": sha256_bytes(path.read_bytes())})
        found = store.find(built.record.key)
        assert found is None or (found[1].key, found[1].sha256) == (built.record.key, built.record.sha256), other
    cache.restore()
    assert store.find(built.record.key) == (built.path, built.record)


def test_resolutions(cache: Cache, monkeypatch: pytest.MonkeyPatch) -> None:
    builder = cache.shop.builder()
    # What runners say is another matter, and a process each time.
    monkeypatch.setattr(builder, "_find", ArtifactStore(cache.shop.cache).find)
    for path, form in cache.each("resolutions"):
        recalled = builder._recall(cache.revisions)
        if recalled is not None:
            document = essence(read_sealed(path))
            assert document["locks"] == orjson.loads(cache.kept[path])["document"]["locks"], form
    assert builder._recall(cache.revisions) is not None


def test_digests_of_layers(cache: Cache, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (layer, *_) = (cache.shop.cache / "layers").iterdir()
    digest = layer / "target.sha256"
    right = digest.read_bytes()
    monkeypatch.setattr("replay_parity.pin.store.remove_tree", keep)
    # The layer itself is not what is looked at here.
    monkeypatch.setattr(LayerStore, "_copy", staticmethod(lambda *_: True))
    monkeypatch.setattr("replay_parity.pin.store.sha256_tree", lambda _: right.decode())
    layers = LayerStore(cache.shop.cache)
    for raw in (*RAW, right[:-1], right + b"\n", right.upper()):
        digest.write_bytes(raw)
        assert not layers.restore(layer.name, tmp_path / "out"), raw
    digest.write_bytes(right)
    assert layers.restore(layer.name, tmp_path / "out")


def of_another_version(path: Path) -> None:
    """Well sealed, of a form that this version does not write."""
    write_sealed(path, {"version": 7, "releases": [], "sides": {}})


def unsealed(path: Path) -> None:
    """As versions before the seal wrote them."""
    document = orjson.loads(path.read_bytes())
    path.write_bytes(orjson.dumps(document.get("document", document)))


@pytest.mark.parametrize("written", [of_another_version, unsealed])
def test_a_whole_cache_of_another_version_costs_a_run_from_the_start(
    cache: Cache, written: Callable[[Path], None]
) -> None:
    for path in cache.kept:
        written(path)
    for layer in (cache.shop.cache / "layers").iterdir():
        written(layer / "target.sha256") if written is of_another_version else (layer / "target.sha256").unlink()
    again = cache.shop.sources.resolve(CrateSource(version="1.2.3"))
    assert isinstance(again, CrateRevision)
    assert again == cache.revisions["baseline"]
    outcome = cache.shop.builder().run({**cache.revisions, "baseline": again})
    assert outcome.sides == cache.outcome.sides
    assert [identity(artifact(outcome, side))["answer"] for side in cache.revisions] == [1, 2]


@pytest.mark.parametrize("name", ["releases", "artifacts", "resolutions", "layers", "git"])
def test_a_file_in_place_of_a_folder_is_one_sentence(workshop: Workshop, engines: Engines, name: str) -> None:
    workshop.cache.mkdir(parents=True)
    (workshop.cache / name).write_text("")
    commit = engines.engine(1)

    def all_of_it() -> None:
        _ = workshop.sources.releases
        workshop.pair(engines.folder, commit, commit)

    with pytest.raises(ReplayParityError) as caught:
        all_of_it()
    assert len(str(caught.value).splitlines()) == 1
