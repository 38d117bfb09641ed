"""One way to start git: no shell, hooks, system or user configuration; an allow-listed environment (threats 7, 8)."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from replay_parity.errors import InfrastructureError, ProcessError
from replay_parity.system.files import scratch_folder, write_whole
from replay_parity.system.process import ProcessSpec, run

_TIMEOUT_SECONDS = 120.0
_FETCH_TIMEOUT_SECONDS = 1800.0
_OUTPUT_CAP = 64 << 20

# Set on the command line, where they win over the configuration of a repository that we only read.
_OPTIONS = {
    "core.hooksPath": "/dev/null",
    "core.fsmonitor": "false",
    "core.autocrlf": "false",
    "core.symlinks": "true",
    "core.attributesFile": "/dev/null",
    "status.submoduleSummary": "false",
    "submodule.recurse": "false",
    "fetch.recurseSubmodules": "false",
    "gc.auto": "0",
    "maintenance.auto": "false",
}
_PASSED_ON = ("PATH", "HOME", "TMPDIR", "SSH_AUTH_SOCK", "NIX_SSL_CERT_FILE")
_PASSED_PREFIXES = ("GIT_SSL_", "SSL_CERT_", "CURL_CA_")


@dataclass(frozen=True)
class GitOutput:
    """What git said: exit status, standard output, the end of standard error."""

    returncode: int
    out: bytes
    error: str

    @property
    def text(self) -> str:
        """Standard output without surrounding white space."""
        return self.out.decode("utf-8", "replace").strip()


class Git:
    """Runs git; `trusted` is a local repository that may belong to another user and is only read."""

    def __init__(self, *, scratch: Path, environment: Mapping[str, str], trusted: Path | None) -> None:
        program = shutil.which("git", path=environment.get("PATH", os.defpath))
        if program is None:
            raise InfrastructureError("git was not found on PATH", hint="install git")
        self._program = program
        self._scratch = scratch
        config = scratch / "config"
        lines = ["[safe]", *(f'\tdirectory = "{_quoted(folder)}"' for folder in _safe_folders(trusted))]
        write_whole(config, os.fsencode("\n".join(lines) + "\n"), mode=0o600)
        self._environment = _environment(environment, config)

    def call(self, *arguments: str, cwd: Path, extra: Mapping[str, str] | None = None) -> GitOutput:
        """Run git and return what it said, whatever its exit status."""
        options = [word for name, value in _OPTIONS.items() for word in ("-c", f"{name}={value}")]
        with scratch_folder(self._scratch, "log-") as logs:
            completed = run(
                ProcessSpec(
                    argv=[self._program, "--no-pager", *options, *arguments],
                    cwd=cwd,
                    env={**self._environment, **(extra or {})},
                    stdout=logs / "out",
                    stderr=logs / "err",
                    timeout=_FETCH_TIMEOUT_SECONDS if arguments[0] == "fetch" else _TIMEOUT_SECONDS,
                    output_cap=_OUTPUT_CAP,
                )
            )
            if completed.end != "exited":
                completed.require_success(f"run git {arguments[0]}")
            return GitOutput(completed.returncode, completed.stdout.read_bytes(), completed.tail())

    def demand(self, *arguments: str, cwd: Path, extra: Mapping[str, str] | None = None) -> GitOutput:
        """Run git and raise ProcessError unless it succeeds."""
        output = self.call(*arguments, cwd=cwd, extra=extra)
        if output.returncode != 0:
            raise ProcessError(
                f"git {arguments[0]} failed with status {output.returncode}: {output.error or 'it printed nothing'}",
                argv=["git", *arguments],
                returncode=output.returncode,
                tail=output.error,
                folder=str(cwd),
            )
        return output


def reason(text: str) -> str:
    """The sentence in git's words that says why: its first error, not the advice that follows."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    for mark in ("fatal: ", "error: "):
        for line in lines:
            if line.startswith(mark):
                return line.removeprefix(mark)
    return lines[0] if lines else "git printed nothing"


def _environment(environment: Mapping[str, str], config: Path) -> dict[str, str]:
    proxies = {name: value for name, value in environment.items() if name.lower().endswith("_proxy")}
    passed = {
        name: value for name, value in environment.items() if name in _PASSED_ON or name.startswith(_PASSED_PREFIXES)
    }
    return {
        **proxies,
        **passed,
        "LC_ALL": "C",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": str(config),
        "GIT_ATTR_NOSYSTEM": "1",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_NO_REPLACE_OBJECTS": "1",
        "GIT_ALLOW_PROTOCOL": "file:https:ssh",
        "GIT_LFS_SKIP_SMUDGE": "1",
        "GIT_NO_LAZY_FETCH": "1",
        # Also against a repository's own core.sshCommand.
        "GIT_SSH_COMMAND": "ssh",
    }


def _safe_folders(trusted: Path | None) -> list[Path]:
    return [trusted, trusted / ".git"] if trusted is not None else []


def _quoted(path: Path) -> str:
    return str(path).replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\t", "\\t")
