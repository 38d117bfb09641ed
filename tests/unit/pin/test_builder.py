"""Two revisions to two artifacts with real cargo: the right engine in each, reproducible, reused by content."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from replay_parity.errors import InfrastructureError
from replay_parity.pin import builder as builder_module
from replay_parity.pin.builder import SIDES
from replay_parity.pin.git import Mirror
from replay_parity.pin.models import GitRevision
from replay_parity.pin.resolve import Sources
from replay_parity.settings import Settings
from replay_parity.system.files import sha256_file
from replay_parity.system.locks import host_lock
from tests.support.tiny import ANSWERS, Engines, Workshop, artifact, identity, write_engine


def answers(workshop: Workshop, engines: Engines, baseline: str, candidate: str, **build: object) -> list[int]:
    outcome = workshop.pair(engines.folder, baseline, candidate, **build)
    return [identity(artifact(outcome, side))["answer"] for side in SIDES]


def test_equal_versions_of_other_content_are_other_engines(workshop: Workshop, engines: Engines) -> None:
    """File times are pinned, so only our care keeps cargo from taking the baseline's engine for the candidate's."""
    old, new = engines.engine(1), engines.engine(2)
    outcome = workshop.pair(engines.folder, old, new)
    baseline, candidate = artifact(outcome, "baseline"), artifact(outcome, "candidate")
    assert (identity(baseline)["answer"], identity(candidate)["answer"]) == (1, 2)
    assert (identity(baseline)["revision"], identity(candidate)["revision"]) == (f"git:{old}", f"git:{new}")
    assert baseline.record.neutral_sha256 != candidate.record.neutral_sha256
    assert outcome.compiled == ("baseline", "candidate")
    assert workshop.told.steps[-1].endswith("compiling, dependencies reused")
    for built in (baseline, candidate):
        assert sha256_file(built.path) == built.record.sha256
        assert built.record.size_bytes == built.path.stat().st_size
        assert built.record.text_bytes
        assert not identity(built).keys() - {"answer"} - set(expected_names())
        assert (built.path.parent / "build.log").read_text()
    # Once more from the other end, with layers of both in the cache.
    for entry in (workshop.cache / "artifacts").iterdir():
        (entry / "runner").unlink()
    assert answers(workshop, engines, new, old) == [2, 1]


def expected_names() -> list[str]:
    return ["revision", "runner_source_sha256", "features", "toolchain", "profile", "determinism"]


def test_a_neighbour_crate_of_equal_version_is_not_mistaken_either(workshop: Workshop, engines: Engines) -> None:
    """Path packages beside the engine, one of whose libraries has another name than its package."""

    def commit(answer: int) -> str:
        write_engine(
            engines.folder / "crates" / "helper",
            f"pub fn part() -> u64 {{ {answer} }}",
            more='[lib]\nname = "other_name"',
        )
        manifest = engines.folder / "crates" / "helper" / "Cargo.toml"
        manifest.write_text(manifest.read_text().replace("aisimulate-core", "the-helper"))
        return engines.broken(
            "pub fn answer() -> u64 { other_name::part() }", more='[dependencies]\nthe-helper = { path = "../helper" }'
        )

    old, new = commit(1), commit(2)
    assert answers(workshop, engines, old, new) == [1, 2]


def test_a_baseline_that_fails_half_way_does_not_lend_its_parts(workshop: Workshop, engines: Engines) -> None:
    """Its helper compiles, its engine does not: the candidate's helper of equal version is another one."""

    def commit(answer: int, source: str) -> str:
        write_engine(engines.folder / "crates" / "helper", f"pub fn part() -> u64 {{ {answer} }}")
        manifest = engines.folder / "crates" / "helper" / "Cargo.toml"
        manifest.write_text(manifest.read_text().replace("aisimulate-core", "helper"))
        return engines.broken(source, more='[dependencies]\nhelper = { path = "../helper" }')

    bad = commit(1, "pub fn answer() -> u64 { helper::part() + no_such_thing() }")
    good = commit(2, "pub fn answer() -> u64 { helper::part() }")
    outcome = workshop.pair(engines.folder, bad, good)
    assert not isinstance(outcome.sides["baseline"], builder_module.Artifact)
    assert identity(artifact(outcome, "candidate"))["answer"] == 2


