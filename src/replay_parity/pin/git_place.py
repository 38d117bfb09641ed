"""The repositories that users name: where they are, and whether a local checkout is clean; they are only read."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from replay_parity.campaign.sources import GitSource
from replay_parity.errors import RevisionError
from replay_parity.pin.git_command import Git

_FETCH_DEPTH = "set 'fetch-depth: 0' where that repository is checked out, so that its whole history is there"
_URL = re.compile(r"^(?:https|ssh|file)://|^[A-Za-z0-9_.-]+@[A-Za-z0-9_.-]+:")
_OTHER_URL = re.compile(r"^[A-Za-z][A-Za-z0-9+.-]*:")
# A status starts no transport, whatever the repository's own configuration names for a missing object.
_NO_TRANSPORT = {"GIT_ALLOW_PROTOCOL": "none"}


@dataclass(frozen=True)
class Repository:
    """A repository: `url` is recorded, `folder` a local one that the user named, `checkout` a clone that stands in.

    From a `folder` or a `checkout` only commits are read. A dirty `folder` is refused, since its user may mean the
    changes too; the work tree of a `checkout` is nobody's word.
    """

    url: str
    folder: Path | None
    checkout: Path | None = None

    @property
    def place(self) -> str:
        """What git fetches from."""
        return self.url if self.checkout is None else str(self.checkout)

    @property
    def shown(self) -> str:
        """How a sentence names it."""
        return self.url if self.checkout is None else f"the checkout {self.checkout} of {self.url}"

    @property
    def deepen(self) -> str:
        """What helps against a history that is cut off."""
        return "fetch the whole history: git fetch --unshallow" if self.checkout is None else _FETCH_DEPTH


def locate(source: GitSource, *, base: Path, checkouts: Mapping[str, Path] | None = None) -> Repository:
    """A clone URL, or a local folder relative to `base` (the campaign file's folder); RevisionError otherwise.

    `checkouts` maps addresses to local clones that hold their objects.
    """
    if _URL.match(source.git):
        return Repository(url=source.git, folder=None, checkout=_checkout_of(source.git, checkouts or {}))
    if _OTHER_URL.match(source.git):
        raise RevisionError(f"'{source.git}' is not fetched from; use https, ssh, file or a local folder")
    try:
        folder = (base / Path(source.git).expanduser()).resolve()
        found = folder.is_dir()
    except (RuntimeError, OSError) as error:
        raise RevisionError(f"there is no git repository at '{source.git}': {error}") from None
    if not found:
        raise RevisionError(f"there is no git repository at '{source.git}' (looked at {folder})")
    return Repository(url=str(folder), folder=folder)


def recorded(url: str, *, checkouts: Mapping[str, Path] | None = None) -> Repository:
    """The repository of a recorded revision; a local one may be gone meanwhile, our mirror holds the commit."""
    if _URL.match(url):
        return Repository(url=url, folder=None, checkout=_checkout_of(url, checkouts or {}))
    return Repository(url=url, folder=Path(url))


def _checkout_of(url: str, checkouts: Mapping[str, Path]) -> Path | None:
    """The clone of an address, however its end is written."""
    known = {_address(address): folder for address, folder in checkouts.items()}
    folder = known.get(_address(url))
    return None if folder is None else folder.resolve()


def _address(url: str) -> str:
    return url.rstrip("/").removesuffix(".git")


def refuse_dirty(git: Git, folder: Path, *, core: str) -> None:
    """Raise RevisionError for a local checkout with uncommitted changes (rule 3); nothing in it is written or run.

    Untracked files count only below `core`, where the engine is compiled from.
    """
    inside = git.call("rev-parse", "--is-inside-work-tree", "--show-cdup", cwd=folder)
    if inside.returncode != 0:
        raise RevisionError(f"{folder} is not a git repository")
    is_inside, _, up = inside.out.decode("utf-8", "replace").strip("\n").partition("\n")
    if is_inside != "true":
        return
    if up:
        raise RevisionError(f"{folder} lies inside a git repository", hint=f"give its top folder, '{up}' from there")
    status = git.demand(
        "status",
        "--porcelain=v1",
        "-z",
        "--untracked-files=all",
        "--ignore-submodules=dirty",
        cwd=folder,
        extra={**_NO_TRANSPORT, **_without_filters(git, folder)},
    )
    entries = [entry for entry in status.out.decode("utf-8", "replace").split("\0") if entry]
    dirty = [entry for entry in entries if not entry.startswith("?? ") or entry[3:].startswith(f"{core}/")]
    if dirty:
        raise RevisionError(
            f"the checkout {folder} has {len(dirty)} uncommitted change(s), the first in '{dirty[0][3:]}'; "
            "a dirty tree cannot be pinned",
            hint="commit or stash the changes",
        )


def _without_filters(git: Git, folder: Path) -> Mapping[str, str]:
    """Configuration that takes the commands out of every filter that the repository's own configuration defines.

    A repository's `.gitattributes` may name any of them, and a status would run it (threat 8).
    """
    listed = git.demand("config", "--list", "--name-only", "-z", cwd=folder, extra=_NO_TRANSPORT)
    keys = {key for key in listed.out.decode("utf-8", "surrogateescape").split("\0") if key.startswith("filter.")}
    drivers = sorted({key.rpartition(".")[0] for key in keys})
    pairs = [
        (f"{driver}.{name}", value)
        for driver in drivers
        for name, value in (("clean", ""), ("smudge", ""), ("process", ""), ("required", "false"))
    ]
    numbered = {
        f"GIT_CONFIG_{word}_{n}": text
        for n, pair in enumerate(pairs)
        for word, text in zip(("KEY", "VALUE"), pair, strict=True)
    }
    return {"GIT_CONFIG_COUNT": str(len(pairs)), **numbered}
