"""Git and crate sources on real engines, reproducible builds, instability, and revisions that do not compile."""

from __future__ import annotations

import shutil
from functools import partial
from pathlib import Path

import pytest

from replay_parity.campaign.models import Build
from replay_parity.campaign.sources import CrateSource
from replay_parity.pin.builder import Artifact, Builder
from replay_parity.pin.cargo import Cargo
from replay_parity.pin.models import Revision
from replay_parity.pin.resolve import Sources
from replay_parity.system.progress import Silent
from tests.support.cli import run_campaign
from tests.support.files import write_campaign
from tests.support.scratch import Scratch, cargo, settings

pytestmark = pytest.mark.engine


def test_git_commits_give_the_digests_of_the_releases(tmp_path: Path) -> None:
    scratch = Scratch(tmp_path / "repository")
    old, new = scratch.release("0.12.1"), scratch.release("0.13.0")
    git = write_campaign(
        tmp_path,
        {"git": "repository", "revision": old},
        {"git": "repository", "revision": "main"},
        relationship={"ancestor": True},
        rows=["demo-vllm-aggregated", "demo-sglang-aggregated"],
    )
    by_commit = run_campaign(git, tmp_path / "git")
    assert by_commit.code == 1, by_commit.err
    candidate = by_commit.verdict["candidate"]
    assert (candidate["asked"], candidate["asked_as"], candidate["commit"]) == ("main", "branch", new)
    crates = write_campaign(
        tmp_path,
        {"version": "0.12.1"},
        {"version": "0.13.0"},
        rows=["demo-vllm-aggregated", "demo-sglang-aggregated"],
    )
    by_version = run_campaign(crates, tmp_path / "crates")
    assert by_version.code == 1, by_version.err
    for row in ("demo-vllm-aggregated", "demo-sglang-aggregated"):
        for side in ("baseline", "candidate"):
            assert by_commit.row(row)[side]["digests"] == by_version.row(row)[side]["digests"]
    for side in ("baseline", "candidate"):
        left, right = (done.verdict["builds"][0][side]["artifact"] for done in (by_commit, by_version))
        assert left["tree_sha256"] == right["tree_sha256"], "equal content shares the compiled engine"
        assert left["sha256"] != right["sha256"], "the revision is compiled in"


def test_equal_trees_are_green_at_once(tmp_path: Path) -> None:
    scratch = Scratch(tmp_path / "repository")
    first = scratch.release("0.12.1")
    second = scratch.commit("nothing changed")
    campaign = write_campaign(
        tmp_path,
        {"git": "repository", "revision": first},
        {"git": "repository", "revision": second},
        relationship={"ancestor": True},
    )
    done = run_campaign(campaign, tmp_path / "results")
    assert done.code == 0
    assert done.verdict["equal_trees"] is True
    assert "nothing to compare" in done.out
    assert done.verdict["rows"] == []


def test_a_runner_without_determinism_is_an_unstable_baseline(tmp_path: Path) -> None:
    build = {
        "toolchain": "path",
        "profile": "release",
        "flags": [],
        "features": [],
        "negative_control": "determinism-off",
    }
    campaign = write_campaign(tmp_path, {"version": "0.12.0"}, {"version": "0.12.1"}, build=build)
    done = run_campaign(campaign, tmp_path / "results")
    assert done.code == 1, done.err
    row = done.row("demo-vllm-aggregated")
    assert row["outcome"] == "unstable_baseline"
    first, second = row["baseline"]["digests"]
    assert first != second
    assert first[:16] in row["reason"]
    assert second[:16] in row["reason"]
    assert "the first field that leaks is /" in row["reason"]
    assert "the sides were not compared" in row["reason"]
    assert len(row["reports"]) == 2
    assert all((done.output / report).is_file() for report in row["reports"])
    again = run_campaign(campaign, tmp_path / "results", "--fresh")
    assert again.row("demo-vllm-aggregated")["outcome"] == "unstable_baseline"
    assert again.row("demo-vllm-aggregated")["attempt"] == 1, "an unstable row stays, whatever a new attempt says"


def test_one_revision_built_in_two_folders_gives_one_sha256(tmp_path: Path) -> None:
    found = settings()
    tool = cargo()
    elsewhere = tmp_path / "a" / "much" / "deeper" / "folder"
    elsewhere.mkdir(parents=True, mode=0o700)
    elsewhere.chmod(0o700)
    shas = []
    for root, cache in ((tool.root, found.cache), (elsewhere, tmp_path / "cache")):
        there = Cargo(tool.toolchain, root, tool.user_environment)
        sources = Sources(cache, tmp_path, found.tool_environment, partial(_given, there))
        revision: Revision = sources.resolve(CrateSource(version="0.12.1"))
        logs = tmp_path / "logs"
        logs.mkdir(exist_ok=True)
        builder = Builder(
            build=Build(toolchain="path", profile="release", flags=(), features=()),
            cargo=there,
            sources=sources,
            cache=cache,
            locks=found.locks,
            logs=logs,
            progress=Silent(),
        )
        built = builder.run({"baseline": revision, "candidate": revision}).sides["candidate"]
        assert isinstance(built, Artifact)
        shas.append(built.record.sha256)
    shutil.rmtree(tmp_path / "cache", ignore_errors=True)
    assert shas[0] == shas[1]


def test_a_candidate_that_does_not_compile_fails_with_the_error_on_one_screen(tmp_path: Path) -> None:
    scratch = Scratch(tmp_path / "repository")
    old = scratch.release("0.12.1")
    lib = scratch.core / "src" / "lib.rs"
    lib.write_text(lib.read_text() + "\nfn broken( {\n")
    new = scratch.commit("a syntax error")
    campaign = write_campaign(
        tmp_path,
        {"git": "repository", "revision": old},
        {"git": "repository", "revision": new},
        relationship={"ancestor": True},
    )
    done = run_campaign(campaign, tmp_path / "results")
    assert done.code == 1, done.err
    assert done.row("demo-vllm-aggregated")["outcome"] == "build_failed"
    assert done.row("demo-vllm-aggregated")["fault"] == "candidate"
    error = done.verdict["builds"][0]["candidate"]["error"]
    assert "the candidate does not compile" in error
    assert "lib.rs" in error
    assert len(error.splitlines()) < 40
    assert "lib.rs" in done.out
    assert "build-candidate.log" in done.out


def _given(cargo: Cargo) -> Cargo:
    return cargo
