"""Whole files, capped reads, trees, and disks that are full or closed."""

from __future__ import annotations

import gzip
import hashlib
import os
import resource
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from replay_parity.errors import BadInputError, InfrastructureError
from replay_parity.system import files
from replay_parity.system.files import (
    compress,
    copy_tree,
    open_regular,
    pin_times,
    private_folder,
    read_capped,
    remove_tree,
    scratch_folder,
    sha256_bytes,
    sha256_file,
    sha256_regular,
    sha256_tree,
    storage_errors,
    sweep,
    walk_sorted,
    write_whole,
)

root_only = pytest.mark.skipif(os.getuid() != 0, reason="only root can become another user")
NOBODY = 12345


def test_a_file_appears_whole_with_its_mode(tmp_path: Path) -> None:
    path = tmp_path / "new" / "folder" / "file"
    write_whole(path, b"one")
    assert (path.read_bytes(), path.stat().st_mode & 0o777) == (b"one", 0o644)
    write_whole(path, b"two", mode=0o600)
    assert (path.read_bytes(), path.stat().st_mode & 0o777) == (b"two", 0o600)
    assert [entry.name for entry in path.parent.iterdir()] == ["file"]


def test_a_link_is_replaced_and_not_written_through(tmp_path: Path) -> None:
    (tmp_path / "victim").write_text("mine")
    (tmp_path / "link").symlink_to("victim")
    write_whole(tmp_path / "link", b"new")
    assert (tmp_path / "victim").read_text() == "mine"
    assert not (tmp_path / "link").is_symlink()


def test_readers_never_see_half_a_file(tmp_path: Path) -> None:
    path = tmp_path / "file"
    versions = [bytes([number]) * 50_000 for number in range(8)]
    write_whole(path, versions[0])
    with ThreadPoolExecutor() as pool:
        writing = [pool.submit(write_whole, path, data) for data in versions * 5]
        while not all(future.done() for future in writing):
            assert path.read_bytes() in versions
    assert [entry.name for entry in tmp_path.iterdir()] == ["file"]


def test_what_cannot_be_written_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("old")

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(InfrastructureError, match="cannot write the file: No space left on device") as caught:
        write_whole(tmp_path / "file", b"new")
    assert caught.value.where == str(tmp_path / "file")
    assert "free some space" in str(caught.value)
    assert {entry.name: entry.read_text() for entry in tmp_path.iterdir()} == {"file": "old"}


def test_a_limit_on_the_size_of_files_is_one_sentence(tmp_path: Path) -> None:
    """RLIMIT_FSIZE is the quota that a runner agent may set."""
    script = (
        "import resource, signal, sys; from pathlib import Path; from replay_parity.system.files import write_whole\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN); resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))\n"
        "try: write_whole(Path(sys.argv[1]), b'x' * 5000)\n"
        "except Exception as error: print(type(error).__name__, error)\n"
    )
    source = str(Path(files.__file__).parents[2])
    done = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path / "file")],
        env={**os.environ, "PYTHONPATH": source},
        capture_output=True,
        text=True,
        check=True,
    )
    assert "InfrastructureError" in done.stdout
    assert "cannot write the file: File too large" in done.stdout
    assert list(tmp_path.iterdir()) == []
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[0] == resource.RLIM_INFINITY


@pytest.mark.parametrize(
    ("number", "hint"),
    [(28, "free some space"), (122, "quota"), (27, "ulimit"), (30, "writable folder"), (13, "may write to"), (5, None)],
)
def test_each_storage_error_is_one_sentence_with_a_hint(tmp_path: Path, number: int, hint: str | None) -> None:
    with pytest.raises(InfrastructureError) as caught, storage_errors("do it", tmp_path):
        raise OSError(number, os.strerror(number))
    assert str(caught.value).startswith(f"{tmp_path}: cannot do it: {os.strerror(number)}")
    assert (caught.value.hint is None) if hint is None else (hint in (caught.value.hint or ""))
    assert caught.value.exit_code == 3


