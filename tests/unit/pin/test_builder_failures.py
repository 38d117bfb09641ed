"""Builds that fail: whose fault it is, one sentence, the right exit code, and what stays."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from replay_parity.campaign.models import Patch
from replay_parity.errors import BadInputError, BuildError, InfrastructureError, RevisionError
from replay_parity.pin import builder as builder_module
from replay_parity.pin.builder import SIDES
from replay_parity.system.files import sha256_bytes
from tests.support.tiny import Engines, Workshop, artifact, identity

GOOD = "pub fn answer() -> u64 { 1 }"


def failed(workshop: Workshop, engines: Engines, baseline: str, candidate: str, **build: object) -> BuildError:
    """The candidate's error; the baseline must have been built."""
    outcome = workshop.pair(engines.folder, baseline, candidate, **build)
    assert identity(artifact(outcome, "baseline"))["answer"] == 1
    error = outcome.sides["candidate"]
    assert isinstance(error, BuildError), error
    assert (error.side, error.exit_code) == ("candidate", 1)
    assert Path(error.log).is_file()
    assert len(error.excerpt.splitlines()) <= 31
    return error


def test_a_candidate_that_does_not_compile(workshop: Workshop, engines: Engines) -> None:
    good = engines.broken(GOOD)
    # Many errors: the excerpt is one screen.
    bad = engines.broken(GOOD + "\n" + "\n".join(f"pub fn f{n}() {{ missing_{n}() }}" for n in range(40)))
    error = failed(workshop, engines, good, bad)
    assert error.kind == "revision"
    assert error.message == "the candidate does not compile"
    assert "missing_0" in error.excerpt
    assert "crates/core/src/lib.rs" in error.excerpt
    assert error.excerpt.splitlines()[-1].startswith("... and ")
    assert error.log.endswith("build-candidate.log")
    # The baseline is not built again for it, and the candidate is tried again.
    again = workshop.pair(engines.folder, good, bad)
    assert again.compiled == ()
    assert isinstance(again.sides["candidate"], BuildError)


def test_a_runner_that_does_not_fit_the_api_is_told_apart(workshop: Workshop, engines: Engines) -> None:
    good, empty = engines.broken(GOOD), engines.broken("")
    error = failed(workshop, engines, good, empty)
    assert error.kind == "runner_api"
    assert error.message == "the runner does not compile against the candidate's API"
    assert "answer" in error.excerpt


MANIFESTS = {
    "[package\n": "Cargo.toml",
    '[package]\nname = "another"\nversion = "1.0.0"\n': "no matching package named `aisimulate-core`",
    '[package]\nname = "aisimulate-core"\nversion = "1.0.0"\n[dependencies]\nx = { path = "../gone" }\n': "gone",
    '[package]\nname = "aisimulate-core"\nversion = "1.0.0"\nrust-version = "1.999"\n': "1.999",
    '[package]\nname = "aisimulate-core"\nversion.workspace = true\n': "workspace",
}


def test_a_manifest_that_cargo_cannot_use(workshop: Workshop, engines: Engines) -> None:
    good = engines.broken(GOOD)
    for manifest, words in MANIFESTS.items():
        (engines.core / "Cargo.toml").write_text(manifest)
        error = failed(workshop, engines, good, engines.commit(manifest))
        assert error.kind == "revision"
        assert words in error.excerpt


def test_a_build_script_of_the_revision_that_fails(workshop: Workshop, engines: Engines) -> None:
    good = engines.broken(GOOD)
    (engines.core / "build.rs").write_text('fn main() { panic!("no such thing here") }')
    error = failed(workshop, engines, good, engines.commit("build script"))
    assert error.kind == "revision"
    assert "no such thing here" in error.excerpt


