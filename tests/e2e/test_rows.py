"""Rows whose runner misbehaves: each outcome is named, nothing is green, nothing hangs.

Where it can be, the misbehaving runner is the real one behind a script that changes its input or its output.
"""

from __future__ import annotations

import sys
import textwrap
from dataclasses import replace
from pathlib import Path

import pytest

from replay_parity.campaign.loading import load_campaign
from replay_parity.corpus.totals import totals
from replay_parity.errors import InfrastructureError
from replay_parity.parity.result import RowResult
from replay_parity.parity.verdict import decide
from replay_parity.pin.builder import Artifact
from replay_parity.replay.repetition import SIDES, Side
from replay_parity.stages.row import RowInputs, run_row
from replay_parity.stages.run import Prepared, RunOptions, prepare
from replay_parity.stages.workspace import Workspace
from replay_parity.system.files import sha256_file
from replay_parity.system.progress import Silent
from tests.support.files import write_campaign
from tests.support.scratch import settings

pytestmark = pytest.mark.engine

# argv is the runner's own: run --config config.json --output FOLDER.
HEADER = """\
#!{python} -I
import json, os, signal, subprocess, sys, time
from pathlib import Path
REAL, SIDE = {real!r}, {side!r}
config, output = Path(sys.argv[3]), Path(sys.argv[5])
def real(path=config):
    argv = ["replay-parity-runner", "run", "--config", str(path), "--output", str(output)]
    return subprocess.run(argv, executable=REAL).returncode
def changed(change):
    document = json.loads(config.read_bytes())
    change(document)
    copy = Path("changed.json")
    copy.write_text(json.dumps(document))
    return real(copy)
def rewrite(change):
    code = real()
    report = output / "canonical.jsonl"
    report.write_bytes(change(report.read_bytes()))
    return code
"""


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Prepared:
    """Both engines of 0.12.0 and 0.12.1, with the demo's vLLM row and a preflight row."""
    folder = tmp_path_factory.mktemp("prepared")
    rows = ["demo-vllm-aggregated", "preflight-vllm-two-workers"]
    campaign = write_campaign(folder, {"version": "0.12.0"}, {"version": "0.12.1"}, rows=rows)
    workspace = Workspace(folder / "results")
    with workspace.held():
        return prepare(
            load_campaign(campaign), options=RunOptions(), workspace=workspace, settings=settings(), progress=Silent()
        )


class Rows:
    """Runs a row with scripts in the place of runners."""

    def __init__(self, prepared: Prepared, folder: Path) -> None:
        self.prepared = prepared
        self.folder = folder

    def inputs(self, row: str, bodies: dict[Side, str], *, timeout: int) -> RowInputs:
        planned = next(item for item in self.prepared.plan.rows if item.row.name == row)
        planned = planned.model_copy(update={"row": planned.row.model_copy(update={"timeout_seconds": timeout})})
        return RowInputs(
            plan_sha256=self.prepared.plan.sha256,
            planned=planned,
            corpus=self.prepared.slices[planned.corpus.name],
            totals=totals(self.prepared.slices[planned.corpus.name]),
            sides={side: self.artifact(side, bodies.get(side)) for side in SIDES},
            workspace=Workspace(self.folder / "results"),
            locks_folder=settings().locks,
            progress=Silent(),
            label=row,
        )

    def artifact(self, side: Side, body: str | None) -> Artifact:
        assert self.prepared.built is not None
        built = self.prepared.built.sides[side]
        assert isinstance(built, Artifact)
        if body is None:
            return built
        script = self.folder / f"{side}.py"
        header = HEADER.format(python=sys.executable, real=str(built.path), side=side)
        script.write_text(header + textwrap.dedent(body))
        script.chmod(0o755)
        return replace(built, path=script, record=built.record.model_copy(update={"sha256": sha256_file(script)}))

    def run(
        self,
        *,
        both: str | None = None,
        baseline: str | None = None,
        candidate: str | None = None,
        row: str = "preflight-vllm-two-workers",
        timeout: int = 60,
    ) -> RowResult:
        bodies: dict[Side, str] = {}
        if baseline or both:
            bodies["baseline"] = baseline or both or ""
        if candidate or both:
            bodies["candidate"] = candidate or both or ""
        return run_row(self.inputs(row, bodies, timeout=timeout), attempt=1)


@pytest.fixture
def rows(prepared: Prepared, tmp_path: Path) -> Rows:
    return Rows(prepared, tmp_path)


def test_the_real_runners_match(rows: Rows) -> None:
    result = rows.run()
    assert (result.outcome, result.reason) == ("match", "one digest on both sides, evidence complete")
    assert decide([result], equal_trees=False) == ("PASS", 0)
    assert result.node is not None
    assert result.node.logical_cpus >= 1
    assert {repetition.peak_threads for repetition in result.baseline.repetitions} <= {0, 1}


