"""The user's checkout: a dirty one is refused, and nothing in it is written or run (rule 3, threat 8)."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

from replay_parity.errors import RevisionError
from replay_parity.system.files import sha256_tree
from tests.support.tiny import Engines, Workshop

NOBODY = 12345


def state_of(folder: Path) -> tuple[str, dict[str, tuple[int, int, int]]]:
    """Contents, modes, times and inodes of everything in a folder, git's own files included."""
    entries = [folder, *sorted(folder.rglob("*"))]
    found = {
        str(entry): (status.st_mode, status.st_mtime_ns, status.st_ino)
        for entry in entries
        for status in (entry.lstat(),)
    }
    return sha256_tree(folder), found


def test_tracked_changes_are_refused_wherever_they_are(workshop: Workshop, engines: Engines) -> None:
    (engines.folder / "README").write_text("one\n")
    commit = engines.engine(1)
    (engines.folder / "README").write_text("two\n")
    with pytest.raises(
        RevisionError, match=r"has 1 uncommitted change.*'README'.*a dirty tree cannot be pinned"
    ) as caught:
        workshop.pin(engines.folder, commit)
    assert caught.value.exit_code == 2
    engines.git("add", "README")
    with pytest.raises(RevisionError, match="uncommitted"):
        workshop.pin(engines.folder, commit)
    engines.git("reset", "--quiet", "--hard")
    engines.git("mv", "README", "READ ME")
    with pytest.raises(RevisionError, match="'READ ME'"):
        workshop.pin(engines.folder, commit)
    engines.git("reset", "--quiet", "--hard")
    (engines.core / "src" / "lib.rs").unlink()
    with pytest.raises(RevisionError, match=r"'crates/core/src/lib\.rs'"):
        workshop.pin(engines.folder, commit)


def test_untracked_files_count_only_inside_the_engine_crate(workshop: Workshop, engines: Engines) -> None:
    commit = engines.engine(1)
    (engines.folder / "notes").mkdir()
    (engines.folder / "notes" / "todo").write_text("x")
    (engines.folder / "crates" / "core-notes").write_text("x")
    assert workshop.pin(engines.folder, commit).id == f"git:{commit}"
    (engines.core / "src" / "new.rs").write_text("")
    with pytest.raises(RevisionError, match=r"'crates/core/src/new\.rs'"):
        workshop.pin(engines.folder, commit)


def test_the_checkout_is_the_same_byte_for_byte_afterwards(workshop: Workshop, engines: Engines) -> None:
    engines.engine(1)
    engines.git("tag", "one")
    commit = engines.engine(2)
    # The index does not know the file's new time: a plain `git status` would write it down.
    os.utime(engines.core / "src" / "lib.rs", (1, 1))
    before = state_of(engines.folder)
    revision = workshop.pin(engines.folder, "one")
    workshop.pin(engines.folder, commit[:10])
    workshop.sources.lay_out(revision, workshop.folder / "out")
    assert state_of(engines.folder) == before


def test_hooks_filters_and_monitors_of_the_repository_do_not_run(
    workshop: Workshop, engines: Engines, tmp_path: Path
) -> None:
    witness = tmp_path / "witness"
    spy = tmp_path / "spy"
    spy.write_text(f"#!/bin/sh\necho ran $0 >> {witness}\ncat\n")
    spy.chmod(0o755)
    commit = engines.engine(1)
    for hook in ("post-checkout", "reference-transaction", "pre-commit", "post-index-change", "pre-auto-gc"):
        target = engines.folder / ".git" / "hooks" / hook
        target.parent.mkdir(exist_ok=True)
        target.write_bytes(spy.read_bytes())
        target.chmod(0o755)
    for key in (
        "core.fsmonitor",
        "core.sshCommand",
        "core.pager",
        "diff.external",
        "filter.spy.clean",
        "filter.spy.smudge",
        "filter.odd = name.clean",
        "filter.spy.process",
        "uploadpack.packObjectsHook",
        "core.alternateRefsCommand",
        "core.gitProxy",
    ):
        engines.git("config", key, str(spy))
    engines.git("config", "filter.spy.required", "true")
    (engines.folder / ".git" / "info").mkdir(exist_ok=True)
    (engines.folder / ".git" / "info" / "attributes").write_text("*.rs filter=spy\n*.toml filter=odd\n")
    # Other times than the index knows: status has to read the files again, through the filter.
    for path in (engines.core / "src" / "lib.rs", engines.core / "Cargo.toml"):
        path.write_bytes(path.read_bytes())
        os.utime(path, (1, 1))
    revision = workshop.pin(engines.folder, commit)
    workshop.sources.lay_out(revision, workshop.folder / "out")
    assert not witness.exists(), witness.read_text()


