"""Name of a toolchain to absolute paths (rule 2): cargo and rustc are called by path, no proxy decides later."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from pathlib import Path

from replay_parity.errors import BadInputError, ProcessError
from replay_parity.pin.models import Toolchain
from replay_parity.system.files import scratch_folder
from replay_parity.system.process import ProcessSpec, run

_TIMEOUT_SECONDS = 60.0


def resolve_toolchain(asked: str, *, environment: Mapping[str, str], folder: Path) -> Toolchain:
    """Resolve a rustup toolchain name, or 'path' for the rustc that PATH finds.

    `environment` is the user's tool environment, `folder` a neutral working directory without toolchain files.
    Raises BadInputError when the toolchain is not installed.
    """
    path = environment.get("PATH", os.defpath)
    if asked == "path":
        sysroot = _sysroot_of_path(path, environment, folder)
    else:
        sysroot = _named_sysroot(asked, path=path, environment=environment, folder=folder)
    tools = {name: _inside(sysroot, name) or Path(_find(name, path)) for name in ("rustc", "cargo")}
    verbose = _output([str(tools["rustc"]), "-vV"], environment, folder)
    facts = dict(line.split(": ", 1) for line in verbose.splitlines() if ": " in line)
    commit = facts.get("commit-hash")
    return Toolchain(
        asked=asked,
        sysroot=str(sysroot),
        rustc=verbose.partition("\n")[0],
        cargo=_output([str(tools["cargo"]), "-V"], environment, folder),
        host=facts.get("host", "unknown"),
        release=facts.get("release", "unknown"),
        commit_hash=None if commit in {None, "unknown"} else commit,
        c_compiler=_first_line(["cc", "--version"], path, environment, folder),
        linker=_first_line(["ld", "--version"], path, environment, folder),
    )


def tool(toolchain: Toolchain, name: str, *, path: str) -> str:
    """Absolute path of `cargo` or `rustc` of a resolved toolchain."""
    return str(_inside(Path(toolchain.sysroot), name) or _find(name, path))


def _inside(sysroot: Path, name: str) -> Path | None:
    candidate = sysroot / "bin" / name
    return candidate if os.access(candidate, os.X_OK) else None


def _find(name: str, path: str) -> str:
    found = shutil.which(name, path=path)
    if found is None:
        raise BadInputError(f"{name} was not found on PATH", hint="install a Rust toolchain, for example with rustup")
    return found


def _sysroot_of_path(path: str, environment: Mapping[str, str], folder: Path) -> Path:
    rustc = _find("rustc", path)
    try:
        return Path(_output([rustc, "--print", "sysroot"], environment, folder))
    except ProcessError as error:
        # A rustup proxy without a default toolchain, most of all.
        raise BadInputError(
            f"the rustc that PATH finds does not run: {' / '.join(error.tail.splitlines()[:2])}",
            where=rustc,
            hint="install a Rust toolchain, for example with rustup, or name one in the campaign",
        ) from error


def _named_sysroot(asked: str, *, path: str, environment: Mapping[str, str], folder: Path) -> Path:
    rustup = shutil.which("rustup", path=path)
    if rustup is not None:
        try:
            # Never installed on the way: a campaign says what it needs, a person decides what is put on the machine.
            quiet = {**environment, "RUSTUP_AUTO_INSTALL": "0"}
            rustc = _output([rustup, "which", "--toolchain", asked, "rustc"], quiet, folder)
            return Path(_output([rustc, "--print", "sysroot"], environment, folder))
        except ProcessError as error:
            raise BadInputError(
                f"toolchain '{asked}' is not installed", hint=f"run: rustup toolchain install {asked}"
            ) from error
    rustc = _find("rustc", path)
    words = _output([rustc, "-V"], environment, folder).split()
    if asked not in words[1:2]:
        raise BadInputError(
            f"toolchain '{asked}' is not installed: PATH finds {' '.join(words)} and there is no rustup",
            hint="install that toolchain, or write 'toolchain: path' to take the one on PATH",
        )
    return Path(_output([rustc, "--print", "sysroot"], environment, folder))


def _first_line(argv: list[str], path: str, environment: Mapping[str, str], folder: Path) -> str | None:
    found = shutil.which(argv[0], path=path)
    if found is None:
        return None
    try:
        return _output([found, *argv[1:]], environment, folder).splitlines()[0].strip()
    except (ProcessError, IndexError):
        return None


def _output(argv: list[str], environment: Mapping[str, str], folder: Path) -> str:
    with scratch_folder(folder, "ask-") as logs:
        completed = run(
            ProcessSpec(
                argv=argv,
                cwd=folder,
                env=environment,
                stdout=logs / "out",
                stderr=logs / "err",
                timeout=_TIMEOUT_SECONDS,
            )
        )
        completed.require_success(f"ask {Path(argv[0]).name}")
        return completed.stdout.read_text("utf-8", "replace").strip()
