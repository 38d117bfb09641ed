"""One folder of a commit, read from git objects: its files written out, its changes listed (rule 20).

A repository's policy comes this way. The objects are somebody else's, so only regular files with plain names count, up
to a cap; anything else is refused before it is written.
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from replay_parity.errors import InfrastructureError, RevisionError
from replay_parity.pin.git_mirror import BareMirror
from replay_parity.pin.git_objects import entry_of, tree_of, verified, verify_folder
from replay_parity.system.files import private_folder, remove_tree

Change = Literal["added", "changed", "removed"]

FILES_CAP = 10_000
BYTES_CAP = 64 << 20

_CHANGES: dict[str, Change] = {"A": "added", "D": "removed", "M": "changed", "T": "changed"}
_REGULAR = frozenset({b"100644", b"100755"})
_KINDS = {b"120000": "a symbolic link", b"160000": "a submodule"}
_NAME_BYTES = 255
_PATH_BYTES = 1024


def export_folder(mirror: BareMirror, commit: str, folder: str, target: Path) -> tuple[str, ...]:
    """Write the files of `folder` of a commit that is in the mirror to `target`, proven by the commit's id.

    Returns their sorted names below the folder, none when the commit has no such folder; RevisionError for what is not
    a regular file with a plain name and for more than `FILES_CAP` files or `BYTES_CAP` bytes.
    """
    where = f"'{_plain(folder)}' of commit {commit}"
    remove_tree(target)
    private_folder(target)
    tree = _tree_at(mirror, commit, folder)
    if tree is None:
        return ()
    listed = mirror.git.demand("ls-tree", "-r", "-z", "-l", "--full-tree", tree, cwd=mirror.path).out
    entries = [entry for entry in listed.split(b"\0") if entry]
    if len(entries) > FILES_CAP:
        raise RevisionError(f"{where} holds {len(entries):,} files, at most {FILES_CAP:,} are read")
    names, total = [], 0
    for entry in entries:
        words, _, name = entry.partition(b"\t")
        mode, _, _, size = words.split()
        names.append(_safe(name, where))
        if mode not in _REGULAR:
            kind = _KINDS.get(mode, f"of mode {mode.decode('ascii', 'replace')}")
            raise RevisionError(f"{where} holds '{names[-1]}', which is {kind}; only regular files are read")
        total += int(size)
    if total > BYTES_CAP:
        raise RevisionError(f"{where} holds {total:,} bytes, at most {BYTES_CAP:,} are read")
    mirror.write_files(tree, target)
    verify_folder(target, tree=tree)
    return tuple(sorted(names))


def changed_files(mirror: BareMirror, left: str, right: str, folder: str) -> list[tuple[str, Change]]:
    """Paths below `folder` that differ between two commits of the mirror, from the repository's top, sorted."""
    arguments = ["-r", "-z", "--raw", "--no-abbrev", "--no-renames", "--no-ext-diff", "--no-textconv"]
    output = mirror.git.demand(
        "diff-tree",
        *arguments,
        "--ignore-submodules=none",
        left,
        right,
        "--",
        _plain(folder),
        cwd=mirror.path,
        extra={"GIT_LITERAL_PATHSPECS": "1"},
    )
    fields = output.out.split(b"\0")[:-1]
    if len(fields) > 2 * FILES_CAP:
        raise RevisionError(f"{len(fields) // 2:,} files of '{folder}' differ, at most {FILES_CAP:,} are listed")
    found: list[tuple[str, Change]] = []
    for words, name in zip(fields[::2], fields[1::2], strict=True):
        letter = words.decode("ascii", "replace").split()[-1]
        if letter not in _CHANGES:
            raise InfrastructureError(f"git lists a change of an unknown kind, '{letter}'")
        found.append((_safe(name, f"the change from {left} to {right}"), _CHANGES[letter]))
    return sorted(found)


def _tree_at(mirror: BareMirror, commit: str, folder: str) -> str | None:
    """Id of the folder's tree, each step proven by its id; None when the commit has nothing there."""

    def stored(kind: str, name: str) -> bytes:
        return verified(kind.encode(), mirror.git.demand("cat-file", kind, name, cwd=mirror.path).out, name=name)

    tree = tree_of(stored("commit", commit))
    if tree is None:
        raise InfrastructureError(f"commit {commit} names no tree")
    for part in folder.split("/"):
        entry = entry_of(stored("tree", tree), part.encode(), like=tree)
        if entry is None:
            return None
        mode, tree = entry
        if mode != b"40000":
            raise RevisionError(f"'{folder}' of commit {commit} is not a folder: '{part}' is something else")
    return tree


def _plain(folder: str) -> str:
    """The folder when its name is one that git and the file system read alike; RevisionError otherwise."""
    if not _is_plain(folder):
        raise RevisionError(f"{folder!r} is not a plain folder inside a repository")
    return folder


def _safe(name: bytes, where: str) -> str:
    text = name.decode("utf-8", "surrogateescape")
    if not _is_plain(text):
        raise RevisionError(f"{where} holds a file whose name is not plain: {text!a}")
    return text


def _is_plain(path: str) -> bool:
    """No control characters, backslashes, bytes outside UTF-8, options, or parts that lead elsewhere."""
    parts = path.split("/")
    elsewhere = any(part in {"", ".", ".."} or part.startswith("-") or part.lower() == ".git" for part in parts)
    if elsewhere or not path.isprintable() or "\\" in path:
        return False
    return len(path.encode()) <= _PATH_BYTES and all(len(part.encode()) <= _NAME_BYTES for part in parts)
