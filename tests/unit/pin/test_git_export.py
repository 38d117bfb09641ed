"""Exported trees: the commit's bytes and nothing else, whatever the commit asks git to do (threat 8)."""

from __future__ import annotations

import os
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from replay_parity.campaign.sources import GitSource
from replay_parity.errors import InfrastructureError, RevisionError
from replay_parity.pin.git_objects import object_id, tree_of, verify_checkout
from tests.support.tiny import Engines, Workshop


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "out"


def export(workshop: Workshop, engines: Engines, out: Path, revision: str = "main") -> Path:
    workshop.sources.lay_out(workshop.pin(engines.folder, revision), out)
    return out


def test_attributes_of_the_commit_change_nothing(workshop: Workshop, engines: Engines, out: Path) -> None:
    files = {
        "expanded.txt": b"$Id$ $Format:%H$\n",
        "ignored.txt": b"still here\n",
        "lines.txt": b"one\ntwo\n",
        "wide.txt": "é".encode(),
        "filtered.txt": b"as it is\n",
        ".gitattributes": b"expanded.txt ident export-subst\nignored.txt export-ignore\nlines.txt text eol=crlf\n"
        b"wide.txt working-tree-encoding=UTF-16\nfiltered.txt filter=lfs\n",
    }
    for name, data in files.items():
        (engines.folder / name).write_bytes(data)
    engines.git("config", "filter.lfs.smudge", "false")
    engines.git("config", "filter.lfs.required", "true")
    (engines.folder / ".gitattributes").rename(engines.folder / "attributes")
    engines.engine(1)
    (engines.folder / "attributes").rename(engines.folder / ".gitattributes")
    engines.git("config", "--remove-section", "filter.lfs")
    # Only the attributes are committed now: with them in force git would convert the others while adding.
    engines.git("rm", "--quiet", "--cached", "attributes")
    engines.git("add", ".gitattributes")
    engines.git("commit", "--quiet", "--message", "attributes")
    engines.git("config", "core.bare", "true")
    export(workshop, engines, out)
    assert {name: (out / name).read_bytes() for name in files} == files


def test_modes_links_and_odd_names_arrive_as_they_are(workshop: Workshop, engines: Engines, out: Path) -> None:
    (engines.folder / "run.sh").write_text("#!/bin/sh\n")
    (engines.folder / "run.sh").chmod(0o755)
    (engines.folder / "link").symlink_to("crates/core")
    (engines.folder / "dangling").symlink_to("nothing/there")
    for name in ("a", "a-b", "a.b", "a b", "é\n", "-rf"):
        (engines.folder / "names" / name).mkdir(parents=True)
        (engines.folder / "names" / name / "x").write_text(name)
    (engines.folder / "names" / os.fsdecode(b"\xff")).write_text("not utf-8")
    engines.engine(1)
    export(workshop, engines, out)
    assert os.access(out / "run.sh", os.X_OK)
    assert not os.access(out / "crates" / "core" / "Cargo.toml", os.X_OK)
    assert (out / "link").readlink() == Path("crates/core")
    names = [sorted(path.name for path in (root / "names").iterdir()) for root in (out, engines.folder)]
    assert names[0] == names[1]
    assert len(names[0]) == 7
    assert not (out / ".git").exists()


def test_submodules_are_left_out_and_not_asked_for(
    workshop: Workshop, engines: Engines, out: Path, tmp_path: Path
) -> None:
    inner = Engines(tmp_path / "inner")
    inner.engine(7)
    engines.engine(1)
    engines.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(inner.folder), "sub")
    (engines.folder / ".gitmodules").write_text(
        (engines.folder / ".gitmodules").read_text() + f"\tupdate = !touch {tmp_path / 'witness'}\n"
    )
    engines.git("commit", "--quiet", "--all", "--message", "a submodule with a command")
    export(workshop, engines, out)
    assert list((out / "sub").iterdir()) == []
    assert not (tmp_path / "witness").exists()


@pytest.mark.parametrize("target", ["../outside", "/etc", "crates/core/../../../x", "loop"])
def test_a_link_out_of_the_checkout_is_refused(workshop: Workshop, engines: Engines, out: Path, target: str) -> None:
    (engines.folder / "loop").symlink_to(target)
    engines.engine(1)
    with pytest.raises(RevisionError, match="holds a symbolic link that leaves the checkout: 'loop'"):
        export(workshop, engines, out)


def test_what_lay_in_the_folder_before_does_not_stay(workshop: Workshop, engines: Engines, out: Path) -> None:
    out.mkdir()
    (out / "stale.rs").write_text("")
    engines.engine(1)
    export(workshop, engines, out)
    assert not (out / "stale.rs").exists()


def mirror_of(workshop: Workshop) -> Path:
    (found,) = (workshop.cache / "git").glob("*/mirror.git")
    return found


def object_file(mirror: Path, name: str) -> Path:
    return mirror / "objects" / name[:2] / name[2:]


def loosen(engines: Engines, mirror: Path) -> None:
    """Let every object of the mirror lie in a file of its own."""
    for pack in (mirror / "objects" / "pack").glob("*.pack"):
        outside = mirror.parent / pack.name
        pack.rename(outside)
        with outside.open("rb") as data:
            subprocess.run(["git", "unpack-objects", "-q"], cwd=mirror, stdin=data, check=True)
    for left in (mirror / "objects" / "pack").iterdir():
        left.unlink()


