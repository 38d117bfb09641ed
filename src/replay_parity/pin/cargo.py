"""Cargo with two faces (rule 8): fetching with the user's configuration, building with ours, offline and frozen."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import tomli_w

from replay_parity.pin.models import Toolchain
from replay_parity.pin.slot import require_clean_parents
from replay_parity.pin.toolchain import tool
from replay_parity.system.files import private_folder, storage_errors, write_whole
from replay_parity.system.process import Completed, ProcessSpec, run

_FETCH_TIMEOUT_SECONDS = 1800.0
_LOG_CAP = 256 << 20
_SOURCES_FILE = "vendored-sources.toml"
_SLOT_NAME = "/slot"


@dataclass(frozen=True)
class Cargo:
    """Cargo of one toolchain; `root` is a folder without `.cargo` or toolchain files in any parent."""

    toolchain: Toolchain
    root: Path
    user_environment: Mapping[str, str] = field(repr=False)

    @property
    def user_home(self) -> Path:
        """The user's CARGO_HOME, where cargo keeps what it downloaded."""
        home = self.user_environment.get("CARGO_HOME")
        return Path(home) if home else Path(self.user_environment.get("HOME", "/")) / ".cargo"

    def vendor(self, project: Path, *, log: Path) -> None:
        """Resolve `project`, bring its packages and unpack them to `project/vendor`, with the user's configuration.

        The user's mirrors count too (`vendor` alone would go around a replaced source). Writes `project/Cargo.lock`,
        keeping its entries where the manifests allow, and cargo's own words for using the vendored folder. Raises
        ProcessError.
        """
        require_clean_parents(project)
        completed = run(
            ProcessSpec(
                argv=[self._program("cargo"), "vendor", "--respect-source-config", "--versioned-dirs", "vendor"],
                cwd=project,
                env=self._fetch_environment(),
                stdout=project / _SOURCES_FILE,
                stderr=log,
                timeout=_FETCH_TIMEOUT_SECONDS,
            )
        )
        completed.require_success("bring the packages with cargo vendor")
        # Cargo makes no folder when there is no package to bring.
        with storage_errors("make the folder", project / "vendor"):
            (project / "vendor").mkdir(exist_ok=True)

    def build(
        self,
        slot: Path,
        arguments: Sequence[str],
        *,
        variables: Mapping[str, str],
        flags: Sequence[str],
        messages: Path,
        log: Path,
        timeout: float,
        tick: Callable[[], None] | None,
    ) -> Completed:
        """Run cargo in the slot, frozen and offline, with our own home, no inherited CARGO_* or RUST* (rule 8).

        JSON messages go to `messages`, progress and diagnostics to `log`; `timeout` in seconds.
        """
        # Again, right before: a build script of the other side may have written there.
        require_clean_parents(slot)
        home = self._private_home(slot)
        environment = {
            "PATH": self._path,
            "HOME": str(home),
            "TMPDIR": str(private_folder(slot / "tmp")),
            "LC_ALL": "C",
            "TZ": "UTC",
            "SOURCE_DATE_EPOCH": "0",
            "CARGO_HOME": str(home),
            "CARGO_INCREMENTAL": "0",
            "CARGO_TERM_COLOR": "never",
            "RUSTC": self._program("rustc"),
            # Sources of dependencies are compiled by absolute path; without this the binary would name the slot.
            "CARGO_ENCODED_RUSTFLAGS": "\x1f".join((*flags, f"--remap-path-prefix={slot}={_SLOT_NAME}")),
            **variables,
        }
        return run(
            ProcessSpec(
                argv=[self._program("cargo"), *arguments, "--frozen", "--offline"],
                cwd=slot,
                env=environment,
                stdout=messages,
                stderr=log,
                timeout=timeout,
                output_cap=_LOG_CAP,
            ),
            tick=tick,
        )

    def _program(self, name: str) -> str:
        return tool(self.toolchain, name, path=self._path)

    @property
    def _path(self) -> str:
        return self.user_environment.get("PATH", os.defpath)

    def _fetch_environment(self) -> dict[str, str]:
        # RUSTC keeps cargo from asking a rustup proxy which toolchain a folder wants. Cargo asks it for its version; no
        # wrapper of the user's configuration has a part in that.
        ours = {"RUSTC": self._program("rustc"), "RUSTC_WRAPPER": "", "RUSTC_WORKSPACE_WRAPPER": ""}
        return {**self.user_environment, **ours, "CARGO_TERM_COLOR": "never", "LC_ALL": "C"}

    @staticmethod
    def _private_home(slot: Path) -> Path:
        home = private_folder(slot / "home")
        # Cargo names every registry that it vendored from; "vendor" is relative to the folder that holds home/, so the
        # same text serves in every slot.
        config = tomllib.loads((slot / _SOURCES_FILE).read_text("utf-8"))
        write_whole(home / "config.toml", tomli_w.dumps({**config, "net": {"offline": True}}).encode())
        return home