def test_a_git_dependency_of_equal_version_is_not_mistaken_either(
    workshop: Workshop, engines: Engines, tmp_path: Path
) -> None:
    """Cargo knows a vendored package by its version alone."""
    dependency = Engines(tmp_path / "dependency")

    def commit(answer: int) -> str:
        write_engine(dependency.folder, f"pub fn part() -> u64 {{ {answer} }}")
        manifest = dependency.folder / "Cargo.toml"
        manifest.write_text(manifest.read_text().replace("aisimulate-core", "far"))
        locked = f"git+file://{dependency.folder}?branch=main#{dependency.commit(str(answer))}"
        engines.core.mkdir(parents=True, exist_ok=True)
        (engines.core / "Cargo.lock").write_text(
            'version = 4\n[[package]]\nname = "aisimulate-core"\nversion = "9.0.0"\ndependencies = ["far"]\n'
            f'[[package]]\nname = "far"\nversion = "9.0.0"\nsource = "{locked}"\n'
        )
        return engines.broken(
            "pub fn answer() -> u64 { far::part() }",
            more=f'[dependencies]\nfar = {{ git = "file://{dependency.folder}", branch = "main" }}',
        )

    online = Workshop(workshop.folder, workshop.toolchain, {**workshop.environment, "CARGO_NET_OFFLINE": "false"})
    old, new = commit(1), commit(2)
    outcome = online.pair(engines.folder, old, new, lock="own")
    assert [identity(artifact(outcome, side))["answer"] for side in SIDES] == [1, 2]
    (difference,) = outcome.lock_differences
    assert difference.name == "far"
    assert difference.baseline != difference.candidate
    # With one lock for both the candidate's branch stays where the baseline had it.
    shared = online.pair(engines.folder, old, new, lock="shared")
    assert [identity(artifact(shared, side))["answer"] for side in SIDES] == [1, 1]
    assert shared.lock_differences == ()


def test_one_tree_may_hold_two_engines(workshop: Workshop, engines: Engines) -> None:
    for name, answer in (("one", 1), ("two", 2)):
        write_engine(engines.folder / "lib" / name, ANSWERS.format(answer))
    commit = engines.commit("two engines")
    found = []
    for name in ("one", "two", "one"):
        revision = workshop.pin(engines.folder, commit, core=f"lib/{name}")
        outcome = workshop.builder().run({"baseline": revision, "candidate": revision})
        found.append(identity(artifact(outcome, "candidate"))["answer"])
    assert found == [1, 2, 1]


@pytest.mark.parametrize("core", ["rust/engine", "engine"])
def test_a_crate_elsewhere_finds_its_workspace_and_its_neighbours(
    workshop: Workshop, engines: Engines, core: str
) -> None:
    home = engines.folder / core
    write_engine(
        home, "pub fn answer() -> u64 { beside::part() }", more='[dependencies]\nbeside = { path = "../beside" }'
    )
    (home / "Cargo.toml").write_text(
        (home / "Cargo.toml").read_text().replace('edition = "2021"', "edition.workspace = true")
    )
    write_engine(home.parent / "beside", "pub fn part() -> u64 { 7 }")
    manifest = home.parent / "beside" / "Cargo.toml"
    manifest.write_text(manifest.read_text().replace("aisimulate-core", "beside"))
    (home.parent / "Cargo.toml").write_text(
        '[workspace]\nmembers = ["engine", "beside"]\n[workspace.package]\nedition = "2021"\n'
    )
    revision = workshop.pin(engines.folder, engines.commit("elsewhere"), core=core)
    outcome = workshop.builder().run({"baseline": revision, "candidate": revision})
    assert identity(artifact(outcome, "baseline"))["answer"] == 7


def test_a_second_run_compiles_nothing_and_checks_nothing_out(
    workshop: Workshop, engines: Engines, monkeypatch: pytest.MonkeyPatch
) -> None:
    old, new = engines.engine(1), engines.engine(2)
    first = workshop.pair(engines.folder, old, new)
    told = len(workshop.told.steps)

    def never(*_: object, **__: object) -> None:
        raise AssertionError("a checkout or a build")

    for place, name in ((Sources, "lay_out"), (Mirror, "export"), (builder_module, "compile_runner")):
        monkeypatch.setattr(place, name, never)
    # A build elsewhere on this host does not make it wait.
    with host_lock(workshop.folder / "locks", "node", shared=False, timeout=1):
        second = workshop.pair(engines.folder, old, new)
    assert second.compiled == ()
    assert second.sides == first.sides
    assert second.lock_differences == first.lock_differences
    assert len(workshop.told.steps) == told


