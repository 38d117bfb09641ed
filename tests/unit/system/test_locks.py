"""Host locks between real processes: shared and alone, fairness, death of a holder, other users of the machine."""

from __future__ import annotations

import contextlib
import os
import signal
import stat
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from replay_parity.errors import InfrastructureError
from replay_parity.system.locks import cpu_leases, host_lock

_HOLDER = """
import sys
sys.path[:0] = {path!r}
from pathlib import Path
from replay_parity.system.locks import host_lock
with host_lock(Path({folder!r}), {name!r}, shared={shared!r}, timeout={timeout!r}):
    print("held", flush=True)
    {work}
"""
as_root = pytest.mark.skipif(os.getuid() != 0, reason="needs root to be somebody else")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "locks"


def script(
    folder: Path, *, shared: bool, name: str = "node", timeout: float = 0.0, work: str = "sys.stdin.read()"
) -> str:
    return _HOLDER.format(path=sys.path, folder=str(folder), name=name, shared=shared, timeout=timeout, work=work)


@contextlib.contextmanager
def held(
    folder: Path, *, shared: bool, name: str = "node", work: str = "sys.stdin.read()"
) -> Iterator[subprocess.Popen[str]]:
    """Another process that holds the lock until the block ends."""
    argv = [sys.executable, "-c", script(folder, shared=shared, name=name, work=work)]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        assert holder.stdin is not None
        assert holder.stdout.readline() == "held\n"
        try:
            yield holder
        finally:
            with contextlib.suppress(OSError):
                holder.stdin.close()
            holder.wait(10)


def free(folder: Path, *, shared: bool, name: str = "node") -> bool:
    try:
        with host_lock(folder, name, shared=shared, timeout=0):
            return True
    except InfrastructureError:
        return False


@pytest.mark.parametrize(
    ("holds", "wants", "both"),
    [("shared", "shared", True), ("shared", "alone", False), ("alone", "shared", False), ("alone", "alone", False)],
)
def test_who_may_hold_it_together(folder: Path, holds: str, wants: str, both: bool) -> None:
    with held(folder, shared=holds == "shared"):
        assert free(folder, shared=wants == "shared") is both
        assert free(folder, shared=False, name="another")
    assert free(folder, shared=False)


def test_a_killed_holder_gives_it_back_though_its_child_lives_on(folder: Path) -> None:
    work = (
        "import subprocess; print(subprocess.Popen(['sleep', '30'], close_fds=False).pid, flush=True); sys.stdin.read()"
    )
    with held(folder, shared=False, work=work) as holder:
        assert holder.stdout is not None
        child = int(holder.stdout.readline())
        assert not free(folder, shared=True)
        holder.kill()
        holder.wait(10)
        assert free(folder, shared=False)
        os.kill(child, signal.SIGKILL)


def test_the_time_limit_and_what_is_told(folder: Path) -> None:
    told: list[str] = []
    with held(folder, shared=False):
        started = time.monotonic()
        with (
            pytest.raises(InfrastructureError, match=r"'node' was not free within 0 s .*try again later") as caught,
            host_lock(folder, "node", shared=True, timeout=0.3, waiting=told.append),
        ):
            pass
        assert 0.3 <= time.monotonic() - started < 3
    assert caught.value.exit_code == 3
    assert told == ["waiting for another build or replay on this machine (lock 'node')"]


def test_it_is_had_when_it_becomes_free(folder: Path) -> None:
    told: list[str] = []
    with held(folder, shared=False) as holder:
        assert holder.stdin is not None
        threading.Timer(0.2, holder.stdin.close).start()
        with host_lock(folder, "node", shared=True, timeout=10, waiting=told.append):
            assert len(told) == 1


def test_a_build_that_waits_comes_before_later_replays(folder: Path) -> None:
    with held(folder, shared=True) as replay:
        assert replay.stdin is not None
        waiting = threading.Event()
        built = threading.Event()

        def build() -> None:
            with host_lock(folder, "node", shared=False, timeout=10, waiting=lambda _: waiting.set()):
                built.set()

        thread = threading.Thread(target=build)
        thread.start()
        assert waiting.wait(5)
        # The lock is held by sharers only, and yet no further one gets it.
        assert not free(folder, shared=True)
        replay.stdin.close()
        assert built.wait(5)
        thread.join()
    assert free(folder, shared=True)


def test_an_error_inside_gives_it_back(folder: Path) -> None:
    with pytest.raises(ValueError, match="mine"), host_lock(folder, "node", shared=False, timeout=0):
        raise ValueError("mine")
    assert free(folder, shared=False)


# Leases of CPUs


