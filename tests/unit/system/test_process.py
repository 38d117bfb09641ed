"""Real processes that behave badly: each is ended with everything that it started (threat 15)."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from replay_parity.errors import InfrastructureError, ProcessError
from replay_parity.system import descendants, observe, running
from replay_parity.system.process import Completed, ProcessSpec, run, run_all, tail_of

linux = pytest.mark.skipif(sys.platform != "linux", reason="needs /proc and a subreaper")

# Leaves its session, its group, its parents and its environment, then tells its id and stays.
_DAEMON = """
import os, sys
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.setsid()
        open(sys.argv[1] + ".part", "w").write(str(os.getpid()))
        os.rename(sys.argv[1] + ".part", sys.argv[1])
        os.execve("/bin/sleep", ["innocent", "300"], {})
    os._exit(0)
os.wait()
import time
while not os.path.exists(sys.argv[1]):
    time.sleep(0.01)
"""


@pytest.fixture(autouse=True)
def _short_grace(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(running, "_GRACE_SECONDS", 0.2)


def spec(
    folder: Path,
    *argv: str,
    env: dict[str, str] | None = None,
    timeout: float = 20.0,
    program: Path | None = None,
    output_cap: int = 1 << 20,
    file_cap: int | None = None,
    watched: Path | None = None,
    watched_cap: int | None = None,
    cpus: frozenset[int] | None = None,
    umask: int = 0o022,
) -> ProcessSpec:
    folder.mkdir(exist_ok=True)
    return ProcessSpec(
        argv=argv,
        cwd=folder,
        env={"PATH": "/usr/bin:/bin"} if env is None else env,
        stdout=folder / "stdout",
        stderr=folder / "stderr",
        timeout=timeout,
        program=program,
        output_cap=output_cap,
        file_cap=file_cap,
        watched=watched,
        watched_cap=watched_cap,
        cpus=cpus,
        umask=umask,
    )


def shell(script: str) -> tuple[str, str, str]:
    return ("/bin/sh", "-c", script)


def python(script: str, *arguments: str) -> tuple[str, ...]:
    return (sys.executable, "-I", "-S", "-c", script, *arguments)


def lives(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def until(condition: Callable[[], bool], seconds: float = 5.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.01)


def written_pid(path: Path) -> int:
    until(path.exists)
    return int(path.read_text())


# What a process is given


def test_the_environment_is_what_was_given_and_a_marker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GITHUB_TOKEN", "secret")
    monkeypatch.setenv("ACTIONS_RUNTIME_TOKEN", "secret")
    run(spec(tmp_path, "/usr/bin/env", env={"ONLY": "this"}))
    lines = (tmp_path / "stdout").read_text().splitlines()
    assert "ONLY=this" in lines
    assert {line.partition("=")[0] for line in lines} == {"ONLY", descendants.MARKER}


def test_folder_umask_and_closed_input(tmp_path: Path) -> None:
    done = run(spec(tmp_path, *shell("pwd; umask; wc -c"), umask=0o077))
    assert done.stdout.read_text().split() == [str(tmp_path), "0077", "0"]
    assert (done.returncode, done.end, done.leftovers) == (0, "exited", 0)


def test_the_program_may_be_told_another_name(tmp_path: Path) -> None:
    run(spec(tmp_path, "neutral", "-c", "echo $0", program=Path("/bin/sh")))
    assert (tmp_path / "stdout").read_text() == "neutral\n"


def test_it_leads_a_session_of_its_own_and_inherits_no_file(tmp_path: Path) -> None:
    read, write = os.pipe()
    os.set_inheritable(write, True)
    try:
        run(
            spec(
                tmp_path, *python("import os; print(os.getsid(0) == os.getpid(), sorted(os.listdir('/proc/self/fd')))")
            )
        )
    finally:
        os.close(read)
        os.close(write)
    # 3 is the listing itself.
    assert (tmp_path / "stdout").read_text() == "True ['0', '1', '2', '3']\n"


@linux
def test_limits_that_the_kernel_keeps(tmp_path: Path) -> None:
    script = """
import resource, time
while resource.getrlimit(resource.RLIMIT_CPU)[0] == resource.RLIM_INFINITY:
    time.sleep(0.01)
