"""The habits that a machine can hold: where effects may be, how long things may get, what no file may say."""

from __future__ import annotations

import ast
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

import replay_parity.errors as errors_module
from replay_parity.errors import ReplayParityError

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src" / "replay_parity"
MODULES = sorted(SOURCE.rglob("*.py"))
LONGEST_MODULE = 260
LONGEST_FUNCTION = 60


def imports(path: Path) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names.add(node.module.split(".")[0])
    return names


def within(path: Path, *places: str) -> bool:
    relative = path.relative_to(SOURCE).as_posix()
    return any(relative == place or relative.startswith(place) for place in places)


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.relative_to(SOURCE).as_posix())
def test_effects_are_where_they_belong(path: Path) -> None:
    found = imports(path)
    if not within(path, "system/"):
        assert not found & {"subprocess", "fcntl", "ctypes", "multiprocessing"}
    text = path.read_text()
    if not within(path, "cli.py", "settings.py"):
        assert "os.environ" not in text
        assert "getenv" not in text
    if not within(path, "cli.py"):
        assert "sys.exit" not in text
        assert "SystemExit" not in text
    if within(path, "parity/"):
        assert not found & {"os", "pathlib", "io", "requests", "time"}, "deciding is pure"


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.relative_to(SOURCE).as_posix())
def test_modules_and_functions_fit_a_reader(path: Path) -> None:
    text = path.read_text()
    assert len(text.splitlines()) <= LONGEST_MODULE
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef):
            length = (node.end_lineno or node.lineno) - node.lineno + 1
            assert length <= LONGEST_FUNCTION, f"{node.name} has {length} lines"


def tracked() -> Iterator[Path]:
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=False)
    if listed.returncode != 0:
        pytest.skip("not a git checkout")
    for name in listed.stdout.decode().split("\0"):
        path = ROOT / name
        if name and path.is_file() and not path.is_symlink():
            yield path


def test_no_file_names_a_machine_or_a_registry_host() -> None:
    forbidden = re.compile(rb"(?:^|[^A-Za-z0-9_.])/(?:work|farm|root)/[A-Za-z.]|files\.pythonhosted|static\.crates\.io")
    # This very line of the test is the one place.
    found = [path for path in tracked() if path != Path(__file__) and forbidden.search(path.read_bytes())]
    assert found == []


def test_no_tracked_file_is_large() -> None:
    assert [path for path in tracked() if path.stat().st_size > 1_000_000] == []


def test_exit_codes_live_on_the_classes() -> None:
    codes = {
        name: cls.exit_code
        for name, cls in vars(errors_module).items()
        if isinstance(cls, type) and issubclass(cls, ReplayParityError) and cls is not ReplayParityError
    }
    wrong = ("BadInputError", "ConfigurationError", "ManyErrors", "RevisionError", "CorpusError", "CanonicalFormError")
    assert {codes.pop(name) for name in wrong} == {2}
    assert codes == {"InfrastructureError": 3, "ProcessError": 3, "BuildError": 1}


def test_an_error_is_one_line_with_place_and_hint() -> None:
    error = errors_module.BadInputError("is wrong", where="file:3 /a", hint="mend it")
    assert str(error) == "file:3 /a: is wrong (mend it)"
