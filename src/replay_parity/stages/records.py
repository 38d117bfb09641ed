"""Canonical records on their own: proof of a file, difference of two files."""

from __future__ import annotations

import gzip
import io
import zlib
from pathlib import Path

from replay_parity.canonical.model import CanonicalRecord
from replay_parity.canonical.proof import MAX_BYTES, prove
from replay_parity.canonical.proof import read_record as read_bytes
from replay_parity.errors import BadInputError
from replay_parity.parity.differences import compare
from replay_parity.parity.differences_model import Differences

_GZIP = b"\x1f\x8b"


def read_record(path: Path) -> CanonicalRecord:
    """Prove a file's form, a gzip copy's too (kept reports are compressed); BadInputError otherwise."""
    data = read_bytes(path)
    return prove(_unpacked(data, path) if data.startswith(_GZIP) else data, where=str(path))


def _unpacked(data: bytes, path: Path) -> bytes:
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(data)) as file:
            # One byte more than the cap, which the proof then refuses: a bomb is never unpacked whole.
            return file.read(MAX_BYTES + 1)
    except (OSError, EOFError, zlib.error) as error:
        raise BadInputError(f"is a damaged gzip file: {error}", where=str(path)) from None


def compare_files(left: Path, right: Path) -> Differences:
    """Compare two files after proving both; CanonicalFormError or BadInputError otherwise."""
    return compare(read_record(left).document, read_record(right).document)