print(*(resource.getrlimit(kind)[0] for kind in (resource.RLIMIT_CORE, resource.RLIMIT_FSIZE, resource.RLIMIT_CPU)))
"""
    run(spec(tmp_path, *python(script), file_cap=12345, cpus=frozenset({0}), timeout=7))
    assert (tmp_path / "stdout").read_text().split() == ["0", "12345", str(7 + running._CPU_SLACK_SECONDS)]


@linux
def test_a_lower_limit_of_the_user_stays(tmp_path: Path) -> None:
    script = f"""
import resource, sys
sys.path[:0] = {sys.path!r}
resource.setrlimit(resource.RLIMIT_FSIZE, (5000, 5000))
from pathlib import Path
from replay_parity.system.process import ProcessSpec, run
here = Path({str(tmp_path)!r})
argv = ["/bin/sh", "-c", "sleep 0.2; ulimit -f"]
run(ProcessSpec(argv, here, {{"PATH": "/bin"}}, here / "out", here / "err", 5, file_cap=1 << 20))
"""
    subprocess.run([sys.executable, "-c", script], check=True)
    # In blocks of 512 bytes.
    assert int((tmp_path / "out").read_text()) == 5000 // 512


# Limits


def test_a_sleeper_is_ended_at_its_time_limit(tmp_path: Path) -> None:
    done = run(spec(tmp_path, "/bin/sleep", "60", timeout=0.2))
    assert (done.end, done.returncode) == ("timed_out", -signal.SIGTERM)
    assert done.seconds < 2


def test_one_that_ignores_term_is_killed(tmp_path: Path) -> None:
    script = (
        "import os, signal, time; signal.signal(15, signal.SIG_IGN); print(os.getpid(), flush=True); time.sleep(60)"
    )
    done = run(spec(tmp_path, *python(script), timeout=0.5))
    assert (done.end, done.returncode) == ("timed_out", -signal.SIGKILL)
    assert not lives(int((tmp_path / "stdout").read_text()))


@pytest.mark.parametrize("stream", ["1", "2"])
def test_a_flood_is_stopped(tmp_path: Path, stream: str) -> None:
    done = run(spec(tmp_path, *shell(f"exec yes flood >&{stream}"), output_cap=100_000))
    assert done.end == "output_cap"
    assert not lives_any("yes flood")


def lives_any(words: str) -> bool:
    return any(
        " ".join(process.info["cmdline"] or []) == words and process.status() != psutil.STATUS_ZOMBIE
        for process in psutil.process_iter(["cmdline"])
    )


def test_a_flood_in_the_last_moment_is_no_good_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Nobody looks in time.
    monkeypatch.setattr(running.Running, "broken_limit", lambda *_: None)
    done = run(spec(tmp_path, *shell("head -c 5000 /dev/zero"), output_cap=1000))
    assert (done.end, done.returncode) == ("output_cap", 0)


@pytest.mark.parametrize(
    "script",
    [
        "mkdir -p box/a/b; cd box/a/b; while :; do head -c 50000 /dev/zero >> big; sleep 0.01; done",
        "mkdir -p box/a; cd box/a; i=0; while :; do : > $i; i=$((i+1)); done",
        "mkdir -p box; cd box; while :; do mkdir a; cd a; done",
    ],
    ids=["deep-file", "empty-files", "folders"],
)
def test_a_folder_over_its_cap_is_stopped(tmp_path: Path, script: str) -> None:
    watched = tmp_path / "box"
    done = run(spec(tmp_path, *shell(script), watched=watched, watched_cap=1 << 20))
    assert done.end == "output_cap"


def test_a_folder_within_its_cap_is_fine(tmp_path: Path) -> None:
    watched = tmp_path / "box"
    done = run(spec(tmp_path, *shell("mkdir box; ln -s / box/all; echo > box/a"), watched=watched, watched_cap=1 << 20))
    assert (done.end, done.returncode) == ("exited", 0)


@linux
def test_one_file_over_its_cap_is_stopped_by_the_kernel(tmp_path: Path) -> None:
    done = run(spec(tmp_path, *shell("sleep 0.2; exec head -c 900000 /dev/zero > big"), file_cap=10_000))
    assert (done.end, done.returncode) == ("output_cap", -signal.SIGXFSZ)
    assert (tmp_path / "big").stat().st_size == 10_000


# Trees


@linux
def test_one_that_forks_away_is_found_and_ended(tmp_path: Path) -> None:
    done = run(spec(tmp_path, *python(_DAEMON, str(tmp_path / "pid"))))
    assert (done.returncode, done.end, done.leftovers) == (0, "exited", 1)
    assert not psutil.pid_exists(written_pid(tmp_path / "pid"))


@linux
def test_one_that_forks_away_and_hangs(tmp_path: Path) -> None:
    script = _DAEMON + "\ntime.sleep(300)"
    done = run(spec(tmp_path, *python(script, str(tmp_path / "pid")), timeout=1.0))
    assert (done.end, done.leftovers) == ("timed_out", 1)
    assert not psutil.pid_exists(written_pid(tmp_path / "pid"))


@linux
def test_one_that_gathers_orphans_itself(tmp_path: Path) -> None:
    reaper = "import ctypes; ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)\n"
    # The daemon's child forks away from the daemon, which adopts it: both are found, one after the other.
    script = reaper + _DAEMON.replace('os.execve("/bin/sleep"', 'os.fork() or os.setsid(); os.execve("/bin/sleep"')
    done = run(spec(tmp_path, *python(script, str(tmp_path / "pid"))))
    assert done.leftovers == 2
    assert not psutil.pid_exists(written_pid(tmp_path / "pid"))


def test_background_children_of_a_finished_process_are_ended(tmp_path: Path) -> None:
    done = run(spec(tmp_path, *shell("sleep 300 & echo $!")))
    assert done.leftovers == (1 if sys.platform == "linux" else 0)
    assert not lives(int((tmp_path / "stdout").read_text()))


@linux
def test_an_orphan_that_ended_by_itself_is_no_leftover(tmp_path: Path) -> None:
    before = observe.children_of(os.getpid())
    done = run(spec(tmp_path, *shell("(sh -c 'sleep 0.05' &) ; sleep 0.3")))
    assert done.leftovers == 0
    # It was waited for, so that no zombie stays.
    assert observe.children_of(os.getpid()) == before


@linux
def test_children_of_others_are_left_alone(tmp_path: Path) -> None:
    with subprocess.Popen(["/bin/sleep", "30"], start_new_session=True) as stranger:
        run(spec(tmp_path, *python(_DAEMON, str(tmp_path / "pid"))))
        assert stranger.poll() is None
        stranger.kill()
    assert not psutil.pid_exists(written_pid(tmp_path / "pid"))


@linux
def test_an_orphan_of_a_process_that_still_runs_is_left_to_it(tmp_path: Path) -> None:
    waits = shell("(setsid sleep 300 &) ; until test -e ../go; do sleep 0.02; done; pgrep -x sleep -P $PPID | wc -l")
    short = spec(tmp_path / "a", *shell("sleep 0.3; : > ../go"))
    first, second = run_all([short, spec(tmp_path / "b", *waits)])
    assert (first.leftovers, second.leftovers) == (0, 1)
    assert not lives_any("sleep 300")


@pytest.mark.parametrize("known_by", ["marker", "look"])
def test_without_a_subreaper_a_runaway_is_known_by_marker_or_look(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, known_by: str
) -> None:
    monkeypatch.setattr(descendants, "_LINUX", False)
    monkeypatch.setattr(observe, "_LINUX", False)
    script = _DAEMON.replace("{}", "os.environ")
    if known_by == "look":
        # Drops the marker, but stays a child until its parent ends.
        script = _DAEMON.replace("if os.fork() == 0:\n        os.setsid()", "if True:") + "time.sleep(0.6)"
        script = script.replace("os.wait()", "")
    done = run(spec(tmp_path, *python(script, str(tmp_path / "pid"))))
    assert not lives(written_pid(tmp_path / "pid"))
    assert done.leftovers == 1
    assert done.peak_threads >= 1
    assert done.peak_rss_bytes > 1 << 20


def test_what_comes_back_faster_than_it_can_be_ended_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(descendants, "_PATIENCE_SECONDS", 0.05)
    monkeypatch.setattr(descendants.Family, "_orphans", lambda *_: [2**22 + 1])
    monkeypatch.setattr(descendants, "_carriers", lambda *_: [2**22 + 1])
    with pytest.raises(InfrastructureError, match="cannot be ended"):
        run(spec(tmp_path, "/bin/true"))


# Several at a time, CPUs, what is seen


@linux
@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="needs two CPUs")
def test_two_at_a_time_on_disjoint_cpus(tmp_path: Path) -> None:
    left, right = sorted(os.sched_getaffinity(0))[:2]
    script = "grep Cpus_allowed_list /proc/self/status; : > ../$0; until test -e ../$1; do sleep 0.01; done; sleep 0.1"
    own = os.sched_getaffinity(0)
    done = run_all(
        [
            spec(tmp_path / "a", *shell(script), "left", "right", cpus=frozenset({left})),
            spec(tmp_path / "b", *shell(script), "right", "left", cpus=frozenset({right})),
        ]
    )
    assert [item.affinity for item in done] == [(left,), (right,)]
    assert [item.stdout.read_text().split()[-1] for item in done] == [str(left), str(right)]
    assert os.sched_getaffinity(0) == own


@linux
def test_a_cpu_that_is_not_there(tmp_path: Path) -> None:
    own = os.sched_getaffinity(0)
    with pytest.raises(InfrastructureError, match="cannot run a process on CPU 4000"):
        run(spec(tmp_path, "/bin/true", cpus=frozenset({4000})))
    assert os.sched_getaffinity(0) == own


@linux
def test_threads_that_compute_and_threads_that_wait(tmp_path: Path) -> None:
    script = """
