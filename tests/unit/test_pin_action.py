"""scripts/pin_action.py: pins are moved all or none, and a tag is checked against them."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from scripts import pin_action
from scripts.pin_action import OWN, PinError, check_tag, main, move, pinned, rewrite

OLD, NEW = "0" * 40, "0123456789abcdef0123456789abcdef01234567"
FOREIGN = "uses: actions/checkout@3d3c42e5aac5ba805825da76410c181273ba90b1 # v7.0.1"
CALLED = f"uses: {OWN}/.github/workflows/replay-parity.yml@{OLD}"


def steps_with(pin: str) -> str:
    return f"steps:\n  - {FOREIGN}\n  - {CALLED}\n  - uses: {OWN}@{pin}\n  - id: x\n    uses: '{OWN}@{pin}' # own\n"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A repository in which the first commit holds the action, and the second the pins."""
    root = tmp_path / "repository"
    folder = root / ".github" / "workflows"
    folder.mkdir(parents=True)
    (folder / "a.yml").write_text(steps_with(OLD))
    (folder / "b.yaml").write_text(f"uses: {OWN}@{OLD}\n")
    (folder / "other.yml").write_text(FOREIGN)
    (root / "action.yml").write_text("name: first\n")
    package = root / "src" / "replay_parity"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text('"""Doc."""\n\n__version__ = "1.2.3"\n')
    git(root, "init", "--quiet")
    commit(root)
    return root


def git(root: Path, *arguments: str) -> str:
    argv = ["git", "-C", str(root), "-c", "user.name=t", "-c", "user.email=t@example.invalid", *arguments]
    return subprocess.run(argv, check=True, capture_output=True, text=True).stdout.strip()


def commit(root: Path) -> str:
    git(root, "add", "--all")
    git(root, "commit", "--quiet", "--allow-empty", "--message", "x")
    return git(root, "rev-parse", "HEAD")


def contents(root: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in (root / ".github" / "workflows").iterdir()}


def test_only_pins_of_our_action_are_rewritten() -> None:
    assert rewrite(steps_with(OLD), NEW) == (steps_with(NEW), 2)


@pytest.mark.parametrize("commit", ["", "main", "v1", NEW[:39], NEW + "0", NEW.upper(), NEW + "\n", OLD])
def test_a_commit_that_is_not_full_is_refused(root: Path, commit: str) -> None:
    before = contents(root)
    with pytest.raises(PinError, match="no full commit id"):
        move(root, commit)
    assert contents(root) == before


@pytest.mark.parametrize("pin", ["main", "v1.2.3", NEW[:12], "${{ inputs.pin }}", ""])
def test_one_pin_that_is_not_understood_leaves_every_file_as_it_was(root: Path, pin: str) -> None:
    (root / ".github" / "workflows" / "z.yml").write_text(f"uses: {OWN}@{pin}\n")
    before = contents(root)
    with pytest.raises(PinError, match="not pinned by a full commit"):
        move(root, NEW)
    assert contents(root) == before


def test_a_disk_that_fails_leaves_every_file_as_it_was(root: Path) -> None:
    (root / ".github" / "workflows" / ".b.yaml.new").mkdir()
    before = contents_of_files(root)
    with pytest.raises(OSError, match="directory"):
        move(root, NEW)
    assert contents_of_files(root) == before


def contents_of_files(root: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in (root / ".github" / "workflows").iterdir() if path.is_file()}


def test_all_pins_move_and_nothing_is_left_over(root: Path) -> None:
    names = set(contents(root))
    assert move(root, NEW) == 3
    assert pinned(root) == NEW
    assert set(contents(root)) == names
    assert CALLED in (root / ".github" / "workflows" / "a.yml").read_text()


def test_no_use_at_all_is_told(root: Path) -> None:
    for name in ("a.yml", "b.yaml"):
        (root / ".github" / "workflows" / name).write_text(FOREIGN)
    with pytest.raises(PinError, match="no workflow uses"):
        move(root, NEW)


def test_two_different_pins_are_told(root: Path) -> None:
    (root / ".github" / "workflows" / "b.yaml").write_text(f"uses: {OWN}@{NEW}\n")
    with pytest.raises(PinError, match="do not name one commit"):
        pinned(root)


def test_a_release_takes_two_commits(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    action = git(root, "rev-parse", "HEAD")
    assert main(["set", action], root) == 0
    commit(root)
    assert check_tag(root, "v1.2.3") == action
    capsys.readouterr()
    assert main(["show"], root) == 0
    assert capsys.readouterr().out == f"{action}\n"


def test_a_tag_that_is_not_the_version_is_refused(root: Path) -> None:
    main(["set", git(root, "rev-parse", "HEAD")], root)
    for tag in ("v1.2.4", "1.2.3", "v1.2.3-rc1", "v1.2.3\n"):
        with pytest.raises(PinError, match=r"the version is '1\.2\.3'"):
            check_tag(root, tag)


def test_a_tag_whose_action_is_newer_than_the_pin_is_refused(root: Path) -> None:
    main(["set", git(root, "rev-parse", "HEAD")], root)
    (root / "action.yml").write_text("name: second\n")
    commit(root)
    with pytest.raises(PinError, match="changed after the pinned commit"):
        check_tag(root, "v1.2.3")


def test_a_tag_without_a_pin_is_refused(root: Path) -> None:
    with pytest.raises(PinError, match="no full commit id"):
        check_tag(root, "v1.2.3")


def test_a_commit_that_main_does_not_hold_is_refused(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = contents(root)
    assert main(["set", NEW], root) == 1
    assert "no ancestor" in capsys.readouterr().err
    assert contents(root) == before


def test_a_commit_without_the_action_is_refused(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (root / "action.yml").unlink()
    empty = commit(root)
    assert main(["set", empty], root) == 1
    assert "holds no action.yml" in capsys.readouterr().err


def test_what_a_use_of_the_action_reads_is_what_a_tag_is_checked_for() -> None:
    """environment.sh and action.yml name the same folders."""
    root = Path(pin_action.__file__).resolve().parents[1]
    script = (root / "scripts" / "environment.sh").read_text()
    for part in pin_action.PARTS:
        assert (root / part).exists()
    assert {"src", "configs", "schemas", "pyproject.toml"} <= set(pin_action.PARTS)
    for word in ("requirements/run.txt", "src configs schemas"):
        assert word in script
