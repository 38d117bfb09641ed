"""The verdict as a check run: never doubled, never finished before it is whole, never the reason to lose a verdict."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from replay_parity.errors import ReplayParityError
from replay_parity.github.check_requests import (
    MOST_ANNOTATIONS,
    KnownAnnotation,
    Run,
    create_run,
    known_annotations,
    newest_run,
    update_run,
)
from replay_parity.github.check_run import Annotation, CheckRun
from replay_parity.github.client import GitHub
from replay_parity.github.failures import PermissionDenied, Unclear, Unprocessable
from replay_parity.github.text import cut

_OUTPUT_BYTES = 65_535
_CUT = "_This is cut: GitHub shows no more here. The whole is in the artifacts of the workflow run._"
_SHORT = 12
# Lost answers in one publication; after each one we wait and look what GitHub has.
_MOST_LOST = 5
_PAUSE_SECONDS = 2.0
_EARLIER = "_{} annotations of an earlier attempt are still listed: GitHub never takes one back._"


@dataclass(frozen=True)
class Published:
    """What came of publishing: address of the run when GitHub has one, the conclusion that was sent, what went wrong.

    A problem never changes the verdict: the job's status and its summary carry that.
    """

    url: str | None
    conclusion: str
    problem: str | None = None


@dataclass(frozen=True)
class _Seen:
    """What GitHub has of a check: its run, the annotations that are missing there, a note on those too many."""

    run: Run | None
    missing: tuple[Annotation, ...]
    note: str = ""


def publish_check(github: GitHub, check: CheckRun, *, head_now: Callable[[], str] | None = None) -> Published:
    """Make or update the check run of `check`'s identity (name, external id, commit).

    `head_now` reads the head of the branch again: a result of an older commit is published there as `cancelled`
    (threat 16). Raises nothing of the tool's own errors: they become the problem.
    """
    problems: list[str] = []
    try:
        check = _as_of_now(check, head_now)
    except ReplayParityError as error:
        problems.append(f"the head of the branch could not be read again: {error}")
    publication = _Publication(github)
    try:
        publication.send(check)
    except Unprocessable as error:
        problems.append(str(error))
        if check.annotations:
            # They are the part that GitHub may not like; without them the check is still of use.
            problems += _without_annotations(publication, check, error)
    except PermissionDenied as error:
        problems.append(f"{error}; tokens of pull requests from forks are read-only")
    except ReplayParityError as error:
        problems.append(str(error))
    if problems and publication.may_be_open:
        problems.append("the check run may stay in progress, since not all of it was sent")
    return Published(publication.url, check.conclusion, "; ".join(problems) or None)


def _as_of_now(check: CheckRun, head_now: Callable[[], str] | None) -> CheckRun:
    head = head_now() if head_now is not None else check.head_sha
    if head == check.head_sha:
        return check
    old, new = check.head_sha[:_SHORT], head[:_SHORT]
    sentence = (
        f"**This result is out of date.** It is of `{old}`; the head of the branch is `{new}` by now, "
        "which gets a check of its own."
    )
    return check.model_copy(
        update={
            "conclusion": "cancelled",
            "title": f"Out of date: the head moved from {old} to {new}",
            "summary": f"{sentence}\n\n{check.title}\n\n{check.summary}",
        }
    )


def _without_annotations(publication: _Publication, check: CheckRun, refusal: Unprocessable) -> list[str]:
    note = f"_GitHub refused some of the {len(check.annotations)} annotations of this check, so they are left out._"
    try:
        publication.send(check, note=note, with_annotations=False)
    except ReplayParityError as error:
        return [] if str(error) == str(refusal) else [str(error)]
    return ["the check run was published without the annotations that are missing there"]


class _Publication:
    """Look what GitHub has, send what is missing, and look again whenever an answer is lost."""

    def __init__(self, github: GitHub) -> None:
        self._github = github
        self._lost = 0
        self.url: str | None = None
        self.may_be_open = False

    def send(self, check: CheckRun, *, note: str = "", with_annotations: bool = True) -> None:
        """Publish all of it; raises the client's errors, and the last Unclear when too many answers are lost."""
        seen = self._look(check)
        while True:
            missing = seen.missing if with_annotations else ()
            batch, rest = missing[:MOST_ANNOTATIONS], missing[MOST_ANNOTATIONS:]
            document = _document(check, batch, notes=(note, seen.note), last=not rest)
            self.may_be_open = self.may_be_open or bool(rest)
            try:
                run = self._write(check, seen.run, document)
            except Unclear as error:
                self._pause_after(error)
                seen = self._look(check)
                continue
            if not rest:
                self.may_be_open = False
                return
            seen = _Seen(run, rest, seen.note)

    def _write(self, check: CheckRun, run: Run | None, document: dict[str, Any]) -> Run:
        if run is None:
            written = create_run(self._github, {**document, "head_sha": check.head_sha})
        else:
            written = update_run(self._github, run, document)
        self.url = written.html_url
        return written

    def _look(self, check: CheckRun) -> _Seen:
        run = newest_run(self._github, name=check.name, external_id=check.external_id, head_sha=check.head_sha)
        if run is None:
            return _Seen(None, check.annotations)
        self.url = run.html_url
        known = Counter(_known(annotation) for annotation in known_annotations(self._github, run))
        wanted = Counter(_wanted(annotation) for annotation in check.annotations)
        missing: list[Annotation] = []
        left = known.copy()
        for annotation in check.annotations:
            key = _wanted(annotation)
            if left[key] > 0:
                left[key] -= 1
            else:
                missing.append(annotation)
        earlier = (known - wanted).total()
        return _Seen(run, tuple(missing), _EARLIER.format(earlier) if earlier else "")

    def _pause_after(self, error: Unclear) -> None:
        self._lost += 1
        if self._lost >= _MOST_LOST:
            raise error
        self._github.pause(_PAUSE_SECONDS * 2**self._lost)


