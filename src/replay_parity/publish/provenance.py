"""What went in: builds that failed, dependencies that drifted, and the ids that make the result repeatable."""

from __future__ import annotations

from replay_parity.parity.verdict import Verdict
from replay_parity.pin.models import ArtifactRecord, Revision
from replay_parity.publish.markdown import block, code, cut, details, table, text
from replay_parity.publish.page import fitted
from replay_parity.publish.words import counted

_ERRORS_SHOWN = 4
_ERROR = 6_000
_FIRST_LINE = 1_000
_LINE = 300
_DEPENDENCIES_BYTES = 12_000
_BUILDS_SHOWN = 16


def build_errors(verdict: Verdict, length: int = _ERROR) -> str:
    """The compiler's own words, each once; `length` in characters for each."""
    found: dict[tuple[str, str], list[str]] = {}
    for build in verdict.builds:
        for name, side in (("baseline", build.baseline), ("candidate", build.candidate)):
            if side.error:
                found.setdefault((name, side.error), []).append(build.runner)
    parts = []
    for (name, error), runners in list(found.items())[:_ERRORS_SHOWN]:
        first, _, rest = error.partition("\n")
        where = f" on {', '.join(map(code, runners[:_ERRORS_SHOWN]))}" if runners != ["default"] else ""
        parts.append(f"#### The {name} was not built{where}\n\n{text(cut(first, _FIRST_LINE))}")
        if rest.strip():
            parts.append(block(cut(rest.strip("\n"), length), "text"))
    if len(found) > _ERRORS_SHOWN:
        parts.append(f"and {len(found) - _ERRORS_SHOWN:,} more builds that failed, in `verdict.json`")
    return "\n\n".join(parts)


def dependencies(verdict: Verdict) -> str:
    """Every dependency whose locked version differs, folded (rule 7)."""
    differences = verdict.lock_differences
    if not differences:
        return ""
    rows = [
        [code(cut(item.name, _LINE)), *(_versions(side) for side in (item.baseline, item.candidate))]
        for item in differences
    ]
    header, rule, *lines = table(("package", "baseline", "candidate"), rows).split("\n")
    lines = fitted(lines, _DEPENDENCIES_BYTES, lambda number: f"\nand {number:,} more in `verdict.json`")
    number = len(differences)
    title = f"{number:,} {'dependency differs' if number == 1 else 'dependencies differ'} between the sides"
    return details(title, "\n".join((header, rule, *lines)))


def _versions(versions: tuple[str, ...]) -> str:
    return ", ".join(code(cut(version, _LINE)) for version in versions[:4]) or "absent"


def provenance(verdict: Verdict) -> str:
    """Ids in full, folded: sources, artifacts, toolchain, runner source, plan, run."""
    sides = (("baseline", verdict.baseline), ("candidate", verdict.candidate))
    sources = [_source(name, side) for name, side in sides if side is not None]
    lines = [*sources, *_artifacts(verdict), *_toolchains(verdict), *_ids(verdict)]
    return details("Provenance: sources, artifacts, toolchain, plan", "\n".join(f"- {line}" for line in lines))


def _source(name: str, revision: Revision) -> str:
    if revision.kind == "crate":
        commit = f", recorded commit {code(revision.commit)}" if revision.commit else ", no recorded commit"
        dirty = ", packaged from a dirty tree" if revision.dirty else ""
        release = code(cut(f"{revision.crate} {revision.version}", _LINE))
        return f"{name}: {release}, checksum {code(revision.checksum)}{commit}{dirty}"
    asked = code(cut(revision.asked, _LINE))
    where = code(cut(revision.repository, _LINE))
    return f"{name}: {asked} of {where}, commit {code(revision.commit)}, tree {code(revision.tree)}"


def _toolchains(verdict: Verdict) -> list[str]:
    found = dict.fromkeys(build.toolchain for build in verdict.builds if build.toolchain)
    shown = []
    for toolchain in list(found)[:_BUILDS_SHOWN]:
        words = (toolchain.rustc, toolchain.cargo, toolchain.host, toolchain.c_compiler, toolchain.linker)
        shown.append(f"toolchain: {', '.join(text(cut(word, _LINE)) for word in words if word)}")
    return shown


def _ids(verdict: Verdict) -> list[str]:
    ids = (("runner source", verdict.runner_source_sha256), ("plan", verdict.plan_sha256))
    lines = [f"{name}: {code(value)}" for name, value in ids if value]
    lines.append(f"tool: replay-parity {text(cut(verdict.tool_version, _LINE))}")
    if verdict.origin is not None:
        origin = verdict.origin
        pull = f", pull request {origin.pull_request}" if origin.pull_request is not None else ""
        head = f"head {code(origin.head_sha)}{', from a fork' if origin.from_fork else ''}"
        where = code(cut(origin.repository, _LINE))
        run = f"run {code(str(origin.run_id))} attempt {origin.run_attempt}"
        lines.append(f"GitHub: {where}{pull}, {code(cut(origin.event, _LINE))}, {head}, {run}")
    return lines


def _artifacts(verdict: Verdict) -> list[str]:
    shown = [
        f"artifact of the {name} on {code(build.runner)}: {_artifact(side.artifact)}"
        for build in verdict.builds
        for name, side in (("baseline", build.baseline), ("candidate", build.candidate))
        if side.artifact is not None
    ]
    rest = len(shown) - 2 * _BUILDS_SHOWN
    more = [f"{counted(rest, 'artifact')} more in `verdict.json`"] if rest > 0 else []
    return shown[: 2 * _BUILDS_SHOWN] + more


def _artifact(record: ArtifactRecord) -> str:
    words = [f"profile {record.profile}", *record.flags, *(f"feature {feature}" for feature in record.features)]
    if record.negative_control is not None:
        words.append(f"negative control {record.negative_control}")
    text_bytes = "" if record.text_bytes is None else f" (.text {record.text_bytes:,})"
    built = text(cut(", ".join(words), _LINE))
    return f"SHA-256 {code(record.sha256)}, {record.size_bytes:,} bytes{text_bytes}, {built}"