def test_two_folders_give_one_sha256(
    workshop: Workshop, engines: Engines, make_workshop: Callable[[str], Workshop]
) -> None:
    old, new = engines.engine(1), engines.engine(2)
    elsewhere = make_workshop("a/much/deeper/and-longer/folder")
    here = workshop.pair(engines.folder, old, new, profile="release")
    # The other way round, so that each is compiled from nothing once and on the other's dependencies once.
    there = elsewhere.pair(engines.folder, new, old, profile="release")
    assert artifact(here, "baseline").record.sha256 == artifact(there, "candidate").record.sha256
    assert artifact(here, "candidate").record.sha256 == artifact(there, "baseline").record.sha256
    assert artifact(here, "baseline").record.sha256 != artifact(here, "candidate").record.sha256
    assert artifact(here, "baseline").record.key == artifact(there, "candidate").record.key


def test_equal_content_by_two_commits_shares_the_engine_and_differs_in_the_revision_only(
    workshop: Workshop, engines: Engines
) -> None:
    old = engines.engine(1)
    engines.git("commit", "--quiet", "--allow-empty", "--message", "the same again")
    new = engines.git("rev-parse", "HEAD")
    outcome = workshop.pair(engines.folder, old, new)
    left, right = artifact(outcome, "baseline").record, artifact(outcome, "candidate").record
    assert left.tree_sha256 == right.tree_sha256
    assert left.sha256 != right.sha256
    assert left.neutral_sha256 == right.neutral_sha256
    assert isinstance(left.revision, GitRevision)
    assert left.revision.content == (right.revision.content)
    assert workshop.told.steps[-1].endswith("compiling, engine reused")
    log = (workshop.logs / "build-candidate.log").read_text()
    assert "Compiling replay-parity-runner" in log
    assert "Compiling aisimulate-core" not in log


def test_an_edit_of_the_policy_makes_no_other_engine(workshop: Workshop, engines: Engines) -> None:
    old = engines.engine(1)
    policy = engines.folder / ".replay-parity" / "campaigns" / "pr.yaml"
    policy.parent.mkdir(parents=True)
    policy.write_text("schema_version: 1\n")
    new = engines.commit("a policy")
    outcome = workshop.pair(engines.folder, old, new)
    left, right = artifact(outcome, "baseline").record, artifact(outcome, "candidate").record
    assert left.tree_sha256 == right.tree_sha256
    assert left.neutral_sha256 == right.neutral_sha256
    assert "Compiling aisimulate-core" not in (workshop.logs / "build-candidate.log").read_text()


def test_the_negative_control_and_features_reach_the_runner(workshop: Workshop, engines: Engines) -> None:
    commit = engines.broken('pub fn answer() -> u64 { if cfg!(feature = "extra") { 2 } else { 1 } }')
    plain = workshop.pair(engines.folder, commit, commit)
    extra = workshop.pair(engines.folder, commit, commit, features=("extra",), negative_control="determinism-off")
    found = [identity(artifact(outcome, "baseline")) for outcome in (plain, extra)]
    assert [(item["answer"], item["features"], item["determinism"]) for item in found] == [
        (1, [], "canonical_v1"),
        (2, ["extra"], "random"),
    ]


