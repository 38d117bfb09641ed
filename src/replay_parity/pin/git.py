"""Git revisions: names to immutable ids, exported trees; the user's checkout is never touched (rule 3)."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Literal, TypeVar

from replay_parity.campaign.sources import GitSource
from replay_parity.errors import RevisionError
from replay_parity.pin import git_folder, git_history
from replay_parity.pin.git_folder import Change
from replay_parity.pin.git_mirror import HEAD_REF, ORIGIN_REFS, BareMirror
from replay_parity.pin.git_objects import verify_checkout
from replay_parity.pin.git_place import Repository, refuse_dirty
from replay_parity.pin.models import GitRevision
from replay_parity.system.files import remove_tree, storage_errors, walk_sorted

_T = TypeVar("_T")

AskedAs = Literal["commit", "short commit", "branch", "tag", "HEAD"]

_FULL_ID = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_SHORT_ID = re.compile(r"[0-9a-f]{7,39}")
_SAFE_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_./+@-]{0,254}")


class Mirror:
    """Revisions of one repository, by way of a bare mirror in the cache that only we write to."""

    def __init__(self, repository: Repository, *, cache: Path, environment: Mapping[str, str]) -> None:
        self._repository = repository
        self._bare = BareMirror(repository, cache=cache, environment=environment)
        self._git = self._bare.git

    @property
    def path(self) -> Path:
        """The bare repository."""
        return self._bare.path

    def resolve(self, source: GitSource) -> GitRevision:
        """Resolve a name to a commit and its tree, fetching when needed.

        Raises RevisionError when the name is unknown or ambiguous, or when a local checkout is dirty.
        """
        if not _SAFE_NAME.fullmatch(source.revision):
            raise RevisionError(f"'{source.revision}' is not a name of a revision")
        if self._repository.folder is not None:
            refuse_dirty(self._git, self._repository.folder, core=source.core)
        return self._bare.healing(lambda: self._resolve(source))

    def ensure(self, commit: str) -> None:
        """Make sure that a commit is in the mirror; RevisionError when the repository does not have it."""
        self._bare.healing(lambda: self._ensure(commit))

    def is_ancestor(self, baseline: str, candidate: str) -> bool:
        """Whether `baseline` can be reached from `candidate`; both must be in the mirror.

        Raises RevisionError when the history is cut off before that is known.
        """
        return git_history.is_ancestor(self._bare, baseline, candidate)

    def merge_base(self, left: str, right: str) -> str:
        """The commit where two histories parted: git's best common ancestor, the first that `git merge-base` prints.

        Full commit ids. Raises RevisionError for a commit that is not there, when there is no common ancestor, and
        when a cut-off history does not prove which one is the best.
        """
        return self._with((left, right), lambda: git_history.merge_base(self._bare, left, right))

    def export_folder(self, commit: str, folder: str, target: Path) -> tuple[str, ...]:
        """Write the files of one folder of a commit to the private folder `target`; returns their names below it.

        None, and an empty `target`, when the commit has no such folder. The files are proven to be the commit's.
        Raises RevisionError for anything but regular files with plain names, or more than the caps of git_folder.py.
        """
        return self._with((commit,), lambda: git_folder.export_folder(self._bare, commit, folder, target), blind=True)

    def changed_files(self, left: str, right: str, folder: str) -> list[tuple[str, Change]]:
        """What `right` adds, changes and removes below a folder of `left`: paths from the repository's top, sorted."""
        return self._with((left, right), lambda: git_folder.changed_files(self._bare, left, right, folder))

    def adopt(self, other: Mirror, commit: str) -> None:
        """Bring a commit of another mirror into this one, for an ancestry that crosses a fork."""
        if other.path != self.path and not self._bare.has(commit):
            self._bare.adopt(str(other.path), commit)

    def export(self, commit: str, target: Path) -> None:
        """Write the commit's files to the folder `target`, as they are stored, without a link to the mirror.

        The files are proven to be those that the commit's id names. Raises RevisionError for a commit that holds a
        link out of its own tree.
        """
        self._bare.healing(lambda: self._export(commit, target), blind=True)
        _refuse_escaping_links(target, commit)

    def _with(self, commits: tuple[str, ...], work: Callable[[], _T], *, blind: bool = False) -> _T:
        """Do something with commits of the mirror, brought first when they are not there."""
        for commit in commits:
            if not _FULL_ID.fullmatch(commit):
                raise RevisionError(f"{commit!r} is not a full commit id")

        def ready() -> _T:
            for commit in commits:
                self._ensure(commit)
            return work()

        return self._bare.healing(ready, blind=blind)

    def _resolve(self, source: GitSource) -> GitRevision:
        self._bare.prepare()
        asked_as, commit = self._find(source.revision)
        tree = self._git.demand("rev-parse", "--verify", f"{commit}^{{tree}}", cwd=self.path).text
        if self._git.call("cat-file", "-e", f"{commit}:{source.core}/Cargo.toml", cwd=self.path).returncode != 0:
            raise RevisionError(
                f"commit {commit} of {self._repository.shown} has no crate at '{source.core}'",
                hint="set 'core' to the folder of the engine crate",
            )
        return GitRevision(
            repository=self._repository.url,
            asked=source.revision,
            asked_as=asked_as,
            commit=commit,
            tree=tree,
            core=source.core,
        )

    def _ensure(self, commit: str) -> None:
        self._bare.prepare()
        if not self._bare.has(commit):
            self._bare.fetch_commit(commit)
        if not self._bare.has(commit):
            hint = self._repository.deepen if self._bare.is_source_shallow else None
            raise RevisionError(f"{self._repository.shown} has no commit {commit}", hint=hint)

    def _export(self, commit: str, target: Path) -> None:
        self._ensure(commit)
        remove_tree(target)
        with storage_errors("export the revision", target):
            target.mkdir(parents=True)
        staged = self._bare.write_files(commit, target)
        entries = (entry.partition(b"\t") for entry in staged.split(b"\0") if entry.startswith(b"160000 "))
        verify_checkout(
            target,
            commit=commit,
            commit_object=self._git.demand("cat-file", "commit", commit, cwd=self.path).out,
            gitlinks={path.decode("utf-8", "surrogateescape"): words.split()[1].decode() for words, _, path in entries},
        )

    def _find(self, name: str) -> tuple[AskedAs, str]:
        if _FULL_ID.fullmatch(name.lower()):
            self._ensure(name.lower())
            return "commit", self._bare.commit_of(name.lower()) or name.lower()
        self._bare.fetch()
        # A clone's own branches only count where the address has none of that name.
        refs: list[tuple[AskedAs, str]] = [("branch", f"refs/heads/{name}"), ("tag", f"refs/tags/{name}")]
        if self._repository.checkout is not None:
            refs.insert(0, ("branch", f"{ORIGIN_REFS}/{name}"))
        if name == "HEAD":
            refs = [("HEAD", HEAD_REF)]
        found: dict[AskedAs, str] = {}
        for kind, ref in refs:
            commit = None if kind in found else self._bare.commit_of(ref)
            if commit is not None:
                found[kind] = commit
        if not found and _SHORT_ID.fullmatch(name.lower()):
            found["short commit"] = self._short(name.lower())
        if not found:
            hint = self._repository.deepen if self._bare.is_source_shallow else None
            raise RevisionError(f"{self._repository.shown} has no commit, branch or tag '{name}'", hint=hint)
        if len(set(found.values())) > 1:
            raise RevisionError(
                f"'{name}' is a branch and a tag with different commits", hint="give the full commit id"
            )
        return next(iter(found.items()))

    def _short(self, name: str) -> str:
        commit = self._bare.commit_of(name)
        if commit is None:
            raise RevisionError(
                f"short id '{name}' does not name exactly one commit of {self._repository.shown}",
                hint="give the full commit id",
            )
        return commit


def _refuse_escaping_links(root: Path, commit: str) -> None:
    """A link that leaves the checkout would compile files that the commit does not hold."""
    resolved = root.resolve()
    for path in walk_sorted(root):
        if path.is_symlink() and not _stays_inside(path, resolved):
            raise RevisionError(
                f"commit {commit} holds a symbolic link that leaves the checkout: '{path.relative_to(root)}'"
            )


def _stays_inside(link: Path, root: Path) -> bool:
    try:
        return not link.readlink().is_absolute() and link.resolve().is_relative_to(root)
    except (OSError, RuntimeError):
        return False  # a circle leads nowhere
