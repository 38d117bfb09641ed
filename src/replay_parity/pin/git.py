"""Git revisions: a mirror of our own, immutable ids, exported trees; the user's checkout is never touched (rule 3)."""

from __future__ import annotations

import re
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from replay_parity.campaign.models import GitSource
from replay_parity.errors import InfrastructureError, ProcessError, RevisionError
from replay_parity.pin.git_command import Git
from replay_parity.pin.models import GitRevision
from replay_parity.system.files import private_folder, remove_tree, sha256_bytes, storage_errors, walk_sorted

AskedAs = Literal["commit", "short commit", "branch", "tag", "HEAD"]

_FULL_ID = re.compile(r"^(?:[0-9a-f]{40}|[0-9a-f]{64})$")
_SHORT_ID = re.compile(r"^[0-9a-f]{7,39}$")
_SAFE_NAME = re.compile(r"^[A-Za-z0-9_][A-Za-z0-9_./+@-]{0,254}$")
_URL = re.compile(r"^(?:https|ssh|file)://|^[A-Za-z0-9_.-]+@[A-Za-z0-9_.-]+:")
_DAMAGE = re.compile(r"corrupt|is empty|unable to read|missing blob|bad object|inflate|does not match", re.IGNORECASE)
_OTHER_URL = re.compile(r"^[A-Za-z][A-Za-z0-9+.-]*:")


@dataclass(frozen=True)
class Repository:
    """A place to fetch from: `url` is what git is given, `folder` the local repository or None."""

    url: str
    folder: Path | None


def locate(source: GitSource, *, base: Path) -> Repository:
    """A clone URL, or a local folder relative to `base` (the campaign file's folder); RevisionError otherwise."""
    if _URL.match(source.git):
        return Repository(url=source.git, folder=None)
    if _OTHER_URL.match(source.git):
        raise RevisionError(f"'{source.git}' is not fetched from; use https, ssh, file or a local folder")
    folder = (base / Path(source.git).expanduser()).resolve()
    if not folder.is_dir():
        raise RevisionError(f"there is no git repository at '{source.git}' (looked at {folder})")
    return Repository(url=str(folder), folder=folder)


