"""A row's processes with runners that are scripts: what each outcome is called, and what no runner can do."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from replay_parity.errors import InfrastructureError
from replay_parity.replay import turn as module
from replay_parity.replay.node import Core
from replay_parity.replay.placement import Placement, place
from replay_parity.replay.repetition import SIDES, Repetition, ReplayJob, Runner, Side, replay_row
from replay_parity.system import running
from replay_parity.system.locks import host_lock
from replay_parity.system.progress import Silent

if TYPE_CHECKING:
    from tests.unit.replay.conftest import MakeRunner

TOGETHER = Placement(None, None, frozenset(), together=True, words="")
APART = Placement(None, None, frozenset(), together=False, words="")
_Replay = Callable[..., dict[Side, tuple[Repetition, ...]]]


@pytest.fixture
def replay(tmp_path: Path) -> _Replay:
    """Replay a row with one runner for each side, or one for both."""
    (tmp_path / "work").mkdir()

    def run(
        baseline: Runner,
        candidate: Runner | None = None,
        *,
        placement: Placement = TOGETHER,
        timeout: float = 20.0,
        config: Mapping[str, Any] | None = None,
    ) -> dict[Side, tuple[Repetition, ...]]:
        job = ReplayJob(
            config={"row_name": "row", **(config or {})},
            runners={"baseline": baseline, "candidate": candidate or baseline},
            timeout_seconds=timeout,
            work=tmp_path / "work",
        )
        return replay_row(job, placement=placement, locks=tmp_path / "locks", progress=Silent())

    return run


def the_first(done: dict[Side, tuple[Repetition, ...]]) -> Repetition:
    return done["baseline"][0]


def test_two_repetitions_of_each_side(runner: MakeRunner, replay: _Replay) -> None:
    done = replay(runner())
    assert [(item.side, item.index, item.status) for side in SIDES for item in done[side]] == [
        ("baseline", 1, "ok"),
        ("baseline", 2, "ok"),
        ("candidate", 1, "ok"),
        ("candidate", 2, "ok"),
    ]
    reports = {item.report for side in SIDES for item in done[side]}
    assert len(reports) == 4
    assert {path.read_bytes() for path in reports} == {b'{"record":1}\n'}
    first = the_first(done)
    assert first.qualification is not None
    assert (first.reason, first.failure, first.faults) == ("", None, ())
    assert first.seconds > 0
    assert first.peak_threads == 1
    assert first.cpus


_TELLS = """
told = {"argv": sys.argv[1:], "cwd": os.getcwd(), "env": dict(os.environ), "umask": os.umask(0),
        "config": config, "listing": sorted(os.listdir(".")), "parent": sorted(os.listdir(".."))}
