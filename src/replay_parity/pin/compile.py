"""One side's compile in the slot: compiled layers reused, stale outputs forgotten, progress told."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Literal

from replay_parity.campaign.models import Build
from replay_parity.errors import BadInputError, BuildError
from replay_parity.pin.cargo import Cargo
from replay_parity.pin.compile_failure import ENGINE_PACKAGE, build_failure
from replay_parity.pin.compiler_messages import RUNNER_PACKAGE, read_messages
from replay_parity.pin.identity import identity_variables
from replay_parity.pin.models import Revision
from replay_parity.pin.runner_source import runner_source_sha256
from replay_parity.pin.slot import Slot
from replay_parity.pin.store import LayerStore
from replay_parity.system.files import read_capped, remove_tree, write_whole
from replay_parity.system.process import tail_of
from replay_parity.system.progress import Progress

_PROFILE_FOLDERS = {"release": "release", "dev": "debug"}
# Beside what was compiled: the packages whose version does not fix their content.
_LOOSE_FILE = "loose-packages.txt"
_LOOSE_CAP = 1 << 20
_FINGERPRINTS = ".fingerprint"
_TELL_SECONDS = 1.0
# Cargo names the folder of a path package; on a progress line the name is enough.
_FOLDER = re.compile(r" \(/.*\)$|^Compiling ")
# An entry of cargo's target folder: `NAME-HASH[.suffix]`, for a library `libNAME-HASH.suffix`.
_OUTPUT = re.compile(r"(?P<name>[^.]+)-[0-9a-f]{16}(?:\..*)?", re.DOTALL)


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
    loose: frozenset[str],
    log: Path,
    progress: Progress,
) -> Path:
    """Compile the laid-out slot and return the binary.

    `exact` and `base` are layer keys: of this very tree, and of the baseline; `loose` names the packages whose version
    does not fix their content. Raises BuildError when the revision or the runner does not compile, BadInputError for
    an unknown feature, InfrastructureError otherwise.
    """
    profile_folder = slot.target / _PROFILE_FOLDERS[build.profile]
    known = _restore(slot, layers, exact=exact, base=base, profile_folder=profile_folder, loose=loose)
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
        sentence = f"the {side} was not compiled within {build.timeout_minutes} minutes"
        raise BuildError(sentence, kind="timed_out", side=side, log=str(log), excerpt="")
    if completed.returncode != 0 or completed.end != "exited":
        raise build_failure(completed, side=side, messages=messages, log=log, loose=loose)
    # Saved at once: the baseline's compiled dependencies exist before any candidate code runs (rule 6).
    layers.save(exact, slot.target)
    return profile_folder / RUNNER_PACKAGE


def _arguments(build: Build) -> list[str]:
    arguments = ["build", "--package", RUNNER_PACKAGE, "--bin", RUNNER_PACKAGE, "--message-format=json"]
    if build.profile == "release":
        arguments.append("--release")
    features = [f"{ENGINE_PACKAGE}/{name}" for name in build.features]
    if build.negative_control is not None:
        features.append(f"{RUNNER_PACKAGE}/{build.negative_control}")
    return [*arguments, "--features", ",".join(features)] if features else arguments


def _restore(
    slot: Slot, layers: LayerStore, *, exact: str, base: str, profile_folder: Path, loose: frozenset[str]
) -> str:
    """Bring what was compiled before into the target folder; says in words what is reused."""
    listed = profile_folder / _LOOSE_FILE
    if layers.has(exact) and layers.restore(exact, slot.target):
        forget(profile_folder, [RUNNER_PACKAGE])
        return "engine"
    reused = slot.target.exists() or layers.restore(base, slot.target)
    before = _listed(listed) if reused else set()
    if before is None or not (profile_folder / _FINGERPRINTS).is_dir():
        # Not as we know it: what cannot be told apart cannot be forgotten.
        remove_tree(slot.target)
        reused, before = False, set()
    # File times are pinned and a vendored package is known to cargo by its version, so cargo would take another
    # revision's outputs for this one's. Also of a build that failed half-way, so the list is written before a build.
    names = sorted({*before, *loose, ENGINE_PACKAGE, RUNNER_PACKAGE})
    forget(profile_folder, names)
    write_whole(listed, "\n".join(names).encode())
    return "dependencies" if reused else ""


def _listed(path: Path) -> set[str] | None:
    """Names in the list beside what was compiled; None when it is not one of ours."""
    if not path.exists():
        return set()
    try:
        return set(read_capped(path, cap=_LOOSE_CAP).decode("utf-8").split())
    except (BadInputError, UnicodeDecodeError):
        return None


def forget(profile_folder: Path, names: Iterable[str]) -> None:
    """Remove cargo's fingerprints and outputs of the packages, so that they are compiled anew."""
    # A library may have another name than its package; its outputs stay, but without a fingerprint cargo replaces them.
    known = {name for package in names for name in (package, package.replace("-", "_"))}
    for folder, prefix in ((_FINGERPRINTS, ""), ("build", ""), ("deps", "lib")):
        if (profile_folder / folder).is_dir():
            for path in sorted((profile_folder / folder).iterdir()):
                found = _OUTPUT.fullmatch(path.name)
                if found and {found["name"], found["name"].removeprefix(prefix)} & known:
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
