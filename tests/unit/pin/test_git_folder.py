"""One folder of a commit: what is written out, what is refused before, what counts as changed."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

from replay_parity.errors import InfrastructureError, RevisionError
from replay_parity.pin import git_folder
from replay_parity.pin.git import Mirror
from replay_parity.pin.git_mirror import BareMirror
from replay_parity.pin.git_place import Repository
from tests.support.tiny import Engines
from tests.unit.pin.test_git_export import loosen, object_file

POLICY = ".replay-parity"


@pytest.fixture
def mirror(engines: Engines, tmp_path: Path, environment: Mapping[str, str]) -> Mirror:
    return Mirror(Repository(str(engines.folder), engines.folder), cache=tmp_path / "cache", environment=environment)


@pytest.fixture
def policy(engines: Engines) -> Path:
    """A folder for policy in the repository."""
    folder = engines.folder / POLICY
    (folder / "rows").mkdir(parents=True)
    (folder / "campaign.yaml").write_text("a\r\n")
    (folder / "rows" / "one.yaml").write_text("1")
    return folder


def tree_with(engines: Engines, name: bytes, *, mode: str = "100644") -> str:
    """A commit whose policy holds one entry that no work tree could give it."""
    kind = "commit" if mode == "160000" else "blob"
    found = engines.git("rev-parse", "HEAD" if kind == "commit" else "HEAD:crates/core/Cargo.toml")
    tree = _make(engines, f"{mode} {kind} {found}\t".encode() + name + b"\0")
    return engines.git("commit-tree", "-m", "odd", _make(engines, f"040000 tree {tree}\t{POLICY}\0".encode()))


def _make(engines: Engines, listing: bytes) -> str:
    done = subprocess.run(
        ["git", "mktree", "-z", "--missing"], cwd=engines.folder, input=listing, capture_output=True, check=True
    )
    return done.stdout.decode().strip()


def test_the_folders_files_arrive_as_committed(engines: Engines, mirror: Mirror, policy: Path, tmp_path: Path) -> None:
    (engines.folder / ".gitattributes").write_text("*.yaml text eol=lf filter=x\n")
    (policy / "run.sh").write_text("x")
    (policy / "run.sh").chmod(0o755)
    engines.git("config", "core.autocrlf", "false")
    (engines.folder / ".gitattributes").unlink()
    commit = engines.commit("policy")
    (policy / "campaign.yaml").write_text("dirty")
    out = tmp_path / "out"
    out.mkdir()
    (out / "stale.yaml").write_text("of an earlier run")
    assert mirror.export_folder(commit, POLICY, out) == ("campaign.yaml", "rows/one.yaml", "run.sh")
    assert (out / "campaign.yaml").read_bytes() == b"a\r\n"
    assert sorted(path.relative_to(out).as_posix() for path in out.rglob("*.*")) == [
        "campaign.yaml",
        "rows/one.yaml",
        "run.sh",
    ]
    assert out.stat().st_mode & 0o777 == 0o700
    assert mirror.export_folder(commit, f"{POLICY}/rows", out) == ("one.yaml",)


def test_a_commit_without_the_folder_gives_nothing(engines: Engines, mirror: Mirror, tmp_path: Path) -> None:
    (engines.folder / "file").write_text("x")
    commit = engines.engine(1)
    for folder in (POLICY, "crates/other", "crates/core/src/more"):
        assert mirror.export_folder(commit, folder, tmp_path / "out") == ()
        assert list((tmp_path / "out").iterdir()) == []
    for folder in ("file", "file/x"):
        with pytest.raises(RevisionError, match=f"'{folder}' of commit {commit} is not a folder: 'file' is something"):
            mirror.export_folder(commit, folder, tmp_path / "out")


def test_a_link_in_place_of_the_folder_is_refused(engines: Engines, mirror: Mirror, tmp_path: Path) -> None:
    (engines.folder / POLICY).symlink_to("crates")
    commit = engines.engine(1)
    with pytest.raises(RevisionError, match="is not a folder"):
        mirror.export_folder(commit, POLICY, tmp_path / "out")


@pytest.mark.parametrize(("mode", "words"), [("120000", "a symbolic link"), ("160000", "a submodule")])
def test_only_regular_files_are_read(engines: Engines, mirror: Mirror, tmp_path: Path, mode: str, words: str) -> None:
    engines.engine(1)
    commit = tree_with(engines, b"odd.yaml", mode=mode)
    with pytest.raises(RevisionError, match=f"holds 'odd.yaml', which is {words}; only regular files") as caught:
        mirror.export_folder(commit, POLICY, tmp_path / "out")
    assert list((tmp_path / "out").iterdir()) == []
    assert len(str(caught.value).splitlines()) == 1


@pytest.mark.parametrize(
    "name", [b"..", b".git", b".GIT", b"a\nb", b"a\x1b[2J", b"-rf", b"a\\b", b"\xff", "\u202egpj".encode(), b"x" * 256]
)
def test_names_that_are_not_plain_are_refused(engines: Engines, mirror: Mirror, tmp_path: Path, name: bytes) -> None:
    engines.engine(1)
    commit = tree_with(engines, name)
    with pytest.raises(RevisionError, match="holds a file whose name is not plain") as caught:
        mirror.export_folder(commit, POLICY, tmp_path / "out")
    said = str(caught.value)
    assert said.isprintable()
    assert list((tmp_path / "out").iterdir()) == []
    assert not (tmp_path / "escaped").exists()
    with pytest.raises(RevisionError, match="holds a file whose name is not plain"):
        mirror.changed_files(engines.git("rev-parse", "HEAD"), commit, POLICY)


def test_too_many_files_and_too_many_bytes_are_refused(
    engines: Engines, mirror: Mirror, policy: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit = engines.commit("policy")
    monkeypatch.setattr(git_folder, "FILES_CAP", 1)
    with pytest.raises(RevisionError, match=f"'{POLICY}' of commit {commit} holds 2 files, at most 1 are read"):
        mirror.export_folder(commit, POLICY, tmp_path / "out")
    with pytest.raises(RevisionError, match="differ, at most 1 are listed"):
        mirror.changed_files(commit, engines.engine(1), "crates")
    monkeypatch.setattr(git_folder, "FILES_CAP", 2)
    monkeypatch.setattr(git_folder, "BYTES_CAP", 3)
    with pytest.raises(RevisionError, match="holds 4 bytes, at most 3 are read"):
        mirror.export_folder(commit, POLICY, tmp_path / "out")
    monkeypatch.setattr(git_folder, "BYTES_CAP", 4)
    assert len(mirror.export_folder(commit, POLICY, tmp_path / "out")) == 2


def test_a_refused_folder_does_not_cost_the_mirror(
    engines: Engines, mirror: Mirror, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    engines.engine(1)
    commit = tree_with(engines, b"-rf")
    mirror.ensure(commit)
    before = mirror.path.stat().st_ino
    monkeypatch.setattr(mirror._bare, "_fresh", False)
    with pytest.raises(RevisionError):
        mirror.export_folder(commit, POLICY, tmp_path / "out")
    assert mirror.path.stat().st_ino == before


@pytest.mark.parametrize("victim", ["blob", "tree", "top", "commit"])
def test_an_exchanged_object_is_noticed_and_replaced(
    engines: Engines, mirror: Mirror, policy: Path, tmp_path: Path, environment: Mapping[str, str], victim: str
) -> None:
    name = {
        "blob": f"HEAD:{POLICY}/rows/one.yaml",
        "tree": f"HEAD:{POLICY}/rows",
        "top": "HEAD^{tree}",
        "commit": "HEAD",
    }[victim]
    commit = engines.commit("policy")
    honest = engines.git("rev-parse", name)
    mirror.ensure(commit)
    loosen(engines, mirror.path)
    (policy / "rows" / "one.yaml").write_text("2")
    engines.commit("evil")
    evil = engines.git("rev-parse", name)
    for changed in (f"HEAD:{POLICY}/rows/one.yaml", f"HEAD:{POLICY}/rows", f"HEAD:{POLICY}", "HEAD^{tree}"):
        copy = object_file(mirror.path, engines.git("rev-parse", changed))
        copy.parent.mkdir(exist_ok=True)
        copy.write_bytes(object_file(engines.folder / ".git", copy.parent.name + copy.name).read_bytes())
    place = object_file(mirror.path, honest)
    place.chmod(0o644)
    place.write_bytes(object_file(engines.folder / ".git", evil).read_bytes())
    again = Mirror(Repository(str(engines.folder), engines.folder), cache=tmp_path / "cache", environment=environment)
    again.export_folder(commit, POLICY, tmp_path / "out")
    assert (tmp_path / "out" / "rows" / "one.yaml").read_text() == "1"


def test_changes_are_listed_by_kind(engines: Engines, mirror: Mirror, policy: Path) -> None:
    (engines.folder / "README").write_text("x")
    for name in ("mode.sh", "type.yaml", "moved.yaml", "gone.yaml"):
        (policy / name).write_text(f"the text of {name}\n" * 20)
    left = engines.commit("left")
    (engines.folder / "README").write_text("y")
    (policy / "mode.sh").chmod(0o755)
    (policy / "type.yaml").unlink()
    (policy / "type.yaml").symlink_to("campaign.yaml")
    (policy / "moved.yaml").rename(policy / "rows" / "moved to.yaml")
    (policy / "gone.yaml").unlink()
    (policy / "rows" / "one.yaml").write_text("2")
    right = engines.commit("right")
    engines.git("config", "diff.renames", "copies")
    assert mirror.changed_files(left, right, POLICY) == [
        (f"{POLICY}/gone.yaml", "removed"),
        (f"{POLICY}/mode.sh", "changed"),
        (f"{POLICY}/moved.yaml", "removed"),
        (f"{POLICY}/rows/moved to.yaml", "added"),
        (f"{POLICY}/rows/one.yaml", "changed"),
        (f"{POLICY}/type.yaml", "changed"),
    ]
    assert mirror.changed_files(left, right, "README") == [("README", "changed")]
    assert mirror.changed_files(left, left, POLICY) == []
    assert mirror.changed_files(left, right, "nothing/here") == []


def test_a_folder_name_is_never_a_pattern(engines: Engines, mirror: Mirror, policy: Path) -> None:
    left = engines.commit("left")
    (policy / "campaign.yaml").write_text("b")
    right = engines.commit("right")
    for pattern in (".replay-*", ":(icase).REPLAY-PARITY", ":!crates"):
        assert mirror.changed_files(left, right, pattern) == []


@pytest.mark.parametrize("folder", ["", "/etc", "..", "a/../b", "a//b", "--output=x", "a\nb", ".git", "a/", "x" * 300])
def test_hostile_names_start_no_process(
    mirror: Mirror, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, folder: str
) -> None:
    bare = BareMirror(mirror._repository, cache=tmp_path / "other", environment=mirror._git._environment)
    monkeypatch.setattr(bare.git, "call", None)
    for work in (
        lambda: git_folder.export_folder(bare, "0" * 40, folder, tmp_path / "out"),
        lambda: git_folder.changed_files(bare, "0" * 40, "1" * 40, folder),
    ):
        with pytest.raises(RevisionError, match="is not a plain folder inside a repository") as caught:
            work()
        assert len(str(caught.value).splitlines()) == 1


@pytest.mark.parametrize("name", ["main", "--all", "0" * 39, "0" * 40 + "\n", "HEAD", ""])
def test_only_full_ids_are_compared(mirror: Mirror, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setattr(mirror._git, "call", None)
    good = "0" * 40
    for work in (
        lambda: mirror.export_folder(name, POLICY, tmp_path / "out"),
        lambda: mirror.changed_files(good, name, POLICY),
        lambda: mirror.merge_base(name, good),
    ):
        with pytest.raises(RevisionError, match="is not a full commit id") as caught:
            work()
        assert len(str(caught.value).splitlines()) == 1


def test_a_commit_that_is_not_there_is_one_sentence(engines: Engines, mirror: Mirror, tmp_path: Path) -> None:
    engines.engine(1)
    with pytest.raises(RevisionError, match=f"has no commit {'0' * 40}"):
        mirror.export_folder("0" * 40, POLICY, tmp_path / "out")


def test_a_disk_that_refuses_is_infrastructure(engines: Engines, mirror: Mirror, tmp_path: Path) -> None:
    commit = engines.engine(1)
    (tmp_path / "file").write_text("")
    with pytest.raises(InfrastructureError):
        mirror.export_folder(commit, "crates", tmp_path / "file" / "out")