import os, threading, time
for _ in range(3):
    threading.Thread(target=time.sleep, args=(1.5,)).start()
if os.fork() == 0:
    end = time.monotonic() + 0.9
    while time.monotonic() < end: pass
    os._exit(0)
end = time.monotonic() + 0.9
while time.monotonic() < end: pass
"""
    done = run(spec(tmp_path, *python(script), cpus=frozenset({min(os.sched_getaffinity(0))})))
    assert done.peak_threads == 5
    # The sleepers wait, but one may be caught while it is woken.
    assert 2 <= done.peak_runnable <= 3


@linux
def test_the_peak_of_memory_is_the_childs_own(tmp_path: Path) -> None:
    small = run(spec(tmp_path, "/bin/sleep", "0.1"))
    large = run(spec(tmp_path, *python("data = b'x' * (80 << 20); del data; import time; time.sleep(0.5)")))
    # What is freed still counts; what this Python holds does not.
    assert 0 < small.peak_rss_bytes < 8 << 20
    assert 80 << 20 < large.peak_rss_bytes < 120 << 20


def test_waiting_tells_how_it_goes(tmp_path: Path) -> None:
    ticks: list[None] = []
    run(spec(tmp_path, "/bin/sleep", "0.1"), tick=lambda: ticks.append(None))
    assert len(ticks) >= 2


# Failures to start, interrupts


def test_a_program_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(InfrastructureError, match=r"/nowhere/program: cannot start: No such file") as caught:
        run(spec(tmp_path, "/nowhere/program"))
    assert caught.value.exit_code == 3


def test_a_log_that_cannot_be_opened(tmp_path: Path) -> None:
    (tmp_path / "stdout").mkdir()
    with pytest.raises(InfrastructureError, match="cannot open the log"):
        run(spec(tmp_path, "/bin/true"))


def test_when_the_second_cannot_start_the_first_is_ended(tmp_path: Path) -> None:
    with pytest.raises(InfrastructureError, match="cannot start"):
        run_all([spec(tmp_path / "a", "/bin/sleep", "301"), spec(tmp_path / "b", "/nowhere/program")])
    assert not lives_any("/bin/sleep 301")


def test_an_exception_while_waiting_ends_everything(tmp_path: Path) -> None:
    def tick() -> None:
        if (tmp_path / "a" / "pid").exists():
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_all(
            [
                spec(tmp_path / "a", *python(_DAEMON + "time.sleep(300)", "pid")),
                spec(tmp_path / "b", "/bin/sleep", "302"),
            ],
            tick=tick,
        )
    assert not lives_any("/bin/sleep 302")
    if sys.platform == "linux":
        assert not psutil.pid_exists(written_pid(tmp_path / "a" / "pid"))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_every_child_of_a_real_run(tmp_path: Path, number: signal.Signals) -> None:
    stubborn = """