def test_only_storage_errors_are_turned(tmp_path: Path) -> None:
    with pytest.raises(BadInputError), storage_errors("x", tmp_path):
        raise BadInputError("mine")
    with pytest.raises(ValueError, match="mine"), storage_errors("x", tmp_path):
        raise ValueError("mine")
    with pytest.raises(InfrastructureError, match="cannot x: odd"), storage_errors("x", tmp_path):
        raise OSError("odd")


def test_a_regular_file_is_read_up_to_its_cap(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"12345")
    assert read_capped(path, cap=5) == b"12345"
    assert sha256_regular(path, cap=5) == sha256_file(path) == sha256_bytes(b"12345")
    for read in (read_capped, sha256_regular, open_regular):
        with pytest.raises(BadInputError, match="is 5 bytes long, at most 4 are read"):
            read(path, cap=4)


def test_a_file_that_grows_while_it_is_read_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"12345")
    real = open_regular

    def growing(path: Path, *, cap: int) -> object:
        file = real(path, cap=cap)
        path.write_bytes(b"123456")
        return file

    monkeypatch.setattr(files, "open_regular", growing)
    with pytest.raises(BadInputError, match="grew over 5 bytes while it was read"):
        read_capped(path, cap=5)


def make_fifo(path: Path) -> None:
    os.mkfifo(path)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda _: None, "there is no such file"),
        (Path.mkdir, "is not a regular file"),
        (make_fifo, "is not a regular file"),
        (lambda path: path.symlink_to("/dev/zero"), "is a symbolic link; give the file itself"),
        (lambda path: path.symlink_to("nowhere"), "is a symbolic link; give the file itself"),
    ],
)
def test_what_is_no_regular_file_is_refused_at_once(tmp_path: Path, make: Callable[[Path], object], words: str) -> None:
    path = tmp_path / "odd"
    make(path)
    started = time.monotonic()
    for read in (read_capped, sha256_regular, open_regular):
        with pytest.raises(BadInputError, match=words) as caught:
            read(path, cap=100)
        assert caught.value.where == str(path)
    assert time.monotonic() - started < 2, "a pipe without a writer would wait for ever"


def test_no_descriptor_is_left_open(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "long").write_bytes(b"123")
    opened = Path("/proc/self/fd")
    before = len(list(opened.iterdir())) if opened.exists() else 0
    for name in ("folder", "long", "absent"):
        with pytest.raises(BadInputError):
            read_capped(tmp_path / name, cap=1)
    if before:
        assert len(list(opened.iterdir())) == before


def test_a_compressed_copy_is_whole_and_equal_for_equal_bytes(tmp_path: Path) -> None:
    source = tmp_path / "report"
    source.write_bytes(b"report" * 1000)
    compress(source, tmp_path / "a" / "one.gz")
    compress(source, tmp_path / "two.gz")
    assert gzip.decompress((tmp_path / "two.gz").read_bytes()) == source.read_bytes()
    assert (tmp_path / "a" / "one.gz").read_bytes() == (tmp_path / "two.gz").read_bytes()
    with pytest.raises(BadInputError):
        compress(tmp_path / "absent", tmp_path / "three.gz")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "report", "two.gz"]


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """Files, folders, links, an empty folder, odd names and run bits."""
    root = tmp_path / "tree"
    (root / "sub" / "deep").mkdir(parents=True)
    (root / "empty").mkdir()
    (root / "sub" / "a").write_bytes(b"a")
    (root / "sub" / "deep" / "run").write_bytes(b"#!")
    (root / "sub" / "deep" / "run").chmod(0o755)
    (root / "sub.x").write_bytes(b"x")
    (root / os.fsdecode(b"\xff\n")).write_bytes(b"odd")
    (root / "link").symlink_to("sub/a")
    (root / "folder-link").symlink_to("sub")
    (root / "dangling").symlink_to("nowhere")
    return root


def test_a_walk_is_sorted_and_follows_no_link(tree: Path) -> None:
    found = [path.relative_to(tree).as_posix() for path in walk_sorted(tree)]
    assert found == sorted(found, key=lambda name: name.split("/"))
    assert "folder-link" in found
    assert not any(name.startswith("folder-link/") for name in found)
    assert len(found) == 10