def test_a_build_that_takes_too_long_is_ended(workshop: Workshop, engines: Engines) -> None:
    good = engines.broken(GOOD)
    (engines.core / "build.rs").write_text("fn main() { loop { std::thread::park() } }")
    bad = engines.commit("hangs")
    workshop.pair(engines.folder, good, good)
    error = failed(workshop, engines, good, bad, timeout_minutes=0.05)
    assert error.kind == "timed_out"
    assert error.message == "the candidate was not compiled within 0.05 minutes"


def test_a_feature_that_no_side_has_is_bad_input(workshop: Workshop, engines: Engines) -> None:
    good = engines.broken(GOOD)
    with pytest.raises(BadInputError, match=r"the baseline: .*nope") as caught:
        workshop.pair(engines.folder, good, good, features=("nope",))
    assert caught.value.where == "/build/features"
    assert caught.value.exit_code == 2
    assert len(str(caught.value).splitlines()) == 1
    assert list(workshop.root.joinpath("slot").iterdir()) == []


def test_a_lock_of_the_revision_that_is_none_is_one_sentence(workshop: Workshop, engines: Engines) -> None:
    good = engines.broken(GOOD)
    (engines.core / "Cargo.lock").write_text("<<<<<<< HEAD\n")
    bad = engines.commit("a conflict in the lock")
    with pytest.raises(BadInputError, match=r"Cargo\.lock of the candidate: is not a Cargo\.lock"):
        workshop.pair(engines.folder, good, bad)


def test_a_dependency_that_cannot_be_brought_is_infrastructure(workshop: Workshop, engines: Engines) -> None:
    good = engines.broken(GOOD)
    bad = engines.broken(GOOD, more='[dependencies]\nserde = "1"\n')
    with pytest.raises(InfrastructureError, match="the dependencies of the candidate could not be brought") as caught:
        workshop.pair(engines.folder, good, bad)
    assert caught.value.exit_code == 3
    assert "fetch-candidate.log" in str(caught.value)
    assert len(str(caught.value).splitlines()) == 1


def test_a_commit_that_leads_out_of_its_checkout_is_refused(workshop: Workshop, engines: Engines) -> None:
    good = engines.broken(GOOD)
    (engines.core / "src" / "more.rs").symlink_to("/etc/hostname")
    bad = engines.commit("a link")
    with pytest.raises(RevisionError, match="leaves the checkout"):
        workshop.pair(engines.folder, good, bad)


def test_a_runner_that_is_not_who_it_should_be_is_not_kept(
    workshop: Workshop, engines: Engines, tiny_runner: Path
) -> None:
    good = engines.broken(GOOD)
    main = tiny_runner / "src" / "main.rs"
    main.write_text(main.read_text().replace('env!("REPLAY_PARITY_REVISION")', '"git:another"'))
    with pytest.raises(
        InfrastructureError, match=f"the runner says revision = 'git:another', it was built with 'git:{good}'"
    ):
        workshop.pair(engines.folder, good, good)
    assert list((workshop.cache / "artifacts").iterdir()) == []


def patched(engines: Engines, change: str) -> tuple[bytes, str]:
    """A patch that makes this change to the engine, and the commit below it."""
    commit = engines.broken("// first line\n" + GOOD + "\n// last line\n")
    lib = engines.core / "src" / "lib.rs"
    lib.write_text(lib.read_text().replace("{ 1 }", change))
    data = engines.git("diff").encode() + b"\n"
    engines.git("checkout", "--quiet", ".")
    return data, commit


def test_a_patch_is_applied_to_both_sides_and_is_part_of_the_address(workshop: Workshop, engines: Engines) -> None:
    data, old = patched(engines, "{ 5 }")
    (engines.folder / "README").write_text("new")
    new = engines.commit("elsewhere")
    file = workshop.folder / "determinism.patch"
    workshop.folder.mkdir(exist_ok=True)
    file.write_bytes(data)
    patch = Patch(file=str(file), sha256=sha256_bytes(data))
    plain = workshop.pair(engines.folder, old, new)
    outcome = workshop.pair(engines.folder, old, new, patch=patch)
    for side in SIDES:
        built = artifact(outcome, side)
        assert identity(built)["answer"] == 5
        assert built.record.patch_sha256 == patch.sha256
        assert built.record.key != artifact(plain, side).record.key
    assert identity(artifact(plain, "baseline"))["answer"] == 1


