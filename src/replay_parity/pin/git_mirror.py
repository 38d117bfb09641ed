"""A bare repository of our own: filled from the user's, locked against other runs, made anew when it is damaged."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TypeVar

from replay_parity.errors import InfrastructureError, ProcessError, RevisionError
from replay_parity.pin.git_command import Git, reason
from replay_parity.pin.git_place import Repository
from replay_parity.system.files import (
    private_folder,
    remove_tree,
    scratch_folder,
    sha256_bytes,
    storage_errors,
    sweep,
    write_whole,
)
from replay_parity.system.locks import host_lock
from replay_parity.system.orphans import end_orphans_in

_T = TypeVar("_T")

HEAD_REF = "refs/parity/HEAD"
# The branches of an address as a clone of it keeps them.
ORIGIN_REFS = "refs/remotes/origin"
_KEPT_REFS = "refs/parity/kept"
_LOCK_WAIT_SECONDS = 3600.0
_SCRATCH_SECONDS = 24 * 3600.0
# Wins over every `.gitattributes` of a commit: files are written as they are stored, nothing is converted or expanded.
_RAW_ATTRIBUTES = b"* !text !eol !crlf -ident -filter !working-tree-encoding\n"
# Git's words for a disk, not for a mirror.
_STORAGE_WORDS = ("No space left on device", "Disk quota exceeded", "Read-only file system", "File too large")


class BareMirror:
    """Objects and names of one repository, in the cache; names follow the repository, commits stay."""

    def __init__(self, repository: Repository, *, cache: Path, environment: Mapping[str, str]) -> None:
        self.repository = repository
        # A clone's names are not the address's: what came from the one never answers for the other.
        name = repository.url if repository.checkout is None else f"{repository.url}\n{repository.checkout}"
        self.scratch = private_folder(cache / "git" / sha256_bytes(name.encode("utf-8", "surrogateescape"))[:24])
        self.path = self.scratch / "mirror.git"
        self.git = Git(scratch=self.scratch, environment=environment, trusted=repository.folder or repository.checkout)
        self._fetched = False
        self._fresh = False

    def commit_of(self, name: str) -> str | None:
        """The one commit that a full or short id or a full name of a reference leads to."""
        output = self.git.call(
            "rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}", cwd=self.path
        )
        # git 2.39 echoes the option marker; the id is the last word.
        return output.text.split()[-1] if output.returncode == 0 else None

    def has(self, commit: str) -> bool:
        """Whether the commit is here."""
        return self.git.call("cat-file", "-e", f"{commit}^{{commit}}", cwd=self.path).returncode == 0

    @property
    def is_shallow(self) -> bool:
        """Whether the history is cut off somewhere."""
        return (self.path / "shallow").is_file()

    @property
    def is_source_shallow(self) -> bool:
        """Whether the local repository that commits come from is cut off; of one elsewhere nothing is known."""
        return self._ask_source("rev-parse", "--is-shallow-repository") == "true"

    def prepare(self) -> None:
        """Make sure that there is a mirror, perhaps an empty one."""
        if not self.path.exists():
            with self._held():
                if not self.path.exists():
                    self._make()

    def fetch(self) -> None:
        """Follow all branches, tags and HEAD, once in the life of this object."""
        if self._fetched:
            return
        kinds = ["refs/heads", "refs/tags", *([ORIGIN_REFS] if self.repository.checkout is not None else [])]
        heads = [f"+{kind}/*:{kind}/*" for kind in kinds]
        with self._held():
            try:
                self._fetch(self.repository.place, *heads, f"+HEAD:{HEAD_REF}", prune=True)
            except InfrastructureError as error:
                # A repository may well have branches and a HEAD that names none of them.
                if "find remote ref HEAD" not in error.message:
                    raise
                self._fetch(self.repository.place, *heads, prune=True)
                self.git.demand("update-ref", "-d", HEAD_REF, cwd=self.path)
        self._fetched = True

    def fetch_commit(self, commit: str) -> None:
        """Bring one commit, or everything when the repository does not give a single one."""
        try:
            self.adopt(self.repository.place, commit)
        except InfrastructureError:
            # Servers may refuse a commit that no branch names; the branches may hold it all the same.
            self.fetch()

    def adopt(self, url: str, commit: str) -> None:
        """Bring one commit from another place."""
        with self._held():
            # Under a name of its own, so that nothing takes it for garbage and a check of the mirror sees it.
            self._fetch(url, f"+{commit}:{_KEPT_REFS}/{commit}", prune=False)

    def write_files(self, tree: str, target: Path) -> bytes:
        """Write the files of a tree or a commit to the folder `target`; returns the index, as `ls-files --stage -z`."""
        with scratch_folder(self.scratch, "index-") as scratch:
            # A bare repository refuses checkout-index without being told of a work tree.
            extra = {
                "GIT_INDEX_FILE": str(scratch / "index"),
                "GIT_DIR": str(self.path),
                "GIT_WORK_TREE": str(target),
            }
            self.git.demand("read-tree", tree, cwd=target, extra=extra)
            self.git.demand("checkout-index", "--all", "--force", cwd=target, extra=extra)
            return self.git.demand("ls-files", "--stage", "-z", cwd=target, extra=extra).out

    def healing(self, work: Callable[[], _T], *, blind: bool = False) -> _T:
        """Do something with the mirror; if that fails and the mirror is damaged, once more with a new one.

        `blind`: git's own check would not see the damage, such as a file whose bytes were exchanged.
        """
        try:
            return work()
        except (RevisionError, InfrastructureError) as error:
            if self._fresh or any(words in error.message for words in _STORAGE_WORDS):
                raise
            if not (blind and isinstance(error, InfrastructureError)) and self._is_whole():
                raise
        with self._held():
            self._make()
        return work()

    @contextlib.contextmanager
    def _held(self) -> Iterator[None]:
        """Keep other runs of ours from writing to the mirror at the same time."""
        with host_lock(self.scratch, "mirror", shared=False, timeout=_LOCK_WAIT_SECONDS):
            yield

    def _make(self) -> None:
        """A new, empty mirror in place of whatever is there; the lock is held."""
        sweep(self.scratch, "new-", older_than=_SCRATCH_SECONDS)
        with scratch_folder(self.scratch, "new-") as fresh:
            self.git.demand("init", "--quiet", "--bare", "--template=", str(fresh), cwd=self.scratch)
            write_whole(fresh / "info" / "attributes", _RAW_ATTRIBUTES)
            remove_tree(self.path)
            with storage_errors("make the mirror", self.path):
                fresh.rename(self.path)
        self._fresh = True
        self._fetched = False

    def _is_whole(self) -> bool:
        try:
            output = self.git.call("fsck", "--connectivity-only", "--no-dangling", "--no-progress", cwd=self.path)
        except InfrastructureError:
            return False
        return output.returncode == 0

    def _fetch(self, url: str, *specs: str, prune: bool) -> None:
        """Fetch, the lock held; `prune`: names that are gone from there go here too."""
        self._release_stale_locks()
        options = ["--quiet", "--no-tags", "--no-write-fetch-head", "--update-shallow"]
        options += ["--prune"] if prune else []
        options += ["--unshallow"] if self.is_shallow else []
        try:
            self.git.demand("fetch", *options, url, *specs, cwd=self.path)
        except ProcessError as error:
            if "does not appear to be a git repository" in error.tail or "not a git repository" in error.tail:
                raise RevisionError(f"{url} is not a git repository") from error
            if url == self.repository.place and self._is_source_partial():
                raise RevisionError(
                    f"{self.repository.shown} is a partial clone: it lacks files of its own commits",
                    hint="clone or check it out without a filter",
                ) from error
            raise InfrastructureError(
                f"cannot fetch from {url}: {reason(error.tail)}",
                hint="check the address, the network and the access rights, then run again",
            ) from error

    def _is_source_partial(self) -> bool:
        return bool(self._ask_source("config", "--get-regexp", r"^remote\..*\.promisor$"))

    def _ask_source(self, *arguments: str) -> str:
        """What git says about the local repository that commits come from; nothing about one elsewhere."""
        folder = self.repository.folder or self.repository.checkout
        return self.git.call(*arguments, cwd=folder).text if folder is not None and folder.is_dir() else ""

    def _release_stale_locks(self) -> None:
        """Git's own lock files in here are left over from a run that was killed: we hold the mirror."""
        stale = [*self.path.glob("*.lock"), *self.path.glob("refs/**/*.lock")]
        if stale:
            end_orphans_in(self.path)
            for lock in stale:
                lock.unlink(missing_ok=True)