good(json.dumps(told).encode())
"""


def test_nothing_tells_a_runner_its_side_and_no_secret_reaches_it(
    runner: MakeRunner, replay: _Replay, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("GITHUB_TOKEN", "ACTIONS_RUNTIME_TOKEN", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "secret")
    done = replay(runner(_TELLS))
    told = {(side, item.index): json.loads(item.report.read_bytes()) for side in SIDES for item in done[side]}
    for index in (1, 2):
        left, right = told["baseline", index], told["candidate", index]
        for one in (left, right):
            marker = one["env"].pop("REPLAY_PARITY_CHILD")
            assert len(marker) == 32
            base = one["env"]["HOME"].removesuffix("/home")
            one["env"] = {name: value.replace(base, "BASE") for name, value in one["env"].items()}
            one["cwd"] = one["cwd"].replace(base, "BASE")
            one["length"] = len(base)
        assert left == right
        assert "secret" not in json.dumps(left)
        assert not any("baseline" in word or "candidate" in word for word in json.dumps(left["argv"]))
    first, second = told["baseline", 1], told["baseline", 2]
    for name in ("cwd", "umask", "argv"):
        assert first[name] != second[name]
    for name in ("TMPDIR", "TZ", "LANG", "PADDING"):
        assert first["env"][name] != second["env"][name]


_TIMES = """
begin = time.monotonic()
time.sleep(0.4)
good(json.dumps([begin, time.monotonic()]).encode())
"""


@pytest.mark.parametrize(("placement", "together"), [(TOGETHER, True), (APART, False)])
def test_sides_run_together_and_repetitions_one_after_the_other(
    runner: MakeRunner, replay: _Replay, placement: Placement, together: bool
) -> None:
    done = replay(runner(_TIMES), placement=placement)
    spans = {(side, item.index): json.loads(item.report.read_bytes()) for side in SIDES for item in done[side]}

    def overlap(one: list[float], other: list[float]) -> bool:
        return one[0] < other[1] and other[0] < one[1]

    for index in (1, 2):
        assert overlap(spans["baseline", index], spans["candidate", index]) is together
    for side in SIDES:
        for other in SIDES:
            assert spans[side, 1][1] <= spans[other, 2][0]


@pytest.mark.skipif(not hasattr(os, "sched_getaffinity") or len(os.sched_getaffinity(0)) < 2, reason="needs two CPUs")
def test_each_side_runs_on_its_own_cpus(runner: MakeRunner, replay: _Replay) -> None:
    left, right = sorted(os.sched_getaffinity(0))[:2]
    placement = place([Core(frozenset({left}), 0), Core(frozenset({right}), 0)], pinning=True)
    done = replay(runner("good(json.dumps(sorted(os.sched_getaffinity(0))).encode())"), placement=placement)
    for side, cpu in zip(SIDES, (left, right), strict=True):
        assert [json.loads(item.report.read_bytes()) for item in done[side]] == [[cpu], [cpu]]
        assert [item.cpus for item in done[side]] == [(cpu,), (cpu,)]


def test_threads_that_share_a_cpu_are_a_fault(runner: MakeRunner, replay: _Replay) -> None:
    cpu = min(os.sched_getaffinity(0))
    placement = place([Core(frozenset({cpu}), 0)], pinning=True)
    spin = "end = time.monotonic() + 0.4\nwhile time.monotonic() < end: pass\n"
    done = replay(runner(f"child = os.fork()\n{spin}child == 0 and os._exit(0)\ngood()"), placement=placement)
    assert the_first(done).faults == ("2 threads shared 1 CPU: their order could leak",)


def test_a_process_that_outlives_the_replay_is_a_fault(runner: MakeRunner, replay: _Replay) -> None:
    done = replay(runner("good()\nif os.fork() == 0:\n    os.setsid(); os.closerange(0, 9); time.sleep(300)"))
    assert the_first(done).status == "ok"
    assert the_first(done).faults == ("1 process(es) outlived the replay and were ended",)


# Outcomes

_REFUSES = "error(12, kind='engine_refused', phase='new', variant='InvalidSpec', message='not this row')"


def test_a_typed_refusal(runner: MakeRunner, replay: _Replay) -> None:
    done = replay(runner(_REFUSES))
    for side in SIDES:
        (only,) = done[side]
        assert (only.status, only.reason) == ("refused", "not this row")
        assert only.failure is not None
        assert (only.failure.phase, only.failure.variant) == ("new", "InvalidSpec")


def test_beside_a_refusal_the_other_side_is_still_qualified_twice(runner: MakeRunner, replay: _Replay) -> None:
    done = replay(runner(_REFUSES), runner())
    assert [item.status for item in done["baseline"]] == ["refused"]
    assert [item.status for item in done["candidate"]] == ["ok", "ok"]


def test_beside_a_crash_nothing_is_repeated(runner: MakeRunner, replay: _Replay) -> None:
    done = replay(runner(), runner("sys.exit(1)"))
    assert [len(done[side]) for side in SIDES] == [1, 1]


@pytest.mark.parametrize(
    ("act", "status", "words"),
    [
        ("print('lost my way', file=sys.stderr); sys.exit(101)", "failed", "panicked: lost my way"),
        ("sys.exit(3)", "failed", "ended with status 3: it printed nothing"),
        ("os.kill(os.getpid(), 11)", "failed", "was ended by signal SIGSEGV: it printed nothing"),
        ("error(10, kind='bad_config', message='no such key')", "failed", "no such key"),
        ("error(11, kind='trace_mismatch', message='another trace')", "failed", "another trace"),
        (
            "error(101, kind='engine_refused', message='pretended')",
            "failed",
            "panicked although it left a 'engine_refu",
        ),
        ("error(12, kind='parity', message='x')", "failed", "ended with status 12 and left a wrong file: error.json"),
        ("good(); (output / 'canonical.jsonl').unlink()", "failed", "ended with status 0 but left no canonical.jsonl"),
        (
            "good(); os.rename(output / 'canonical.jsonl', 'x'); os.symlink('/etc/passwd', output / 'canonical.jsonl')",
            "failed",
            "left no canonical.jsonl",
        ),
        ("good(); (output / 'qualification.json').unlink()", "failed", "left a wrong file: qualification.json"),
        ("good(row_name='another')", "failed", "ran something else: it says row_name = 'another'"),
        ("time.sleep(60)", "timed_out", "did not end within 1 s and was ended"),
        ("signal.signal(15, signal.SIG_IGN); time.sleep(60)", "timed_out", "and was ended"),
        ("while True: os.write(1, b'x' * 100000)", "output_cap", "wrote more than a replay may"),
        ("Path('../home/a').write_bytes(b'x' * 600000); time.sleep(60)", "output_cap", "wrote more than a replay may"),
    ],
)
def test_other_ends(
    runner: MakeRunner, replay: _Replay, monkeypatch: pytest.MonkeyPatch, act: str, status: str, words: str
) -> None:
    monkeypatch.setattr(running, "_GRACE_SECONDS", 0.2)
    monkeypatch.setattr(module, "_STREAM_CAP", 1 << 20)
    monkeypatch.setattr(module, "_FOLDER_CAP", 500_000)
    found = the_first(replay(runner(act), timeout=0.8))
    assert found.status == status
    assert words in found.reason
    assert found.qualification is None


def test_a_runner_that_is_not_the_one_of_the_record(runner: MakeRunner, replay: _Replay) -> None:
    assert the_first(replay(runner(identity={"revision": "a" * 40}))).status == "ok"
    found = the_first(replay(runner(identity={"revision": "b" * 40})))
    assert found.status == "failed"
    assert "ran something else: it says revision = " in found.reason


def test_long_words_of_a_crash_are_cut(runner: MakeRunner, replay: _Replay) -> None:
    act = "[print('line', number, file=sys.stderr) for number in range(10000)]; sys.exit(1)"
    reason = the_first(replay(runner(act))).reason
    assert reason.endswith("line 9999")
    assert len(reason.splitlines()) <= 12


# What no runner may do, and what this machine may lack


def test_an_artifact_that_was_changed_before(runner: MakeRunner, replay: _Replay, tmp_path: Path) -> None:
    changed = runner()
    changed.path.write_text(changed.path.read_text() + "# one more line\n")
    with pytest.raises(InfrastructureError, match="the baseline's artifact was changed: it has SHA-256") as caught:
        replay(changed, runner())
    assert caught.value.exit_code == 3
    assert not list((tmp_path / "work").iterdir())


def test_a_candidate_that_changes_the_baselines_artifact(runner: MakeRunner, replay: _Replay, tmp_path: Path) -> None:
    baseline = runner()
    hostile = runner(f"open({str(baseline.path)!r}, 'a').write('#\\n'); good()")
    with pytest.raises(InfrastructureError, match="the baseline's artifact was changed"):
        replay(baseline, hostile)
    assert not list((tmp_path / "work").iterdir())


def test_an_artifact_that_is_gone(runner: MakeRunner, replay: _Replay) -> None:
    gone = runner()
    gone.path.unlink()
    with pytest.raises(InfrastructureError, match="cannot read the baseline's artifact"):
        replay(gone)


def test_a_runner_that_finds_the_disk_full(
    runner: MakeRunner, replay: _Replay, monkeypatch: pytest.MonkeyPatch
) -> None:
    act = "error(13, kind='io_error', message='cannot write canonical.jsonl: No space left on device')"
    found = the_first(replay(runner(act)))
    assert (found.status, found.failure is not None) == ("failed", True)
    monkeypatch.setattr(module, "_ROOM_FOR_A_REPORT", 1 << 62)
    with pytest.raises(InfrastructureError, match=r"the disk is full: cannot write .*free some space"):
        replay(runner(act))


def test_no_build_runs_meanwhile_and_no_cpu_serves_another_replay(
    runner: MakeRunner, replay: _Replay, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried: list[str] = []

    def try_locks(*arguments: object, **options: object) -> list[object]:
        for name in ("node", "cpu-5", "cpu-6"):
            with (
                pytest.raises(InfrastructureError, match="was not free"),
                host_lock(tmp_path / "locks", name, shared=False, timeout=0),
            ):
                pass
            tried.append(name)
        with host_lock(tmp_path / "locks", "node", shared=True, timeout=0):
            raise RuntimeError("seen enough")

    monkeypatch.setattr(module, "run_all", try_locks)
    placement = Placement(frozenset({5}), frozenset({6}), frozenset({5, 6}), together=True, words="")
    with pytest.raises(RuntimeError, match="seen enough"):
        replay(runner(), placement=placement)
    assert tried == ["node", "cpu-5", "cpu-6"]
    with host_lock(tmp_path / "locks", "node", shared=False, timeout=0):
        pass


def test_an_interrupt_ends_the_runners_and_leaves_nothing(runner: MakeRunner, tmp_path: Path) -> None:
    stubborn = runner(
        "signal.signal(15, signal.SIG_IGN); (output / 'canonical.jsonl').write_text('half'); "
        "Path(config['pids'], str(os.getpid())).touch(); time.sleep(300)"
    )
    (tmp_path / "pids").mkdir()
    (tmp_path / "work").mkdir()
    script = f"""
