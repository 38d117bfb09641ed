"""Broken files found on disk: a folder is a case, `campaign.yaml` is loaded, `expected.txt` is what the user reads.

After a change of words: `python tests/unit/campaign/test_cases.py`, then read the difference.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from replay_parity.campaign.loading import load_campaign
from replay_parity.errors import ConfigurationError, ManyErrors

_CASES = Path(__file__).parents[2] / "cases" / "campaign"
_FOLDERS = sorted(path for path in _CASES.iterdir() if path.is_dir())


def _refusal(folder: Path) -> ManyErrors:
    """What loading the case is refused with; paths are shown from the case's folder."""
    before = Path.cwd()
    os.chdir(folder)
    try:
        load_campaign(Path("campaign.yaml"))
    except ManyErrors as error:
        return error
    finally:
        os.chdir(before)
    raise AssertionError(f"{folder.name} is not refused")


@pytest.mark.parametrize("folder", _FOLDERS, ids=lambda folder: folder.name)
def test_the_user_reads_what_is_expected(folder: Path) -> None:
    error = _refusal(folder)
    assert f"{error}\n" == (folder / "expected.txt").read_text(encoding="utf-8")
    assert error.exit_code == 2
    assert all(isinstance(item, ConfigurationError) and item.where for item in error.errors)


def test_the_cases_are_found() -> None:
    assert len(_FOLDERS) > 60


def _update() -> None:
    for folder in _FOLDERS:
        (folder / "expected.txt").write_text(f"{_refusal(folder)}\n", encoding="utf-8")


if __name__ == "__main__":
    _update()
