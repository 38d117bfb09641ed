"""Bad input: one clear sentence, the place, what to do, exit code 2, nothing built, nothing half-written."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import yaml

from tests.support.cli import replay_parity, run_campaign
from tests.support.files import campaign_document, write_campaign
from tests.support.scratch import Scratch

CRATES = ({"version": "0.12.0"}, {"version": "0.12.1"})


def refused(code: int, err: str, *words: str) -> None:
    """Exit code 2, every word in the message, no traceback."""
    assert code == 2, err
    assert "Traceback" not in err
    for word in words:
        assert word in err


def test_an_unknown_key_names_file_line_and_pointer(tmp_path: Path) -> None:
    campaign = write_campaign(tmp_path, *CRATES, relationshp={"ancestor": True})
    done = run_campaign(campaign, tmp_path / "results")
    refused(done.code, done.err, "campaign.yaml:", "/relationshp", "relationship")
    assert not (tmp_path / "results" / "verdict.json").exists()


def test_every_broken_file_is_told_in_one_run(tmp_path: Path) -> None:
    (tmp_path / "rows").mkdir()
    for name in ("one", "two"):
        (tmp_path / "rows" / f"{name}.yaml").write_text(f"schema_version: 1\nname: {name}\n")
    campaign = write_campaign(tmp_path, *CRATES, rows=["one", "two"])
    done = run_campaign(campaign, tmp_path / "results")
    refused(done.code, done.err, "one.yaml:", "two.yaml:")


def test_an_edited_trace_byte_is_refused_before_anything_is_built(tmp_path: Path, mooncake: Path) -> None:
    traces = tmp_path / "traces"
    traces.mkdir()
    data = bytearray((mooncake / "conversation_trace.jsonl").read_bytes())
    place = data.index(b"6758")
    data[place] = ord("7")
    (traces / "conversation_trace.jsonl").write_bytes(data)
    done = run_campaign("releases-0.12.1-0.13.0", tmp_path / "results", "--corpus-dir", str(traces))
    refused(done.code, done.err, "conversation_trace.jsonl", "b8cbb061a85206d7", "SHA-256")
    assert (traces / "conversation_trace.jsonl").read_bytes() == bytes(data), "the user's file stays as it is"
    assert "compiling" not in done.err


def test_a_wrong_checksum_in_a_corpus_file_is_refused(tmp_path: Path, repository_root: Path) -> None:
    for kind, name in (("rows", "preflight-vllm-one-worker"), ("corpora", "preflight-one-request")):
        (tmp_path / kind).mkdir()
        found = sorted((repository_root / "configs" / kind).glob(f"{name}*.yaml"))
        assert found, f"{kind}/{name}"
        shutil.copy(found[0], tmp_path / kind / found[0].name)
    path = next((tmp_path / "corpora").iterdir())
    document = yaml.safe_load(path.read_text())
    document["slice"]["sha256"] = document["source"]["full_sha256"] = "0" * 64
    path.write_text(yaml.safe_dump(document))
    campaign = write_campaign(tmp_path, *CRATES, rows=["preflight-vllm-one-worker"])
    done = run_campaign(campaign, tmp_path / "results")
    refused(done.code, done.err, "0000000000000000", "SHA-256")


def test_a_missing_trace_says_where_to_get_it(tmp_path: Path) -> None:
    empty = {"REPLAY_PARITY_CACHE": str(tmp_path / "cache")}
    done = run_campaign("releases-0.12.1-0.13.0", tmp_path / "results", env=empty)
    refused(done.code, done.err, "conversation_trace.jsonl", "--corpus-dir", "3b5a594133958449a1feaf1c9e0fc1b553e34a28")


def test_a_release_of_a_dirty_tree_needs_the_campaigns_word(tmp_path: Path) -> None:
    campaign = write_campaign(tmp_path, {"version": "0.1.0-dev.2"}, {"version": "0.12.1"})
    done = run_campaign(campaign, tmp_path / "results")
    refused(done.code, done.err, "0.1.0-dev.2", "dirty: true")


def test_another_registry_checksum_is_refused(tmp_path: Path) -> None:
    campaign = write_campaign(tmp_path, {"version": "0.12.0", "checksum": "1" * 64}, {"version": "0.12.1"})
    done = run_campaign(campaign, tmp_path / "results")
    refused(done.code, done.err, "7d266db788afdb866421aad39f8fbc7096dba9517105ff7d770ee83ad70f82bb", "1" * 64)


def test_ancestry_of_releases_must_be_stated(tmp_path: Path) -> None:
    campaign = write_campaign(tmp_path, *CRATES, relationship={"ancestor": True})
    done = run_campaign(campaign, tmp_path / "results")
    refused(done.code, done.err, "/relationship", "stated")


def test_a_non_ancestor_without_a_stated_relationship_is_refused(tmp_path: Path) -> None:
    scratch = Scratch(tmp_path / "repository")
    first, second = scratch.tiny(source="// one"), scratch.tiny(source="// two")
    sides = ({"git": "repository", "revision": second}, {"git": "repository", "revision": first})
    campaign = write_campaign(tmp_path, *sides, relationship={"ancestor": True})
    done = run_campaign(campaign, tmp_path / "results")
    refused(done.code, done.err, first, second, "is not an ancestor")


def test_a_dirty_tree_is_refused_and_untouched(tmp_path: Path) -> None:
    scratch = Scratch(tmp_path / "repository")
    first, second = scratch.tiny(source="// one"), scratch.tiny(source="// two")
    (scratch.core / "src" / "lib.rs").write_text("// not committed")
    sides = ({"git": "repository", "revision": first}, {"git": "repository", "revision": second})
    done = run_campaign(write_campaign(tmp_path, *sides, relationship={"ancestor": True}), tmp_path / "results")
    refused(done.code, done.err, "crates/core/src/lib.rs", "dirty", "commit or stash")
    assert (scratch.core / "src" / "lib.rs").read_text() == "// not committed"


def test_a_branch_that_moved_is_never_followed_silently(tmp_path: Path) -> None:
    scratch = Scratch(tmp_path / "repository")
    first = scratch.tiny(source="// one")
    scratch.tiny(source="fn broken( {")
    sides = ({"git": "repository", "revision": first}, {"git": "repository", "revision": "main"})
    campaign = write_campaign(tmp_path, *sides, relationship={"ancestor": True})
    done = run_campaign(campaign, tmp_path / "results")
    # The runner does not compile on this baseline, so nothing can be decided; the plan with its commit is kept.
    assert done.code == 2, done.err
    assert done.verdict["verdict"] == "ERROR"
    assert "API" in done.verdict["builds"][0]["baseline"]["error"]
    moved = scratch.tiny(source="// three")
    done = run_campaign(campaign, tmp_path / "results")
    refused(done.code, done.err, "branch 'main' moved from", moved, "/candidate/revision", "--fresh")
    assert not (tmp_path / "results" / "verdict.json").exists()


def test_a_toolchain_that_is_not_installed_is_refused(tmp_path: Path) -> None:
    build = campaign_document(*CRATES)["build"] | {"toolchain": "1.2.3"}
    done = run_campaign(write_campaign(tmp_path, *CRATES, build=build), tmp_path / "results")
    refused(done.code, done.err, "1.2.3", "not installed")


def test_an_unknown_row_is_refused_with_the_known_ones(tmp_path: Path) -> None:
    done = run_campaign("demo", tmp_path / "results", "--row", "nothing")
    refused(done.code, done.err, "nothing", "demo-vllm-aggregated")


@pytest.mark.parametrize("arguments", [["run"], ["run", "demo", "--nothing"], ["nothing"], ["diff", "a"]])
def test_a_wrong_command_line_is_told_with_exit_code_2(arguments: list[str], tmp_path: Path) -> None:
    done = replay_parity(*arguments, cwd=tmp_path)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("arguments", [["canonical", "nothing"], ["diff", "nothing", "nothing"]])
def test_a_missing_record_is_bad_input(arguments: list[str], tmp_path: Path) -> None:
    done = replay_parity(*arguments, cwd=tmp_path)
    refused(done.returncode, done.stderr, "nothing", "no such file")


def test_a_file_that_is_no_record_is_refused_by_name(tmp_path: Path) -> None:
    for content, word in ((b'{"a": 1}\n', "white space"), (b"\x1f\x8bdamaged", "gzip"), (b'{"a":NaN}\n', "NaN")):
        (tmp_path / "record.jsonl").write_bytes(content)
        done = replay_parity("canonical", "record.jsonl", cwd=tmp_path)
        refused(done.returncode, done.stderr, "record.jsonl", word)
