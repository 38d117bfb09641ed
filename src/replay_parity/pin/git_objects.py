"""Proof that a checkout is what its commit id names: the id is recomputed from the files (threat 18).

Git itself does not check a blob's hash when it writes it to a work tree, so a mirror that somebody edited would give
other sources under the same id. The format of commit, tree and blob objects is git's own.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Mapping
from pathlib import Path

from replay_parity.errors import InfrastructureError

_SHA256_DIGITS = 64


def verify_checkout(root: Path, *, commit: str, commit_object: bytes, gitlinks: Mapping[str, str]) -> None:
    """Raise InfrastructureError unless the files below `root` are those of the commit.

    `commit_object` is the commit as git stores it; `gitlinks` maps the path of each submodule, whose folder is empty
    here, to the commit that the tree names for it.
    """
    tree = tree_of(commit_object) if object_id(b"commit", commit_object, like=commit) == commit else None
    if tree is None or _tree_id(root, "", gitlinks, like=commit) != tree:
        raise _not_the_ones(f"commit {commit}")


def verify_folder(root: Path, *, tree: str) -> None:
    """Raise InfrastructureError unless the files below `root` are those of the tree object of this id."""
    if _tree_id(root, "", {}, like=tree) != tree:
        raise _not_the_ones(f"tree {tree}")


def verified(kind: bytes, data: bytes, *, name: str) -> bytes:
    """The object `data` when its id is `name`; InfrastructureError otherwise."""
    if object_id(kind, data, like=name) != name:
        raise _not_the_ones(f"{kind.decode()} {name}")
    return data


def entry_of(tree_object: bytes, name: bytes, *, like: str) -> tuple[bytes, str] | None:
    """Mode and id of one entry of a tree object, a list of mode, name, NUL and raw id; None when it has none."""
    size, start = len(like) // 2, 0
    while start < len(tree_object):
        end = tree_object.find(b"\0", start)
        if end < 0:
            return None
        mode, _, entry = tree_object[start:end].partition(b" ")
        start = end + 1 + size
        if entry == name:
            return mode, tree_object[end + 1 : start].hex()
    return None


def tree_of(commit_object: bytes) -> str | None:
    """The tree that a commit names in its first line; None when it is no commit."""
    word, _, rest = commit_object.partition(b"\n")[0].partition(b" ")
    return rest.decode("ascii", "replace") if word == b"tree" else None


def object_id(kind: bytes, data: bytes, *, like: str) -> str:
    """Git's id of an object, with the hash of the id `like`: SHA-1, or SHA-256 in a repository of that format."""
    return _new(like, kind + b" %d\0" % len(data) + data).hexdigest()


def _not_the_ones(what: str) -> InfrastructureError:
    return InfrastructureError(
        f"the files that git gave for {what} are not the ones that this id names",
        hint="our mirror of the repository was changed; it is made anew",
    )


def _new(like: str, data: bytes) -> hashlib._Hash:
    return hashlib.sha256(data) if len(like) == _SHA256_DIGITS else hashlib.sha1(data, usedforsecurity=False)


def _tree_id(folder: Path, prefix: str, gitlinks: Mapping[str, str], *, like: str) -> str | None:
    """Id of the folder's tree; None when it holds nothing that git keeps."""
    entries: list[tuple[bytes, bytes]] = []
    for entry in os.scandir(folder):
        path = f"{prefix}{entry.name}"
        name = os.fsencode(entry.name)
        if path in gitlinks:
            found = (b"160000", gitlinks[path])
        elif entry.is_dir(follow_symlinks=False):
            subtree = _tree_id(Path(entry.path), f"{path}/", gitlinks, like=like)
            if subtree is None:
                continue
            found = (b"40000", subtree)
        else:
            found = _blob(entry, like=like)
        # Git sorts a folder as if its name ended with a slash.
        order = name + b"/" if found[0] == b"40000" else name
        entries.append((order, found[0] + b" " + name + b"\0" + bytes.fromhex(found[1])))
    if not entries:
        return None
    return object_id(b"tree", b"".join(data for _, data in sorted(entries)), like=like)


def _blob(entry: os.DirEntry[str], *, like: str) -> tuple[bytes, str]:
    """Mode and id of a file or a link."""
    if entry.is_symlink():
        return b"120000", object_id(b"blob", os.fsencode(os.readlink(entry.path)), like=like)  # noqa: PTH115 (raw text)
    run = entry.stat(follow_symlinks=False).st_mode & stat.S_IXUSR
    with Path(entry.path).open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        digest = _new(like, b"blob %d\0" % size)
        while chunk := file.read(1 << 20):
            digest.update(chunk)
    return b"100755" if run else b"100644", digest.hexdigest()
