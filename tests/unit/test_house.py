"""Rules of the house that no linter holds: who may import what, who may exit, how long things get."""

from __future__ import annotations

import ast
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

import replay_parity

SOURCE = Path(replay_parity.__file__).resolve().parent
ROOT = Path(__file__).resolve().parents[2]
MODULES = sorted(path for path in SOURCE.rglob("*.py"))
MOST_LINES = 260
MOST_FUNCTION_LINES = 60
LARGEST_FILE = 1_000_000

# Processes, locks and low-level looks at the machine live in one folder.
LOW_LEVEL = frozenset({"subprocess", "psutil", "fcntl", "resource", "pty", "multiprocessing", "ctypes"})
# The node record asks psutil what the machine is; it starts and ends nothing.
ALLOWED = {"replay/node.py": {"psutil"}}
# Deciding is pure: no files, no clock, no network.
IMPURE = frozenset({"os", "pathlib", "io", "requests", "time", "socket", "shutil", "tempfile"})
# Ways to start a process, or to read the environment, that need no import of their own.
STARTS = frozenset({"system", "popen", "fork", "forkpty", "posix_spawn", "posix_spawnp"})
ENVIRONMENT = frozenset({"environ", "environb", "getenv", "getenvb", "putenv", "unsetenv"})


def name_of(path: Path) -> str:
    return path.relative_to(SOURCE).as_posix()


@pytest.fixture(scope="module")
def trees() -> dict[str, ast.Module]:
    return {name_of(path): ast.parse(path.read_text("utf-8")) for path in MODULES}


def imported(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def attributes_of_os(tree: ast.Module) -> set[str]:
    found = {
        node.attr
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "os"
    }
    return found | {name.removeprefix("os.") for name in imported(tree) if name.startswith("os.")}


def test_the_modules_were_found() -> None:
    names = {name_of(path) for path in MODULES}
    assert {"cli/main.py", "settings.py", "system/process.py", "pin/builder.py"} <= names


def test_processes_and_locks_are_reached_through_system_only(trees: dict[str, ast.Module]) -> None:
    guilty = {
        name: found
        for name, tree in trees.items()
        if not name.startswith("system/")
        and (
            found := {
                module for module in imported(tree) if module.split(".")[0] in LOW_LEVEL - ALLOWED.get(name, set())
            }
            | {word for word in attributes_of_os(tree) if word in STARTS or word.startswith(("exec", "spawn"))}
        )
    }
    assert guilty == {}


def test_subprocess_is_imported_once(trees: dict[str, ast.Module]) -> None:
    importers = [name for name, tree in trees.items() if "subprocess" in set(imported(tree))]
    assert len(importers) == 1
    assert importers[0].startswith("system/")


def test_the_environment_is_read_by_the_command_line_and_given_to_the_settings(trees: dict[str, ast.Module]) -> None:
    assert [name for name, tree in trees.items() if attributes_of_os(tree) & ENVIRONMENT] == [
        "cli/corpus.py",
        "cli/run.py",
        "cli/workflow.py",
    ]


def test_only_the_command_line_exits(trees: dict[str, ast.Module]) -> None:
    def exits(node: ast.AST) -> bool:
        if isinstance(node, ast.Name):
            return node.id in {"SystemExit", "exit", "quit"}
        return isinstance(node, ast.Attribute) and node.attr in {"exit", "_exit", "abort"}

    guilty = [name for name, tree in trees.items() if not name.startswith("cli/") and any(map(exits, ast.walk(tree)))]
    assert guilty == []


def test_deciding_is_pure(trees: dict[str, ast.Module]) -> None:
    pure = [(name, tree) for name, tree in trees.items() if name.startswith("parity/")]
    assert [name for name, tree in pure if {module.split(".")[0] for module in imported(tree)} & IMPURE] == []


def test_no_module_starts_with_logic_in_its_package_file(trees: dict[str, ast.Module]) -> None:
    for name, tree in trees.items():
        if name.endswith("__init__.py") and name != "__init__.py":
            assert all(isinstance(node, ast.Expr) for node in tree.body), name


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_a_module_is_of_one_idea_and_its_functions_fit_a_screen(path: Path) -> None:
    text = path.read_text("utf-8")
    assert len(text.splitlines()) <= MOST_LINES
    long = {
        node.name: length
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and node.end_lineno is not None
        and (length := node.end_lineno - node.lineno + 1) > MOST_FUNCTION_LINES
    }
    assert long == {}


# Put together here, so that this file does not hold what it looks for.
MACHINE = [
    "/" + "root/",
    "/" + "home/" + r"[a-z]+/",
    "/" + "work/",
    "/" + "farm/",
    "/" + "Users/" + r"[A-Za-z]+/",
    r"\.\./" + "shared/(?!data/mooncake)",
    "/" + "opt/" + "wheels",
]
HOSTS = [
    "index" + r"\.crates\.io",
    "static" + r"\.crates\.io",
    "pypi" + r"\.org",
    "files" + r"\.pythonhosted\.org",
    "registry" + r"\.npmjs\.org",
    "proxy" + r"\.golang\.org",
    "--(?:extra-)?" + "index-url",
    "--" + "find-links",
]
FORBIDDEN = re.compile("|".join(MACHINE + HOSTS))


@pytest.fixture(scope="module")
def kept_files() -> list[Path]:
    """Every file that git keeps, or will keep."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        check=False,
    )
    if listed.returncode != 0:
        pytest.skip("this is no git checkout")
    paths = [ROOT / name for name in listed.stdout.decode().split("\0") if name]
    return [path for path in paths if path.is_file() and not path.is_symlink()]


def test_no_file_names_this_machine_or_a_registry(kept_files: list[Path]) -> None:
    guilty = [
        f"{path.relative_to(ROOT)}:{number}"
        for path in kept_files
        for number, line in enumerate(path.read_bytes().decode("utf-8", "replace").splitlines(), 1)
        if FORBIDDEN.search(line)
    ]
    assert guilty == []


def test_no_kept_file_is_large(kept_files: list[Path]) -> None:
    assert [path for path in kept_files if path.stat().st_size > LARGEST_FILE] == []
