"""What the jobs of a run leave on disk: a plan, builds, results of every outcome.

Runners are small programs that know their identity; records are those of a real runner (0.12.1), judged by the real
judge. Only the four processes of a row are not there.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import orjson
import yaml

from replay_parity.campaign.builtin import builtin_configs
from replay_parity.campaign.corpus_file import Corpus
from replay_parity.campaign.models import Build
from replay_parity.campaign.row import Row
from replay_parity.corpus.provide import provide
from replay_parity.corpus.slice import VerifiedSlice
from replay_parity.corpus.totals import totals
from replay_parity.errors import BuildError
from replay_parity.parity.result import Fault, Outcome, RowResult
from replay_parity.parity.verdict import CampaignSummary, Verdict
from replay_parity.pin.builder import SIDES, Artifact, BuildOutcome, Side
from replay_parity.pin.identity import expected_identity
from replay_parity.pin.models import ArtifactRecord, GitRevision, Toolchain
from replay_parity.replay.ending import Status
from replay_parity.replay.node import NodeRecord
from replay_parity.replay.qualification import Qualification, RunnerFailure
from replay_parity.replay.repetition import Repetition
from replay_parity.settings import Settings
from replay_parity.stages.bench import Bench
from replay_parity.stages.build import keep
from replay_parity.stages.decide import Left, decide_run
from replay_parity.stages.judge import Judge
from replay_parity.stages.plan import Plan, PlannedRow
from replay_parity.stages.plan_folder import PlanFolder
from replay_parity.stages.row import RowInputs, input_digest, unbuilt
from replay_parity.stages.workspace import Workspace
from replay_parity.system.files import sha256_bytes
from tests.support.tiny import Told
from tests.support.verdicts import TOOLCHAIN

RECORDS = Path(__file__).resolve().parents[1] / "unit" / "replay" / "records"
ROW = "preflight-vllm-one-worker"
OTHER_ROW = "preflight-vllm-two-workers"
REFUSED = {
    "schema": "replay-parity.runner-error.v1",
    "kind": "engine_refused",
    "phase": "run",
    "variant": "Invariant",
    "message": "no such topology",
}
NODE = NodeRecord(
    system="Linux",
    os_name="Debian GNU/Linux 12 (bookworm)",
    kernel="6.1.0",
    architecture="x86_64",
    cpu_model="a processor",
    logical_cpus=2,
    usable_cpus=(0, 1),
    cpu_quota=None,
    physical_cores=2,
    threads_per_core=1,
    smt=False,
    numa_nodes=1,
    numa_cpus=("0-1",),
    memory_bytes=1 << 33,
    memory_limit_bytes=None,
    libc="glibc 2.36",
    container=False,
    pinning=True,
)
# Outcomes that a row job reports, in the order of the design.
REPORTED: tuple[Outcome, ...] = (
    "match",
    "mismatch",
    "baseline_unsupported",
    "unsupported",
    "unstable_baseline",
    "unstable_candidate",
    "unqualified",
    "build_failed",
    "replay_failed",
    "timed_out",
    "invalid",
)


def revision(digit: str) -> GitRevision:
    """A commit that needs no repository."""
    return GitRevision(
        repository="https://example.invalid/owner/name",
        asked=digit * 40,
        asked_as="commit",
        commit=digit * 40,
        tree=digit * 40,
        core="crates/core",
    )


def planned_row(name: str, *, runner: str = "default") -> PlannedRow:
    """A shipped preflight row with its corpus."""
    row = Row.model_validate_json(_yaml(builtin_configs() / "rows" / f"{name}.yaml"))
    corpus = Corpus.model_validate_json(_yaml(builtin_configs() / "corpora" / f"{row.corpus}.yaml"))
    return PlannedRow(row=row, corpus=corpus, runner=runner)


def make_plan(*rows: PlannedRow, **changes: Any) -> Plan:
    """A plan of two commits; `changes` replace fields."""
    fields: dict[str, Any] = {
        "campaign": CampaignSummary(name="test", title="A campaign of a test", relationship="said so"),
        "baseline": revision("a"),
        "candidate": revision("b"),
        "equal_trees": False,
        "build": Build(toolchain="path", profile="release", flags=("-Cdebuginfo=0",), features=("one",)),
        "runner_source_sha256": "5" * 64,
        "rows": rows,
    }
    return Plan(**(fields | changes))


def record_bytes(row: str, *, variant: int = 0) -> bytes:
    """The record of a real runner, with another result for every variant but 0."""
    document = orjson.loads((RECORDS / row / "canonical.jsonl").read_bytes())
    document["summary"]["mean_ttft_ms"] += float(variant)
    return orjson.dumps(document, option=orjson.OPT_SORT_KEYS) + b"\n"


@dataclass(frozen=True)
class Ended:
    """How one process ended: `variant` of its record, or what it gave instead of one."""

    status: Status = "ok"
    variant: int = 0
    counted: bool = True
    broken: bool = False


def endings(outcome: Outcome, *, fault: Fault | None = None, variant: int = 0) -> dict[Side, Sequence[Ended]]:
    """Processes that give the outcome; `fault` says whose process breaks, the candidate's by default."""
    good, other, refused = Ended(variant=variant), Ended(variant=variant + 1), Ended("refused")
    guilty: tuple[Side, ...] = SIDES if fault == "both" else ((fault or "candidate"),)
    broken = Ended("timed_out" if outcome == "timed_out" else "failed")
    failed: dict[Side, Sequence[Ended]] = {side: (broken,) if side in guilty else (good,) for side in SIDES}
    special: dict[Outcome, dict[Side, Sequence[Ended]]] = {
        "match": {},
        "mismatch": {"candidate": (other, other)},
        "unstable_baseline": {"baseline": (good, other)},
        "unstable_candidate": {"candidate": (good, other)},
        "unqualified": {"candidate": (replace(good, counted=False), good)},
        "baseline_unsupported": {"baseline": (refused,)},
        "unsupported": dict.fromkeys(SIDES, (refused,)),
        "invalid": dict.fromkeys(guilty, (replace(good, broken=True), good)),
        "replay_failed": failed,
        "timed_out": failed,
    }
    both: dict[Side, Sequence[Ended]] = {"baseline": (good, good), "candidate": (good, good)}
    return both | special[outcome]


