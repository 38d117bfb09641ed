"""What lies in the cache is used only when it is intact; a run that was killed does not hurt the next one."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import orjson
import psutil
import pytest

import replay_parity
import tests
from replay_parity.errors import InfrastructureError
from replay_parity.pin.builder import SIDES, Artifact
from replay_parity.pin.store import write_sealed
from replay_parity.system.files import sha256_bytes
from tests.support.tiny import Engines, Workshop, artifact, identity


def flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.chmod(0o644)
    path.write_bytes(data)


def test_every_damaged_entry_is_made_anew(workshop: Workshop, engines: Engines) -> None:
    """One after the other in one cache: a runner, a record, a resolution, a layer."""
    old, new = engines.engine(1), engines.engine(2)
    first = workshop.pair(engines.folder, old, new)
    baseline, candidate = artifact(first, "baseline"), artifact(first, "candidate")

    def again() -> tuple[str, ...]:
        outcome = workshop.pair(engines.folder, old, new)
        assert outcome.sides == first.sides, "equal inputs give equal artifacts"
        assert [identity(artifact(outcome, side))["answer"] for side in SIDES] == [1, 2]
        return outcome.compiled

    assert again() == ()
    flip(candidate.path)
    assert again() == ("candidate",)
    (baseline.path.parent / "artifact.json").write_text("{}")
    assert again() == ("baseline",)
    (resolution,) = (workshop.cache / "resolutions").iterdir()
    flip(resolution)
    assert again() == (), "laid out and resolved again, both artifacts found"
    # A resolution that lies: the artifacts that it leads to do not exist.
    write_sealed(resolution, {"locks": {"baseline": "0" * 64, "candidate": "0" * 64}, "differences": []})
    assert again() == ()
    # Layers: the library of the engine is exchanged in both.
    for library in (workshop.cache / "layers").glob("*/target/debug/deps/libaisimulate_core-*.rlib"):
        flip(library)
    for built in (baseline, candidate):
        built.path.unlink()
    assert again() == ("baseline", "candidate")
    log = (workshop.logs / "build-candidate.log").read_text()
    assert "Compiling aisimulate-core" in log, "not taken from the damaged layer"
    # Intact layers are taken: only the runner is compiled.
    for built in (baseline, candidate):
        built.path.unlink()
    assert again() == ("baseline", "candidate")
    assert "Compiling aisimulate-core" not in (workshop.logs / "build-candidate.log").read_text()


def test_a_kept_runner_of_somebody_else_is_an_alarm(workshop: Workshop, engines: Engines) -> None:
    """The candidate's runner with a record and a seal that match it, in the baseline's place."""
    old, new = engines.engine(1), engines.engine(2)
    outcome = workshop.pair(engines.folder, old, new)
    baseline, candidate = artifact(outcome, "baseline"), artifact(outcome, "candidate")
    baseline.path.chmod(0o755)
    baseline.path.write_bytes(candidate.path.read_bytes())
    record = baseline.path.parent / "artifact.json"
    document = {**orjson.loads(record.read_bytes()), "sha256": candidate.record.sha256}
    record.write_bytes(orjson.dumps(document))
    write_sealed(record.with_name("seal.json"), {"record_sha256": sha256_bytes(record.read_bytes())})
    with pytest.raises(
        InfrastructureError, match=f"the runner says revision = 'git:{new}', it was built with 'git:{old}'"
    ):
        workshop.pair(engines.folder, old, new)


SCRIPT = """
import json, sys
from pathlib import Path
from replay_parity.pin import runner_source
from replay_parity.pin.models import Toolchain
from tests.support.tiny import Workshop
folder, runner, toolchain, environment, repository, old, new = sys.argv[1:]
runner_source.runner_folder = lambda: Path(runner)
shop = Workshop(Path(folder), Toolchain.model_validate_json(toolchain), json.loads(environment))
outcome = shop.pair(Path(repository), old, new)
print(json.dumps([outcome.sides[side].record.sha256 for side in ("baseline", "candidate")]))
"""


def start(workshop: Workshop, runner: Path, engines: Engines, old: str, new: str) -> subprocess.Popen[bytes]:
    """A run of our own in a process of its own."""
    paths = [Path(module.__path__[0]).parent for module in (replay_parity, tests)]
    return subprocess.Popen(
        [
            sys.executable,
            "-c",
            SCRIPT,
            str(workshop.folder),
            str(runner),
            workshop.toolchain.model_dump_json(),
            orjson.dumps(dict(workshop.environment)).decode(),
            str(engines.folder),
            old,
            new,
        ],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(map(str, paths))},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def wait_for(path: Path, pattern: str) -> Path:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        found = next(path.glob(pattern), None)
        if found is not None:
            return found
        time.sleep(0.01)
    raise AssertionError(f"no {pattern} in {path}")


@pytest.mark.parametrize("ending", [signal.SIGKILL, signal.SIGINT])
def test_a_run_that_is_ended_leaves_nothing_half_and_the_next_one_works(
    workshop: Workshop, engines: Engines, tiny_runner: Path, ending: signal.Signals
) -> None:
    old = engines.engine(1)
    mark = workshop.folder / "compiling"
    engines.core.joinpath("build.rs").write_text(
        f'fn main() {{ std::fs::write("{mark}", std::process::id().to_string()).unwrap();'
        " std::thread::sleep(std::time::Duration::from_secs(600)) }"
    )
    slow = engines.commit("a build that takes long")
    engines.core.joinpath("build.rs").unlink()
    new = engines.engine(2)
    process = start(workshop, tiny_runner, engines, old, slow)
    wait_for(workshop.folder, "compiling")
    process.send_signal(ending)
    process.communicate(timeout=30)
    script = int(mark.read_text())
    if ending == signal.SIGKILL:
        assert psutil.pid_exists(script), "nobody could end the compiler"
    else:
        assert not psutil.pid_exists(script)
    # The candidate of before was only begun; the baseline is there, whole.
    assert len(list((workshop.cache / "artifacts").iterdir())) == 1
    outcome = workshop.pair(engines.folder, old, new)
    assert outcome.compiled == ("candidate",)
    assert identity(artifact(outcome, "candidate"))["answer"] == 2
    assert not psutil.pid_exists(script) or psutil.Process(script).status() == psutil.STATUS_ZOMBIE
    leftovers = [
        path for path in workshop.folder.rglob("*") if path.name.startswith(("new-", "probe-", "index-", "log-"))
    ]
    assert leftovers == []
    assert list((workshop.root / "slot").iterdir()) == []


def test_two_runs_at_once_share_one_slot_and_agree(workshop: Workshop, engines: Engines, tiny_runner: Path) -> None:
    old, new = engines.engine(1), engines.engine(2)
    both = [start(workshop, tiny_runner, engines, old, new) for _ in range(2)]
    said = [process.communicate(timeout=120)[0] for process in both]
    assert [process.returncode for process in both] == [0, 0]
    assert orjson.loads(said[0]) == orjson.loads(said[1])
    outcome = workshop.pair(engines.folder, old, new)
    assert outcome.compiled == ()
    assert isinstance(outcome.sides["baseline"], Artifact)
    assert outcome.sides["baseline"].record.sha256 == orjson.loads(said[0])[0]