class Mirror:
    """A bare mirror in the cache; only we write to it, work trees are exported from it."""

    def __init__(self, repository: Repository, *, cache: Path, environment: Mapping[str, str]) -> None:
        self._repository = repository
        root = private_folder(cache / "git" / sha256_bytes(repository.url.encode())[:24])
        self._scratch = root
        self.path = root / "mirror.git"
        self._git = Git(scratch=root, environment=environment, trusted=repository.folder)
        self._fetched = False

    def resolve(self, source: GitSource) -> GitRevision:
        """Resolve a name to a commit and its tree, fetching when needed.

        Raises RevisionError when the name is unknown or ambiguous, or when a local checkout is dirty.
        """
        name = source.revision
        if not _SAFE_NAME.match(name):
            raise RevisionError(f"'{name}' is not a name of a revision")
        self._refuse_dirty(source.core)
        self._prepare()
        asked_as, commit = self._find(name)
        tree = self._git.demand("rev-parse", "--verify", f"{commit}^{{tree}}", cwd=self.path).text
        if self._git.call("cat-file", "-e", f"{commit}:{source.core}/Cargo.toml", cwd=self.path).returncode != 0:
            raise RevisionError(
                f"commit {commit} of {self._repository.url} has no crate at '{source.core}'",
                hint="set 'core' to the folder of the engine crate",
            )
        return GitRevision(
            repository=self._repository.url,
            asked=name,
            asked_as=asked_as,
            commit=commit,
            tree=tree,
            core=source.core,
        )

    def ensure(self, commit: str) -> None:
        """Make sure that a commit is in the mirror; RevisionError when the repository does not have it."""
        self._prepare()
        if not self._has(commit):
            self._fetch_commit(commit)
        if not self._has(commit):
            raise RevisionError(f"{self._repository.url} has no commit {commit}")

    def is_ancestor(self, baseline: str, candidate: str) -> bool:
        """Whether `baseline` can be reached from `candidate`; both must be in the mirror."""
        output = self._git.call("merge-base", "--is-ancestor", baseline, candidate, cwd=self.path)
        if output.returncode in {0, 1}:
            return output.returncode == 0
        raise InfrastructureError(f"git cannot compare {baseline} with {candidate}: {output.error}")

    def adopt(self, other: Mirror, commit: str) -> None:
        """Bring a commit of another mirror into this one, for an ancestry that crosses a fork."""
        if other.path != self.path and not self._has(commit):
            self._fetch_from(str(other.path), commit)

    def export(self, commit: str, target: Path) -> None:
        """Write the commit's files to the empty folder `target`: a detached work tree without a link to the mirror."""
        try:
            self._export(commit, target)
        except ProcessError as error:
            if not _DAMAGE.search(error.tail):
                raise
            remove_tree(target)
            self._renew()
            self.ensure(commit)
            self._export(commit, target)
        _refuse_escaping_links(target, commit)

    def _export(self, commit: str, target: Path) -> None:
        with storage_errors("export the revision", target):
            target.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix="index-", dir=self._scratch) as scratch:
            extra = {"GIT_INDEX_FILE": str(Path(scratch) / "index")}
            self._git.demand("read-tree", commit, cwd=self.path, extra=extra)
            # A bare repository refuses checkout-index without being told of a work tree.
            extra |= {"GIT_DIR": str(self.path), "GIT_WORK_TREE": str(target)}
            self._git.demand("checkout-index", "--all", "--force", cwd=target, extra=extra)

    def _renew(self) -> None:
        """Forget a mirror whose objects are damaged; the repository still has them."""
        remove_tree(self.path)
        self._fetched = False
        self._prepare()

    def _find(self, name: str) -> tuple[AskedAs, str]:
        if _FULL_ID.match(name):
            self.ensure(name)
            return "commit", self._commit_of(name) or name
        self._fetch()
        found: dict[AskedAs, str] = {}
        refs: tuple[tuple[AskedAs, str], ...] = (("branch", f"refs/heads/{name}"), ("tag", f"refs/tags/{name}"))
        if name == "HEAD":
            refs = (("HEAD", "refs/parity/HEAD"),)
        for kind, ref in refs:
            commit = self._commit_of(ref)
            if commit is not None:
                found[kind] = commit
        if not found and _SHORT_ID.match(name):
            found["short commit"] = self._short(name)
        if not found:
            raise RevisionError(f"{self._repository.url} has no commit, branch or tag '{name}'")
        if len(set(found.values())) > 1:
            raise RevisionError(
                f"'{name}' is a branch and a tag with different commits", hint="give the full commit id"
            )
        return next(iter(found.items()))

    def _short(self, name: str) -> str:
        commit = self._commit_of(name)
        if commit is None:
            raise RevisionError(
                f"short id '{name}' does not name exactly one commit of {self._repository.url}",
                hint="give the full commit id",
            )
        return commit

    def _commit_of(self, name: str) -> str | None:
        output = self._git.call(
            "rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}", cwd=self.path
        )
        # git 2.39 echoes the option marker; the id is the last word.
        return output.text.split()[-1] if output.returncode == 0 else None

    def _prepare(self) -> None:
        if (self.path / "HEAD").exists():
            return
        fresh = Path(tempfile.mkdtemp(prefix="new-", dir=self._scratch))
        self._git.demand("init", "--quiet", "--bare", str(fresh), cwd=self._scratch)
        try:
            fresh.rename(self.path)
        except OSError:
            # Another run of ours was faster; its mirror is as good.
            shutil.rmtree(fresh, ignore_errors=True)

    def _fetch(self) -> None:
        if self._fetched:
            return
        self._fetch_from(
            self._repository.url,
            "+refs/heads/*:refs/heads/*",
            "+refs/tags/*:refs/tags/*",
            "+HEAD:refs/parity/HEAD",
        )
        self._fetched = True

    def _fetch_commit(self, commit: str) -> None:
        try:
            self._git.demand(
                "fetch", "--quiet", "--no-tags", "--no-write-fetch-head", self._repository.url, commit, cwd=self.path
            )
        except ProcessError:
            # Servers may refuse a commit that no branch names; the branches may hold it all the same.
            self._fetch()

    def _fetch_from(self, url: str, *specs: str, again: bool = True) -> None:
        try:
            self._git.demand("fetch", "--quiet", "--no-tags", "--no-write-fetch-head", url, *specs, cwd=self.path)
        except ProcessError as error:
            if again and _DAMAGE.search(error.tail):
                self._renew()
                self._fetch_from(url, *specs, again=False)
                return
            if "does not appear to be a git repository" in error.tail or "not a git repository" in error.tail:
                raise RevisionError(f"{url} is not a git repository") from error
            raise InfrastructureError(
                f"cannot fetch from {url}: {error.tail.splitlines()[-1] if error.tail else 'git printed nothing'}",
                hint="check the address, the network and the access rights, then run again",
            ) from error

    def _has(self, commit: str) -> bool:
        return self._git.call("cat-file", "-e", f"{commit}^{{commit}}", cwd=self.path).returncode == 0

    def _refuse_dirty(self, core: str) -> None:
        folder = self._repository.folder
        if folder is None:
            return
        inside = self._git.call("rev-parse", "--is-inside-work-tree", cwd=folder)
        if inside.returncode != 0:
            raise RevisionError(f"{folder} is not a git repository")
        if inside.text != "true":
            return
        status = self._git.demand("status", "--porcelain=v1", "-z", "--untracked-files=all", cwd=folder)
        entries = [entry for entry in status.out.decode("utf-8", "replace").split("\0") if entry]
        # Untracked files count only where the engine is compiled from.
        dirty = [entry for entry in entries if not entry.startswith("?? ") or entry[3:].startswith(f"{core}/")]
        if dirty:
            raise RevisionError(
                f"the checkout {folder} has {len(dirty)} uncommitted change(s), the first in '{dirty[0][3:]}'; "
                "a dirty tree cannot be pinned",
                hint="commit or stash the changes",
            )


def _refuse_escaping_links(root: Path, commit: str) -> None:
    """A link that leaves the checkout would compile files that the commit does not hold."""
    resolved = root.resolve()
    for path in walk_sorted(root):
        if path.is_symlink() and not path.resolve().is_relative_to(resolved):
            raise RevisionError(
                f"commit {commit} holds a symbolic link that leaves the checkout: '{path.relative_to(root)}'"
            )
