"""Where two histories parted: proven by what is there, or not said."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from replay_parity.errors import RevisionError
from replay_parity.pin.git import Mirror
from replay_parity.pin.git_place import Repository
from tests.support.tiny import Engines

ADDRESS = "https://example.invalid/owner/name"


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return tmp_path / "cache"


@pytest.fixture
def mirror(engines: Engines, cache: Path, environment: Mapping[str, str]) -> Mirror:
    return Mirror(Repository(str(engines.folder), engines.folder), cache=cache, environment=environment)


def commit(engines: Engines, name: str, *parents: str) -> str:
    """A commit of these parents; the name decides about its id."""
    tree = engines.git("mktree", "--missing") if not parents else engines.git("rev-parse", f"{parents[0]}^{{tree}}")
    made = engines.git("commit-tree", *(word for parent in parents for word in ("-p", parent)), "-m", name, tree)
    engines.git("branch", "--force", name, made)
    return made


def test_the_base_is_where_they_parted(engines: Engines, mirror: Mirror) -> None:
    root = commit(engines, "root")
    base = commit(engines, "base", root)
    left, right = commit(engines, "left", base), commit(engines, "right", base)
    assert mirror.merge_base(left, right) == base
    assert mirror.merge_base(left, base) == base
    assert mirror.merge_base(left, left) == left


def test_of_several_it_is_the_one_that_git_prints_first(engines: Engines, mirror: Mirror) -> None:
    root = commit(engines, "root")
    one, two = commit(engines, "one", root), commit(engines, "two", root)
    left, right = commit(engines, "left", one, two), commit(engines, "right", two, one)
    assert len(engines.git("merge-base", "--all", left, right).split()) == 2
    assert mirror.merge_base(left, right) == engines.git("merge-base", left, right)


def test_histories_that_never_met_have_none(engines: Engines, mirror: Mirror) -> None:
    left, right = commit(engines, "left"), commit(engines, "right")
    with pytest.raises(RevisionError, match=f"{left} and {right} of .* have no common ancestor") as caught:
        mirror.merge_base(left, right)
    assert caught.value.exit_code == 2
    with pytest.raises(RevisionError, match="has no commit"):
        mirror.merge_base(left, "0" * 40)


def cut(engines: Engines, folder: Path, *names: str, depth: int) -> Repository:
    """A clone as a job makes it, cut off after `depth` commits of each branch."""
    engines.git("init", "--quiet", str(folder))
    clone = Engines.__new__(Engines)
    clone.folder = folder
    specs = [f"+refs/heads/{name}:refs/remotes/origin/{name}" for name in names]
    clone.git("fetch", "--quiet", f"--depth={depth}", f"file://{engines.folder}", *specs)
    return Repository(ADDRESS, None, folder)


def test_a_cut_before_the_base_is_told(
    engines: Engines, cache: Path, tmp_path: Path, environment: Mapping[str, str]
) -> None:
    root = commit(engines, "root")
    base = commit(engines, "base", root)
    left, right = commit(engines, "left", base), commit(engines, "right", base)
    for depth, folder in ((1, tmp_path / "one"), (2, tmp_path / "two")):
        here = Mirror(cut(engines, folder, "left", "right", depth=depth), cache=cache, environment=environment)
        if depth == 1:
            with pytest.raises(RevisionError, match=f"is shallow: .* where {left} and {right} parted") as caught:
                here.merge_base(left, right)
            assert "fetch-depth: 0" in str(caught.value)
        else:
            assert here.merge_base(left, right) == base, "what lies behind the base does not matter"


def test_a_base_that_a_cut_makes_look_like_the_best_is_not_believed(
    engines: Engines, cache: Path, tmp_path: Path, environment: Mapping[str, str]
) -> None:
    root = commit(engines, "root")
    best = commit(engines, "best", root)
    left = commit(engines, "left", best, root)
    side = commit(engines, "side", best)
    right = commit(engines, "right", side, root)
    clone = cut(engines, tmp_path / "clone", "left", "right", depth=2)
    assert engines.git("merge-base", left, right) == best
    inside = Engines.__new__(Engines)
    inside.folder = tmp_path / "clone"
    assert inside.git("merge-base", left, right) == root, "git itself is misled"
    with pytest.raises(RevisionError, match="is shallow"):
        Mirror(clone, cache=cache, environment=environment).merge_base(left, right)