@pytest.mark.parametrize("side", ["baseline", "candidate"])
def test_a_runner_that_hangs_is_ended_and_named(rows: Rows, side: str) -> None:
    body = "signal.signal(signal.SIGTERM, signal.SIG_IGN)\ntime.sleep(3600)\n"
    result = rows.run(
        baseline=body if side == "baseline" else None, candidate=body if side == "candidate" else None, timeout=2
    )
    assert (result.outcome, result.fault) == ("timed_out", side)
    assert side in result.reason
    assert "did not end" in result.reason
    # A candidate that alone hangs is a regression; with a baseline that hangs nothing was decided.
    assert decide([result], equal_trees=False) == (("FAIL", 1) if side == "candidate" else ("ERROR", 3))
    assert not list((rows.folder / "results").rglob("work")), "nothing is left behind"


def test_a_runner_that_prints_nan_is_refused(rows: Rows) -> None:
    body = """
    import re
    code = rewrite(lambda data: re.sub(rb'"duration_ms":[0-9.]+', b'"duration_ms":NaN', data))
    sys.exit(code)
    """
    result = rows.run(candidate=body)
    assert (result.outcome, result.fault) == ("invalid", "candidate")
    assert "NaN" in result.reason
    assert "/summary/duration_ms" in result.reason
    assert decide([result], equal_trees=False) == ("FAIL", 1)


@pytest.mark.parametrize(
    ("change", "pointer"),
    [
        ("config['arrival_speedup_ratio'] = 2.0", "/metadata/workload/arrival_speedup_ratio"),
        ("config['trace']['upstream']['commit'] = 'f' * 40", "/metadata/workload/upstream/commit"),
        ("config['spec']['topology']['workers']['initial_workers'] = 3", "/metadata/topology/workers/initial_workers"),
        ("config['metadata'] = {'note': 'x'}", "/metadata/note"),
    ],
)
def test_two_sides_that_are_equally_wrong_are_refused(rows: Rows, change: str, pointer: str) -> None:
    result = rows.run(both=f"def change(config):\n    {change}\nsys.exit(changed(change))\n")
    assert result.baseline.digests == result.candidate.digests, "both sides agree with each other"
    assert result.outcome == "invalid"
    assert pointer in result.reason
    assert decide([result], equal_trees=False)[1] != 0


def test_two_sides_that_replay_another_row_are_refused(rows: Rows) -> None:
    body = """
    def change(config):
        config['row_name'] = 'another-row'
    code = changed(change)
    qualification = output / 'qualification.json'
    honest = qualification.read_text()
    {forged}
    sys.exit(code)
    """
    result = rows.run(both=body.replace("{forged}", "pass"))
    assert result.outcome in {"invalid", "replay_failed"}
    assert "another-row" in result.reason
    # A runner that hides it in its own counters is found out by the record.
    forged = "qualification.write_text(honest.replace('another-row', 'preflight-vllm-two-workers'))"
    result = rows.run(both=body.replace("{forged}", forged))
    assert result.outcome == "invalid"
    assert "/metadata/row_name" in result.reason


def test_two_sides_that_replay_another_trace_are_refused(rows: Rows) -> None:
    body = """
    import hashlib
    def change(config):
        lines = Path(config['trace']['path']).read_bytes().splitlines(keepends=True)
        Path('other.jsonl').write_bytes(b''.join(reversed(lines)).replace(b'"output_length": 1', b'"output_length": 2'))
        data = Path('other.jsonl').read_bytes()
        config['trace']['path'] = 'other.jsonl'
        config['trace']['sha256'] = hashlib.sha256(data).hexdigest()
    sys.exit(changed(change))
    """
    result = rows.run(both=body)
    assert result.outcome == "invalid"
    assert "/metadata/workload/sha256" in result.reason


def test_a_trace_that_changes_under_the_runner_is_told(rows: Rows) -> None:
    body = """
    def change(config):
        data = Path(config['trace']['path']).read_bytes()
        Path('other.jsonl').write_bytes(data[:-2] + b' \\n')
        config['trace']['path'] = 'other.jsonl'
    sys.exit(changed(change))
    """
    result = rows.run(candidate=body)
    assert (result.outcome, result.fault) == ("replay_failed", "candidate")
    assert "trace_mismatch" in result.reason


