"""Environment to one frozen object (STYLE.md, absorb 1): read here and nowhere else; blank means unset."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import platformdirs

from replay_parity.errors import BadInputError

# What `cargo fetch`, `rustup` and `git` may need to reach the user's registries, proxies and credentials. Nothing that
# changes what is compiled, how it is resolved, or with which tools: flags, wrappers, profiles, targets (rule 8).
_USER_TOOL_PREFIXES = (
    "CARGO_HTTP_",
    "CARGO_NET_",
    "CARGO_REGISTRIES_",
    "CARGO_REGISTRY_",
    "GIT_SSL_",
    "SSL_CERT_",
    "CURL_CA_",
)
_USER_TOOL_NAMES = frozenset(
    {
        "PATH",
        "HOME",
        "USER",
        "LOGNAME",
        "LANG",
        "LC_ALL",
        "TMPDIR",
        "CARGO_HOME",
        "RUSTUP_HOME",
        "RUSTUP_DIST_SERVER",
        "RUSTUP_UPDATE_ROOT",
        "SSH_AUTH_SOCK",
        "NIX_SSL_CERT_FILE",
        "http_proxy",
        "https_proxy",
        "no_proxy",
        "all_proxy",
        "HTTP_PROXY",
        "HTTPS_PROXY",
        "NO_PROXY",
        "ALL_PROXY",
    }
)


@dataclass(frozen=True)
class Settings:
    """Folders and the environment of the user's own tools.

    `cache` holds artifacts, layers and corpora; `build_root` is where slots live (empty: a clean temporary folder);
    `locks` is shared by all users of the host. `tool_environment` may hold credentials and is never shown. The two
    addresses are templates of a mirror that traces are fetched from (docs/corpora.md).
    """

    cache: Path
    locks: Path
    build_root: Path | None
    tool_environment: Mapping[str, str] = field(repr=False)
    plain: bool
    trace_url: str | None = None
    trace_lfs_url: str | None = None

    @classmethod
    def from_environment(cls, environment: Mapping[str, str]) -> Settings:
        """Read a mapping such as `os.environ`; BadInputError names the variable that is wrong."""

        def get(name: str) -> str | None:
            return environment.get(name, "").strip() or None

        def folder(name: str, default: Path) -> Path:
            path = Path(get(name) or default)
            if not path.is_absolute():
                raise BadInputError(f"{name} must be an absolute path, it is '{path}'", hint=f"set {name}")
            return path

        shared = Path(tempfile.gettempdir()) if os.name != "posix" else Path("/tmp")  # noqa: S108 (one place per host)
        build_root = folder("REPLAY_PARITY_BUILD_ROOT", Path("/")) if get("REPLAY_PARITY_BUILD_ROOT") else None
        return cls(
            cache=folder("REPLAY_PARITY_CACHE", Path(platformdirs.user_cache_dir("replay-parity"))),
            locks=folder("REPLAY_PARITY_LOCK_DIR", shared / "replay-parity-locks"),
            build_root=build_root,
            tool_environment={**_tool_environment(environment), "PATH": _absolute_entries(get("PATH") or os.defpath)},
            plain=get("CI") is not None or get("NO_COLOR") is not None,
            trace_url=get("REPLAY_PARITY_TRACE_URL"),
            trace_lfs_url=get("REPLAY_PARITY_TRACE_LFS_URL"),
        )


def _absolute_entries(path: str) -> str:
    """PATH without relative or empty entries: they name the working folder, which may be a checkout."""
    return os.pathsep.join(entry for entry in path.split(os.pathsep) if Path(entry).is_absolute())


def _tool_environment(environment: Mapping[str, str]) -> dict[str, str]:
    return {
        name: value
        for name, value in environment.items()
        if value.strip() and (name in _USER_TOOL_NAMES or name.startswith(_USER_TOOL_PREFIXES))
    }