def test_a_filter_does_run_without_our_care(engines: Engines, tmp_path: Path) -> None:
    """The test above would see a filter: plain git runs it."""
    witness = tmp_path / "witness"
    engines.engine(1)
    engines.git("config", "filter.spy.clean", f"touch {witness}; cat")
    (engines.folder / ".git" / "info").mkdir(exist_ok=True)
    (engines.folder / ".git" / "info" / "attributes").write_text("*.rs filter=spy\n")
    os.utime(engines.core / "src" / "lib.rs", (1, 1))
    engines.git("status", "--porcelain")
    assert witness.exists()


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give files away")
def test_a_repository_of_another_user_is_only_read(workshop: Workshop, engines: Engines) -> None:
    commit = engines.engine(1)
    for path in [engines.folder, *engines.folder.rglob("*")]:
        os.chown(path, NOBODY, NOBODY, follow_symlinks=False)
    refused = subprocess.run(["git", "status"], cwd=engines.folder, capture_output=True, check=False)
    assert b"dubious ownership" in refused.stderr, "git itself would not go there"
    assert workshop.pin(engines.folder, "main").id == f"git:{commit}"
    (engines.folder / "crates" / "core" / "src" / "lib.rs").write_text("// changed")
    with pytest.raises(RevisionError, match="uncommitted"):
        workshop.pin(engines.folder, "main")


def test_a_bare_repository_and_a_linked_work_tree_are_repositories_too(
    workshop: Workshop, engines: Engines, tmp_path: Path
) -> None:
    commit = engines.engine(1)
    engines.git("clone", "--quiet", "--bare", str(engines.folder), str(tmp_path / "bare.git"))
    engines.git("worktree", "add", "--quiet", "--detach", str(tmp_path / "linked"))
    assert workshop.pin(tmp_path / "bare.git", "main").id == f"git:{commit}"
    assert workshop.pin(tmp_path / "linked", "HEAD").id == f"git:{commit}"
    (tmp_path / "linked" / "crates" / "core" / "Cargo.toml").write_text("")
    with pytest.raises(RevisionError, match="uncommitted"):
        workshop.pin(tmp_path / "linked", "HEAD")


def test_the_users_own_git_configuration_and_environment_do_not_count(
    workshop: Workshop,
    engines: Engines,
    tmp_path: Path,
    environment: Mapping[str, str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    commit = engines.engine(1)
    evil = tmp_path / "evil.gitconfig"
    evil.write_text(f'[url "file:///nonexistent"]\n\tinsteadOf = {engines.folder}\n[core]\n\tbare = true\n')
    home = Path(environment["HOME"])
    (home / ".gitconfig").write_bytes(evil.read_bytes())
    for name, value in {
        "GIT_CONFIG_GLOBAL": str(evil),
        "GIT_DIR": "/nonexistent",
        "GIT_WORK_TREE": "/nonexistent",
        "GIT_INDEX_FILE": "/nonexistent",
        "GIT_EXTERNAL_DIFF": "false",
    }.items():
        monkeypatch.setenv(name, value)
    careless = Workshop(workshop.folder, workshop.toolchain, {**environment, **os.environ})
    assert careless.pin(engines.folder, "main").id == f"git:{commit}"
