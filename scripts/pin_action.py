"""The commit at which our workflows use our own action: show it, move it, or check a tag against it.

A reusable workflow runs in the caller's repository, so it names the action by repository and full commit. A commit
cannot name itself: first the action lands on main, then a second commit pins the first (docs/security.md).

    python3 -I scripts/pin_action.py show
    python3 -I scripts/pin_action.py set COMMIT
    python3 -I scripts/pin_action.py check-tag v1.2.3
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

OWN = "replay-parity/replay-parity"
# What a use of the action reads at the pinned commit (action.yml, scripts/environment.sh).
PARTS = (
    "action.yml",
    "scripts/environment.sh",
    "src",
    "configs",
    "schemas",
    "requirements/run.txt",
    "pyproject.toml",
)
_USE = re.compile(rf"(?P<before>\buses:\s*[\"']?{re.escape(OWN)}@)(?P<pin>[^\s\"'#]*)")
_COMMIT = re.compile(r"[0-9a-f]{40}")
_VERSION = re.compile(r'^__version__ = "([^"]+)"$', re.MULTILINE)


class PinError(Exception):
    """One sentence for the person who runs the script."""


def full_commit(text: str) -> str:
    """`text` when it is a full commit id in lower case; PinError otherwise."""
    if not _COMMIT.fullmatch(text) or not text.strip("0"):
        raise PinError(f"{text!r} is no full commit id: 40 lower-case hexadecimal digits, not all zero")
    return text


def rewrite(text: str, commit: str) -> tuple[str, int]:
    """The text with every pin of our action moved to `commit`, and how many there are.

    PinError for a pin that is no full commit id, so that nothing is moved that nobody understands.
    """
    full_commit(commit)
    for pin in pins(text):
        if not _COMMIT.fullmatch(pin):
            raise PinError(f"'{OWN}@{pin}' is not pinned by a full commit id")
    return _USE.subn(rf"\g<before>{commit}", text)


def pins(text: str) -> list[str]:
    """Everything that stands behind the `@` of a use of our action."""
    return [found["pin"] for found in _USE.finditer(text)]


def workflows(root: Path) -> list[Path]:
    """Files that may use the action."""
    return sorted(path for path in (root / ".github" / "workflows").iterdir() if path.suffix in {".yml", ".yaml"})


def move(root: Path, commit: str) -> int:
    """Move every pin below `root`, all or none; returns how many there are."""
    changed = {path: rewrite(path.read_text("utf-8"), commit) for path in workflows(root)}
    count = sum(found for _, found in changed.values())
    if count == 0:
        raise PinError(f"no workflow uses {OWN}")
    # Everything was understood, and is on the disk, before the first file is put in its place.
    new = {path.with_name(f".{path.name}.new"): (path, text) for path, (text, found) in changed.items() if found}
    try:
        for place, (_, text) in new.items():
            place.write_text(text, "utf-8")
        for place, (path, _) in new.items():
            os.replace(place, path)  # noqa: PTH105 (over a file that exists)
    finally:
        for place in filter(Path.is_file, new):
            place.unlink()
    return count


def pinned(root: Path) -> str:
    """The one commit that all workflows name."""
    found = sorted({pin for path in workflows(root) for pin in pins(path.read_text("utf-8"))})
    if len(found) != 1:
        raise PinError(f"the workflows do not name one commit of {OWN}, but {', '.join(found) or 'none'}")
    return full_commit(found[0])


def check_tag(root: Path, tag: str) -> str:
    """The pinned commit, when `tag` is the version and the action is the same at both; PinError otherwise."""
    version = _VERSION.search((root / "src" / "replay_parity" / "__init__.py").read_text("utf-8"))
    if version is None or tag != f"v{version[1]}":
        raise PinError(f"the tag is {tag!r}, the version is {version[1] if version else 'not to be found'!r}")
    commit = pinned(root)
    _refuse_unknown(root, commit)
    if _git(root, "diff", "--quiet", commit, "HEAD", "--", *PARTS) != 0:
        raise PinError(f"the action changed after the pinned commit {commit}: move the pin, then tag")
    return commit


def _refuse_unknown(root: Path, commit: str) -> None:
    full_commit(commit)
    if _git(root, "merge-base", "--is-ancestor", commit, "HEAD") != 0:
        raise PinError(f"{commit} is no ancestor of what is checked out")
    if _git(root, "cat-file", "-e", f"{commit}:action.yml") != 0:
        raise PinError(f"{commit} holds no action.yml")


def _git(root: Path, *arguments: str) -> int:
    argv = ["git", "-C", str(root), *arguments]
    return subprocess.run(argv, check=False, capture_output=True, timeout=300).returncode


def main(arguments: Sequence[str], root: Path) -> int:
    """Run one command; 0, or 1 with a sentence on standard error."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("show", help="print the pinned commit")
    commands.add_parser("set", help="move every pin").add_argument("commit")
    commands.add_parser("check-tag", help="check a version tag").add_argument("tag")
    given = parser.parse_args(arguments)
    try:
        if given.command == "show":
            told = pinned(root)
        elif given.command == "check-tag":
            told = f"{given.tag} uses the action at {check_tag(root, given.tag)}"
        else:
            _refuse_unknown(root, given.commit)
            told = f"{move(root, given.commit)} uses of {OWN} at {given.commit}"
    except PinError as error:
        sys.stderr.write(f"pin_action: {error}\n")
        return 1
    sys.stdout.write(f"{told}\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:], Path(__file__).resolve().parents[1]))
