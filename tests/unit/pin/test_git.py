"""Git revisions: resolved once, immutable, the user's checkout untouched (rules 1, 3; threats 7, 8)."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from replay_parity.campaign.models import GitSource
from replay_parity.errors import InfrastructureError, RevisionError
from replay_parity.pin.git import Mirror, locate
from replay_parity.system.files import sha256_tree
from tests.support.scratch import Scratch


@pytest.fixture
def scratch(tmp_path: Path) -> Scratch:
    return Scratch(tmp_path / "repository")


def mirror(scratch: Scratch, *, cache: str = "cache") -> Mirror:
    source = GitSource(git=str(scratch.folder), revision="main")
    repository = locate(source, base=Path("/"))
    return Mirror(repository, cache=scratch.folder.parent / cache, environment=os.environ)


def resolve(scratch: Scratch, name: str, **changes: str) -> tuple[str, str]:
    source = GitSource.model_validate({"git": str(scratch.folder), "revision": name} | changes)
    found = mirror(scratch).resolve(source)
    return found.asked_as, found.commit


def test_every_way_to_name_a_commit(scratch: Scratch) -> None:
    first, second = scratch.tiny(source="// 1"), scratch.tiny(source="// 2")
    scratch.git("tag", "light", first)
    scratch.git("tag", "--annotate", "--message", "x", "heavy", first)
    scratch.git("branch", "feature/one", first)
    assert resolve(scratch, first) == ("commit", first)
    assert resolve(scratch, first[:10]) == ("short commit", first)
    assert resolve(scratch, "main") == ("branch", second)
    assert resolve(scratch, "feature/one") == ("branch", first)
    assert resolve(scratch, "light") == ("tag", first)
    assert resolve(scratch, "heavy") == ("tag", first)
    assert resolve(scratch, "HEAD") == ("HEAD", second)


def test_a_name_that_means_two_commits_is_refused(scratch: Scratch) -> None:
    first = scratch.tiny(source="// 1")
    scratch.tiny(source="// 2")
    scratch.git("tag", "main", first)
    with pytest.raises(RevisionError, match="a branch and a tag"):
        resolve(scratch, "main")


@pytest.mark.parametrize("name", ["nothing", "0" * 40, "abcdef1", "main/"])
def test_an_unknown_name_is_one_sentence(scratch: Scratch, name: str) -> None:
    scratch.tiny()
    with pytest.raises(RevisionError):
        resolve(scratch, name)


def test_a_branch_that_moves_is_followed_and_a_commit_is_not(scratch: Scratch) -> None:
    first = scratch.tiny(source="// 1")
    assert resolve(scratch, "main") == ("branch", first)
    second = scratch.tiny(source="// 2")
    assert resolve(scratch, "main") == ("branch", second)
    assert resolve(scratch, first) == ("commit", first)
    scratch.git("reset", "--quiet", "--hard", first)
    third = scratch.tiny(source="// 3")
    assert resolve(scratch, "main") == ("branch", third), "a rewritten branch too"


def test_ancestry_also_across_repositories(scratch: Scratch, tmp_path: Path) -> None:
    first, second = scratch.tiny(source="// 1"), scratch.tiny(source="// 2")
    own = mirror(scratch)
    own.resolve(GitSource(git=str(scratch.folder), revision="main"))
    assert own.is_ancestor(first, second)
    assert not own.is_ancestor(second, first)
    fork_folder = tmp_path / "fork"
    shutil.copytree(scratch.folder, fork_folder)
    fork = Scratch.__new__(Scratch)
    fork.folder = fork_folder
    third = fork.tiny(source="// 3")
    other = mirror(fork)
    other.resolve(GitSource(git=str(fork_folder), revision="main"))
    other.adopt(own, first)
    assert other.is_ancestor(first, third)


def test_a_dirty_tree_is_refused_only_where_it_counts(scratch: Scratch) -> None:
    first = scratch.tiny(source="// 1")
    (scratch.folder / "notes.txt").write_text("outside of the crate, not tracked")
    assert resolve(scratch, first) == ("commit", first)
    (scratch.core / "new.rs").write_text("inside")
    with pytest.raises(RevisionError, match=r"crates/core/new\.rs"):
        resolve(scratch, first)
    (scratch.core / "new.rs").unlink()
    (scratch.core / "src" / "lib.rs").write_text("// changed")
    with pytest.raises(RevisionError, match="dirty"):
        resolve(scratch, first)


def test_the_users_checkout_is_not_touched(scratch: Scratch) -> None:
    scratch.tiny(source="// 1")
    marker = scratch.folder / "hook-ran"
    for hook in ("post-checkout", "reference-transaction", "pre-auto-gc", "post-index-change"):
        path = scratch.folder / ".git" / "hooks" / hook
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"#!/bin/sh\ntouch '{marker}'\n")
        path.chmod(0o755)
    scratch.git("config", "core.fsmonitor", f"touch '{marker}'; false")
    before = sha256_tree(scratch.folder)
    _, commit = resolve(scratch, "main")
    mirror(scratch).export(commit, scratch.folder.parent / "checkout")
    assert not marker.exists()
    assert sha256_tree(scratch.folder) == before


def test_hostile_attributes_and_modules_have_no_effect(scratch: Scratch, tmp_path: Path) -> None:
    marker = tmp_path / "filter-ran"
    scratch.tiny(source="// $Format:%H$")
    (scratch.folder / ".gitattributes").write_text(
        "*.rs filter=evil export-subst\n.gitmodules export-ignore\ncrates/** export-ignore\n"
    )
    (scratch.folder / ".gitmodules").write_text(
        f'[submodule "x"]\n\tpath = x\n\turl = ext::sh -c "touch {marker}"\n\tupdate = !touch {marker}\n'
    )
    commit = scratch.commit("hostile")
    scratch.git("config", "filter.evil.smudge", f"touch '{marker}'")
    target = tmp_path / "checkout"
    mirror(scratch).ensure(commit)
    mirror(scratch).export(commit, target)
    assert not marker.exists()
    assert (target / "crates" / "core" / "src" / "lib.rs").read_text() == "// $Format:%H$"
    assert not (target / ".git").exists()


@pytest.mark.parametrize("where", ["/etc/passwd", "../../../outside"])
def test_a_link_that_leaves_the_checkout_is_refused(scratch: Scratch, tmp_path: Path, where: str) -> None:
    scratch.tiny()
    (scratch.core / "link").symlink_to(where)
    commit = scratch.commit("a link")
    mirror(scratch).ensure(commit)
    with pytest.raises(RevisionError, match="crates/core/link"):
        mirror(scratch).export(commit, tmp_path / "checkout")


def test_a_repository_without_the_crate_says_where_it_looked(scratch: Scratch) -> None:
    commit = scratch.tiny()
    with pytest.raises(RevisionError, match="no crate at 'elsewhere'"):
        resolve(scratch, commit, core="elsewhere")


@pytest.mark.parametrize("url", ["ext::sh -c true", "http://x/y", "git://x/y", "nothing/here"])
def test_other_places_are_refused(url: str, tmp_path: Path) -> None:
    with pytest.raises(RevisionError):
        locate(GitSource.model_construct(git=url, revision="main", core="crates/core"), base=tmp_path)


def test_a_folder_that_is_no_repository(tmp_path: Path) -> None:
    (tmp_path / "plain").mkdir()
    source = GitSource(git=str(tmp_path / "plain"), revision="main")
    found = Mirror(locate(source, base=tmp_path), cache=tmp_path / "cache", environment=os.environ)
    with pytest.raises(RevisionError, match="not a git repository"):
        found.resolve(source)


def test_an_address_that_does_not_answer_is_one_sentence(tmp_path: Path) -> None:
    source = GitSource(git=f"file://{tmp_path}/nothing", revision="main")
    found = Mirror(locate(source, base=tmp_path), cache=tmp_path / "cache", environment=os.environ)
    with pytest.raises((RevisionError, InfrastructureError)) as caught:
        found.resolve(source)
    assert "\n" not in str(caught.value)
    assert "nothing" in str(caught.value)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder away")
def test_a_checkout_of_another_user_is_read_all_the_same(scratch: Scratch) -> None:
    commit = scratch.tiny()
    for path in [scratch.folder, *scratch.folder.rglob("*")]:
        os.chown(path, 12345, 12345, follow_symlinks=False)
    assert resolve(scratch, "main") == ("branch", commit)


def test_a_damaged_mirror_is_made_anew(scratch: Scratch, tmp_path: Path) -> None:
    first = scratch.tiny(source="// 1")
    found = mirror(scratch)
    found.resolve(GitSource(git=str(scratch.folder), revision="main"))
    for path in (found.path / "objects").rglob("*"):
        if path.is_file():
            path.chmod(0o644)
            path.write_bytes(b"")
    again = mirror(scratch)
    assert again.resolve(GitSource(git=str(scratch.folder), revision="main")).commit == first
    again.export(first, tmp_path / "checkout")
    assert (tmp_path / "checkout" / "crates" / "core" / "src" / "lib.rs").read_text() == "// 1"
