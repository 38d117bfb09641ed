"""The two repetitions differ in what must not matter; the two sides of a repetition do not (rule 12)."""

from __future__ import annotations

import re
import stat
from pathlib import Path

import pytest

from replay_parity.errors import InfrastructureError
from replay_parity.replay.surroundings import Surroundings, make_surroundings


def size(surroundings: Surroundings) -> int:
    return sum(len(name) + len(value) + 2 for name, value in surroundings.environment.items())


def shape(surroundings: Surroundings) -> tuple[object, ...]:
    """Everything that a process could tell its side by."""
    base = str(surroundings.base)
    values = {name: value.replace(base, "BASE") for name, value in surroundings.environment.items()}
    folders = [str(path).replace(base, "BASE") for path in (surroundings.work, surroundings.report)]
    return len(base), folders, values, size(surroundings), surroundings.umask, surroundings.report_argument


def test_the_sides_of_a_repetition_cannot_be_told_apart(tmp_path: Path) -> None:
    for repetition in (1, 2):
        left, right = (make_surroundings(tmp_path, repetition=repetition) for _ in range(2))
        assert left.base != right.base
        assert shape(left) == shape(right)


def test_the_repetitions_differ_in_everything_that_must_not_matter(tmp_path: Path) -> None:
    first, second = (make_surroundings(tmp_path, repetition=repetition) for repetition in (1, 2))
    for name in ("HOME", "TMPDIR", "TZ", "LANG", "LC_ALL"):
        assert first.environment[name] != second.environment[name]
    assert abs(size(first) - size(second)) > 4000
    assert first.umask != second.umask
    assert first.work != second.work
    assert len(first.work.relative_to(first.base).parts) != len(second.work.relative_to(second.base).parts)


def test_the_environment_is_made_from_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GITHUB_TOKEN", "secret")
    made = make_surroundings(tmp_path, repetition=1)
    assert set(made.environment) == {"PATH", "HOME", "TMPDIR", "TZ", "LANG", "LC_ALL", "PADDING"}
    assert "secret" not in str(made)


@pytest.mark.parametrize("repetition", [1, 2])
def test_folders_are_private_and_the_report_is_where_the_argument_says(tmp_path: Path, repetition: int) -> None:
    made = make_surroundings(tmp_path, repetition=repetition)
    assert re.fullmatch(r"[0-9a-f]{16}", made.base.name)
    assert (made.work / made.report_argument).resolve() == made.report.resolve()
    assert not list(made.report.iterdir())
    folders = [made.base, *(path for path in made.base.rglob("*") if path.is_dir())]
    assert {stat.S_IMODE(folder.stat().st_mode) for folder in folders} == {0o700}


def test_a_folder_that_cannot_be_made(tmp_path: Path) -> None:
    with pytest.raises(InfrastructureError, match="cannot make the folders of a repetition"):
        make_surroundings(tmp_path / "none", repetition=1)
