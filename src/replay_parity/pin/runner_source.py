"""The runner's source, shipped as package data: byte-identical on both sides, one checksum (rule 5)."""

from __future__ import annotations

import shutil
from functools import cache
from importlib import resources
from pathlib import Path

from replay_parity.errors import InfrastructureError
from replay_parity.system.files import sha256_tree

# The lock seeds the resolution and is recorded apart; target/ appears where developers build the runner in place.
_NOT_SOURCE = frozenset({"Cargo.lock", "target"})


def runner_folder() -> Path:
    """Folder of the shipped runner crate."""
    folder = Path(str(resources.files("replay_parity") / "runner"))
    if not (folder / "Cargo.toml").is_file():
        raise InfrastructureError("the runner's source is missing from this installation", where=str(folder))
    return folder


@cache
def runner_source_sha256() -> str:
    """Checksum over the names and contents of the runner's source files."""
    return sha256_tree(runner_folder(), skip=_NOT_SOURCE)


def shipped_lock() -> bytes:
    """The lock that the runner is shipped with: it fills in what a revision's own lock does not name."""
    return (runner_folder() / "Cargo.lock").read_bytes()


def copy_runner_source(target: Path) -> None:
    """Copy the runner's source files to the folder `target`, which must not exist.

    Raises InfrastructureError when they are not the ones that the checksum was taken of.
    """
    source = runner_folder()

    def ignored(folder: str, names: list[str]) -> list[str]:
        return [name for name in names if name in _NOT_SOURCE] if Path(folder) == source else []

    shutil.copytree(source, target, ignore=ignored)
    if sha256_tree(target) != runner_source_sha256():
        raise InfrastructureError(
            "the runner's source changed while replay-parity ran", where=str(source), hint="run again"
        )
