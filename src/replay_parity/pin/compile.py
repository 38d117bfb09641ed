"""One side's compile in the slot: layers reused, progress told, errors blamed on the right source."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Literal

from replay_parity.campaign.models import Build
from replay_parity.errors import BadInputError, BuildError, InfrastructureError, ProcessError, ReplayParityError
from replay_parity.pin.cargo import Cargo
from replay_parity.pin.compiler_messages import RUNNER_PACKAGE, compile_errors, path_packages, read_messages
from replay_parity.pin.identity import identity_variables
from replay_parity.pin.models import Revision
from replay_parity.pin.runner_source import runner_source_sha256
from replay_parity.pin.slot import Slot
from replay_parity.pin.store import LayerStore
from replay_parity.system.files import remove_tree
from replay_parity.system.process import tail_of
from replay_parity.system.progress import Progress

ENGINE_PACKAGE = "aisimulate-core"
_PROFILE_FOLDERS = {"release": "release", "dev": "debug"}
_TELL_SECONDS = 1.0
# Words of cargo about a manifest or a lock that belongs to the revision, not to the network.
_MANIFEST_PLACE = re.compile(r"--> .*Cargo\.toml:\d+")
# Cargo names the folder of a path package; on a progress line the name is enough.
_FOLDER = re.compile(r" \(/.*\)$|^Compiling ")
_FEATURE_WORDS = re.compile(r"does not (?:have|contain) (?:this|that|these|feature)")
_MANIFEST_WORDS = ("failed to parse manifest", "failed to load manifest", "no targets specified", "invalid manifest")


def compile_runner(
    slot: Slot,
    *,
    cargo: Cargo,
    build: Build,
    side: Literal["baseline", "candidate"],
    revision: Revision,
    layers: LayerStore,
    exact: str,
    base: str,
    log: Path,
    progress: Progress,
) -> Path:
    """Compile the laid-out slot and return the binary.

    `exact` and `base` are layer keys: of this very tree, and of the baseline. Raises BuildError when the revision or
    the runner does not compile, BadInputError for an unknown feature, InfrastructureError otherwise.
    """
    profile_folder = slot.target / _PROFILE_FOLDERS[build.profile]
    known = _restore(slot, layers, exact=exact, base=base, profile_folder=profile_folder)
    progress.step(f"{side} {revision.short}: compiling" + (f", {known} reused" if known else ""))
    messages = log.with_suffix(".jsonl")
    completed = cargo.build(
        slot.path,
        _arguments(build),
        variables=identity_variables(
            revision=revision.id,
            runner_source_sha256=runner_source_sha256(),
            features=build.features,
            toolchain=cargo.toolchain.rustc,
            profile=build.profile,
        ),
        flags=build.flags,
        messages=messages,
        log=log,
        timeout=build.timeout_minutes * 60.0,
        tick=_teller(messages, log, progress),
    )
    if completed.end == "timed_out":
        raise BuildError(
            f"the {side} was not compiled within {build.timeout_minutes} minutes",
            kind="timed_out",
            side=side,
            log=str(log),
            excerpt="",
        )
    if completed.returncode != 0 or completed.end != "exited":
        raise _build_failure(side, messages, log)
    note_path_packages(profile_folder, messages)
    # Saved at once: the baseline's compiled dependencies exist before any candidate code runs (rule 6).
    layers.save(exact, slot.target)
    return profile_folder / RUNNER_PACKAGE


def fetch_failure(error: ProcessError, *, side: str, log: Path) -> ReplayParityError:
    """Whose fault it is that cargo could not resolve or bring the packages."""
    text = error.tail
    if any(words in text for words in _MANIFEST_WORDS) or _MANIFEST_PLACE.search(text):
        return BuildError(
            f"the {side} does not compile: cargo cannot read its manifest",
            kind="revision",
            side=side,
            log=str(log),
            excerpt=text,
        )
    return InfrastructureError(
        f"the dependencies of the {side} could not be brought: {_last_words(text)}",
        hint=f"check the registry and the network, then run again; cargo's words are in {log}",
    )


def _arguments(build: Build) -> list[str]:
    arguments = ["build", "--package", RUNNER_PACKAGE, "--bin", RUNNER_PACKAGE, "--message-format=json"]
    if build.profile == "release":
        arguments.append("--release")
    features = [f"{ENGINE_PACKAGE}/{name}" for name in build.features]
    if build.negative_control is not None:
        features.append(f"{RUNNER_PACKAGE}/{build.negative_control}")
    return [*arguments, "--features", ",".join(features)] if features else arguments


def _restore(slot: Slot, layers: LayerStore, *, exact: str, base: str, profile_folder: Path) -> str:
    """Bring what was compiled before into the target folder; says in words what is reused."""
    if layers.restore(exact, slot.target):
        forget(profile_folder, [RUNNER_PACKAGE])
        return "engine"
    if not slot.target.exists() and not layers.restore(base, slot.target):
        return ""
    # File times are pinned, so cargo would take another revision's engine for this one: forget everything that was
    # compiled from a folder.
    forget(profile_folder, _compiled_from_folders(profile_folder))
    return "dependencies"


def _compiled_from_folders(profile_folder: Path) -> list[str]:
    listed = profile_folder / "path-packages.txt"
    names = listed.read_text().split() if listed.is_file() else []
    return sorted({*names, ENGINE_PACKAGE, RUNNER_PACKAGE})


def forget(profile_folder: Path, names: list[str]) -> None:
    """Remove cargo's fingerprints and outputs of the packages, so that they are compiled anew."""
    for name in names:
        stem = name.replace("-", "_")
        for pattern in (f".fingerprint/{name}-*", f"build/{name}-*", f"deps/*{stem}-*", f"deps/*{stem}.*"):
            for path in sorted(profile_folder.glob(pattern)):
                remove_tree(path)


