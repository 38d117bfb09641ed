"""What was compared, and whose policy judged it, as Markdown."""

from __future__ import annotations

import re

from replay_parity.github.origin import Origin, PolicyEdit
from replay_parity.parity.verdict import Verdict
from replay_parity.pin.models import GitRevision, Revision
from replay_parity.publish.markdown import code, cut, text
from replay_parity.publish.words import counted

_SHORT = 12
_TITLE = 300
_NAME = 100
_EDITS_SHOWN = 10
# A link only where nothing has to be escaped.
_REPOSITORY = re.compile(r"(https://[A-Za-z0-9.-]+)/([\w-][\w.-]*/[\w-][\w.-]*?)(?:\.git)?/?", re.ASCII)


def compared(verdict: Verdict) -> str:
    """Title, both sides with short ids, and the relationship; empty without a plan."""
    if verdict.campaign is None or verdict.baseline is None or verdict.candidate is None:
        return ""
    baseline, candidate = (side(revision, verdict.origin) for revision in (verdict.baseline, verdict.candidate))
    sides = f"baseline {baseline} against candidate {candidate}"
    title, relationship = (
        text(cut(words.rstrip("."), _TITLE)) for words in (verdict.campaign.title, verdict.campaign.relationship)
    )
    return f"{title}: {sides}.\\\nRelationship: {relationship}."


def side(revision: Revision, origin: Origin | None) -> str:
    """One side: its name as it was asked for, and the short commit, with a link where its repository is known."""
    if revision.kind == "crate":
        commit = f", commit {code(revision.commit[:_SHORT])}" if revision.commit else ""
        return f"{code(cut(f'{revision.crate} {revision.version}', _NAME))} (a release{commit})"
    shown = code(revision.commit[:_SHORT])
    link = commit_link(revision, origin)
    shown = f"[{shown}]({link})" if link else shown
    named = revision.asked_as not in {"commit", "short commit"}
    return f"{code(cut(revision.asked, _NAME))} (commit {shown})" if named else f"commit {shown}"


def commit_link(revision: GitRevision, origin: Origin | None) -> str | None:
    """Address of the commit on the GitHub that the run is on, or on github.com."""
    found = _REPOSITORY.fullmatch(revision.repository)
    servers = {"https://github.com", origin.server_url if origin else None}
    return f"{found[1]}/{found[2]}/commit/{revision.commit}" if found and found[1] in servers else None


def policy(origin: Origin | None) -> str:
    """Where the policy comes from, and which edits of it wait (rule 20); empty outside of GitHub."""
    if origin is None:
        return ""
    if origin.policy_commit is None:
        source = "Policy (campaign, rows, corpora): as the tool ships it."
    else:
        branch = f" of {code(cut(origin.base_ref, _NAME))}" if origin.base_ref else ""
        source = f"Policy (campaign, rows, corpora): commit {code(origin.policy_commit[:_SHORT])}{branch}."
    if not origin.policy_edits:
        return source
    shown = [_edit(edit) for edit in origin.policy_edits[:_EDITS_SHOWN]]
    rest = len(origin.policy_edits) - len(shown)
    more = f", and {rest:,} more" if rest else ""
    number = counted(len(origin.policy_edits), "edit")
    return f"{source} **Proposed by this change, not in force:** {number} of the policy: {', '.join(shown)}{more}."


def _edit(edit: PolicyEdit) -> str:
    return f"{code(cut(edit.path, _TITLE))} {edit.change}"
