"""Where commits stand to each other, said only when the history in the mirror proves it (rules 1 and 20)."""

from __future__ import annotations

from replay_parity.errors import InfrastructureError, RevisionError
from replay_parity.pin.git_command import GitOutput, reason
from replay_parity.pin.git_mirror import BareMirror


def is_ancestor(mirror: BareMirror, baseline: str, candidate: str) -> bool:
    """Whether `baseline` can be reached from `candidate`; RevisionError when a cut-off history leaves it open."""
    found = _asked(mirror, "--is-ancestor", baseline, candidate).returncode == 0
    if found or not mirror.is_shallow:
        return found
    if _deepen(mirror):
        return is_ancestor(mirror, baseline, candidate)
    raise _cut_off(mirror, f"whether {baseline} is an ancestor of {candidate}")


def merge_base(mirror: BareMirror, left: str, right: str) -> str:
    """Git's best common ancestor of two commits that are in the mirror; RevisionError when there is none."""
    found = _asked(mirror, left, right).text.split()
    if mirror.is_shallow and _is_open(mirror, left, right, found):
        if _deepen(mirror):
            return merge_base(mirror, left, right)
        raise _cut_off(mirror, f"where {left} and {right} parted")
    if not found:
        raise RevisionError(f"{left} and {right} of {mirror.repository.shown} have no common ancestor")
    return found[0]


def _asked(mirror: BareMirror, *arguments: str) -> GitOutput:
    output = mirror.git.call("merge-base", *arguments, cwd=mirror.path)
    if output.returncode not in {0, 1}:
        left, right = arguments[-2:]
        raise InfrastructureError(f"git cannot compare {left} with {right}: {reason(output.error)}")
    return output


def _deepen(mirror: BareMirror) -> bool:
    """Bring the rest of the history when the repository has it by now; whether the mirror is whole then."""
    if not mirror.is_source_shallow:
        mirror.fetch()
    return not mirror.is_shallow


def _is_open(mirror: BareMirror, left: str, right: str, found: list[str]) -> bool:
    """Whether the history is cut off above the common ancestor: behind the cut there may be a better one."""
    listed = mirror.git.demand("rev-list", left, right, *(f"^{commit}" for commit in found), cwd=mirror.path)
    cuts = (mirror.path / "shallow").read_text("ascii", "replace").split()
    return not set(cuts).isdisjoint(listed.text.split())


def _cut_off(mirror: BareMirror, question: str) -> RevisionError:
    where = mirror.repository
    kind = "a shallow clone" if where.checkout is None else "shallow"
    return RevisionError(
        f"{where.shown} is {kind}: its history ends before it shows {question}",
        hint=where.deepen,
    )