def test_leases_hold_every_cpu_and_no_other(folder: Path) -> None:
    with cpu_leases(folder, [frozenset({3, 1}), frozenset({2})], timeout=0):
        assert [free(folder, shared=False, name=f"cpu-{cpu}") for cpu in range(5)] == [True, False, False, False, True]
    assert free(folder, shared=False, name="cpu-1")


def test_leases_wait_for_one_that_is_taken_and_keep_none_when_it_stays_so(folder: Path) -> None:
    with held(folder, shared=False, name="cpu-2"):
        with (
            pytest.raises(InfrastructureError, match="'cpu-2' was not free"),
            cpu_leases(folder, [frozenset({1, 2})], timeout=0.1),
        ):
            pass
        assert free(folder, shared=False, name="cpu-1")
        with cpu_leases(folder, [frozenset({1, 3})], timeout=0):
            pass


def test_no_lease_without_cpus(folder: Path) -> None:
    with cpu_leases(folder, [frozenset()], timeout=0), cpu_leases(folder, [], timeout=0):
        assert not folder.exists()


def test_two_that_want_the_same_cpus_the_other_way_round_do_not_block_each_other(folder: Path) -> None:
    counted: list[int] = []

    def work(first: int, second: int) -> None:
        for _ in range(10):
            with cpu_leases(folder, [frozenset({first}), frozenset({second})], timeout=20):
                counted.append(first)

    threads = [threading.Thread(target=work, args=pair) for pair in ((1, 2), (2, 1))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(counted) == 20


# The folder that everybody shares


def test_everybody_may_take_a_lock_whatever_the_umask(tmp_path: Path) -> None:
    folder = tmp_path / "above" / "locks"
    old = os.umask(0o077)
    try:
        assert free(folder, shared=False)
    finally:
        assert os.umask(old) == 0o077
    assert stat.S_IMODE(folder.stat().st_mode) == 0o1777
    assert {stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()} == {0o666}
    # What is above belongs to its maker alone.
    assert stat.S_IMODE(folder.parent.stat().st_mode) == 0o700


@pytest.fixture
def common() -> Iterator[Path]:
    """A folder that another user can reach."""
    with tempfile.TemporaryDirectory(prefix="replay-parity-locks-") as name:
        Path(name).chmod(0o755)
        yield Path(name) / "locks"


def _as_other(text: str) -> subprocess.CompletedProcess[str]:
    become = f"import os; os.setgid(12345); os.setuid(12345)\n{text}"
    # Imported before: the other user may not be able to read the source.
    early = f"import sys; sys.path[:0] = {sys.path!r}\nimport replay_parity.system.locks\n"
    return subprocess.run([sys.executable, "-c", early + become], capture_output=True, text=True, check=False)


@as_root
def test_another_user_takes_and_waits_for_the_same_lock(common: Path) -> None:
    assert free(common, shared=False)
    done = _as_other(script(common, shared=False, work="pass"))
    assert (done.stdout, done.stderr) == ("held\n", "")
    with host_lock(common, "node", shared=True, timeout=0):
        done = _as_other(script(common, shared=False, work="pass"))
        assert "was not free" in done.stderr


@as_root
def test_a_file_that_another_user_may_only_read_still_locks(common: Path) -> None:
    assert free(common, shared=False)
    for path in common.iterdir():
        path.chmod(0o644)
    done = _as_other(script(common, shared=False, work="pass"))
    assert (done.stdout, done.stderr) == ("held\n", "")


@as_root
def test_a_folder_of_somebody_else_that_is_closed(common: Path) -> None:
    common.mkdir(mode=0o700)
    done = _as_other(script(common, shared=False, work="pass"))
    assert "REPLAY_PARITY_LOCK_DIR" in done.stderr


@pytest.mark.parametrize("kind", ["link", "pipe", "folder"])
def test_a_lock_that_is_no_regular_file(folder: Path, tmp_path: Path, kind: str) -> None:
    folder.mkdir()
    path = folder / "node.lock"
    if kind == "link":
        (tmp_path / "target").write_text("precious")
        path.symlink_to(tmp_path / "target")
    elif kind == "pipe":
        os.mkfifo(path)
    else:
        path.mkdir()
    with pytest.raises(InfrastructureError, match="host lock"), host_lock(folder, "node", shared=False, timeout=0):
        pass


def test_two_that_make_the_lock_at_the_same_time(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder.mkdir()
    real = os.open
    raced: list[str] = []

    def racing(path: Path, flags: int, mode: int = 0o777) -> int:
        if flags & os.O_EXCL and str(path) not in raced:
            raced.append(str(path))
            os.close(real(path, os.O_CREAT | os.O_WRONLY, 0o666))
        return real(path, flags, mode)

    monkeypatch.setattr(os, "open", racing)
    assert free(folder, shared=False)
    assert len(raced) == 2
