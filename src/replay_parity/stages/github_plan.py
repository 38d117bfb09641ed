"""The stage `plan` on GitHub: event to revisions, policy from the base branch (rule 20), refusals before any build."""

from __future__ import annotations

import os.path
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from replay_parity.campaign.builtin import builtin_configs
from replay_parity.campaign.document import shown
from replay_parity.campaign.library import builtin_campaign
from replay_parity.campaign.loaded import LoadedCampaign
from replay_parity.campaign.loading import load_campaign
from replay_parity.campaign.models import Build
from replay_parity.campaign.sources import POLICY_FOLDER, GitSource
from replay_parity.errors import BadInputError, ConfigurationError, ManyErrors
from replay_parity.github.event import Event, change_of
from replay_parity.github.inputs import Inputs
from replay_parity.github.origin import Origin, PolicyEdit
from replay_parity.pin.git import Mirror
from replay_parity.pin.patch import load_patch
from replay_parity.settings import Settings
from replay_parity.stages.bench import Bench
from replay_parity.stages.compared import Asked, choose
from replay_parity.stages.github_change import Api, Pinned, complete, pin, refuse
from replay_parity.stages.plan import Plan, PlannedRow, make_plan, rows_per_runner
from replay_parity.stages.plan_folder import PlanFolder
from replay_parity.stages.run import only
from replay_parity.system.progress import Progress

# Commits are read before any campaign is known, and need no toolchain.
_NO_BUILD = Build(toolchain="path", profile="release", flags=(), features=())


@dataclass(frozen=True)
class Planned:
    """A plan with what goes along with it to other machines."""

    plan: Plan
    patch: bytes | None
    traces: Mapping[str, Path]

    def keep(self, folder: PlanFolder) -> None:
        """Write it to a folder that travels."""
        folder.write(self.plan, patch=self.patch, traces=self.traces)


class GitHubPlanner:
    """Plans for one event; `api` is None without a token."""

    def __init__(
        self, event: Event, inputs: Inputs, *, api: Api | None, settings: Settings, progress: Progress
    ) -> None:
        self._event = event
        self._inputs = inputs
        self._api = api
        self._settings = settings
        self._progress = progress

    def plan(self, checkout: Path, scratch: Path) -> Planned:
        """The plan for the event; `checkout` holds the repository's objects, `scratch` what is read from them.

        Raises BadInputError or RevisionError, always before anything is built.
        """
        change = complete(change_of(self._event), self._api)
        refuse(change, self._inputs)
        address = self._event.address
        checkouts = {address: checkout}
        self._progress.step("reading the policy from the base")
        reader = Bench(self._settings, _NO_BUILD, base=scratch, checkouts=checkouts).sources
        mirror = reader.mirror(GitSource(git=address, revision=change.head_sha))
        pinned = pin(change, mirror, self._api, event_sha=self._event.sha)
        loaded, policy = self._load(mirror, pinned.policy, scratch)
        loaded = only(loaded, self._inputs.rows)
        rows = rows_per_runner(loaded, files=_row_files(loaded, policy))
        self._refuse_unknown_runners(rows)
        self._progress.step("resolving the revisions")
        plan = make_plan(
            loaded,
            choose(loaded.campaign, self._asked(pinned), git=address),
            sources=Bench(self._settings, loaded.campaign.build, base=loaded.path.parent, checkouts=checkouts).sources,
            rows=rows,
            origin=self._origin(pinned, policy is not None, self._edits(mirror, pinned)),
            self_compare=self._inputs.self_compare,
            advisory=self._inputs.advisory,
        )
        patch = loaded.campaign.build.patch
        return Planned(
            plan=plan,
            patch=load_patch(patch, base=loaded.path.parent) if patch else None,
            traces=_own_traces(loaded, policy),
        )

    def _load(self, mirror: Mirror, commit: str, scratch: Path) -> tuple[LoadedCampaign, Path | None]:
        """The campaign from the policy at that commit, else the built-in one of that name."""
        name = str(self._inputs.campaign)
        root = scratch / "policy"
        mirror.export_folder(commit, POLICY_FOLDER, root)
        path = root / "campaigns" / f"{name}.yaml"
        if path.is_file():
            return _load_policy(path, root), root
        if builtin_campaign(name) is None:
            raise BadInputError(
                f"there is no campaign '{name}': neither {POLICY_FOLDER}/campaigns/{name}.yaml at commit {commit}, "
                "from which the policy is read, nor a built-in one",
                hint="a policy counts once it is merged to the base branch",
            )
        return load_campaign(Path(name)), None

    def _asked(self, pinned: Pinned) -> Asked:
        given, change = self._inputs, pinned.change
        candidate = given.candidate
        if candidate is None and (change.kind != "manual" or given.baseline is not None or given.self_compare):
            candidate = change.head_sha
        return Asked(
            # A self-comparison that is given a baseline as well is refused, not guessed at.
            baseline=given.baseline or (None if given.self_compare else pinned.baseline),
            candidate=candidate,
            stated=given.relationship,
            self_compare=given.self_compare,
            # An event's commits are in its own repository, whatever the campaign's own revisions come from.
            git=self._event.address,
        )

    def _edits(self, mirror: Mirror, pinned: Pinned) -> tuple[PolicyEdit, ...]:
        """What the change itself does to the policy: shown as proposed, not in force."""
        if pinned.baseline is None or pinned.change.kind == "push":
            return ()
        found = mirror.changed_files(pinned.baseline, pinned.change.head_sha, POLICY_FOLDER)
        return tuple(PolicyEdit(path=path, change=kind) for path, kind in found)

    def _origin(self, pinned: Pinned, has_policy: bool, edits: tuple[PolicyEdit, ...]) -> Origin:  # noqa: FBT001
        event, change = self._event, pinned.change
        return Origin(
            server_url=event.server_url,
            repository=event.repository,
            event=event.name,
            run_id=event.run_id,
            run_attempt=event.run_attempt,
            pull_request=change.pull_request,
            base_ref=change.base_ref,
            head_ref=change.head_ref,
            head_sha=change.head_sha,
            from_fork=change.from_fork,
            policy_commit=pinned.policy if has_policy else None,
            policy_edits=edits,
        )

    def _refuse_unknown_runners(self, rows: tuple[PlannedRow, ...]) -> None:
        known = self._inputs.runners
        for planned in rows:
            if planned.runner not in known:
                raise BadInputError(
                    f"row {planned.row.name} needs the runner '{planned.runner}', the workflow gives "
                    f"{', '.join(known) or 'none'}",
                    where="input runners",
                )


