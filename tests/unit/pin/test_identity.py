"""Who a runner says it is, and what is read from its bytes."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from replay_parity.errors import InfrastructureError, ProcessError
from replay_parity.pin.binary import neutral_sha256, text_size
from replay_parity.pin.identity import check_identity, expected_identity, identity_variables
from replay_parity.pin.models import ArtifactRecord, CrateRevision, Toolchain

REVISION = CrateRevision(
    crate="aisimulate-core", asked="1.0.0", version="1.0.0", checksum="a" * 64, commit=None, dirty=False
)


@pytest.fixture
def record(toolchain: Toolchain) -> ArtifactRecord:
    return ArtifactRecord(
        key="0" * 64,
        revision=REVISION,
        tree_sha256="1" * 64,
        runner_source_sha256="2" * 64,
        lock_sha256="3" * 64,
        patch_sha256=None,
        toolchain=toolchain,
        profile="release",
        flags=(),
        features=("b", "a"),
        negative_control=None,
        sha256="4" * 64,
        neutral_sha256="5" * 64,
        size_bytes=1,
        text_bytes=None,
        packages_verified=0,
    )


def says(folder: Path, text: str, *, status: int = 0) -> Path:
    path = folder / "runner"
    path.write_text(f"#!/bin/sh\ncat <<'EOF'\n{text}\nEOF\nexit {status}\n")
    path.chmod(0o755)
    return path


def test_what_the_compiler_is_told_is_what_the_runner_must_say(record: ArtifactRecord, tmp_path: Path) -> None:
    variables = identity_variables(
        revision=record.revision.id,
        runner_source_sha256=record.runner_source_sha256,
        features=record.features,
        toolchain=record.toolchain.rustc,
        profile=record.profile,
    )
    assert variables["REPLAY_PARITY_FEATURES"] == "b,a"
    expected = expected_identity(record)
    assert set(variables.values()) - {"b,a"} <= set(map(str, expected.values()))
    check_identity(says(tmp_path, json.dumps({**expected, "more": 1})), record, scratch=tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["runner"]


@pytest.mark.parametrize(
    "name", ["revision", "runner_source_sha256", "features", "toolchain", "profile", "determinism"]
)
def test_each_part_is_compared(record: ArtifactRecord, tmp_path: Path, name: str) -> None:
    expected = expected_identity(record)
    with pytest.raises(InfrastructureError, match=f"the runner says {name} = 'other', it was built with "):
        check_identity(says(tmp_path, json.dumps({**expected, name: "other"})), record, scratch=tmp_path)
    del expected[name]
    with pytest.raises(InfrastructureError, match=f"the runner says {name} = None"):
        check_identity(says(tmp_path, json.dumps(expected)), record, scratch=tmp_path)


def test_a_runner_that_does_not_answer_is_one_sentence(record: ArtifactRecord, tmp_path: Path) -> None:
    with pytest.raises(InfrastructureError, match="the runner's identity is not JSON"):
        check_identity(says(tmp_path, "hello"), record, scratch=tmp_path)
    with pytest.raises(InfrastructureError, match="the runner says revision = "):
        check_identity(says(tmp_path, "[]"), record, scratch=tmp_path)
    with pytest.raises(ProcessError, match="cannot ask the runner for its identity: it ended with status 3"):
        check_identity(says(tmp_path, "{}", status=3), record, scratch=tmp_path)
    with pytest.raises(InfrastructureError, match="cannot start"):
        check_identity(tmp_path / "absent", record, scratch=tmp_path)


def test_the_negative_control_says_so(record: ArtifactRecord) -> None:
    control = record.model_copy(update={"negative_control": "determinism-off"})
    assert expected_identity(record)["determinism"] == "canonical_v1"
    assert expected_identity(control)["determinism"] == "random"


def test_a_neutral_digest_does_not_see_the_revision(tmp_path: Path) -> None:
    paths = []
    for revision in ("git:" + "a" * 40, "git:" + "b" * 40):
        path = tmp_path / revision[-1]
        path.write_bytes(b"code " + revision.encode() + b" more " + revision.encode())
        paths.append((path, revision))
    digests = {neutral_sha256(path, revision=revision) for path, revision in paths}
    assert len(digests) == 1
    assert text_size(paths[0][0]) is None, "no ELF file"


@pytest.mark.skipif(sys.platform != "linux", reason="ELF files are Linux's")
def test_the_size_of_the_machine_code_of_an_elf_file() -> None:
    size = text_size(Path(sys.executable).resolve())
    assert size is None or size > 100
