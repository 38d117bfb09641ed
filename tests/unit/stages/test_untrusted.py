"""Looking for documents in a folder that others filled: nothing is followed, nothing is too much, all of it is told."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from replay_parity.campaign.base import Model
from replay_parity.errors import BadInputError
from replay_parity.stages import untrusted
from replay_parity.stages.untrusted import documents, few, place, read_document


class Note(Model):
    """A small document."""

    number: int
    words: str = ""


def write(path: Path, text: str = "{}") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def test_every_document_at_any_depth_in_sorted_order(tmp_path: Path) -> None:
    wanted = [write(tmp_path / name / "a.json") for name in ("z", "a/b/c", "a", "m/n")]
    write(tmp_path / "a" / "other.json")
    write(tmp_path / "xa.json")
    found = documents(tmp_path, "a.json")
    assert found.paths == tuple(sorted(wanted))
    assert found.problems == ()


def test_a_folder_that_is_not_there_holds_nothing(tmp_path: Path) -> None:
    assert documents(tmp_path / "none", "a.json") == documents(write(tmp_path / "file"), "a.json")
    assert documents(tmp_path / "none", "a.json").paths == ()


def test_links_are_told_and_never_followed(tmp_path: Path) -> None:
    write(tmp_path / "elsewhere" / "a.json")
    root = tmp_path / "root"
    root.mkdir()
    (root / "folder").symlink_to(tmp_path / "elsewhere")
    (root / "up").symlink_to("..")
    (root / "file").symlink_to(tmp_path / "elsewhere" / "a.json")
    found = documents(root, "a.json")
    assert found.paths == ()
    assert found.problems == tuple(f"{name} is a symbolic link" for name in ("file", "folder", "up"))
    (tmp_path / "link").symlink_to(root)
    assert documents(tmp_path / "link", "a.json").problems == ("the folder link is a symbolic link",)


def test_whatever_has_the_name_is_found_so_that_reading_tells_what_it_is(tmp_path: Path) -> None:
    write(tmp_path / "real" / "x.json")
    (tmp_path / "1").mkdir()
    (tmp_path / "1" / "a.json").symlink_to(tmp_path / "real" / "x.json")
    write(tmp_path / "2" / "a.json" / "a.json")
    (tmp_path / "3").mkdir()
    os.mkfifo(tmp_path / "3" / "a.json")
    found = documents(tmp_path, "a.json")
    assert [path.parent.name for path in found.paths] == ["1", "2", "3"]
    told = []
    for path in found.paths:
        with pytest.raises(BadInputError) as caught:
            read_document(Note, path, cap=100)
        told.append(caught.value.message)
    assert told == ["is a symbolic link; give the file itself", "is not a regular file", "is not a regular file"]


def test_too_deep_and_too_many_find_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path / "deep" / "/".join("x" * 16) / "a.json")
    assert len(documents(tmp_path / "deep", "a.json").paths) == 1
    write(tmp_path / "deep" / "/".join("x" * 17) / "a.json")
    found = documents(tmp_path / "deep", "a.json")
    assert (found.paths, found.problems) == ((), ("the folder deep is nested more than 16 folders deep",))
    monkeypatch.setattr(untrusted, "_MANY", 5)
    for number in range(5):
        write(tmp_path / "many" / f"{number}.json")
    assert documents(tmp_path / "many", "0.json").problems == ()
    write(tmp_path / "many" / "5.json")
    found = documents(tmp_path / "many", "0.json")
    assert (found.paths, found.problems) == ((), ("the folder many holds more than 5 files",))


def test_many_files_count_over_all_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(untrusted, "_MANY", 5)
    for number in range(3):
        write(tmp_path / str(number) / "a.json")
    assert documents(tmp_path, "a.json").problems == (f"the folder {tmp_path.name} holds more than 5 files",)


def test_a_folder_that_goes_away_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path / "b" / "a.json")
    real = os.scandir

    def scandir(path: Path) -> object:
        if Path(path).name == "b":
            raise OSError(5, "Input/output error")
        return real(path)

    monkeypatch.setattr(os, "scandir", scandir)
    found = documents(tmp_path, "a.json")
    assert (found.paths, found.problems) == ((), ("b cannot be listed: Input/output error",))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (b"", "EOF"),
        (b"{", "EOF"),
        (b'{"number": 1', "EOF"),
        (b"null", "object"),
        (b'{"number": "1"}', "/number"),
        (b'{"number": true}', "/number"),
        (b'{"number": 1.0}', "/number"),
        (b'{"number": 1, "a\\nb": 2}', r"/a\u000ab"),
        (b'{"number": 1, "words": "\xff\xfe"}', "invalid"),
        (b'{"number": 1, "words": "\\ud800"}', "hex escape"),
        (b'{"number": 1, "x": ' + b"[" * 100_000, "recursion"),
        (b'{"number": ' + b"9" * 5_000 + b"}", "out of range"),
    ],
    ids=range(12),
)
def test_a_document_that_is_none_is_one_short_sentence(tmp_path: Path, text: bytes, words: str) -> None:
    path = tmp_path / "a.json"
    path.write_bytes(text)
    with pytest.raises(BadInputError) as caught:
        read_document(Note, path, cap=1 << 20)
    assert caught.value.message.startswith("cannot be read: ")
    assert words in caught.value.message
    assert len(caught.value.message.splitlines()) == 1
    assert len(caught.value.message) < 700


def test_a_large_key_is_cut(tmp_path: Path) -> None:
    path = write(tmp_path / "a.json", '{"number": 1, "' + "k" * 500_000 + '": 2}')
    with pytest.raises(BadInputError) as caught:
        read_document(Note, path, cap=1 << 20)
    assert len(caught.value.message) < 700
    with pytest.raises(BadInputError, match="at most 100 are read"):
        read_document(Note, path, cap=100)


def test_places_are_printable_and_short(tmp_path: Path) -> None:
    name = os.fsdecode(b"\xff\x1b[31m\n") + "x" * 200
    shown = place(tmp_path / name / name, tmp_path)
    assert shown.isprintable()
    assert len(shown) <= 300
    shown.encode()
    assert place(tmp_path / "a" / "b", tmp_path) == "a/b"


def test_few_of_many() -> None:
    assert few(["b", "a", "b"]) == ["b", "a"]
    assert few([str(number) for number in range(50)]) == [str(number) for number in range(50)]
    cut = few([str(number) for number in range(1_060)])
    assert len(cut) == 51
    assert cut[-1] == "and 1,010 more problems"
