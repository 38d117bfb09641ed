"""The verdict as a person sees it in a terminal: verdict, rows, what differs, what to read next."""

from __future__ import annotations

from rich.box import SIMPLE
from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from replay_parity.parity.result import RowResult
from replay_parity.parity.verdict import SideBuild, Verdict, is_failing, is_green
from replay_parity.pin.models import Revision
from replay_parity.publish.plain import visible

_STYLES = {
    "PASS": "bold green",
    "PASS_WITH_SEMANTIC_EXCEPTIONS": "bold yellow",
    "FAIL": "bold red",
    "ERROR": "bold red",
}
_LOCK_LINES = 5
_SHORT = 12
_SHORTER = 6
_ROW_WIDTH = 26


def print_verdict(verdict: Verdict, console: Console) -> None:
    """Write the verdict to a console; every text of a file or an engine is shown literally, never as markup."""
    console.print(render_verdict(verdict))


def render_verdict(verdict: Verdict) -> RenderableType:
    """The verdict as one renderable."""
    parts: list[RenderableType] = [_head(verdict)]
    if verdict.rows:
        parts.append(_table(verdict))
    parts += [_row_details(row) for row in verdict.rows if not is_green(row) or row.candidate.evidence_notes]
    parts += [
        _build_error(side.error) for build in verdict.builds for side in (build.baseline, build.candidate) if side.error
    ]
    parts += _lock_lines(verdict)
    parts += [Text(f"problem: {visible(problem)}", style="bold red") for problem in verdict.problems]
    parts += [Text(f"note: {visible(note)}", style="yellow") for note in verdict.notes]
    parts.append(_foot(verdict))
    return Group(*parts)


def _head(verdict: Verdict) -> Text:
    text = Text()
    if verdict.campaign is None or verdict.baseline is None or verdict.candidate is None:
        return Text("no plan could be made", style="bold")
    text.append(f"{visible(verdict.campaign.title)}\n", style="bold")
    text.append(f"  baseline   {_side(verdict.baseline, [build.baseline for build in verdict.builds])}\n")
    text.append(f"  candidate  {_side(verdict.candidate, [build.candidate for build in verdict.builds])}\n")
    toolchains = dict.fromkeys(build.toolchain.rustc for build in verdict.builds if build.toolchain)
    text.append(f"  {'; '.join((visible(verdict.campaign.relationship), *toolchains))}")
    return text


def _side(revision: Revision, builds: list[SideBuild]) -> str:
    commit = revision.commit or "no recorded commit"
    name = visible(revision.short)
    origin = (
        f"{name}  commit {commit[:_SHORT]}" if revision.kind == "crate" else f"{name}  {visible(revision.repository)}"
    )
    artifacts = dict.fromkeys(build.artifact.sha256[:_SHORT] for build in builds if build.artifact)
    return origin + (f"  artifact {', '.join(artifacts)}" if artifacts else "  no artifact")


def _table(verdict: Verdict) -> Table:
    table = Table(box=SIMPLE, show_edge=False, pad_edge=False, header_style="bold")
    table.add_column("row", overflow="fold", min_width=min(_ROW_WIDTH, max(len(row.id) for row in verdict.rows)))
    table.add_column("outcome", overflow="fold")
    table.add_column("digests", no_wrap=True)
    table.add_column("virtual ms", justify="right", no_wrap=True)
    table.add_column("pressure", justify="right")
    table.add_column("s", justify="right", no_wrap=True)
    for row in verdict.rows:
        style = "green" if is_green(row) else "red" if is_failing(row) else "yellow"
        table.add_row(
            visible(row.id),
            Text(row.outcome, style=style),
            _digests(row),
            _virtual(row),
            _pressure(row),
            f"{row.seconds:.0f}",
        )
    return table


def _digests(row: RowResult) -> str:
    """One digest where all processes agree; otherwise those that differ, the baseline's first."""
    unique = list(dict.fromkeys((*row.baseline.digests, *row.candidate.digests)))
    if len(unique) > 1:
        return " ≠ ".join(digest[:_SHORTER] for digest in unique[:2])
    return unique[0][:_SHORT] if unique else "-"


def _virtual(row: RowResult) -> str:
    values = [
        side.qualification.get("virtual_duration_ms") if side.qualification else None
        for side in (row.baseline, row.candidate)
    ]
    shown = [f"{value:.3f}" for value in values if isinstance(value, (int, float))]
    return "\n".join(dict.fromkeys(shown)) or "-"


def _pressure(row: RowResult) -> str:
    shown: list[str] = []
    for side in (row.baseline, row.candidate):
        if side.qualification is not None:
            counts = (side.qualification.get("vllm_preemptions"), side.qualification.get("sglang_retractions"))
            shown.append(str(sum(value for value in counts if isinstance(value, int))))
    return " → ".join(dict.fromkeys(shown)) or "-"


def _row_details(row: RowResult) -> Text:
    text = Text()
    text.append(f"{visible(row.id)}: ", style="bold")
    text.append(f"{row.outcome}: {visible(row.reason)}", style="red" if not is_green(row) else "")
    if row.differences is not None:
        for line in row.differences.top:
            text.append(f"\n    {visible(line)}")
        text.append(f"\n    all of it: {visible(row.differences.file)}")
    for name, side in (("baseline", row.baseline), ("candidate", row.candidate)):
        for problem in side.evidence_problems:
            text.append(f"\n    {name} evidence: {visible(problem)}")
        for note in side.evidence_notes:
            text.append(f"\n    {name} note: {visible(note)}")
    for report in row.reports:
        text.append(f"\n    report kept: {visible(report)}")
    return text


def _build_error(error: str) -> Text:
    """The compiler's own words, its line breaks kept: they are the message."""
    first, *rest = error.splitlines()
    text = Text(visible(first), style="bold red")
    for line in rest:
        text.append(f"\n    {visible(line)}", style="not bold default")
    return text


def _lock_lines(verdict: Verdict) -> list[RenderableType]:
    differences = verdict.lock_differences
    if not differences:
        return []
    text = Text(f"dependencies that differ: {len(differences)}", style="bold")
    for difference in differences[:_LOCK_LINES]:
        left, right = (", ".join(side) or "absent" for side in (difference.baseline, difference.candidate))
        text.append(f"\n    {visible(difference.name)}: {visible(left)} → {visible(right)}", style="not bold")
    if len(differences) > _LOCK_LINES:
        text.append(f"\n    and {len(differences) - _LOCK_LINES} more in verdict.json", style="not bold")
    return [text]


def _foot(verdict: Verdict) -> Text:
    text = Text()
    text.append(verdict.verdict, style=_STYLES[verdict.verdict])
    counts = ", ".join(f"{number} {outcome}" for outcome, number in verdict.counts.items())
    if verdict.equal_trees and not verdict.rows:
        text.append("  nothing to compare: both sides are the same sources")
    elif counts:
        text.append(f"  {counts}")
    text.append(f"  ({verdict.seconds:.0f} s; times are not a performance result)", style="dim")
    return text