def test_nothing_inherited_changes_a_build(
    workshop: Workshop,
    engines: Engines,
    make_workshop: Callable[[str], Workshop],
    environment: Mapping[str, str],
    tmp_path: Path,
) -> None:
    old, new = engines.engine(1), engines.engine(2)
    witness = tmp_path / "witness"
    wrapper = tmp_path / "wrapper"
    wrapper.write_text(f'#!/bin/sh\ntouch {witness}\nexec "$@"\n')
    wrapper.chmod(0o755)
    home = Path(environment["CARGO_HOME"])
    home.mkdir(parents=True, exist_ok=True)
    (home / "config.toml").write_text(
        f'[build]\nrustc-wrapper = "{wrapper}"\nrustflags = ["--cfg", "evil"]\ntarget-dir = "{tmp_path / "t"}"\n'
        '[profile.dev]\nopt-level = 3\ndebug = true\n[target.x86_64-unknown-linux-gnu]\nlinker = "/nonexistent"\n'
    )
    hostile = make_workshop("hostile")
    given = {
        **environment,
        "RUSTFLAGS": "--cfg evil",
        "CARGO_ENCODED_RUSTFLAGS": "--cfg\x1fevil",
        "CARGO_BUILD_RUSTFLAGS": "--cfg evil",
        "RUSTC_WRAPPER": str(wrapper),
        "RUSTC_WORKSPACE_WRAPPER": str(wrapper),
        "RUSTC_BOOTSTRAP": "1",
        "CARGO_BUILD_RUSTC_WRAPPER": str(wrapper),
        "CARGO_PROFILE_DEV_OPT_LEVEL": "3",
        "CARGO_PROFILE_DEV_DEBUG": "true",
        "CARGO_INCREMENTAL": "1",
        "CARGO_BUILD_TARGET": "nonexistent",
        "CARGO_TARGET_DIR": str(tmp_path / "t"),
        "CC": "false",
        "RUSTUP_TOOLCHAIN": "nonexistent",
        "REPLAY_PARITY_REVISION": "evil",
        # Relative entries of PATH would find a compiler of the checkout.
        "PATH": f".::bin:{environment['PATH']}",
    }
    hostile.environment = Settings.from_environment(given).tool_environment
    assert all(Path(entry).is_absolute() for entry in hostile.environment["PATH"].split(":"))
    clean = workshop.pair(engines.folder, old, new)
    dirty = hostile.pair(engines.folder, old, new)
    for side in SIDES:
        assert artifact(clean, side).record.sha256 == artifact(dirty, side).record.sha256
    assert not witness.exists()
    assert not (tmp_path / "t").exists()


def test_configuration_inside_the_checkout_has_no_effect(workshop: Workshop, engines: Engines, tmp_path: Path) -> None:
    plain = engines.broken("pub fn answer() -> u64 { if cfg!(evil) { 666 } else { 1 } }")
    witness = tmp_path / "witness"
    wrapper = engines.folder / "wrapper.sh"
    wrapper.write_text(f'#!/bin/sh\ntouch {witness}\nexec "$@"\n')
    wrapper.chmod(0o755)
    config = (
        '[build]\nrustc-wrapper = "../wrapper.sh"\nrustflags = ["--cfg", "evil"]\n[alias]\nbuild = "version"\n'
        '[source.crates-io]\nreplace-with = "evil"\n[source.evil]\ndirectory = "evil"\n[env]\nEVIL = "1"\n'
        '[patch.crates-io]\nserde = { path = "evil" }\n[profile.dev]\nopt-level = 3\n[unstable]\nbuild-std = ["std"]\n'
    )
    for folder in (engines.folder, engines.core, engines.core.parent):
        (folder / ".cargo").mkdir()
        (folder / ".cargo" / "config.toml").write_text(config)
        (folder / "rust-toolchain.toml").write_text('[toolchain]\nchannel = "1.1.1"\n')
        (folder / "rust-toolchain").write_text("1.1.1")
    hostile = engines.commit("configuration")
    outcome = workshop.pair(engines.folder, plain, hostile)
    assert [identity(artifact(outcome, side))["answer"] for side in SIDES] == [1, 1]
    assert not witness.exists()
    left, right = artifact(outcome, "baseline").record, artifact(outcome, "candidate").record
    assert left.neutral_sha256 == right.neutral_sha256


def test_a_build_root_that_somebody_configures_later_is_refused(workshop: Workshop, engines: Engines) -> None:
    old, new = engines.engine(1), engines.engine(2)
    builder = workshop.builder()
    revisions = {"baseline": workshop.pin(engines.folder, old), "candidate": workshop.pin(engines.folder, new)}
    (workshop.root.parent / ".cargo").mkdir()
    with pytest.raises(InfrastructureError, match="builds cannot run below"):
        builder.run(revisions)  # type: ignore[arg-type]
