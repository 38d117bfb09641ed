"""Documents that travel between jobs: a digest over everything else in them shows any edit (GITHUB.md, threat 3)."""

from __future__ import annotations

from typing import Self

import orjson
from pydantic import Field

from replay_parity.campaign.base import Model
from replay_parity.system.files import sha256_bytes


class Sealed(Model):
    """A document with its own digest. It finds accidents and careless edits; whoever can write the file can seal it."""

    seal: str = Field(default="", description="SHA-256 of the document without this field, keys sorted.")

    def sealed(self) -> Self:
        """The same document with its seal."""
        return self.model_copy(update={"seal": self._digest()})

    @property
    def seal_holds(self) -> bool:
        """Whether the document is what was sealed; never for one that no writer of ours can have sealed."""
        try:
            return self.seal == self._digest()
        except orjson.JSONEncodeError:
            # Free parts of a document may hold numbers beyond 64 bits.
            return False

    def _digest(self) -> str:
        document = self.model_dump(mode="json", exclude={"seal"})
        return sha256_bytes(orjson.dumps(document, option=orjson.OPT_SORT_KEYS))
