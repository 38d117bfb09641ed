"""The four requests of the Checks API that a publication is made of."""

from __future__ import annotations

from typing import Any

from pydantic import TypeAdapter

from replay_parity.github.client import GitHub
from replay_parity.github.shapes import Shape

# GitHub refuses more annotations in one request.
MOST_ANNOTATIONS = 50
_WRITE = "checks: write"
_RUN_PAGES = 10
_ANNOTATION_PAGES = 200


class _Output(Shape):
    annotations_count: int


class Run(Shape):
    """A check run that GitHub knows."""

    id: int
    name: str
    head_sha: str
    external_id: str | None
    html_url: str | None
    output: _Output


class KnownAnnotation(Shape):
    """An annotation that GitHub knows."""

    path: str
    start_line: int
    end_line: int
    annotation_level: str | None
    title: str | None
    message: str | None
    raw_details: str | None


class _Runs(Shape):
    check_runs: list[Run]


_RUN = TypeAdapter(Run)
_RUNS = TypeAdapter(_Runs)
_ANNOTATIONS = TypeAdapter(list[KnownAnnotation])


def newest_run(github: GitHub, *, name: str, external_id: str, head_sha: str) -> Run | None:
    """The run that was made under this identity, the newest when there are several."""
    pages = github.pages(
        f"/commits/{head_sha}/check-runs",
        _RUNS,
        needs=_WRITE,
        most=_RUN_PAGES,
        query={"check_name": name, "filter": "all"},
    )
    identity = (name, external_id, head_sha)
    own = [run for page in pages for run in page.check_runs if (run.name, run.external_id, run.head_sha) == identity]
    return max(own, key=lambda run: run.id, default=None)


def known_annotations(github: GitHub, run: Run) -> list[KnownAnnotation]:
    """Every annotation of a run; no request when it has none."""
    if run.output.annotations_count == 0:
        return []
    path = f"/check-runs/{run.id}/annotations"
    pages = github.pages(path, _ANNOTATIONS, needs=_WRITE, most=_ANNOTATION_PAGES)
    return [annotation for page in pages for annotation in page]


def create_run(github: GitHub, document: dict[str, Any]) -> Run:
    """Make a check run; a second one with the same identity is a second check, so after Unclear look first."""
    return github.write("POST", "/check-runs", document, _RUN, needs=_WRITE)


def update_run(github: GitHub, run: Run, document: dict[str, Any]) -> Run:
    """Change a check run; its annotations are appended to those there are, so after Unclear look first."""
    return github.write("PATCH", f"/check-runs/{run.id}", document, _RUN, needs=_WRITE)
