from __future__ import annotations

from pathlib import Path

import pytest

from replay_parity.campaign.document import Document, Finding, Mark, pointer, shown


def test_pointers_escape_what_rfc_6901_and_a_terminal_want() -> None:
    assert pointer(()) == ""
    assert pointer(("a/b", "c~d", 0, "")) == "/a~1b/c~0d/0/"
    assert pointer(("a\nb", "\u202e")) == "/a\\nb/\\u202e"


def test_an_error_names_file_line_and_pointer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    document = Document(tmp_path / "x.yaml", {"a": {}}, {(): Mark(1, 1), ("a",): Mark(3, 1)})
    assert str(document.error(Finding(("a", "b"), "is wrong", "mend it"))) == "x.yaml:3 /a/b: is wrong (mend it)"
    assert str(document.error(Finding((), "is wrong"))) == "x.yaml:1: is wrong"


def test_paths_are_shown_from_the_working_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    inner = tmp_path / "inner"
    inner.mkdir()
    monkeypatch.chdir(inner)
    assert shown(Path("a/../b.yaml")) == "b.yaml"
    assert shown(inner / "c.yaml") == "c.yaml"
    assert shown(Path("../d.yaml")) == str(tmp_path / "d.yaml")
    assert shown(Path("e\n.yaml")) == "'e\\n.yaml'"
