"""The badge: exactly the keys that shields.io knows, with values that it takes."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.support.verdicts import row, verdict

from replay_parity.publish.badge import badge

# https://shields.io/badges/endpoint-badge
KNOWN = {"schemaVersion", "label", "message", "color", "labelColor", "isError", "namedLogo", "style", "cacheSeconds"}


@pytest.mark.parametrize(
    ("changes", "message", "color", "error"),
    [
        ({}, "pass, 2 rows", "brightgreen", False),
        ({"verdict": "PASS_WITH_SEMANTIC_EXCEPTIONS"}, "pass with exceptions, 2 rows", "yellowgreen", False),
        ({"verdict": "FAIL", "exit_code": 1}, "fail", "red", False),
        ({"verdict": "FAIL", "exit_code": 1, "advisory": True}, "fail (advisory)", "red", False),
        ({"verdict": "ERROR", "exit_code": 3}, "error", "lightgrey", True),
    ],
)
def test_badge(changes: dict[str, Any], message: str, color: str, error: bool) -> None:
    shown = json.loads(badge(verdict(row(), row(row="second"), **changes)))
    assert set(shown) <= KNOWN
    assert shown["schemaVersion"] == 1
    assert (shown["label"], shown["message"], shown["color"]) == ("replay parity", message, color)
    assert shown.get("isError", False) is error
    assert shown["cacheSeconds"] >= 300
