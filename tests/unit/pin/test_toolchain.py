"""Names of toolchains to absolute paths."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from pathlib import Path

import pytest

from replay_parity.errors import BadInputError
from replay_parity.pin.models import Toolchain
from replay_parity.pin.toolchain import resolve_toolchain, tool

VERBOSE = "rustc 1.99.0 (abc 2030-01-01)\nbinary: rustc\ncommit-hash: {commit}\nhost: here\nrelease: 1.99.0"


def fake(folder: Path, *, sysroot: Path, commit: str = "unknown", works: bool = True) -> Path:
    """A folder of programs that answer as a toolchain does."""
    folder.mkdir(parents=True)
    rustc = f"""#!/bin/sh
case "$1" in
  --print) echo {sysroot};;
  -vV) printf '{VERBOSE.format(commit=commit)}\\n';;
  -V) echo 'rustc 1.99.0 (abc 2030-01-01)';;
esac
"""
    programs = {"rustc": rustc if works else "#!/bin/sh\necho 'error: no default toolchain' >&2\nexit 1\n"}
    programs["cargo"] = "#!/bin/sh\necho cargo 1.99.0\n"
    for name, text in programs.items():
        (folder / name).write_text(text)
        (folder / name).chmod(0o755)
    return folder


def test_the_real_toolchain_is_found_and_called_by_absolute_path(toolchain: Toolchain) -> None:
    assert toolchain.rustc.startswith("rustc 1.")
    assert toolchain.cargo.startswith("cargo 1.")
    assert toolchain.release in toolchain.rustc
    assert toolchain.c_compiler
    assert toolchain.linker
    for name in ("rustc", "cargo"):
        found = Path(tool(toolchain, name, path=os.environ["PATH"]))
        assert found.is_absolute()
        assert found.is_relative_to(toolchain.sysroot)
        assert not found.is_symlink(), "no proxy decides later"


def test_where_the_toolchain_lies_is_no_part_of_its_identity(tmp_path: Path) -> None:
    found = []
    for name in ("one", "two"):
        path = fake(tmp_path / name / "bin", sysroot=tmp_path / name)
        found.append(resolve_toolchain("path", environment={"PATH": str(path)}, folder=tmp_path))
    assert found[0].sysroot != found[1].sysroot
    assert found[0].identity == found[1].identity
    assert found[0].commit_hash is None
    assert found[0].c_compiler is None, "PATH finds no compiler there"
    other = fake(tmp_path / "three" / "bin", sysroot=tmp_path / "three", commit="a" * 40)
    assert resolve_toolchain("path", environment={"PATH": str(other)}, folder=tmp_path).commit_hash == "a" * 40


def test_a_name_without_rustup_must_be_the_version_on_path(tmp_path: Path) -> None:
    environment = {"PATH": str(fake(tmp_path / "bin", sysroot=tmp_path))}
    assert resolve_toolchain("1.99.0", environment=environment, folder=tmp_path).release == "1.99.0"
    with pytest.raises(BadInputError, match=r"toolchain '1\.98\.0' is not installed: PATH finds rustc 1\.99\.0"):
        resolve_toolchain("1.98.0", environment=environment, folder=tmp_path)


@pytest.mark.skipif(shutil.which("rustup") is None, reason="there is no rustup")
def test_a_toolchain_that_rustup_does_not_have_is_not_installed_on_the_way(
    tmp_path: Path, environment: Mapping[str, str], toolchain: Toolchain
) -> None:
    with pytest.raises(BadInputError, match=r"toolchain '1\.1\.1' is not installed") as caught:
        resolve_toolchain("1.1.1", environment=environment, folder=tmp_path)
    assert "rustup toolchain install 1.1.1" in str(caught.value)
    named = Path(toolchain.sysroot).name.split("-")[0]
    if Path(toolchain.sysroot).parent == Path(environment["RUSTUP_HOME"]) / "toolchains":
        assert resolve_toolchain(named, environment=environment, folder=tmp_path).identity == toolchain.identity


def test_a_toolchain_file_where_the_tool_is_asked_does_not_matter_to_what_is_called(
    tmp_path: Path, environment: Mapping[str, str], toolchain: Toolchain
) -> None:
    assert tool(toolchain, "cargo", path=environment["PATH"]).startswith(toolchain.sysroot)


def test_no_rustc_at_all_and_one_that_does_not_run_are_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(BadInputError, match="rustc was not found on PATH"):
        resolve_toolchain("path", environment={"PATH": str(tmp_path)}, folder=tmp_path)
    broken = fake(tmp_path / "broken", sysroot=tmp_path, works=False)
    with pytest.raises(BadInputError, match="does not run: error: no default toolchain") as caught:
        resolve_toolchain("path", environment={"PATH": str(broken)}, folder=tmp_path)
    assert len(str(caught.value).splitlines()) == 1
    silent = tmp_path / "silent"
    silent.mkdir()
    for name in ("rustc", "cargo"):
        (silent / name).write_text("#!/bin/sh\n")
        (silent / name).chmod(0o755)
    assert resolve_toolchain("path", environment={"PATH": str(silent)}, folder=tmp_path).rustc == ""