def test_a_patch_that_fits_one_side_only_stops_the_campaign_before_anything_is_compiled(
    workshop: Workshop, engines: Engines, monkeypatch: pytest.MonkeyPatch
) -> None:
    data, old = patched(engines, "{ 5 }")
    new = engines.broken("pub fn answer() -> u64 { 2 }")
    file = workshop.folder / "determinism.patch"
    workshop.folder.mkdir(exist_ok=True)
    file.write_bytes(data)
    monkeypatch.setattr(builder_module, "compile_runner", lambda *_, **__: pytest.fail("compiled"))
    patch = Patch(file=str(file), sha256=sha256_bytes(data))
    with pytest.raises(BadInputError, match="the patch does not apply to the candidate: ") as caught:
        workshop.pair(engines.folder, old, new, patch=patch)
    assert caught.value.exit_code == 2
    assert len(str(caught.value).splitlines()) == 1
    # The file is read again for each side: an exchange in between is noticed.
    file.write_bytes(data + b"\n")
    with pytest.raises(BadInputError, match="the patch has SHA-256 "):
        workshop.pair(engines.folder, old, old, patch=patch)


@contextlib.contextmanager
def small_disk(folder: Path, size: str) -> Iterator[None]:
    """A file system of its own of this size."""
    folder.mkdir(parents=True)
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={size},mode=700", "tmpfs", str(folder)], capture_output=True, check=False
    )
    if mounted.returncode != 0:
        pytest.skip("this machine does not let us mount a small disk")
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


@pytest.mark.parametrize(("place", "size"), [("cache", "100k"), ("build", "250k")])
def test_a_full_disk_is_one_sentence_and_leaves_nothing_half(
    workshop: Workshop, engines: Engines, place: str, size: str
) -> None:
    good = engines.broken(GOOD)
    with small_disk(workshop.folder / place, size):
        with pytest.raises(InfrastructureError) as caught:
            workshop.pair(engines.folder, good, good)
        assert caught.value.exit_code == 3
        # A linker writes through memory: it is told by a signal.
        assert "No space left on device" in str(caught.value) or "Bus error" in str(caught.value)
        assert len(str(caught.value).splitlines()) == 1
        for kept in ("artifacts", "layers"):
            assert list((workshop.cache / kept).glob("*")) == []
    if place == "cache":
        shutil.rmtree(workshop.cache)
    else:
        shutil.rmtree(workshop.root)
    assert identity(artifact(workshop.pair(engines.folder, good, good), "baseline"))["answer"] == 1


@pytest.mark.skipif(os.getuid() != 0, reason="only root can mount")
def test_a_read_only_cache_is_one_sentence(workshop: Workshop, engines: Engines) -> None:
    old, new = engines.engine(1), engines.engine(2)
    workshop.pin(engines.folder, old)
    workshop.cache.joinpath("artifacts").mkdir(mode=0o700)
    bound = subprocess.run(["mount", "--bind", str(workshop.cache), str(workshop.cache)], check=False)
    read_only = subprocess.run(["mount", "-o", "remount,ro,bind", str(workshop.cache)], check=False)
    if bound.returncode or read_only.returncode:
        pytest.skip("this machine does not let us mount")
    try:
        with pytest.raises(InfrastructureError, match="Read-only file system") as caught:
            workshop.pair(engines.folder, old, new)
        assert "choose a writable folder" in str(caught.value)
        assert len(str(caught.value).splitlines()) == 1
    finally:
        subprocess.run(["umount", "--lazy", str(workshop.cache)], check=True)
