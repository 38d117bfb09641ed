"""Everything that is wrong in one run over several files, told together in the order of the files."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from replay_parity.campaign.document import Document, Finding, Mark
from replay_parity.errors import BadInputError, ConfigurationError


class Problems:
    """A bag of problems; files come in the order in which `reading` named them, lines in their own."""

    def __init__(self) -> None:
        self._order: dict[Path, int] = {}
        self._found: list[tuple[int, Mark, ConfigurationError]] = []

    def __bool__(self) -> bool:
        """Whether there is any."""
        return bool(self._found)

    def reading(self, path: Path) -> None:
        """Give a file its rank."""
        self._order.setdefault(path, len(self._order))

    def unreadable(self, path: Path, error: ConfigurationError) -> None:
        """Keep the one problem of a file that could not be read."""
        self._found.append((self._rank(path), Mark(0, 0), error))

    def add(self, document: Document, findings: Iterable[Finding]) -> None:
        """Keep what was found in a document."""
        for finding in findings:
            self._found.append((self._rank(document.path), document.mark(finding.place), document.error(finding)))

    def errors(self) -> list[BadInputError]:
        """One ConfigurationError for each problem."""
        return [error for _, _, error in sorted(self._found, key=lambda item: item[:2])]

    def _rank(self, path: Path) -> int:
        self.reading(path)
        return self._order[path]