@dataclass
class RunFolder:
    """`ROOT/{plan, builds/ARTIFACT, results/ARTIFACT, verdict}`: what a run leaves and what its verdict makes of it."""

    root: Path
    plan: Plan
    toolchain: Toolchain = TOOLCHAIN
    told: Told = field(default_factory=Told)

    def __post_init__(self) -> None:
        PlanFolder(self.root / "plan").write(self.plan, patch=None, traces={})
        self.builds.mkdir(parents=True)
        self.results.mkdir()

    @property
    def builds(self) -> Path:
        return self.root / "builds"

    @property
    def results(self) -> Path:
        return self.root / "results"

    @property
    def output(self) -> Path:
        return self.root / "verdict"

    @property
    def scratch(self) -> Path:
        folder = self.root / "scratch"
        folder.mkdir(exist_ok=True, mode=0o700)
        return folder

    @cached_property
    def bench(self) -> Bench:
        bench = Bench(Settings.from_environment({"HOME": str(self.root)}), self.plan.build, base=self.root)
        # The toolchain of the plan's machine, not of this one.
        bench.__dict__["toolchain"] = self.toolchain
        return bench

    def planned(self, name: str) -> PlannedRow:
        return next(item for item in self.plan.rows if item.id == name)

    def artifact(self, side: Side, *, flavour: str = "", **changes: Any) -> Artifact:
        """A runner that knows who it is; `flavour` makes another program of it, `changes` go into its record."""
        wanted = self.plan.baseline if side == "baseline" else self.plan.candidate
        fields: dict[str, Any] = {
            "key": "1" * 64,
            "revision": wanted,
            "tree_sha256": "2" * 64,
            "runner_source_sha256": self.plan.runner_source_sha256,
            "lock_sha256": "3" * 64,
            "patch_sha256": self.plan.build.patch.sha256 if self.plan.build.patch else None,
            "toolchain": self.toolchain,
            "profile": self.plan.build.profile,
            "flags": self.plan.build.flags,
            "features": self.plan.build.features,
            "negative_control": self.plan.build.negative_control,
            "sha256": "0" * 64,
            "neutral_sha256": sha256_bytes(f"{side}{flavour}".encode()),
            "size_bytes": 1,
            "text_bytes": None,
            "packages_verified": 1,
        }
        record = ArtifactRecord(**(fields | changes))
        program = f"#!/bin/sh\n# {flavour}\nprintf '%s\\n' '{json.dumps(expected_identity(record))}'\n".encode()
        sha256 = changes.get("sha256", sha256_bytes(program))
        path = self.scratch / f"runner-{sha256_bytes(program)[:16]}"
        path.write_bytes(program)
        path.chmod(0o755)
        return Artifact(path, record.model_copy(update={"sha256": sha256, "size_bytes": len(program)}))

    def error(self, side: Side, *, kind: str = "revision") -> BuildError:
        """A side that does not compile, with its log."""
        log = self.scratch / f"build-{side}.log"
        log.write_text(f"error[E0308]: mismatched types, {side}\n")
        sentence = f"the {side} does not compile"
        return BuildError(
            sentence, kind=kind, side=side, log=str(log), excerpt="error[E0308]: mismatched types\n --> x"
        )

    def outcome(self, **sides: Artifact | BuildError | None) -> BuildOutcome:
        """What a builder returns; a side that is None was not asked for."""
        made = {side: built for side in SIDES if (built := sides.get(side)) is not None}
        return BuildOutcome(sides=made, lock_differences=(), compiled=())

    def build(
        self,
        *,
        runner: str = "default",
        attempt: int = 1,
        name: str = "build",
        root: Path | None = None,
        **sides: Artifact | BuildError | None,
    ) -> Path:
        """What a build job leaves; sides are good artifacts unless given, None is one that was not asked for."""
        made = {side: sides.get(side, self.artifact(side)) for side in SIDES}
        folder = (root or self.builds) / f"test~build~{runner}~{name}~{attempt}"
        keep(
            self.outcome(**made),
            folder,
            plan=self.plan,
            bench=self.bench,
            runner=runner,
            attempt=attempt,
        )
        for path in folder.glob("*.runner"):
            # No artifact of GitHub keeps modes.
            path.chmod(0o644)
        return folder

    def result(
        self,
        name: str = ROW,
        outcome: Outcome = "match",
        *,
        attempt: int = 1,
        fault: Fault | None = None,
        variant: int = 0,
        artifacts: Mapping[Side, Artifact] | None = None,
    ) -> Path:
        """What a row job leaves for an attempt; returns the folder of the attempt."""
        workspace = Workspace(self.results / f"test~row~{name}~{attempt}")
        made = artifacts or {side: self.artifact(side) for side in SIDES}
        if outcome == "build_failed":
            guilty = SIDES if fault == "both" else ((fault or "candidate"),)
            sides: dict[Side, Artifact | BuildError] = {
                side: self.error(side) if side in guilty else made[side] for side in SIDES
            }
            result = unbuilt(self._inputs(name, workspace, sides), attempt=attempt)
        else:
            ended = endings(outcome, fault=fault, variant=variant)
            result = self._judged(name, workspace, ended, attempt=attempt, artifacts=made)
        assert result.outcome == outcome, result.reason
        workspace.write_result(result)
        return workspace.row_folder(name, attempt)

    def judged(self, name: str, ended: Mapping[Side, Sequence[Ended]], *, attempt: int = 1) -> RowResult:
        """The result of these processes, not yet written; whatever outcome they give."""
        workspace = Workspace(self.scratch / "judged")
        artifacts = {side: self.artifact(side) for side in SIDES}
        return self._judged(name, workspace, ended, attempt=attempt, artifacts=artifacts)

    def left(self, *, attempt: int = 1, **jobs: str) -> Left:
        ended = {"plan": "success", "build": "success", "row": "success"} | jobs
        return Left(PlanFolder(self.root / "plan"), self.builds, self.results, ended, attempt)

    def decide(self, *, attempt: int = 1, advisory: bool = False, **jobs: str) -> Verdict:
        """The verdict, as the stage writes it."""
        return decide_run(self.left(attempt=attempt, **jobs), self.output, advisory=advisory)

    def _judged(
        self,
        name: str,
        workspace: Workspace,
        ended: Mapping[Side, Sequence[Ended]],
        *,
        attempt: int,
        artifacts: Mapping[Side, Artifact],
    ) -> RowResult:
        planned = self.planned(name)
        sha256 = {side: artifacts[side].record.sha256 for side in SIDES}
        judge = Judge(
            planned.row,
            planned.corpus,
            totals(self.slice(planned)),
            folder=workspace.row_folder(name, attempt),
            root=workspace.root,
        )
        judgement = judge.judge(
            {side: self._repetitions(planned.row.name, side, ended[side]) for side in SIDES}, sha256
        )
        return RowResult(
            plan_sha256=self.plan.sha256,
            input_sha256=input_digest(planned, sha256),
            row=planned.row.name,
            runner=planned.runner,
            title=planned.row.title,
            attempt=attempt,
            outcome=judgement.outcome,
            reason=judgement.reason,
            fault=judgement.fault,
            baseline=judgement.sides["baseline"],
            candidate=judgement.sides["candidate"],
            differences=judgement.differences,
            reports=judgement.reports,
            node=NODE,
            placement="one core each",
            seconds=1.5,
        )

    def slice(self, planned: PlannedRow) -> VerifiedSlice:
        return provide(planned.corpus, folders=[], cache=self.root / "cache")

    def _inputs(self, name: str, workspace: Workspace, sides: Mapping[Side, Artifact | BuildError]) -> RowInputs:
        planned = self.planned(name)
        verified = self.slice(planned)
        return RowInputs(
            plan_sha256=self.plan.sha256,
            planned=planned,
            corpus=verified,
            totals=totals(verified),
            sides=sides,
            workspace=workspace,
            locks_folder=self.root / "locks",
            progress=self.told,
            label=name,
        )

    def _repetitions(self, row: str, side: Side, ended: Sequence[Ended]) -> tuple[Repetition, ...]:
        return tuple(self._repetition(row, side, index, item) for index, item in enumerate(ended, start=1))

    def _repetition(self, row: str, side: Side, index: int, ended: Ended) -> Repetition:
        folder = self.scratch / f"{side}-{index}"
        folder.mkdir(exist_ok=True)
        record = b"{ }\n" if ended.broken else record_bytes(row, variant=ended.variant)
        counters = json.loads((RECORDS / row / "qualification.json").read_bytes())
        counters |= {"canonical_sha256": hashlib.sha256(record).hexdigest(), "canonical_bytes": len(record)}
        if not ended.counted:
            counters["completed_requests"] += 1
        ok = ended.status == "ok"
        (folder / "canonical.jsonl").write_bytes(record)
        return Repetition(
            side=side,
            index=index,
            status=ended.status,
            reason="" if ok else f"ended as {ended.status}",
            folder=folder,
            qualification=Qualification.model_validate(counters) if ok else None,
            failure=RunnerFailure.model_validate(REFUSED) if ended.status == "refused" else None,
            seconds=0.25,
            peak_threads=1,
            peak_rss_bytes=1 << 20,
            cpus=(0,),
        )


def good_run(root: Path, **changes: Any) -> RunFolder:
    """A run of two rows on one runner that is green."""
    run = RunFolder(root, make_plan(planned_row(ROW), planned_row(OTHER_ROW), **changes))
    run.build()
    run.result(ROW)
    run.result(OTHER_ROW)
    return run


def edit(path: Path, change: Mapping[str, Any]) -> None:
    """Replace top-level fields of a JSON document and leave its seal as it is."""
    path.write_bytes(orjson.dumps(orjson.loads(path.read_bytes()) | dict(change)))


def reseal(path: Path, change: Mapping[str, Any] | None = None) -> None:
    """The same edit by somebody who knows how documents are sealed."""
    document = orjson.loads(path.read_bytes()) | dict(change or {})
    document.pop("seal", None)
    seal = sha256_bytes(orjson.dumps(document, option=orjson.OPT_SORT_KEYS))
    path.write_bytes(orjson.dumps(document | {"seal": seal}))


def _yaml(path: Path) -> str:
    return json.dumps(yaml.safe_load(path.read_text("utf-8")))
