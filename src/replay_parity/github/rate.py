"""How long GitHub asks a client to wait: `retry-after`, then `x-ratelimit-reset`, then a minute (GITHUB.md, limits).

Pure: an answer's status, headers and message to seconds.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

_LIMITED = frozenset({403, 429})
_TOO_MANY = 429
_SECONDS = re.compile(r"[0-9]{1,10}")
_SPEAKS_OF_A_LIMIT = re.compile(r"rate limit|abuse", re.IGNORECASE)
# A refusal for lack of permission may arrive with the last request of the hour; waiting would not help it.
_SPEAKS_OF_PERMISSION = re.compile(r"not accessible by|must have .* (?:rights|access)", re.IGNORECASE)
_SECONDARY_SECONDS = 60.0
_MARGIN_SECONDS = 1.0


def seconds_to_wait(status: int, headers: Mapping[str, str], message: str, *, now: float, waited: int) -> float | None:
    """Seconds until the request may be sent again; None when the answer is no rate limit.

    `headers` has lower-case names, `now` is in seconds of the UTC epoch, `waited` counts the waits of this call so
    far: a limit that names no time is waited for twice as long each time.
    """
    if status not in _LIMITED or _SPEAKS_OF_PERMISSION.search(message):
        return None
    if _SECONDS.fullmatch(after := headers.get("retry-after", "").strip()):
        return float(after) + _MARGIN_SECONDS
    reset = headers.get("x-ratelimit-reset", "").strip()
    if headers.get("x-ratelimit-remaining", "").strip() == "0" and _SECONDS.fullmatch(reset):
        return max(0.0, float(reset) - now) + _MARGIN_SECONDS
    if status == _TOO_MANY or _SPEAKS_OF_A_LIMIT.search(message):
        return _SECONDARY_SECONDS * float(2**waited)
    return None