import os, signal, time
signal.signal(15, signal.SIG_IGN)
open('pid', 'w').write(str(os.getpid()))
time.sleep(300)
"""
    script = f"""
import signal, sys
sys.path[:0] = {sys.path!r}
signal.signal(signal.SIGTERM, signal.default_int_handler)
from pathlib import Path
from replay_parity.system.process import ProcessSpec, run_all
specs = []
for name in ("a", "b"):
    here = Path({str(tmp_path)!r}) / name
    here.mkdir()
    argv = [sys.executable, "-I", "-S", "-c", {stubborn!r}]
    specs.append(ProcessSpec(argv, here, {{}}, here / "out", here / "err", 60))
try:
    run_all(specs)
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True) as parent:
        until(
            lambda: all((tmp_path / name / "pid").exists() and (tmp_path / name / "pid").read_text() for name in "ab")
        )
        children = [written_pid(tmp_path / name / "pid") for name in "ab"]
        parent.send_signal(number)
        time.sleep(0.2)
        # A second one, while children are being ended, must not leave any.
        parent.send_signal(number)
        out, _ = parent.communicate(timeout=20)
    assert "interrupted" in out or parent.returncode != 0
    assert not any(lives(child) for child in children)


def test_from_another_thread(tmp_path: Path) -> None:
    done: list[Completed] = []
    threads = [
        threading.Thread(target=lambda name=name: done.append(run(spec(tmp_path / name, "/bin/sleep", "0.2"))))
        for name in ("a", "b", "c")
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [item.returncode for item in done] == [0, 0, 0]


# Words


def test_success_is_demanded_in_words(tmp_path: Path) -> None:
    assert run(spec(tmp_path, "/bin/true")).require_success("do it").returncode == 0
    with pytest.raises(ProcessError, match=r"cannot do it: it ended with status 3: why") as caught:
        run(spec(tmp_path, *shell("echo why >&2; exit 3"))).require_success("do it")
    assert (caught.value.returncode, caught.value.folder, caught.value.tail) == (3, str(tmp_path), "why")
    assert caught.value.argv[0] == "/bin/sh"
    with pytest.raises(ProcessError, match=r"it was ended after 0 s: it printed nothing"):
        run(spec(tmp_path, "/bin/sleep", "60", timeout=0.1)).require_success("do it")
    with pytest.raises(ProcessError, match="it wrote more than it may"):
        run(spec(tmp_path, *shell("exec yes"), output_cap=10)).require_success("do it")


def test_the_tail_is_the_end_of_the_errors_else_of_the_output(tmp_path: Path) -> None:
    assert run(spec(tmp_path, *shell("echo out"))).tail() == "out"
    assert run(spec(tmp_path, *shell("echo out; echo err >&2"))).tail() == "err"
    assert tail_of(tmp_path / "none") == ""
    (tmp_path / "bytes").write_bytes(b"\xff" + b"a" * 10)
    assert tail_of(tmp_path / "bytes", size=3) == "aaa"
    assert tail_of(tmp_path / "bytes") == "\ufffd" + "a" * 10


def test_sizes_of_trees_and_files(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "file").write_bytes(b"x" * 10_000)
    assert observe.size_of_tree(tmp_path, limit=1 << 20) == 4096 + 10_000
    assert observe.size_of_tree(tmp_path / "none", limit=1) == 0
    assert observe.size_of_file(tmp_path / "none") == 0


def test_no_limit_of_ours_changed(tmp_path: Path) -> None:
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    run(spec(tmp_path, "/bin/true", file_cap=1))
    assert resource.getrlimit(resource.RLIMIT_FSIZE) == before