@pytest.mark.parametrize(
    "change",
    [
        lambda root: (root / "sub" / "a").write_bytes(b"b"),
        lambda root: (root / "sub" / "a").rename(root / "sub" / "b"),
        lambda root: (root / "sub" / "a").chmod(0o755),
        lambda root: (root / "sub" / "a").unlink(),
        lambda root: (root / "more").touch(),
        lambda root: (root / "link").unlink() or (root / "link").symlink_to("sub.x"),
        lambda root: (root / "link").unlink() or (root / "link").write_bytes(b"a"),
    ],
)
def test_every_change_of_content_changes_the_digest(tree: Path, change: Callable[[Path], object]) -> None:
    before = sha256_tree(tree)
    change(tree)
    assert sha256_tree(tree) != before


def test_times_owners_and_other_modes_do_not_count(tree: Path, tmp_path: Path) -> None:
    before = sha256_tree(tree)
    os.utime(tree / "sub" / "a", (1, 1))
    (tree / "sub" / "a").chmod(0o600)
    (tree / "another-empty").mkdir()
    assert sha256_tree(tree) == before
    assert sha256_tree(tree, skip=frozenset({"sub"})) != before
    shutil.rmtree(tree / "sub")
    assert sha256_tree(tree) == sha256_tree(tree, skip=frozenset({"sub", "absent"}))
    (tmp_path / "nothing").mkdir()
    assert sha256_tree(tmp_path / "nothing") == hashlib.sha256().hexdigest()


names = st.text(st.characters(exclude_characters="/\0", exclude_categories=["Cs"]), min_size=1, max_size=8)


@given(
    st.dictionaries(names.filter(lambda name: name not in {".", ".."}), st.binary(max_size=20), max_size=4),
    st.dictionaries(names.filter(lambda name: name not in {".", ".."}), st.binary(max_size=20), max_size=4),
)
def test_two_trees_have_one_digest_exactly_when_they_are_equal(
    tmp_path_factory: pytest.TempPathFactory, left: dict[str, bytes], right: dict[str, bytes]
) -> None:
    base = tmp_path_factory.getbasetemp() / "digests"
    digests = []
    for content in (left, right):
        shutil.rmtree(base, ignore_errors=True)
        base.mkdir()
        for name, data in content.items():
            (base / name).write_bytes(data)
        digests.append(sha256_tree(base))
    assert (digests[0] == digests[1]) == (left == right)