def _teller(messages: Path, log: Path, progress: Progress) -> Callable[[], None]:
    started = time.monotonic()
    told = [started]

    def tick() -> None:
        now = time.monotonic()
        if now - told[0] < _TELL_SECONDS:
            return
        told[0] = now
        done = sum(1 for message in read_messages(messages) if message.get("reason") == "compiler-artifact")
        lines = tail_of(log, size=400).splitlines()
        current = lines[-1].strip() if lines else "starting"
        progress.detail(f"{now - started:.0f} s, {done} units, {_FOLDER.sub('', current)}")

    return tick


def _build_failure(side: str, messages: Path, log: Path) -> ReplayParityError:
    errors = compile_errors(messages)
    text = tail_of(log, size=8192)
    if errors is not None:
        fault, excerpt = errors
        sentence = (
            f"the runner does not compile against the {side}'s API"
            if fault == "runner_api"
            else f"the {side} does not compile"
        )
        return BuildError(sentence, kind=fault, side=side, log=str(log), excerpt=excerpt)
    if _FEATURE_WORDS.search(text):
        return BadInputError(f"the {side}: {_last_words(text)}", where="/build/features", hint="name a feature it has")
    if any(words in text for words in _MANIFEST_WORDS) or "could not compile" in text:
        return BuildError(f"the {side} does not compile", kind="revision", side=side, log=str(log), excerpt=text)
    return InfrastructureError(f"cargo failed for the {side}: {_last_words(text)}", hint=f"the log is {log}")


def _last_words(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    first = next((number for number, line in enumerate(lines) if line.startswith("error")), 0)
    return " / ".join(lines[first : first + 4]) or "it printed nothing"


def note_path_packages(profile_folder: Path, messages: Path) -> None:
    """Write down which packages came from folders, for the side that is built next in this target folder."""
    names = path_packages(messages)
    (profile_folder / "path-packages.txt").write_text("\n".join(sorted(names)) + "\n")
