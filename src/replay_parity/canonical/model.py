"""What a proven record is: its document, its two digests and its size."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Digests:
    """What is kept of a record whose document was dropped (rule 18).

    `canonical` is the SHA-256 of the whole line, newline included: parity is judged on it. `results` leaves the
    metadata out (rule 16). Both are lower-case hex; `bytes` is the length of the line.
    """

    canonical: str
    results: str
    bytes: int


@dataclass(frozen=True, slots=True)
class CanonicalRecord:
    """A record whose form is proven. `document` is orjson's reading of the line; treat it as read-only."""

    document: dict[str, Any]
    canonical_sha256: str
    results_sha256: str
    size: int

    @property
    def digests(self) -> Digests:
        """The digests alone, so that the document can be dropped."""
        return Digests(self.canonical_sha256, self.results_sha256, self.size)