@pytest.mark.parametrize("damage", ["truncated blob", "missing tree", "missing commit", "empty"])
def test_a_damaged_mirror_is_made_anew(workshop: Workshop, engines: Engines, out: Path, damage: str) -> None:
    commit = engines.engine(1)
    revision = workshop.pin(engines.folder, commit)
    mirror = mirror_of(workshop)
    loosen(engines, mirror)
    victims = {
        "blob": engines.git("rev-parse", "HEAD:crates/core/src/lib.rs"),
        "tree": engines.git("rev-parse", "HEAD:crates/core"),
        "commit": commit,
    }
    how, _, what = damage.partition(" ")
    if damage == "empty":
        for entry in sorted(mirror.rglob("*"), reverse=True):
            entry.rmdir() if entry.is_dir() else entry.unlink()
    elif how == "missing":
        object_file(mirror, victims[what]).unlink()
    else:
        path = object_file(mirror, victims[what])
        data = path.read_bytes()
        path.chmod(0o644)
        path.write_bytes(data[: len(data) // 2])
    assert workshop.pin(engines.folder, commit) == revision
    workshop.sources.lay_out(revision, out)
    assert "1" in (out / "crates" / "core" / "src" / "lib.rs").read_text()


def test_an_exchanged_file_in_the_mirror_is_noticed_and_replaced(
    workshop: Workshop, engines: Engines, out: Path
) -> None:
    """Git writes a blob without checking its hash: only recomputing the commit's id shows it."""
    revision = workshop.pin(engines.folder, engines.engine(1))
    mirror = mirror_of(workshop)
    loosen(engines, mirror)
    honest = object_file(mirror, engines.git("rev-parse", "HEAD:crates/core/src/lib.rs"))
    engines.engine(666)
    evil = engines.folder / ".git" / "objects"
    name = engines.git("rev-parse", "HEAD:crates/core/src/lib.rs")
    honest.chmod(0o644)
    honest.write_bytes((evil / name[:2] / name[2:]).read_bytes())
    workshop.sources.lay_out(revision, out)
    assert "1" in (out / "crates" / "core" / "src" / "lib.rs").read_text()
    assert "666" not in (out / "crates" / "core" / "src" / "lib.rs").read_text()


def test_a_mirror_that_cannot_be_mended_is_one_sentence(workshop: Workshop, engines: Engines, out: Path) -> None:
    revision = workshop.pin(engines.folder, engines.engine(1))
    mirror = mirror_of(workshop)
    loosen(engines, mirror)
    object_file(mirror, engines.git("rev-parse", "HEAD:crates/core/src/lib.rs")).unlink()
    engines.folder.rename(engines.folder.with_name("gone"))
    with pytest.raises((RevisionError, InfrastructureError)) as caught:
        workshop.sources.lay_out(revision, out)
    assert len(str(caught.value).splitlines()) == 1


def test_locks_that_a_killed_git_left_do_not_stop_the_next_run(workshop: Workshop, engines: Engines) -> None:
    engines.engine(1)
    workshop.pin(engines.folder, "main")
    mirror = mirror_of(workshop)
    for stale in ("packed-refs.lock", "refs/heads/main.lock", "HEAD.lock", "shallow.lock"):
        (mirror / stale).parent.mkdir(parents=True, exist_ok=True)
        (mirror / stale).touch()
    newer = engines.engine(2)
    assert workshop.pin(engines.folder, "main").id == f"git:{newer}"


def test_the_id_of_a_checkout_is_recomputed_as_git_does(engines: Engines, tmp_path: Path) -> None:
    for name in ("b", "b-", "b0", "b.c"):
        (engines.folder / name).mkdir() if name == "b" else (engines.folder / name).write_text(name)
    (engines.folder / "b" / "x").write_text("x")
    commit = engines.engine(1)
    data = engines.git("cat-file", "commit", commit).encode() + b"\n"
    assert object_id(b"commit", data, like=commit) == commit
    assert tree_of(data) == engines.git("rev-parse", "HEAD^{tree}")
    assert tree_of(b"blob") is None
    checkout = tmp_path / "checkout"
    engines.git("worktree", "add", "--quiet", "--detach", str(checkout))
    (checkout / ".git").unlink()
    verify_checkout(checkout, commit=commit, commit_object=data, gitlinks={})
    for change in ("edit", "mode", "extra", "commit"):
        altered, victim = data, checkout / "b-"
        if change == "edit":
            victim.write_text("B-")
        elif change == "mode":
            victim.chmod(0o755)
        elif change == "extra":
            victim = checkout / "more"
            victim.write_text("")
        else:
            altered = data.replace(b"t@example", b"u@example")
        with pytest.raises(InfrastructureError, match="are not the ones that this id names"):
            verify_checkout(checkout, commit=commit, commit_object=altered, gitlinks={})
        if change == "extra":
            victim.unlink()
        else:
            victim.write_text("b-")
            victim.chmod(0o644)
    verify_checkout(checkout, commit=commit, commit_object=data, gitlinks={})


def test_two_mirrors_of_one_repository_do_not_get_in_each_others_way(workshop: Workshop, engines: Engines) -> None:
    commit = engines.engine(1)
    source = GitSource(git=str(engines.folder), revision="main")
    mirrors = [workshop.sources.mirror(source) for _ in range(4)]
    with ThreadPoolExecutor() as pool:
        found = list(pool.map(lambda mirror: mirror.resolve(source), mirrors))
    assert {revision.commit for revision in found} == {commit}