def _document(check: CheckRun, batch: tuple[Annotation, ...], *, notes: tuple[str, ...], last: bool) -> dict[str, Any]:
    summary = "\n\n".join((*filter(None, notes), check.summary))
    output: dict[str, Any] = {"title": check.title, "summary": cut(summary, _OUTPUT_BYTES, _CUT)}
    if check.text is not None:
        output["text"] = cut(check.text, _OUTPUT_BYTES, _CUT)
    if batch:
        output["annotations"] = [_sent(annotation) for annotation in batch]
    document: dict[str, Any] = {"name": check.name, "external_id": check.external_id, "output": output}
    if check.details_url is not None:
        document["details_url"] = check.details_url
    if last:
        return {**document, "status": "completed", "conclusion": check.conclusion}
    return {**document, "status": "in_progress"}


def _sent(annotation: Annotation) -> dict[str, Any]:
    return {
        "path": annotation.path,
        "start_line": annotation.start_line,
        "end_line": annotation.end_line,
        "annotation_level": annotation.level,
        "title": annotation.title,
        "message": annotation.message,
        **({} if annotation.raw_details is None else {"raw_details": annotation.raw_details}),
    }


def _wanted(annotation: Annotation) -> tuple[object, ...]:
    texts = (annotation.title, annotation.message, annotation.raw_details)
    return annotation.path, annotation.start_line, annotation.end_line, annotation.level, *map(_plain, texts)


def _known(annotation: KnownAnnotation) -> tuple[object, ...]:
    texts = (annotation.title, annotation.message, annotation.raw_details)
    return annotation.path, annotation.start_line, annotation.end_line, annotation.annotation_level, *map(_plain, texts)


def _plain(text: str | None) -> str:
    """A text as it is compared: white space may have been changed on its way."""
    return " ".join((text or "").split())
