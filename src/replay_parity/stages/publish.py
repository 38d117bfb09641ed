"""The stages `publish` and `badge`: a kept verdict, untrusted like every file of a run, to GitHub."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from pydantic import ValidationError

from replay_parity.errors import BadInputError
from replay_parity.github.check_run import CheckRun
from replay_parity.github.client import GitHub
from replay_parity.github.commands import command
from replay_parity.github.origin import Origin
from replay_parity.github.surroundings import Surroundings
from replay_parity.github.text import well_formed
from replay_parity.parity.consistency import contradiction
from replay_parity.parity.verdict import Verdict, decide
from replay_parity.publish.annotations import row_annotations
from replay_parity.publish.badge import badge
from replay_parity.publish.check_text import check_text, conclusion
from replay_parity.publish.checks import publish_check
from replay_parity.stages.report import reproduce
from replay_parity.stages.verdict import IN_THE_SOURCES
from replay_parity.system.files import write_whole
from replay_parity.system.progress import Progress

_MANUAL = frozenset({"workflow_dispatch", "schedule", "repository_dispatch"})


def publish_verdict(
    verdict: Verdict, *, check_name: str, around: Surroundings, api: GitHub, progress: Progress, commands: list[str]
) -> str | None:
    """Make or update the check run; its address, or None with the reason told.

    What GitHub refused becomes a warning of the run: `commands` takes it, to be printed at the end.
    """
    origin = verdict.origin
    if origin is None:
        progress.notice("no plan was made, so there is no commit to publish a check for; the job's status stands")
        return None
    if origin.event in _MANUAL:
        progress.notice("a manual campaign belongs to no change; its verdict is in the summary of the run")
        return None
    _refuse_other_run(origin, around, green=verdict.exit_code == 0)
    _refuse_undecided(verdict)
    published = publish_check(api, _check_run(verdict, origin, check_name), head_now=_head_now(origin, api))
    if published.problem is not None:
        words = f"the check run could not be published completely: {published.problem}"
        progress.notice(words)
        commands.append(command("warning", well_formed(words), title="Replay Parity: check run"))
    return published.url


def _check_run(verdict: Verdict, origin: Origin, check_name: str) -> CheckRun:
    campaign = verdict.campaign.name if verdict.campaign else "campaign"
    words = check_text(verdict, reproduce=lambda row: reproduce(verdict, row, campaign))
    # Two calls of one campaign in one run, such as a change and a self-comparison, are two checks.
    kinds = [name for name, told in (("self-comparison", verdict.self_compare), ("advisory", verdict.advisory)) if told]
    try:
        return CheckRun(
            name=f"{check_name} ({', '.join((campaign, *kinds))})",
            head_sha=origin.head_sha,
            external_id="/".join(("replay-parity", campaign, *kinds)),
            conclusion=conclusion(verdict),
            title=words.title,
            summary=words.summary,
            text=words.text,
            annotations=tuple(row_annotations(verdict, paths=verdict.files)),
            details_url=origin.run_url,
        )
    except ValidationError as error:
        raise BadInputError(f"the kept verdict gives no check run: {error.errors()[0]['msg']}") from None


def write_badge(verdict: Verdict, path: Path, *, around: Surroundings) -> bool:
    """Write the badge's document; False elsewhere than on the default branch, which alone a badge speaks for.

    A run that follows another one (`workflow_run`) is always on the default branch, whatever the verdict is about.
    """
    event = around.event()
    if event.name == "workflow_run":
        return False
    repository = event.payload.get("repository")
    default = repository.get("default_branch") if isinstance(repository, dict) else None
    if not isinstance(default, str) or event.ref != f"refs/heads/{default}":
        return False
    _refuse_undecided(verdict)
    write_whole(path, badge(verdict).encode())
    return True


def _refuse_other_run(origin: Origin, around: Surroundings, *, green: bool) -> None:
    """After `workflow_run` the verdict is another run's, perhaps of a fork: it must be about that run's commit."""
    event = around.event()
    if (origin.server_url, origin.repository) != (event.server_url, event.repository):
        raise BadInputError("the verdict is of another repository; it is not published")
    if event.name != "workflow_run":
        return
    run = event.payload.get("workflow_run")
    if not isinstance(run, dict):
        raise BadInputError("the event names no run")
    if (run.get("head_sha"), run.get("id"), run.get("event")) != (origin.head_sha, origin.run_id, origin.event):
        raise BadInputError("the verdict is not of the run that the event names; it is not published")
    if origin.event == "pull_request" and origin.pull_request is None:
        raise BadInputError("the verdict of a pull request names none; it is not published")
    if green and run.get("conclusion") != "success":
        raise BadInputError(
            f"the verdict is green, but its run ended as {run.get('conclusion')!r}; it is not published"
        )


def _refuse_undecided(verdict: Verdict) -> None:
    """The name of a verdict follows from its rows, and a green row from its digests, whoever wrote the file."""
    unbuildable = any(build.baseline.error_kind in IN_THE_SOURCES for build in verdict.builds)
    equal = verdict.equal_trees and not verdict.self_compare
    found = decide(verdict.rows, equal_trees=equal, baseline_unbuildable=unbuildable, problems=bool(verdict.problems))
    if found != (verdict.verdict, verdict.exit_code):
        raise BadInputError(f"the kept verdict says {verdict.verdict}, its rows say {found[0]}; it is not published")
    for row in verdict.rows:
        reason = contradiction(row) if row.outcome == "match" else None
        if reason is not None or row.plan_sha256 != verdict.plan_sha256:
            reason = reason or "it belongs to another plan"
            raise BadInputError(f"row {row.id} of the kept verdict is refused: {reason}; it is not published")


def _head_now(origin: Origin, api: GitHub) -> Callable[[], str] | None:
    number = origin.pull_request
    if number is None:
        return None
    return lambda: api.pull_request(number).head_sha
