"""What two repetitions of a revision must not agree on, because it must not matter (rule 12).

Repetition k of baseline and candidate share the same surroundings in kind: folders of equal form and length, the same
zone, language, umask and environment size. Nothing in them tells a binary which side it is. The environment is built
from nothing, so no token and no `GITHUB_*` can reach a revision's code (threat 11).
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from pathlib import Path

from replay_parity.system.files import storage_errors

_KINDS = (
    # zone, language, umask, length of the padding variable
    ("UTC", "C", 0o022, 16),
    ("Asia/Kathmandu", "de_DE.UTF-8", 0o077, 4099),
)
_NAME_BYTES = 8


@dataclass(frozen=True)
class Surroundings:
    """Folders and environment of one process; `work` is its working directory, `report` its empty output folder."""

    work: Path
    report: Path
    environment: dict[str, str]
    umask: int


def make_surroundings(root: Path, *, repetition: int) -> Surroundings:
    """Make private folders below `root` for repetition 1 or 2; their names say nothing and have one length."""
    zone, language, umask, padding = _KINDS[repetition - 1]
    base = root / secrets.token_hex(_NAME_BYTES)
    # The second repetition works one folder deeper.
    work = base / "work" if repetition == 1 else base / "deep" / "work"
    home, report = base / "home", base / "report"
    with storage_errors("make the folders of a repetition", base):
        for folder in (work, home, report):
            folder.mkdir(parents=True, mode=0o700)
    environment = {
        "PATH": "/usr/bin:/bin",
        "HOME": str(home),
        "TMPDIR": str(work),
        "TZ": zone,
        "LANG": language,
        "LC_ALL": language,
        "PADDING": "x" * padding,
    }
    return Surroundings(work=work, report=report, environment=environment, umask=umask)
