"""`corpus slice`: a slice of any trace as a file of its own, and the corpus file that names it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError

from replay_parity.campaign.corpus_file import Corpus
from replay_parity.corpus.cut import Cut, Wanted, cut
from replay_parity.corpus.provide import file_lines
from replay_parity.errors import BadInputError
from replay_parity.system.files import open_regular, write_whole

_UNKNOWN_COMMIT = "0" * 40
_FILL_IN = "fill-in"
_TRACE_CAP = 1 << 40


@dataclass(frozen=True)
class Origin:
    """Where the whole trace is published; None is left for a person to fill in."""

    name: str | None = None
    repository: str | None = None
    commit: str | None = None
    path: str | None = None
    licence: str | None = None


def slice_trace(file: Path, wanted: Wanted, *, output: Path) -> Cut:
    """Write the slice; BadInputError or CorpusError says why not."""
    with open_regular(file, cap=_TRACE_CAP):
        pass
    if output.exists() and not output.is_symlink() and output.samefile(file):
        raise BadInputError("is the trace itself", where=str(output), hint="choose another --output")
    return cut(file_lines(file), wanted, output=output, where=str(file))


def proposed(found: Cut, origin: Origin, *, trace: Path, output: Path) -> bytes:
    """A corpus file for the slice; BadInputError when what was given of its origin cannot stand in one."""
    name = origin.name or output.stem.lower()
    wanted = found.wanted
    document: dict[str, Any] = {
        "schema_version": 1,
        "name": name,
        "title": f"Rows {wanted.start + 1} to {wanted.start + wanted.rows} of {trace.name}",
        "format": wanted.format,
        "block_size": wanted.block_size,
        "source": {
            "kind": "upstream",
            "repository": origin.repository or _FILL_IN,
            "commit": origin.commit or _UNKNOWN_COMMIT,
            "path": origin.path or trace.name,
            "licence": origin.licence or _FILL_IN,
            "full_rows": found.scan.rows,
            "full_sha256": found.scan.sha256,
        },
        "slice": {"start": wanted.start, "rows": wanted.rows, "sha256": found.scan.slice_sha256},
    }
    try:
        Corpus.model_validate(document)
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(map(str, first["loc"]))
        raise BadInputError(
            f"the corpus file would be wrong: '{key}' {first['msg']}", hint="correct --name and the like"
        ) from None
    head = "# Proposed by `replay-parity corpus slice`.\n"
    missing = [key for key in ("repository", "commit", "path", "licence") if getattr(origin, key) is None]
    if missing:
        head += f"# Fill in where the trace is published: {', '.join(missing)}.\n"
    return head.encode() + yaml.safe_dump(document, sort_keys=False, allow_unicode=True, width=120).encode()


def write_proposed(path: Path, data: bytes) -> None:
    """Keep the corpus file; BadInputError when another one is there."""
    if path.is_symlink() or path.exists():
        raise BadInputError("is there already", where=str(path), hint="remove it or choose another --corpus-file")
    write_whole(path, data)
