"""How git is started: no inherited configuration, one sentence for a failure."""

from __future__ import annotations

from pathlib import Path

import pytest

from replay_parity.errors import InfrastructureError, ProcessError
from replay_parity.pin.git_command import Git, reason


@pytest.fixture
def fake(tmp_path: Path) -> Path:
    """A git that tells its arguments and its environment."""
    program = tmp_path / "bin" / "git"
    program.parent.mkdir()
    program.write_text(
        '#!/bin/sh\nprintf "%s\\n" "$@"\nenv\n[ "$GIT_FAILS" ] && { echo fatal: because >&2; exit 9; }\nexit 0\n'
    )
    program.chmod(0o755)
    return program.parent


def test_the_environment_is_an_allow_list(tmp_path: Path, fake: Path) -> None:
    given = {
        "PATH": f"{fake}:/usr/bin:/bin",
        "HOME": "/users/x",
        "SSH_AUTH_SOCK": "/s",
        "https_proxy": "http://p",
        "GIT_SSL_CAINFO": "/ca",
        "GIT_DIR": "/evil",
        "GIT_CONFIG_PARAMETERS": "evil",
        "GIT_CONFIG_COUNT": "1",
        "GIT_EXEC_PATH": "/evil",
        "GIT_SSH_COMMAND": "evil",
        "GIT_EXTERNAL_DIFF": "evil",
        "GITHUB_TOKEN": "secret",
        "CARGO_REGISTRY_TOKEN": "secret",
    }
    out = Git(scratch=tmp_path, environment=given, trusted=None).call("status", cwd=tmp_path).text
    assert "evil" not in out
    assert "secret" not in out
    for line in (
        "HOME=/users/x",
        "SSH_AUTH_SOCK=/s",
        "https_proxy=http://p",
        "GIT_SSL_CAINFO=/ca",
        "GIT_CONFIG_NOSYSTEM=1",
        f"GIT_CONFIG_GLOBAL={tmp_path / 'config'}",
        "GIT_TERMINAL_PROMPT=0",
        "GIT_OPTIONAL_LOCKS=0",
        "GIT_SSH_COMMAND=ssh",
        "core.hooksPath=/dev/null",
    ):
        assert line in out.splitlines()


def test_a_failure_says_what_was_run_and_why(tmp_path: Path, fake: Path) -> None:
    git = Git(scratch=tmp_path, environment={"PATH": f"{fake}:/usr/bin:/bin"}, trusted=None)
    with pytest.raises(ProcessError, match="git fetch failed with status 9: fatal: because") as caught:
        git.demand("fetch", "x", cwd=tmp_path, extra={"GIT_FAILS": "1"})
    assert caught.value.argv == ["git", "fetch", "x"]
    assert caught.value.folder == str(tmp_path)
    assert not [path for path in tmp_path.iterdir() if path.name.startswith("log-")]


def test_a_machine_without_git_says_so(tmp_path: Path) -> None:
    with pytest.raises(InfrastructureError, match="git was not found on PATH"):
        Git(scratch=tmp_path, environment={"PATH": str(tmp_path)}, trusted=None)


def test_a_trusted_folder_with_an_odd_name_stays_one_folder(tmp_path: Path, fake: Path) -> None:
    odd = tmp_path / 'a "b" \\ c\n[core]\n\thooksPath = evil'
    Git(scratch=tmp_path, environment={"PATH": f"{fake}:/usr/bin:/bin"}, trusted=odd)
    lines = (tmp_path / "config").read_text().splitlines()
    assert lines[0] == "[safe]"
    assert len(lines) == 3


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "git printed nothing"),
        ("hello", "hello"),
        ("warning: x\nfatal: no such thing\n\nPlease make sure\nand the repository exists.", "no such thing"),
        ("error: first\nerror: second", "first"),
    ],
)
def test_gits_own_sentence_is_found(text: str, said: str) -> None:
    assert reason(text) == said
