"""The determinism patch (rule 4): applied identically to both revisions, or the campaign stops."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from replay_parity.campaign.models import Patch
from replay_parity.errors import BadInputError
from replay_parity.pin.git_command import Git
from replay_parity.system.files import private_folder, read_capped, sha256_bytes

_PATCH_CAP = 4 << 20


def load_patch(patch: Patch, *, base: Path) -> bytes:
    """Bytes of the patch, checked against the campaign's checksum; `base` is the campaign file's folder."""
    path = base / patch.file
    data = read_capped(path, cap=_PATCH_CAP)
    found = sha256_bytes(data)
    if found != patch.sha256:
        raise BadInputError(f"the patch has SHA-256 {found}, the campaign demands {patch.sha256}", where=str(path))
    return data


def apply_patch(path: Path, checkout: Path, *, side: str, cache: Path, environment: Mapping[str, str]) -> None:
    """Apply a patch file to a checkout; BadInputError when it does not fit."""
    git = Git(scratch=private_folder(cache / "git" / "patch"), environment=environment, trusted=None)
    # Without a ceiling git would look for a repository above the checkout and treat paths as its own.
    extra = {"GIT_CEILING_DIRECTORIES": str(checkout.parent)}
    output = git.call("apply", "--whitespace=nowarn", "-p1", str(path), cwd=checkout, extra=extra)
    if output.returncode != 0:
        raise BadInputError(f"the patch does not apply to the {side}: {output.error}", where=str(path))
