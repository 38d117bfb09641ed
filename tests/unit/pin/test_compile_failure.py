"""Whose fault a failure is, from cargo's words alone."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from replay_parity.errors import BadInputError, BuildError, InfrastructureError, ProcessError, ReplayParityError
from replay_parity.pin.cargo_words import on_one_screen, reason
from replay_parity.pin.compile_failure import build_failure, fetch_failure
from replay_parity.pin.compiler_messages import compile_errors, error_texts, package_name, read_messages
from replay_parity.system.process import Completed, End

RUNNER = "path+file:///slot/runner#replay-parity-runner@0.1.0"
CORE = "path+file:///slot/checkout/crates/core#aisimulate-core@0.13.0"


def error_in(package: str, text: str) -> dict[str, Any]:
    return {"reason": "compiler-message", "package_id": package, "message": {"level": "error", "rendered": text}}


def judged(
    tmp_path: Path, *, log: str = "", messages: list[dict[str, Any]] | None = None, end: End = "exited"
) -> ReplayParityError:
    (tmp_path / "log").write_text(log)
    (tmp_path / "messages").write_text("".join(json.dumps(item) + "\n" for item in messages or []))
    completed = Completed(
        argv=("cargo",),
        cwd=tmp_path,
        stdout=tmp_path / "messages",
        stderr=tmp_path / "log",
        returncode=101,
        end=end,
        seconds=1.0,
        peak_threads=1,
        peak_runnable=1,
        peak_rss_bytes=1,
        affinity=(),
        leftovers=0,
    )
    return build_failure(
        completed, side="candidate", messages=tmp_path / "messages", log=tmp_path / "log", loose=frozenset({"helper"})
    )


@pytest.mark.parametrize(
    ("package_id", "name"),
    [
        (RUNNER, "replay-parity-runner"),
        (CORE, "aisimulate-core"),
        ("path+file:///slot/checkout/crates/serde#1.0.0", "serde"),
        ("registry+https://example.invalid/index#serde@1.0.219", "serde"),
        ("git+https://example.invalid/repo?branch=a#1.0.0", "repo"),
        ("git+https://example.invalid/repo?rev=a#name@1.0.0", "name"),
        ("", ""),
    ],
)
def test_the_name_in_a_package_id(package_id: str, name: str) -> None:
    assert package_name(package_id) == name


def test_an_error_in_the_runner_alone_is_about_the_api(tmp_path: Path) -> None:
    alone = judged(tmp_path, messages=[error_in(RUNNER, "error[E0432]: unresolved import")])
    assert isinstance(alone, BuildError)
    assert alone.kind == "runner_api"
    for packages in ([CORE], [CORE, RUNNER]):
        both = judged(tmp_path, messages=[error_in(package, "error: x") for package in packages])
        assert isinstance(both, BuildError)
        assert both.kind == "revision"


@pytest.mark.parametrize(
    "words",
    [
        "error: failed to write x.rlib: No space left on device (os error 28)",
        "  = note: /usr/bin/ld: final link failed: No space left on device",
        "error: could not compile `x` (lib)\n\nCaused by:\n  it didn't exit successfully (signal: 9, SIGKILL: kill)",
        "  it didn't exit successfully (signal: 7, SIGBUS: access to undefined memory)",
        "          collect2: fatal error: ld terminated with signal 7 [Bus error]",
        "error: linker `cc` not found",
        "LLVM ERROR: IO failure on output stream: Disk quota exceeded",
        "error: File too large (os error 27)",
    ],
)
@pytest.mark.parametrize("rendered", [True, False])
def test_the_machine_is_blamed_for_what_the_machine_did(tmp_path: Path, words: str, rendered: bool) -> None:
    if rendered:
        error = judged(tmp_path, messages=[error_in(RUNNER, f"error: linking with `cc` failed\n{words}")])
    else:
        error = judged(tmp_path, log=f"   Compiling x\n{words}\n")
    assert isinstance(error, InfrastructureError)
    assert len(str(error).splitlines()) == 1


def test_a_source_line_that_speaks_of_a_full_disk_is_still_the_revisions_error(tmp_path: Path) -> None:
    text = 'error: expected `;`\n12 |     panic!("No space left on device")\n   |  "No space left on device"\n'
    error = judged(tmp_path, messages=[error_in(CORE, text)])
    assert isinstance(error, BuildError)
    assert error.excerpt == text.rstrip()


def test_a_build_script_is_blamed_on_whoever_wrote_it(tmp_path: Path) -> None:
    words = "error: failed to run custom build command for `{} v1.0.0 (/x)`\n\nCaused by:\n  exit status: 101"
    ours = judged(tmp_path, log=words.format("helper"))
    assert isinstance(ours, BuildError)
    assert ours.kind == "revision"
    theirs = judged(tmp_path, log=words.format("zstd-sys"))
    assert isinstance(theirs, InfrastructureError)
    assert "zstd-sys" in str(theirs)


def test_an_unknown_feature_is_the_campaigns(tmp_path: Path) -> None:
    for words in (
        "error: the package 'aisimulate-core' does not contain this feature: nope",
        "package `r` depends on `x` with feature `nope` but `x` does not have that feature.",
    ):
        error = judged(tmp_path, log=f"error: failed to select a version\n{words}\n")
        assert isinstance(error, BadInputError)
        assert "nope" in str(error)


def test_too_much_output_and_unknown_words_are_infrastructure(tmp_path: Path) -> None:
    flood = judged(tmp_path, messages=[error_in(CORE, "error: x")], end="output_cap")
    assert isinstance(flood, InfrastructureError)
    assert "wrote more than it may" in str(flood)
    odd = judged(tmp_path, log="error: something new\n")
    assert isinstance(odd, InfrastructureError)
    assert "something new" in str(odd)
    silent = judged(tmp_path)
    assert "it printed nothing" in str(silent)


def fetched(tmp_path: Path, text: str) -> ReplayParityError:
    (tmp_path / "log").write_text(text)
    error = ProcessError("x", argv=[], returncode=101, tail=text[-4096:], folder="")
    return fetch_failure(error, side="candidate", log=tmp_path / "log")


@pytest.mark.parametrize(
    "text",
    [
        "error: failed to parse manifest at `/slot/checkout/crates/core/Cargo.toml`",
        "error: unclosed table\n --> checkout/crates/core/Cargo.toml:1:9",
        "error: failed to sync\n\nCaused by:\n  unable to update /slot/checkout/crates/gone",
        "error: no matching package named `x` found\nlocation searched: crates.io index",
        'error: failed to select a version for the requirement `x = "^9"`',
        "error: no matching package named `x`\n  location searched: /slot/checkout/x\nyou're using offline mode",
    ],
)
def test_a_resolution_that_the_revision_makes_impossible(tmp_path: Path, text: str) -> None:
    error = fetched(tmp_path, text)
    assert isinstance(error, BuildError)
    assert error.kind == "revision"


@pytest.mark.parametrize(
    "text",
    [
        "error: failed to download from `https://x`\n\nCaused by:\n  [6] Could not resolve host",
        "error: no matching package named `x` found\n  As a reminder, you're using offline mode (--offline)",
        "error: unable to update registry `crates-io`",
        "error: failed to select a version\n  No space left on device (os error 28)",
    ],
)
def test_a_resolution_that_the_machine_or_the_network_makes_impossible(tmp_path: Path, text: str) -> None:
    error = fetched(tmp_path, text)
    assert isinstance(error, InfrastructureError)
    assert len(str(error).splitlines()) == 1


def test_cargos_causes_in_one_line_and_on_one_screen() -> None:
    text = (
        "    Updating crates.io index\n     Locking 3 packages\nerror: failed to sync\n\nCaused by:\n"
        "  failed to load lockfile for /x\n\nCaused by:\n  the real reason\n    ... required by package `y`\n  more\n"
    )
    assert reason(text) == "the real reason / more"
    assert reason("   Updating x\n\n") == "it printed nothing"
    long = "   Compiling a\n" * 50 + "error: here\n" + "line\n" * 100
    assert on_one_screen(long).splitlines()[0] == "error: here"
    assert len(on_one_screen(long).splitlines()) == 30


def test_messages_that_are_cut_off_or_odd_are_skipped(tmp_path: Path) -> None:
    path = tmp_path / "messages"
    assert list(read_messages(path)) == []
    path.write_bytes(b'{"reason": "x"}\n[]\n\xff\n{"reason": "compiler-message", "message": 3}\n{"reason": "com')
    assert [message["reason"] for message in read_messages(path)] == ["x", "compiler-message"]
    assert error_texts(path) == []
    path.write_text(json.dumps(error_in(CORE, "")) + "\n" + json.dumps(error_in("", "y")))
    assert compile_errors(error_texts(path))[0] == "revision"
