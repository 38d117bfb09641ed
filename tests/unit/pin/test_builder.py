"""Builds with real cargo on tiny engines: content decides, the cache is never trusted blindly, errors are blamed."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from replay_parity.campaign.models import Build
from replay_parity.errors import BadInputError, BuildError, InfrastructureError
from replay_parity.pin.builder import Artifact, BuildOutcome, Side
from replay_parity.pin.store import ArtifactStore
from replay_parity.system.files import sha256_bytes

from .conftest import Workshop


def source(answer: int) -> str:
    return f"pub fn answer() -> u32 {{ {answer} }}\n"


def artifact(outcome: BuildOutcome, side: Side) -> Artifact:
    built = outcome.sides[side]
    assert isinstance(built, Artifact), built
    return built


def says(built: Artifact) -> dict[str, object]:
    done = subprocess.run([built.path, "identity"], capture_output=True, check=True)
    found: dict[str, object] = json.loads(done.stdout)
    return found


def test_equal_versions_of_other_content_are_other_engines(workshop: Workshop) -> None:
    # File times are pinned, so cargo alone would take the first engine for the second.
    first = workshop.scratch.tiny(source=source(1))
    second = workshop.scratch.tiny(source=source(2))
    outcome, told = workshop.build(first, second)
    assert outcome.compiled == ("baseline", "candidate")
    assert says(artifact(outcome, "baseline"))["answer"] == 1
    assert says(artifact(outcome, "candidate"))["answer"] == 2
    assert says(artifact(outcome, "candidate"))["revision"] == f"git:{second}"
    assert any("dependencies reused" in step for step in told.steps)


def test_a_second_build_compiles_nothing_and_checks_nothing_out(workshop: Workshop) -> None:
    first, second = workshop.scratch.tiny(source=source(1)), workshop.scratch.tiny(source=source(2))
    before, _ = workshop.build(first, second)
    after, told = workshop.build(first, second)
    assert after.compiled == ()
    assert told.steps == []
    for side in ("baseline", "candidate"):
        assert artifact(after, side).record == artifact(before, side).record


def test_equal_content_of_another_commit_only_links_the_runner(workshop: Workshop) -> None:
    first, second = workshop.scratch.tiny(source=source(1)), workshop.scratch.tiny(source=source(2))
    workshop.build(first, second)
    third = workshop.scratch.tiny(source=source(1))
    outcome, told = workshop.build(first, third)
    assert any("engine reused" in step for step in told.steps)
    left, right = artifact(outcome, "baseline").record, artifact(outcome, "candidate").record
    assert left.tree_sha256 == right.tree_sha256
    assert left.sha256 != right.sha256
    assert left.neutral_sha256 == right.neutral_sha256, "equal but for the compiled-in revision"
    assert says(artifact(outcome, "candidate"))["answer"] == 1


def test_two_folders_give_one_sha256(workshop: Workshop) -> None:
    first, second = workshop.scratch.tiny(source=source(1)), workshop.scratch.tiny(source=source(2))
    here, _ = workshop.build(first, second)
    there, _ = workshop.build(first, second, cache="other", root=workshop.folder / "a-much-longer-name-of-a-folder")
    for side in ("baseline", "candidate"):
        assert artifact(here, side).record.sha256 == artifact(there, side).record.sha256


@pytest.mark.parametrize("damage", ["flip", "truncate", "record", "missing"])
def test_a_damaged_artifact_is_never_used(workshop: Workshop, damage: str) -> None:
    first, second = workshop.scratch.tiny(source=source(1)), workshop.scratch.tiny(source=source(2))
    before, _ = workshop.build(first, second)
    path = artifact(before, "candidate").path
    path.chmod(0o755)
    if damage == "flip":
        data = bytearray(path.read_bytes())
        data[len(data) // 2] ^= 1
        path.write_bytes(data)
    elif damage == "truncate":
        path.write_bytes(path.read_bytes()[:-1])
    elif damage == "record":
        (path.parent / "artifact.json").write_text("{}")
    else:
        path.unlink()
    after, _ = workshop.build(first, second)
    assert after.compiled == ("candidate",)
    assert artifact(after, "candidate").record.sha256 == artifact(before, "candidate").record.sha256


@pytest.mark.parametrize(
    "content", ["", "{", "[]", "{}", '{"locks": {"baseline": "x", "candidate": "y"}, "differences": [1]}']
)
def test_a_damaged_resolution_is_made_anew(workshop: Workshop, content: str) -> None:
    first, second = workshop.scratch.tiny(source=source(1)), workshop.scratch.tiny(source=source(2))
    before, _ = workshop.build(first, second)
    for path in (workshop.folder / "cache" / "resolutions").iterdir():
        path.write_text(content)
    after, _ = workshop.build(first, second)
    assert after.compiled == ()
    assert artifact(after, "candidate").record == artifact(before, "candidate").record


def test_a_layer_that_is_gone_or_damaged_costs_time_only(workshop: Workshop) -> None:
    first, second = workshop.scratch.tiny(source=source(1)), workshop.scratch.tiny(source=source(2))
    workshop.build(first, second)
    shutil.rmtree(workshop.folder / "cache" / "artifacts")
    for layer in (workshop.folder / "cache" / "layers").iterdir():
        for path in layer.rglob("*.rlib"):
            path.write_bytes(b"")
    outcome, _ = workshop.build(first, second)
    assert says(artifact(outcome, "candidate"))["answer"] == 2


def test_a_broken_revision_is_told_from_a_broken_runner(workshop: Workshop) -> None:
    good = workshop.scratch.tiny(source=source(1))
    broken = workshop.scratch.tiny(source="pub fn answer( {\n")
    outcome, _ = workshop.build(good, broken)
    error = outcome.sides["candidate"]
    assert isinstance(error, BuildError)
    assert (error.kind, error.side, error.exit_code) == ("revision", "candidate", 1)
    assert "src/lib.rs" in error.excerpt
    assert Path(error.log).is_file()
    assert says(artifact(outcome, "baseline"))["answer"] == 1
    other_api = workshop.scratch.tiny(source="pub fn other() {}\n")
    outcome, _ = workshop.build(good, other_api)
    error = outcome.sides["candidate"]
    assert isinstance(error, BuildError)
    assert error.kind == "runner_api"
    assert "API" in error.message


def test_a_manifest_that_cannot_be_read_is_the_revisions_fault(workshop: Workshop) -> None:
    good = workshop.scratch.tiny(source=source(1))
    (workshop.scratch.core / "Cargo.toml").write_text("[package\n")
    outcome, _ = workshop.build(good, workshop.scratch.commit("broken manifest"))
    error = outcome.sides["candidate"]
    assert isinstance(error, BuildError)
    assert error.kind == "revision"


def test_a_feature_that_does_not_exist_is_bad_input(workshop: Workshop) -> None:
    first, second = workshop.scratch.tiny(source=source(1)), workshop.scratch.tiny(source=source(2))
    build = Build(toolchain="path", profile="dev", flags=(), features=("nothing",))
    with pytest.raises(BadInputError, match="nothing"):
        workshop.build(first, second, build=build)


def test_configuration_in_the_checkout_and_the_environment_has_no_effect(
    workshop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = workshop.scratch.tiny(source=source(1))
    plain, _ = workshop.build(first, workshop.scratch.tiny(source=source(2)))
    for folder in (workshop.scratch.folder, workshop.scratch.core):
        (folder / ".cargo").mkdir()
        (folder / ".cargo" / "config.toml").write_text(
            '[build]\nrustc-wrapper = "/bin/false"\nrustflags = ["--nope"]\n'
        )
        (folder / "rust-toolchain.toml").write_text('[toolchain]\nchannel = "1.0.0"\n')
    second = workshop.scratch.tiny(source=source(2))
    for name in ("RUSTFLAGS", "CARGO_ENCODED_RUSTFLAGS", "RUSTDOCFLAGS"):
        monkeypatch.setenv(name, "--nope")
    for name in ("RUSTC_WRAPPER", "RUSTC", "CARGO_BUILD_RUSTC_WRAPPER", "CARGO_BUILD_RUSTC"):
        monkeypatch.setenv(name, "/bin/false")
    monkeypatch.setenv("CARGO_PROFILE_DEV_OPT_LEVEL", "3")
    monkeypatch.setenv("CARGO_TARGET_DIR", str(workshop.folder / "elsewhere"))
    shutil.rmtree(workshop.folder / "cache")
    outcome, _ = workshop.build(first, second)
    assert artifact(outcome, "baseline").record.sha256 == artifact(plain, "baseline").record.sha256
    assert says(artifact(outcome, "candidate"))["answer"] == 2
    assert not (workshop.folder / "elsewhere").exists()


PATCH = """\
--- a/crates/core/src/lib.rs
+++ b/crates/core/src/lib.rs
@@ -1 +1,2 @@
 pub fn answer() -> u32 { 1 }