def test_pinned_times_reach_everything_and_follow_no_link(tree: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.touch()
    os.utime(outside, (5, 5))
    (tree / "out").symlink_to(outside)
    pin_times(tree, seconds=1000)
    assert {path.lstat().st_mtime for path in walk_sorted(tree)} == {1000}
    assert outside.stat().st_mtime == 5


def test_a_copied_tree_is_the_same_times_included(tree: Path, tmp_path: Path) -> None:
    pin_times(tree, seconds=1000)
    (tree / "sub").chmod(0o700)
    copy = tmp_path / "deep" / "copy"
    copy_tree(tree, copy)
    assert sha256_tree(copy) == sha256_tree(tree)
    assert (copy / "empty").is_dir()
    assert {path.lstat().st_mtime for path in walk_sorted(copy) if not path.is_symlink()} == {1000}
    assert (copy / "sub").stat().st_mode & 0o777 == 0o700
    with pytest.raises(FileExistsError):
        copy_tree(tree, copy)


def test_a_copy_stops_at_the_first_error(tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    copied: list[str] = []

    def full(source: str, _: Path) -> None:
        copied.append(source)
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(shutil, "copy2", full)
    with pytest.raises(InfrastructureError) as caught, storage_errors("copy", tmp_path):
        copy_tree(tree, tmp_path / "copy")
    assert caught.value.message == "cannot copy: No space left on device"
    assert len(copied) == 1


def test_scratch_is_removed_unless_it_is_renamed(tmp_path: Path) -> None:
    with scratch_folder(tmp_path, "new-") as folder:
        (folder / "x").touch()
        assert folder.stat().st_mode & 0o777 == 0o700
        folder.rename(tmp_path / "kept")

    def interrupted() -> None:
        with scratch_folder(tmp_path, "new-") as folder:
            (folder / "x").touch()
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert [path.name for path in tmp_path.iterdir()] == ["kept"]
    absent = scratch_folder(tmp_path / "absent", "new-")
    with pytest.raises(InfrastructureError, match="cannot make a folder for passing work"):
        absent.__enter__()


def test_only_old_scratch_is_swept(tmp_path: Path) -> None:
    for name in ("new-old", "new-young", "other"):
        (tmp_path / name).mkdir()
    for name in ("new-old", "other"):
        os.utime(tmp_path / name, (0, 0))
    sweep(tmp_path, "new-", older_than=60)
    sweep(tmp_path / "absent", "new-", older_than=60)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["new-young", "other"]


def test_a_private_folder_is_ours_alone(tmp_path: Path) -> None:
    folder = private_folder(tmp_path / "a" / "b")
    assert folder.stat().st_mode & 0o777 == 0o700
    assert private_folder(folder) == folder
    folder.chmod(0o755)
    assert private_folder(folder) == folder, "others may look, not write"


def give_away(path: Path) -> None:
    path.mkdir()
    os.chown(path, NOBODY, NOBODY)


@pytest.mark.parametrize(
    "spoil",
    [
        lambda path: path.mkdir() or path.chmod(0o777),
        lambda path: path.mkdir() or path.chmod(0o770),
        lambda path: path.symlink_to(path.parent),
        pytest.param(give_away, marks=root_only),
    ],
)
def test_a_folder_that_others_can_write_to_is_refused(tmp_path: Path, spoil: Callable[[Path], object]) -> None:
    spoil(tmp_path / "folder")
    with pytest.raises(InfrastructureError, match="is not a folder that only you can write to"):
        private_folder(tmp_path / "folder")


def test_a_file_in_the_place_of_a_private_folder_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for path in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(InfrastructureError, match="cannot make the folder"):
            private_folder(path)


def test_everything_can_be_removed(tree: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "keep").touch()
    (tree / "out").symlink_to(outside)
    (tree / "sub" / "deep").chmod(0o500)
    remove_tree(tree)
    remove_tree(tree)
    assert not tree.exists()
    assert (outside / "keep").exists()
    (tmp_path / "link").symlink_to(outside)
    (tmp_path / "dangling").symlink_to("nowhere")
    (tmp_path / "file").touch()
    os.mkfifo(tmp_path / "pipe")
    for name in ("link", "dangling", "file", "pipe"):
        remove_tree(tmp_path / name)
    assert [path.name for path in tmp_path.iterdir()] == ["outside"]


@root_only
def test_closed_folders_of_ones_own_are_opened_to_be_removed(tmp_path: Path) -> None:
    """Root may enter everything, so somebody else has to try."""
    closed = tmp_path / "tree" / "closed" / "deep"
    closed.mkdir(parents=True)
    (closed / "x").touch()
    for path in [tmp_path / "tree", *(tmp_path / "tree").rglob("*")]:
        os.chown(path, NOBODY, NOBODY)
    closed.chmod(0o000)
    closed.parent.chmod(0o000)
    script = (
        "import os, sys; from pathlib import Path; from replay_parity.system.files import remove_tree\n"
        f"os.chdir(sys.argv[1]); os.setuid({NOBODY}); remove_tree(Path('closed'))"
    )
    source = str(Path(files.__file__).parents[2])
    subprocess.run(
        [sys.executable, "-c", script, str(tmp_path / "tree")], env={**os.environ, "PYTHONPATH": source}, check=True
    )
    assert list((tmp_path / "tree").iterdir()) == []


def test_two_may_remove_one_folder_at_once(tmp_path: Path) -> None:
    for number in range(20):
        root = tmp_path / str(number)
        for name in range(30):
            (root / str(name)).mkdir(parents=True)
            (root / str(name) / "x").touch()
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(remove_tree, [root] * 4))
        remove_tree(root)
        assert not root.exists()
