"""The documentation holds: workflows pass the linters, campaigns load, commands parse, links lead somewhere."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
import pytest

from replay_parity.campaign.loading import load_campaign
from replay_parity.cli.main import cli
from tests.support.documents import (
    PAGES,
    ROOT,
    Block,
    anchors,
    blocks,
    commands,
    links,
    tables,
    workflow_blocks,
)
from tests.support.go_tools import go_tool
from tests.support.workflows import ACTION, OWN, asked_permissions, document, steps, workflow

WORKFLOWS = workflow_blocks()
_COMMIT = "0123456789abcdef0123456789abcdef01234567"
_NAMES = [str(page.relative_to(ROOT)) for page in PAGES]
_SCRIPTS = Path(sys.executable).parent


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Every workflow of the pages as a file that a consumer would commit, by the block that it is from."""
    files = {}
    for number, block in enumerate(WORKFLOWS):
        place = tmp_path_factory.mktemp("consumer") / ".github" / "workflows"
        place.mkdir(parents=True)
        files[str(block)] = place / f"{number}.yml"
        files[str(block)].write_text(block.text.replace("@COMMIT", f"@{_COMMIT}"))
    return files


def check(argv: Sequence[str | Path]) -> None:
    done = subprocess.run(argv, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_there_are_workflows_to_check() -> None:
    assert len(WORKFLOWS) >= 7
    assert len({block.page for block in WORKFLOWS}) >= 3


def test_every_workflow_passes_actionlint(written: dict[str, Path]) -> None:
    check([go_tool("actionlint"), "-shellcheck", str(_SCRIPTS / "shellcheck"), *written.values()])


def test_every_workflow_is_of_githubs_schema(written: dict[str, Path]) -> None:
    check([_SCRIPTS / "check-jsonschema", "--builtin-schema", "vendor.github-workflows", *written.values()])


def test_every_workflow_passes_zizmor(written: dict[str, Path]) -> None:
    check([_SCRIPTS / "zizmor", "--offline", "--quiet", "--no-progress", *written.values()])


@pytest.mark.parametrize("block", WORKFLOWS, ids=str)
def test_a_workflow_says_where_it_belongs_and_grants_what_is_asked(block: Block) -> None:
    assert (block.file or "").startswith(".github/workflows/")
    found = block.document
    assert found["permissions"] == {}
    called = {name: job for name, job in found["jobs"].items() if "uses" in job}
    assert called
    for job in called.values():
        name = Path(job["uses"].partition("@")[0]).stem
        assert job["uses"] == f"{OWN}/.github/workflows/{name}.yml@COMMIT"
        ours = workflow(name)
        assert job["permissions"] == asked_permissions(ours)
        inputs = ours["on"]["workflow_call"]["inputs"]
        assert set(job.get("with", {})) <= set(inputs)
        assert {known for known, item in inputs.items() if item.get("required")} <= set(job.get("with", {}))


@pytest.mark.parametrize("block", WORKFLOWS, ids=str)
def test_foreign_actions_of_a_page_are_pinned_as_ours_are(block: Block) -> None:
    ours = {used for path in (ROOT / ".github" / "workflows").glob("*.yml") for used in used_by(document(path))}
    assert [used for used in used_by(block.document) if not used.startswith(f"{OWN}@") and used not in ours] == []


def used_by(found: dict[str, Any]) -> list[str]:
    return [step["uses"] for step in steps(found) if "uses" in step]


def test_the_campaigns_of_the_pages_load(tmp_path: Path) -> None:
    policy = [block for block in blocks("yaml") if (block.file or "").startswith(".replay-parity/")]
    assert policy
    for block in policy:
        place = tmp_path / str(block.file)
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(block.text)
    campaigns = sorted((tmp_path / ".replay-parity" / "campaigns").iterdir())
    assert campaigns
    for path in campaigns:
        loaded = load_campaign(path)
        assert loaded.campaign.name == path.stem


def test_the_callers_know_the_campaign_and_the_classes_of_machines() -> None:
    campaign = next(block.document for block in blocks("yaml") if "/campaigns/" in (block.file or ""))
    classes = set(campaign["runners"]) | {
        name for row in campaign["rows"] if isinstance(row, dict) for name in row["runners"]
    }
    used = [
        job["with"]
        for block in WORKFLOWS
        if block.page.name == "consumer.md"
        for job in block.document["jobs"].values()
        if "runners" in job.get("with", {})
    ]
    assert used
    for given in used:
        assert given["campaign"] in {campaign["name"], "${{ inputs.campaign }}"}
        assert [name for name in classes if f'"{name}"' not in given["runners"]] == []


@pytest.mark.parametrize("page", PAGES, ids=_NAMES)
def test_links_lead_somewhere(page: Path) -> None:
    for target in links(page):
        if target.startswith(("https://", "http://")):
            continue
        path, _, anchor = target.partition("#")
        place = (page.parent / path).resolve() if path else page
        assert place.exists(), target
        if anchor:
            assert anchor in anchors(place), target


def test_every_page_is_found_from_the_readme() -> None:
    seen: set[Path] = set()
    waiting = [ROOT / "README.md"]
    while waiting:
        page = waiting.pop()
        if page in seen:
            continue
        seen.add(page)
        targets = [(page.parent / target.partition("#")[0]).resolve() for target in links(page) if ":" not in target]
        waiting += [target for target in targets if target.suffix == ".md" and target.is_file()]
    assert [page for page in PAGES if page not in seen] == []


def test_commands_parse(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    # What a page writes for a folder of the reader's own.
    for folder in ("traces", "PATH/TO/TRACES"):
        (tmp_path / folder).mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    found = list(commands("replay-parity"))
    assert len(found) >= 5
    for place, arguments in found:
        if not arguments:
            continue
        name, command, rest = cli.resolve_command(click.Context(cli), arguments)
        assert command is not None, place
        try:
            command.make_context(name, list(rest), parent=click.Context(cli))
        except click.ClickException as error:
            pytest.fail(f"{place}: {error.format_message()}")


def test_make_targets_exist() -> None:
    targets = {line.partition(":")[0] for line in (ROOT / "Makefile").read_text().splitlines() if ": " in line}
    found = [(place, words) for place, words in commands("make") if words]
    assert found
    assert [place for place, words in found if not set(words) <= targets] == []


def inputs_of(described: dict[str, Any]) -> list[list[str]]:
    return [
        [f"`{name}`", "required" if item.get("required") else shown(item.get("default", "")), item["description"]]
        for name, item in described.items()
        if "description" in item
    ]


def shown(default: object) -> str:
    text = str(default).lower() if isinstance(default, bool) else str(default)
    return f"`{text}`" if text else ""


def test_the_tables_are_those_of_the_action_and_the_workflow() -> None:
    page = [table[1:] for table in tables(ROOT / "docs" / "action.md")]
    action, called = document(ACTION), workflow("replay-parity")["on"]["workflow_call"]
    for described in (action["inputs"], called["inputs"]):
        table = next(rows for rows in page if [row[0] for row in rows] == [f"`{name}`" for name in described])
        told = {f"`{name}`" for name, item in described.items() if "description" in item}
        assert [row for row in table if row[0] in told] == inputs_of(described)
    for described in (action["outputs"], called["outputs"]):
        assert [[f"`{name}`", item["description"]] for name, item in described.items()] in page


def test_the_security_page_says_what_the_jobs_may_do() -> None:
    table = next(rows for rows in tables(ROOT / "docs" / "security.md") if rows[0][0] == "job")
    told = {row[0]: row[3] for row in table[1:]}
    jobs = workflow("replay-parity")["jobs"]
    assert list(told) == list(jobs)
    for name, job in jobs.items():
        wanted = [f"`{scope}: {access}`" for scope, access in job["permissions"].items()]
        assert told[name].removesuffix(", not kept in the checkout") == (", ".join(wanted) or "none")
