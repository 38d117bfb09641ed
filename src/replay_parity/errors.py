"""One tree of errors; the exit code lives on the class (DESIGN.md, outcomes and exit codes).

"Parity broke" (1), "your file is wrong" (2) and "our tool or its surroundings failed" (3) never share a code.
A message is one clear sentence: what is wrong, where, and what to do.
"""

from __future__ import annotations

from typing import ClassVar

EXIT_OK = 0
EXIT_DIFFERENT = 1
EXIT_BAD_INPUT = 2
EXIT_INFRASTRUCTURE = 3
EXIT_INTERRUPTED = 130


class ReplayParityError(Exception):
    """Base of every expected failure. `hint` says what a person can do next, `where` names the place."""

    exit_code: ClassVar[int] = EXIT_INFRASTRUCTURE
    label: ClassVar[str] = "failed"

    def __init__(self, message: str, *, where: str | None = None, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.where = where
        self.hint = hint

    def __str__(self) -> str:
        """Place, sentence and hint in one line."""
        head = f"{self.where}: {self.message}" if self.where else self.message
        return f"{head} ({self.hint})" if self.hint else head


class BadInputError(ReplayParityError):
    """A file, a value or a revision that the user gave is wrong: exit code 2."""

    exit_code = EXIT_BAD_INPUT
    label = "bad input"


class ConfigurationError(BadInputError):
    """A campaign, row or corpus file does not say what it must."""

    label = "bad configuration"


class ManyErrors(BadInputError):  # noqa: N818 (it is a bundle of errors)
    """Every broken file of one run, reported together (STYLE.md, absorb 10)."""

    def __init__(self, errors: list[BadInputError]) -> None:
        super().__init__(f"{len(errors)} problems found in the input files")
        self.errors = errors

    def __str__(self) -> str:
        """One line for each problem."""
        return "\n".join(str(error) for error in self.errors)


class RevisionError(BadInputError):
    """A revision cannot be pinned: unknown, ambiguous, dirty, moved, or not an ancestor."""

    label = "bad revision"


class CorpusError(BadInputError):
    """A trace is not what its corpus file declares."""

    label = "bad corpus"


class CanonicalFormError(BadInputError):
    """Bytes are not a canonical record; `reason` is the short name of the refusal."""

    label = "not canonical"

    def __init__(self, reason: str, message: str, *, where: str | None = None) -> None:
        super().__init__(message, where=where)
        self.reason = reason


class InfrastructureError(ReplayParityError):
    """The machine, a registry or the tool's own files failed: exit code 3."""

    label = "infrastructure"


class ProcessError(InfrastructureError):
    """A started program failed; readable from the log alone (argv, code, output, folder)."""

    label = "process failed"

    def __init__(self, message: str, *, argv: list[str], returncode: int | None, tail: str, folder: str) -> None:
        super().__init__(message)
        self.argv = argv
        self.returncode = returncode
        self.tail = tail
        self.folder = folder


class BuildError(ReplayParityError):
    """A revision or the runner on top of it does not compile; `kind` tells which (rule 5)."""

    exit_code = EXIT_DIFFERENT
    label = "build failed"

    def __init__(self, message: str, *, kind: str, side: str, log: str, excerpt: str) -> None:
        super().__init__(message)
        self.kind = kind
        self.side = side
        self.log = log
        self.excerpt = excerpt
