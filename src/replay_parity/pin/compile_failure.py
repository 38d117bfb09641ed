"""Whose fault it is that cargo failed (rule 5): the revision's, the runner's on its API, the campaign's, the host's."""

from __future__ import annotations

import re
from pathlib import Path

from replay_parity.errors import BadInputError, BuildError, InfrastructureError, ProcessError, ReplayParityError
from replay_parity.pin.cargo_words import line_with, on_one_screen, reason
from replay_parity.pin.compiler_messages import compile_errors, error_texts
from replay_parity.system.process import Completed, tail_of

ENGINE_PACKAGE = "aisimulate-core"
_TEXT_BYTES = 8192
# About the machine: no source is to blame, whatever package was being compiled.
_MACHINE_WORDS = (
    "No space left on device",
    "Disk quota exceeded",
    "Read-only file system",
    "File too large",
    "Cannot allocate memory",
    "SIGKILL: kill",
    # A linker writes through memory: on a full disk it gets this signal instead of an error.
    "SIGBUS",
    "Bus error",
    "ld terminated with signal",
    "SIGXFSZ",
    "linker `cc` not found",
)
# Words of cargo about a manifest or a requirement that belongs to the revision, not to the network.
_MANIFEST = re.compile(
    r"failed to parse manifest|failed to load manifest|no targets specified|invalid manifest|failed to parse lock file"
    r"|is not supported by the following package"
    r"|(?:unable to update|location searched:) \S*/checkout/|--> \S*checkout/"
)
# The registry has answered, and it has nothing that the revision asks for; without a network it was not even asked.
_UNMET_WORDS = ("failed to select a version", "no matching package")
_OFFLINE_WORDS = "you're using offline mode"
_FEATURE_WORDS = ("does not contain this feature", "does not have feature", "does not have that feature")
# A line of source that rustc quotes: it may say anything.
_SOURCE_LINE = re.compile(r"^\s*\d*\s*\|")
_BUILD_SCRIPT = re.compile(r"failed to run custom build command for `(?P<name>[^ `]+)")


def fetch_failure(error: ProcessError, *, side: str, log: Path) -> ReplayParityError:
    """The error behind a failed resolution or download."""
    text = tail_of(log, size=_TEXT_BYTES) or error.tail
    if _about_machine(text) is None and _is_about_revision(text):
        return BuildError(
            f"the {side} does not compile: cargo cannot use its manifest",
            kind="revision",
            side=side,
            log=str(log),
            excerpt=on_one_screen(text),
        )
    return InfrastructureError(
        f"the dependencies of the {side} could not be brought: {reason(text)}",
        hint=f"check the registry and the network, then run again; cargo's words are in {log}",
    )


def build_failure(
    completed: Completed, *, side: str, messages: Path, log: Path, loose: frozenset[str]
) -> ReplayParityError:
    """The error behind a failed build; `loose` names the packages that came from the revision's own folders or git."""
    errors = error_texts(messages)
    text = tail_of(log, size=_TEXT_BYTES)
    machine = _about_machine("\n".join(rendered for _, rendered in errors)) or _about_machine(text)
    if machine is not None or completed.end != "exited":
        why = machine or "cargo wrote more than it may and was ended"
        hint = f"look at the disk and the memory of this machine, then run again; the log is {log}"
        return InfrastructureError(f"the {side} could not be compiled: {why}", hint=hint)
    if errors:
        fault, excerpt = compile_errors(errors)
        sentence = (
            f"the runner does not compile against the {side}'s API"
            if fault == "runner_api"
            else f"the {side} does not compile"
        )
        return BuildError(sentence, kind=fault, side=side, log=str(log), excerpt=excerpt)
    feature = line_with(text, _FEATURE_WORDS)
    if feature is not None:
        return BadInputError(f"the {side}: {feature}", where="/build/features", hint="name a feature that it has")
    script = _BUILD_SCRIPT.search(text)
    of_revision = script is not None and script["name"] in loose
    if of_revision or "could not compile" in text or _is_about_revision(text):
        sentence = f"the {side} does not compile"
        return BuildError(sentence, kind="revision", side=side, log=str(log), excerpt=on_one_screen(text))
    return InfrastructureError(f"cargo failed for the {side}: {reason(text)}", hint=f"the log is {log}")


def _is_about_revision(text: str) -> bool:
    unmet = _OFFLINE_WORDS not in text and any(words in text for words in _UNMET_WORDS)
    return unmet or _MANIFEST.search(text) is not None


def _about_machine(text: str) -> str | None:
    """The line that tells of a full disk, a lack of memory or a missing linker."""
    lines = (line.strip() for line in text.splitlines() if not _SOURCE_LINE.match(line))
    return next((line[:400] for line in lines if any(words in line for words in _MACHINE_WORDS)), None)
