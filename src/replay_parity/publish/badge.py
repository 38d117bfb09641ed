"""The endpoint badge of shields.io, which refuses keys that it does not know (GITHUB.md, limits)."""

from __future__ import annotations

import json
from typing import Any

from replay_parity.parity.verdict import Verdict
from replay_parity.publish.words import rows_in_words

_LABEL = "replay parity"
_CACHE_SECONDS = 300
_COLORS = {"PASS": "brightgreen", "PASS_WITH_SEMANTIC_EXCEPTIONS": "yellowgreen", "FAIL": "red", "ERROR": "lightgrey"}
_MESSAGES = {"PASS": "pass", "PASS_WITH_SEMANTIC_EXCEPTIONS": "pass with exceptions", "FAIL": "fail", "ERROR": "error"}


def badge(verdict: Verdict) -> str:
    """`badge.json`; grey for ERROR, since then nothing is known of the parity."""
    rows = f", {rows_in_words(len(verdict.rows))}" if verdict.exit_code == 0 and verdict.rows else ""
    shown: dict[str, Any] = {
        "schemaVersion": 1,
        "label": _LABEL,
        "message": f"{_MESSAGES[verdict.verdict]}{rows}{' (advisory)' if verdict.advisory else ''}",
        "color": _COLORS[verdict.verdict],
        "cacheSeconds": _CACHE_SECONDS,
    }
    if verdict.verdict == "ERROR":
        shown["isError"] = True
    return json.dumps(shown, indent=2) + "\n"
