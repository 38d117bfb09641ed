"""The determinism patch (rule 4): applied identically to both revisions, or the campaign stops."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from replay_parity.campaign.models import Patch
from replay_parity.errors import BadInputError
from replay_parity.pin.git_command import Git, reason
from replay_parity.system.files import private_folder, read_capped, scratch_folder, sha256_bytes, write_whole

_PATCH_CAP = 4 << 20


def load_patch(patch: Patch, *, base: Path) -> bytes:
    """Bytes of the patch, checked against the campaign's checksum; `base` is the campaign file's folder."""
    return read_patch(base / patch.file, sha256=patch.sha256)


def read_patch(path: Path, *, sha256: str) -> bytes:
    """Bytes of a patch file with exactly this checksum; BadInputError otherwise."""
    data = read_capped(path, cap=_PATCH_CAP)
    found = sha256_bytes(data)
    if found != sha256:
        raise BadInputError(f"the patch has SHA-256 {found}, the campaign demands {sha256}", where=str(path))
    return data


def apply_patch(
    path: Path, checkout: Path, *, sha256: str, side: str, cache: Path, environment: Mapping[str, str]
) -> None:
    """Apply a patch file to a checkout; BadInputError when it does not fit or is not the one of the checksum."""
    data = read_patch(path, sha256=sha256)
    root = private_folder(cache / "git" / "patch")
    git = Git(scratch=root, environment=environment, trusted=None)
    with scratch_folder(root, "patch-") as scratch:
        # What was checked is what is applied, on both sides: the user's file may change in between.
        copy = scratch / "applied.patch"
        write_whole(copy, data)
        # Without a ceiling git would look for a repository above the checkout and treat paths as its own.
        extra = {"GIT_CEILING_DIRECTORIES": str(checkout.parent)}
        output = git.call("apply", "--whitespace=nowarn", "-p1", str(copy), cwd=checkout, extra=extra)
    if output.returncode != 0:
        raise BadInputError(f"the patch does not apply to the {side}: {reason(output.error)}", where=str(path))