def test_an_unstable_candidate_stops_before_the_comparison(rows: Rows) -> None:
    body = """
    import re
    def change(data):
        return re.sub(rb'"gpu_hours":[0-9.e-]+', b'"gpu_hours":%d.5' % (time.time_ns() % 10**9), data)
    import hashlib
    code = rewrite(change)
    qualification = output / 'qualification.json'
    document = json.loads(qualification.read_bytes())
    document['canonical_sha256'] = hashlib.sha256((output / 'canonical.jsonl').read_bytes()).hexdigest()
    qualification.write_text(json.dumps(document))
    sys.exit(code)
    """
    result = rows.run(candidate=body)
    assert (result.outcome, result.fault) == ("unstable_candidate", "candidate")
    assert "/summary/gpu_hours" in result.reason
    assert len(result.reports) == 2
    assert decide([result], equal_trees=False) == ("FAIL", 1)


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("os.kill(os.getpid(), signal.SIGSEGV)\n", "SIGSEGV"),
        ("print('no space on my side', file=sys.stderr)\nsys.exit(7)\n", "no space on my side"),
        ("sys.exit(0)\n", "canonical.jsonl"),
        ("real()\n(output / 'qualification.json').write_text('{}')\n", "qualification.json"),
        ("real()\n(output / 'canonical.jsonl').unlink()\n", "canonical.jsonl"),
        (
            "real()\nreport = output / 'canonical.jsonl'\nreport.unlink()\nreport.symlink_to('/etc/passwd')\n",
            "canonical.jsonl",
        ),
        ("sys.exit(rewrite(lambda data: data + data))\n", "line"),
        ("sys.exit(rewrite(lambda data: data[:-10]))\n", "canonical"),
    ],
)
def test_a_candidate_that_breaks_is_never_green(rows: Rows, body: str, words: str) -> None:
    result = rows.run(candidate=body)
    assert result.outcome in {"replay_failed", "invalid"}
    assert result.fault == "candidate"
    assert words in result.reason
    assert decide([result], equal_trees=False) == ("FAIL", 1)


def test_a_runner_that_floods_its_output_is_ended(rows: Rows) -> None:
    body = "chunk = 'x' * (1 << 20)\nwhile True:\n    sys.stdout.write(chunk)\n"
    result = rows.run(candidate=body)
    assert (result.outcome, result.fault) == ("replay_failed", "candidate")
    assert "more than" in result.reason


def test_a_runner_sees_no_token_and_no_side(rows: Rows, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("GITHUB_TOKEN", "ACTIONS_RUNTIME_TOKEN", "AWS_SECRET_ACCESS_KEY", "CARGO_REGISTRY_TOKEN"):
        monkeypatch.setenv(name, "s3cret-value")
    seen = rows.folder / "seen"
    seen.mkdir()
    body = f"""
    words = [*sys.argv[1:], os.getcwd(), *(f'{{name}}={{value}}' for name, value in sorted(os.environ.items()))]
    Path({str(seen)!r}, f'{{SIDE}}-{{time.time_ns()}}').write_text('\\n'.join(words))
    sys.exit(real())
    """
    assert rows.run(both=body).outcome == "match"
    texts = [path.read_text() for path in sorted(seen.iterdir())]
    assert len(texts) == 4
    for text in texts:
        assert "s3cret-value" not in text
        assert "GITHUB_" not in text
        assert "ACTIONS_" not in text
    lengths = {len(text) for text in texts}
    assert len(lengths) == 2, "two repetitions differ, the sides of one repetition do not"


def test_an_artifact_that_changes_between_two_uses_is_noticed(rows: Rows) -> None:
    body = "code = real()\nPath(__file__).chmod(0o755)\nopen(__file__, 'a').write('# changed')\nsys.exit(code)\n"
    with pytest.raises(InfrastructureError, match="artifact was changed"):
        rows.run(candidate=body)


def test_a_row_without_its_evidence_is_unqualified(rows: Rows) -> None:
    inputs = rows.inputs("demo-vllm-aggregated", {}, timeout=120)
    document = inputs.planned.row.model_dump()
    document["spec"]["engine"]["rank"]["num_gpu_blocks"] = 65_536
    row = type(inputs.planned.row).model_validate(document)
    planned = inputs.planned.model_copy(update={"row": row})
    result = run_row(replace(inputs, planned=planned), attempt=1)
    assert result.outcome == "unqualified"
    assert "0 preemptions, the row asks for 1 to 3" in result.reason
    assert decide([result], equal_trees=False) == ("FAIL", 1)


def test_a_row_that_both_engines_refuse_alike_is_unsupported(rows: Rows) -> None:
    inputs = rows.inputs("preflight-vllm-two-workers", {}, timeout=60)
    document = inputs.planned.row.model_dump()
    document["spec"]["topology"]["workers"]["initial_workers"] = 0
    row = type(inputs.planned.row).model_validate(document)
    result = run_row(replace(inputs, planned=inputs.planned.model_copy(update={"row": row})), attempt=1)
    assert (result.outcome, result.fault) == ("unsupported", "both")
    assert "InvalidSpec" in result.reason
    assert decide([result], equal_trees=False) == ("FAIL", 1)
