"""The environment as one frozen object; nothing secret is ever shown."""

from __future__ import annotations

import dataclasses
import os
from pathlib import Path

import pytest

from replay_parity.errors import BadInputError
from replay_parity.pin.cargo import Cargo
from replay_parity.pin.models import Toolchain
from replay_parity.pin.resolve import Sources
from replay_parity.settings import Settings


def settings(**environment: str) -> Settings:
    return Settings.from_environment({"REPLAY_PARITY_CACHE": "/c", **environment})


def test_blank_means_unset() -> None:
    """Actions sends an empty text for an input that nobody gave."""
    plain = settings()
    blank = settings(
        REPLAY_PARITY_LOCK_DIR="", REPLAY_PARITY_BUILD_ROOT=" ", CI="", NO_COLOR="", PATH="", CARGO_HOME=""
    )
    assert blank == plain
    assert plain.build_root is None
    assert plain.plain is False
    assert plain.tool_environment == {"PATH": os.defpath}


def test_folders_are_taken_as_they_are_given() -> None:
    found = settings(REPLAY_PARITY_LOCK_DIR="/l", REPLAY_PARITY_BUILD_ROOT="/b", CI="true")
    assert (found.cache, found.locks, found.build_root, found.plain) == (Path("/c"), Path("/l"), Path("/b"), True)
    assert settings(NO_COLOR="1").plain


def test_the_addresses_of_traces_are_githubs_unless_a_mirror_is_named() -> None:
    assert (settings().trace_url, settings(REPLAY_PARITY_TRACE_URL=" ").trace_lfs_url) == (None, None)
    found = settings(REPLAY_PARITY_TRACE_URL="https://m/{sha256}", REPLAY_PARITY_TRACE_LFS_URL="https://l/{sha256}")
    assert (found.trace_url, found.trace_lfs_url) == ("https://m/{sha256}", "https://l/{sha256}")


def test_the_locks_are_the_hosts_and_the_cache_is_the_users(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", "/elsewhere")
    assert settings().locks == Path("/tmp/replay-parity-locks"), "one for all users, whatever their TMPDIR"
    monkeypatch.setenv("XDG_CACHE_HOME", "/users/x/.cache")
    assert Settings.from_environment({}).cache == Path("/users/x/.cache/replay-parity")


@pytest.mark.parametrize("name", ["REPLAY_PARITY_CACHE", "REPLAY_PARITY_LOCK_DIR", "REPLAY_PARITY_BUILD_ROOT"])
def test_a_relative_folder_is_refused_by_name(name: str) -> None:
    with pytest.raises(BadInputError, match=f"{name} must be an absolute path, it is 'here'") as caught:
        settings(**{name: "here"})
    assert caught.value.exit_code == 2


def test_tools_get_what_leads_to_registries_and_nothing_that_changes_a_build() -> None:
    passed = {
        "PATH": "/bin",
        "HOME": "/h",
        "CARGO_HOME": "/h/.cargo",
        "CARGO_HTTP_PROXY": "p",
        "CARGO_NET_RETRY": "1",
        "CARGO_NET_GIT_FETCH_WITH_CLI": "true",
        "CARGO_REGISTRIES_MINE_TOKEN": "t",
        "CARGO_REGISTRY_TOKEN": "t",
        "RUSTUP_HOME": "/r",
        "SSH_AUTH_SOCK": "/s",
        "https_proxy": "p",
        "NO_PROXY": "x",
        "SSL_CERT_FILE": "/c",
        "GIT_SSL_CAINFO": "/c",
    }
    kept_out = dict.fromkeys(
        [
            "RUSTFLAGS",
            "RUSTC",
            "RUSTC_WRAPPER",
            "RUSTUP_TOOLCHAIN",
            "CARGO_ENCODED_RUSTFLAGS",
            "CARGO_BUILD_RUSTFLAGS",
            "CARGO_BUILD_RUSTC_WRAPPER",
            "CARGO_BUILD_TARGET",
            "CARGO_TARGET_DIR",
            "CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_LINKER",
            "CARGO_PROFILE_RELEASE_OPT_LEVEL",
            "CARGO_RESOLVER_INCOMPATIBLE_RUST_VERSIONS",
            "CARGO_UNSTABLE_X",
            "CARGO_INCREMENTAL",
            "CC",
            "CFLAGS",
            "LD_PRELOAD",
            "GIT_DIR",
            "GITHUB_TOKEN",
            "ACTIONS_RUNTIME_TOKEN",
            "AWS_SECRET_ACCESS_KEY",
        ],
        "evil",
    )
    assert settings(**passed, **kept_out).tool_environment == passed


def test_relative_entries_of_path_are_dropped() -> None:
    assert settings(PATH=".:/bin::rel/bin:/usr/bin:").tool_environment["PATH"] == "/bin:/usr/bin"


def test_secrets_are_in_no_repr(tmp_path: Path) -> None:
    found = settings(CARGO_REGISTRY_TOKEN="hunter2", https_proxy="http://me:hunter2@p")
    toolchain = Toolchain(
        asked="path",
        sysroot="/",
        rustc="r",
        cargo="c",
        host="h",
        release="1",
        commit_hash=None,
        c_compiler=None,
        linker=None,
    )
    cargo = Cargo(toolchain, tmp_path, found.tool_environment)
    for shown in (found, cargo, Sources(tmp_path, tmp_path, found.tool_environment, lambda: cargo)):
        assert "hunter2" not in repr(shown)
        assert "hunter2" not in str(shown)


def test_settings_cannot_be_changed() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        settings().plain = True  # type: ignore[misc]