+pub fn patched() {}
"""


def test_a_patch_goes_to_both_sides_or_stops_the_campaign(workshop: Workshop) -> None:
    patch = workshop.folder / "determinism.patch"
    patch.write_text(PATCH)
    build = Build.model_validate(
        {
            "toolchain": "path",
            "profile": "dev",
            "flags": [],
            "features": [],
            "patch": {"file": patch.name, "sha256": sha256_bytes(PATCH.encode())},
        }
    )
    first = workshop.scratch.tiny(source=source(1))
    again = workshop.scratch.tiny(version="9.0.1", source=source(1))
    other = workshop.scratch.tiny(source=source(2))
    plain, _ = workshop.build(first, again)
    patched, _ = workshop.build(first, again, build=build, patch=patch)
    for side in ("baseline", "candidate"):
        assert artifact(patched, side).record.tree_sha256 != artifact(plain, side).record.tree_sha256
        assert artifact(patched, side).record.patch_sha256 == sha256_bytes(PATCH.encode())
    with pytest.raises(BadInputError, match="does not apply to the candidate"):
        workshop.build(first, other, build=build, patch=patch)


def test_unequal_artifacts_from_equal_inputs_are_an_alarm(workshop: Workshop) -> None:
    first, second = workshop.scratch.tiny(source=source(1)), workshop.scratch.tiny(source=source(2))
    outcome, _ = workshop.build(first, second)
    built = artifact(outcome, "candidate")
    changed = workshop.folder / "changed"
    changed.write_bytes(built.path.read_bytes() + b"x")
    record = built.record.model_copy(update={"sha256": sha256_bytes(changed.read_bytes())})
    store = ArtifactStore(workshop.folder / "cache")
    with pytest.raises(InfrastructureError, match="equal inputs"):
        store.add(record, binary=changed, log=workshop.folder / "logs" / "build-candidate.log")
