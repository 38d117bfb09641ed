"""Canonical records on their own: proof of a file, difference of two files."""

from __future__ import annotations

from pathlib import Path

from replay_parity.canonical.model import CanonicalRecord
from replay_parity.canonical.proof import prove
from replay_parity.canonical.proof import read_record as read_bytes
from replay_parity.parity.differences import compare
from replay_parity.parity.differences_model import Differences


def read_record(path: Path) -> CanonicalRecord:
    """Prove a file's form; CanonicalFormError or BadInputError otherwise."""
    return prove(read_bytes(path), where=str(path))


def compare_files(left: Path, right: Path) -> Differences:
    """Compare two files after proving both; CanonicalFormError or BadInputError otherwise."""
    return compare(read_record(left).document, read_record(right).document)
