"""What a verdict leaves for people on GitHub: the summary of the job, and annotations in its log."""

from __future__ import annotations

import shlex
from pathlib import Path

from replay_parity.github.commands import MESSAGE_CHARACTERS, command, log_annotations
from replay_parity.github.surroundings import Surroundings
from replay_parity.parity.result import RowResult
from replay_parity.parity.verdict import Verdict
from replay_parity.pin.models import Revision
from replay_parity.pin.resolve import ANCESTRY
from replay_parity.publish.annotations import row_annotations
from replay_parity.publish.markdown import cut
from replay_parity.publish.plain import visible
from replay_parity.publish.summary import summary
from replay_parity.system.files import write_whole


def report(verdict: Verdict, folder: Path, *, around: Surroundings, campaign: str | None) -> list[str]:
    """Write `summary.md` beside the verdict and to the step; returns the workflow commands to print."""
    text = summary(verdict, reproduce=lambda row: reproduce(verdict, row, campaign))
    write_whole(folder / "summary.md", text.encode())
    around.summarise(text)
    lines = log_annotations(row_annotations(verdict, paths=verdict.files))
    problems = "\n".join(visible(line) for problem in verdict.problems for line in problem.splitlines())
    words = cut(problems or ", ".join(f"{count} {name}" for name, count in verdict.counts.items()), MESSAGE_CHARACTERS)
    if verdict.advisory and verdict.exit_code != 0:
        lines.append(command("warning", f"advisory {verdict.verdict}: {words}", title="Replay Parity (advisory)"))
    elif verdict.exit_code != 0:
        lines.append(command("error", f"{verdict.verdict}: {words}", title="Replay Parity"))
    return lines


def reproduce(verdict: Verdict, row: RowResult, campaign: str | None) -> str:
    """One command that repeats the row in a clone of the repository, at the commit that holds the policy."""
    parts = ["replay-parity", "run", _campaign_argument(verdict, campaign), "--row", row.row]
    if verdict.self_compare and verdict.candidate is not None:
        parts += ["--self-compare", "--candidate", _argument(verdict.candidate)]
    elif verdict.baseline is not None and verdict.candidate is not None:
        parts += ["--baseline", _argument(verdict.baseline), "--candidate", _argument(verdict.candidate)]
        if verdict.campaign is not None and verdict.campaign.relationship != ANCESTRY:
            parts += ["--relationship", verdict.campaign.relationship]
    return shlex.join(parts)


def _campaign_argument(verdict: Verdict, campaign: str | None) -> str:
    name = campaign or (verdict.campaign.name if verdict.campaign else "CAMPAIGN")
    has_policy = verdict.origin is not None and verdict.origin.policy_commit is not None
    return f".replay-parity/campaigns/{name}.yaml" if has_policy else name


def _argument(revision: Revision) -> str:
    return revision.commit if revision.kind == "git" else f"crate:{revision.version}"
