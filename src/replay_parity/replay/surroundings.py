"""What two repetitions of a revision must not agree on, because it must not matter (rule 12).

Repetition k of baseline and candidate share the same surroundings in kind: folders of equal form and length, the same
arguments, zone, language, umask and environment size. Nothing in them tells a binary which side it is. The environment
is built from nothing, so no token and no `GITHUB_*` can reach a revision's code (threat 11).
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from replay_parity.system.files import storage_errors

_NAME_BYTES = 8


@dataclass(frozen=True)
class _Kind:
    """What a repetition varies; `work` is the working directory below the base, `padding` a length in bytes."""

    work: PurePosixPath
    zone: str
    language: str
    umask: int
    padding: int


_KINDS = (
    _Kind(PurePosixPath("work"), "UTC", "C", 0o022, 16),
    _Kind(PurePosixPath("deep/work"), "Asia/Kathmandu", "de_DE.UTF-8", 0o077, 4099),
)


@dataclass(frozen=True)
class Surroundings:
    """Folders and environment of one process, all below `base`: `work` is its working directory, `report` is empty.

    `report_argument` is the report's path as seen from `work`: the same words for every process of a repetition.
    """

    base: Path
    work: Path
    report: Path
    report_argument: str
    environment: dict[str, str]
    umask: int


def make_surroundings(root: Path, *, repetition: int) -> Surroundings:
    """Make private folders below `root` for repetition 1 or 2; their names say nothing and have one length."""
    kind = _KINDS[repetition - 1]
    base = root / secrets.token_hex(_NAME_BYTES)
    work, home, report = base / kind.work, base / "home", base / "report"
    with storage_errors("make the folders of a repetition", base):
        for folder in (base, *reversed(work.relative_to(base).parents[:-1]), work, home, report):
            (base / folder).mkdir(mode=0o700)
    environment = {
        "PATH": "/usr/bin:/bin",
        "HOME": str(home),
        "TMPDIR": str(work),
        "TZ": kind.zone,
        "LANG": kind.language,
        "LC_ALL": kind.language,
        "PADDING": "x" * kind.padding,
    }
    return Surroundings(
        base=base,
        work=work,
        report=report,
        report_argument="/".join([*(".." for _ in kind.work.parts), "report"]),
        environment=environment,
        umask=kind.umask,
    )
