"""The two digests of a canonical record (rule 16)."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

import orjson

# Root keys whose values are simulated results; the rest describes what was configured.
RESULT_ROOTS = ("coverage", "per_request", "summary")

SORTED_LINE = orjson.OPT_SORT_KEYS | orjson.OPT_APPEND_NEWLINE


def canonical_digest(data: bytes) -> str:
    """SHA-256, in hex, of the whole line with its newline: the digest on which parity is judged."""
    return hashlib.sha256(data).hexdigest()


def results_digest(document: Mapping[str, Any]) -> str:
    """SHA-256, in hex, of one sorted line that holds coverage, per_request and summary only.

    The line is written by orjson 3.11.7 or later, whatever spelling of exponents the record has (`numbers`). Equal
    results digests under unequal canonical digests mean that only the configuration's description moved.
    """
    results = {root: document[root] for root in RESULT_ROOTS}
    return hashlib.sha256(orjson.dumps(results, option=SORTED_LINE)).hexdigest()