import sys
sys.path[:0] = {sys.path!r}
from pathlib import Path
from replay_parity.replay.placement import Placement
from replay_parity.replay.repetition import ReplayJob, Runner, replay_row
from replay_parity.system.progress import Silent
runner = Runner(Path({str(stubborn.path)!r}), {stubborn.sha256!r})
config = {{"row_name": "row", "pids": {str(tmp_path / "pids")!r}}}
job = ReplayJob(config, {{"baseline": runner, "candidate": runner}}, 60, Path({str(tmp_path / "work")!r}))
placement = Placement(None, None, frozenset(), together=True, words="")
try:
    replay_row(job, placement=placement, locks=Path({str(tmp_path / "locks")!r}), progress=Silent())
except KeyboardInterrupt:
    sys.exit(130)
"""
    with subprocess.Popen([sys.executable, "-c", script]) as process:
        deadline = time.monotonic() + 10
        while len(list((tmp_path / "pids").iterdir())) < 2:
            assert time.monotonic() < deadline
            time.sleep(0.02)
        process.send_signal(2)
        assert process.wait(10) == 130
    assert not any(Path("/proc", path.name).exists() for path in (tmp_path / "pids").iterdir())
    assert not list((tmp_path / "work").iterdir())
    with host_lock(tmp_path / "locks", "node", shared=False, timeout=0):
        pass
