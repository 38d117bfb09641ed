"""Rows made ready for one revision; the build itself is tested on real engines."""

from __future__ import annotations

from pathlib import Path

import pytest

from replay_parity.campaign.loading import load_rows
from replay_parity.errors import BadInputError
from replay_parity.settings import Settings
from replay_parity.stages.compared import source_named
from replay_parity.stages.revision_alone import plain_build, ready_rows
from replay_parity.system.progress import Silent


def _settings(cache: Path) -> Settings:
    return Settings.from_environment({"REPLAY_PARITY_CACHE": str(cache), "PATH": "/usr/bin"})


def test_rows_come_with_their_slice_and_its_totals(tmp_path: Path) -> None:
    loaded = load_rows(["demo-vllm-aggregated", "preflight-vllm-one-worker"], folder=tmp_path)
    ready = ready_rows(loaded, folders=(), settings=_settings(tmp_path / "cache"), progress=Silent())
    assert [(item.row.name, item.totals.requests) for item in ready] == [
        ("demo-vllm-aggregated", 5_000),
        ("preflight-vllm-one-worker", 1),
    ]
    assert all(item.slice.path.is_file() and item.judged_as == "baseline" for item in ready)


def test_a_trace_that_is_not_here_is_told_once_with_what_to_do(tmp_path: Path) -> None:
    loaded = load_rows(["vllm-aggregated", "sglang-aggregated"], folder=tmp_path)
    with pytest.raises(BadInputError) as caught:
        ready_rows(loaded, folders=(), settings=_settings(tmp_path / "cache"), progress=Silent())
    assert len(str(caught.value).splitlines()) == 1


def test_a_plain_build_has_no_flags_and_no_features() -> None:
    build = plain_build()
    assert (build.toolchain, build.profile, build.flags, build.features) == ("path", "release", (), ())


@pytest.mark.parametrize("name", ["crate:latest", "-x", "a..b"])
def test_a_name_that_can_be_no_revision_names_its_option(name: str) -> None:
    with pytest.raises(BadInputError) as caught:
        source_named(name, option="revision", git=".")
    assert "--revision" in str(caught.value)