def _load_policy(path: Path, root: Path) -> LoadedCampaign:
    """A campaign of the policy; every row of it comes from the policy or from the package (rule 20)."""
    try:
        loaded = load_campaign(path)
    except ManyErrors as errors:
        # People know the repository's folder, not the one that it was written to for a moment.
        raise ManyErrors([_in_repository(error, root) for error in errors.errors]) from None
    for item in loaded.rows:
        if _below(item.path, root) is None and _below(item.path, builtin_configs()) is None:
            raise BadInputError(
                f"the row {item.row.name} lies outside of the policy",
                where=f"{POLICY_FOLDER}/campaigns/{path.name}",
                hint=f"keep it in {POLICY_FOLDER}/rows",
            )
    return loaded


def _in_repository(error: BadInputError, root: Path) -> BadInputError:
    def told(text: str | None) -> str | None:
        for name in (str(root), shown(root)):
            text = text.replace(f"{name}/", f"{POLICY_FOLDER}/") if text else text
        return text

    return ConfigurationError(str(told(error.message)), where=told(error.where), hint=told(error.hint))


def _row_files(loaded: LoadedCampaign, policy: Path | None) -> dict[str, str]:
    """Planned row to its file in the repository, for annotations; built-in rows have none."""
    if policy is None:
        return {}
    found = {item.row.name: _below(item.path, policy) for item in loaded.rows}
    return {name: f"{POLICY_FOLDER}/{path}" for name, path in found.items() if path is not None}


def _own_traces(loaded: LoadedCampaign, policy: Path | None) -> dict[str, Path]:
    """Traces that the policy itself holds, by corpus; where others lie is known on the machines that replay them."""
    named = {name: item.trace_file for name, item in loaded.corpora.items() if item.trace_file is not None}
    return {
        name: path
        for name, path in named.items()
        if policy is not None and _below(path, policy) is not None and path.is_file()
    }


def _below(path: Path, root: Path) -> str | None:
    """The path from `root`, without detours; None when it is not below it."""
    whole, top = Path(os.path.normpath(path)), Path(os.path.normpath(root))
    return whole.relative_to(top).as_posix() if whole.is_relative_to(top) else None
