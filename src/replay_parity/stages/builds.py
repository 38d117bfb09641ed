"""Artifacts that other jobs built: re-hashed, checked against the plan, one for each revision and runner (rule 26)."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import orjson

from replay_parity.errors import BadInputError, BuildError
from replay_parity.parity.verdict import BuildSummary, SideBuild
from replay_parity.pin.builder import SIDES, Artifact, Side
from replay_parity.pin.identity import check_identity
from replay_parity.pin.models import ArtifactRecord
from replay_parity.stages.build import BuildResult, nothing_built, runner_file
from replay_parity.stages.plan import Plan
from replay_parity.stages.untrusted import documents, place, read_document
from replay_parity.system.files import private_folder, sha256_regular, storage_errors

_DOCUMENT_CAP = 16 << 20
_RUNNER_CAP = 1 << 30


@dataclass(frozen=True)
class FoundBuild:
    """One `build.json` with its folder."""

    result: BuildResult
    folder: Path

    @property
    def runner(self) -> str:
        """The class of machines that it was built on."""
        return self.result.build.runner


@dataclass
class Builds:
    """All builds of a plan, and what is wrong with them."""

    found: list[FoundBuild] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)

    def add(self, other: Builds) -> None:
        """Take in what was found elsewhere, and look again for artifacts that should be one."""
        self.found += other.found
        self.problems += other.problems
        self.problems += [problem for problem in self.doubles() if problem not in self.problems]

    def doubles(self) -> list[str]:
        """Two artifacts for one revision and runner, or two toolchains, in words."""
        problems: list[str] = []
        for runner in sorted({item.runner for item in self.found}):
            for side in SIDES:
                count = len(self.artifacts(runner, side))
                if count > 1:
                    words = f"{count} different artifacts were built of the {side} on {runner}"
                    problems.append(f"{words}: equal inputs must give one")
            if len({orjson.dumps(record.toolchain.identity) for record in self._records(runner)}) > 1:
                problems.append(f"the artifacts on {runner} were built with different toolchains")
        return problems

    def of(self, runner: str) -> BuildSummary:
        """What was built on a runner by all attempts: an artifact wins over an error, the newest error is told."""
        mine = sorted((item.result for item in self.found if item.runner == runner), key=_attempt)
        summary = nothing_built(runner)
        for result in mine:
            sides = {side: _better(getattr(summary, side), getattr(result.build, side)) for side in SIDES}
            differences = result.build.lock_differences or summary.lock_differences
            summary = BuildSummary(
                runner=runner, toolchain=result.build.toolchain, lock_differences=differences, **sides
            )
        return summary

    def artifacts(self, runner: str, side: Side) -> set[str]:
        """SHA-256 of every artifact of a revision on a runner; more than one is never right."""
        return {record.sha256 for record in self._records(runner, side)}

    def _records(self, runner: str, *sides: Side) -> list[ArtifactRecord]:
        mine = [item.result.build for item in self.found if item.runner == runner]
        records = [getattr(build, side).artifact for build in mine for side in sides or SIDES]
        return [record for record in records if record is not None]


def find_builds(root: Path, plan: Plan, *, newest: int) -> Builds:
    """Every build below a folder of downloaded artifacts; nothing that is wrong is used, all of it is told."""
    found = documents(root, "build.json")
    builds = Builds(problems=list(found.problems))
    plan_sha256 = plan.sha256
    for path in found.paths:
        try:
            result = _read(path, plan, plan_sha256=plan_sha256, newest=newest)
            for side in SIDES:
                _check_side(result, side, path.parent, plan)
        except BadInputError as error:
            builds.problems.append(f"build {place(path, root)}: {error.message}")
            continue
        builds.found.append(FoundBuild(result, path.parent))
    builds.problems += builds.doubles()
    return builds


def usable(builds: Builds, runner: str, *, scratch: Path) -> Mapping[Side, Artifact | BuildError] | None:
    """Both sides ready for use on this machine; None when a side is missing and must be built here."""
    sides: dict[Side, Artifact | BuildError] = {}
    summary = builds.of(runner)
    for side in SIDES:
        built: SideBuild = getattr(summary, side)
        if built.artifact is not None:
            sides[side] = _take(builds.found, runner, side, built.artifact, scratch)
        elif built.error is not None:
            # The sentence is the first line, the compiler's words follow.
            sentence, _, excerpt = built.error.partition("\n")
            kind = built.error_kind or "revision"
            sides[side] = BuildError(sentence, kind=kind, side=side, log="", excerpt=excerpt)
        else:
            return None
    return sides


def _take(found: Sequence[FoundBuild], runner: str, side: Side, record: ArtifactRecord, scratch: Path) -> Artifact:
    """Copy a runner to a private place, with its run bit, which no artifact keeps (GITHUB.md), and check the copy."""
    folder = next(
        item.folder for item in found if item.runner == runner and getattr(item.result.build, side).artifact == record
    )
    place = private_folder(scratch / side) / "runner"
    with storage_errors("copy the runner", place):
        shutil.copyfile(folder / runner_file(side), place)
        place.chmod(0o755)
    if sha256_regular(place, cap=_RUNNER_CAP) != record.sha256:
        raise BadInputError(f"the runner of the {side} changed while it was copied", where=str(place))
    check_identity(place, record, scratch=private_folder(scratch / "identity"))
    return Artifact(place, record)


def _read(path: Path, plan: Plan, *, plan_sha256: str, newest: int) -> BuildResult:
    result = read_document(BuildResult, path, cap=_DOCUMENT_CAP)
    if not result.seal_holds:
        raise BadInputError("was edited after it was sealed")
    if result.plan_sha256 != plan_sha256:
        raise BadInputError("belongs to another plan")
    if result.attempt > newest:
        raise BadInputError(f"claims attempt {result.attempt} in attempt {newest} of the run")
    if result.build.runner not in {planned.runner for planned in plan.rows}:
        raise BadInputError(f"was made on the runner '{result.build.runner}', which the plan does not name")
    return result


def _check_side(result: BuildResult, side: Side, folder: Path, plan: Plan) -> None:
    built: SideBuild = getattr(result.build, side)
    record = built.artifact
    if record is None:
        return
    wanted = {
        "revision": getattr(plan, side),
        "runner_source_sha256": plan.runner_source_sha256,
        "profile": plan.build.profile,
        "flags": plan.build.flags,
        "features": plan.build.features,
        "negative_control": plan.build.negative_control,
        "patch_sha256": plan.build.patch.sha256 if plan.build.patch else None,
        "toolchain": result.build.toolchain,
    }
    for name, value in wanted.items():
        if getattr(record, name) != value:
            raise BadInputError(f"the artifact of the {side} has another {name} than the plan demands")
    if record.toolchain.asked != plan.build.toolchain:
        raise BadInputError(f"the artifact of the {side} was built with another toolchain than the plan asks for")
    try:
        found = sha256_regular(folder / runner_file(side), cap=_RUNNER_CAP)
    except BadInputError as error:
        raise BadInputError(f"the runner of the {side} cannot be used: {error.message}") from None
    if found != record.sha256:
        raise BadInputError(f"the runner of the {side} is not the one that its record names")


def _better(left: SideBuild, right: SideBuild) -> SideBuild:
    """An artifact before an error before nothing; of two errors the newer one."""
    if left.artifact is not None and right.artifact is None:
        return left
    return right if right.artifact is not None or right.error is not None else left


def _attempt(result: BuildResult) -> int:
    return result.attempt
