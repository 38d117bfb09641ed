"""Results that others left: edits are refused, what a forger can change unseen decides nothing (threats 3, 4, 6)."""

from __future__ import annotations

import gzip
import os
import re
import shutil
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, get_args

import orjson
import pytest
from tests.support.run_folder import (
    OTHER_ROW,
    REPORTED,
    ROW,
    RunFolder,
    edit,
    good_run,
    make_plan,
    planned_row,
    record_bytes,
    reseal,
)

from replay_parity.errors import EXIT_OK
from replay_parity.parity.result import Outcome, RowResult, settle
from replay_parity.parity.verdict import Verdict, is_green
from replay_parity.stages.builds import Builds, find_builds
from replay_parity.stages.collect import Collected, collect
from replay_parity.system.files import sha256_bytes

Pointer = tuple[str | int, ...]
OUTCOMES: tuple[str, ...] = get_args(Outcome)
REFUSAL = {"kind": "engine_refused", "phase": None, "variant": None, "message": "m"}

# What a forger who can seal may change in a `match` unseen: words, times, places, counters that are only shown.
FREE = re.compile(
    r"/reason|/seconds|/placement|/node(/.*)?"
    r"|/(baseline|candidate)/(qualification/.*|evidence_notes)"
    r"|/(baseline|candidate)/repetitions/[01]/"
    r"(report_bytes|refusal|reason|seconds|peak_threads|peak_rss_bytes|cpus(/.*)?)"
)


def scalars(value: Any, pointer: Pointer = ()) -> Iterator[tuple[Pointer, Any]]:
    """Every scalar and every list of a document with where it is."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield from scalars(item, (*pointer, key))
        return
    if isinstance(value, list):
        yield pointer, value
        for index, item in enumerate(value):
            yield from scalars(item, (*pointer, index))
        return
    yield pointer, value


def others(value: Any) -> list[Any]:
    """Other values of the same type."""
    if value is None:
        return ["x", "baseline", "candidate", 7, 1.25, REFUSAL]
    if isinstance(value, bool):
        return [not value]
    if isinstance(value, int):
        return [value + 1, value - 1, 2**63]
    if isinstance(value, float):
        return [value + 0.5, -value]
    if isinstance(value, str):
        words = {*OUTCOMES, "baseline", "candidate", "both"}
        return sorted({f"{value} ", "f" * 64, "x", *(words if value in words else ())} - {value})
    return [value[:-1], [*value, *value[-1:]], [*value, "x"], [*value, "e" * 64]]


def other_types(value: Any) -> list[Any]:
    """Values of every other type, the same number or word among them."""
    found: list[Any] = [None, "x", 1, True, [], {}, str(value), [value]]
    if isinstance(value, int | float) and not isinstance(value, bool) and value == int(value):
        found += [int(value), float(value)]
    return [item for item in found if type(item) is not type(value)]


def replaced(document: dict[str, Any], pointer: Pointer, value: Any) -> dict[str, Any]:
    edited = orjson.loads(orjson.dumps(document))
    place = edited
    for part in pointer[:-1]:
        place = place[part]
    place[pointer[-1]] = value
    found: dict[str, Any] = edited
    return found


def shown(pointer: Pointer) -> str:
    return "".join(f"/{part}" for part in pointer)


class Desk:
    """One run of one row whose result is forged again and again."""

    def __init__(self, root: Path, outcome: Outcome) -> None:
        self.run = RunFolder(root, make_plan(planned_row(ROW)))
        self.run.build()
        self.path = self.run.result(ROW, outcome) / "result.json"
        self.document: dict[str, Any] = orjson.loads(self.path.read_bytes())
        self.builds: Builds = find_builds(self.run.builds, self.run.plan, newest=1)

    def collect(self) -> Collected:
        return collect(self.run.results, self.run.plan, self.builds, newest=1)

    def accepted(self) -> RowResult | None:
        """The result when nothing is said against it."""
        found = self.collect()
        if found.problems or (ROW, 1) not in found.folders:
            return None
        return settle(found.attempts[ROW])


@pytest.fixture(scope="module")
def desks(tmp_path_factory: pytest.TempPathFactory) -> dict[Outcome, Desk]:
    return {outcome: Desk(tmp_path_factory.mktemp(outcome), outcome) for outcome in REPORTED}


@pytest.mark.parametrize("outcome", REPORTED)
def test_what_a_row_job_leaves_is_accepted_as_it_is(desks: dict[Outcome, Desk], outcome: Outcome) -> None:
    found = desks[outcome].accepted()
    assert found is not None
    assert found.outcome == outcome
    assert found == RowResult.model_validate(desks[outcome].document)


@pytest.mark.parametrize("outcome", ["match", "mismatch"])
def test_every_edit_of_every_field_is_refused(desks: dict[Outcome, Desk], outcome: Outcome) -> None:
    desk, unseen = desks[outcome], []
    count = 0
    for pointer, value in scalars(desk.document):
        for other in (*others(value), *other_types(value)):
            if value == [] == other:
                continue
            count += 1
            desk.path.write_bytes(orjson.dumps(replaced(desk.document, pointer, other)))
            if desk.accepted() is not None:
                unseen.append((shown(pointer), other))
    desk.path.write_bytes(orjson.dumps(desk.document))
    assert desk.accepted() is not None
    assert count > 1_000
    assert unseen == []


@pytest.mark.parametrize("outcome", REPORTED)
def test_a_forger_who_seals_again_makes_no_row_greener(desks: dict[Outcome, Desk], outcome: Outcome) -> None:
    desk, changed = desks[outcome], set()
    for pointer, value in scalars(desk.document):
        for other in (*others(value), *(other_types(value) if outcome == "match" else ())):
            desk.path.write_bytes(orjson.dumps(replaced(desk.document, pointer, other)))
            reseal(desk.path)
            found = desk.accepted()
            if found is not None and found != RowResult.model_validate(desk.document):
                changed.add(shown(pointer))
                assert found.outcome == outcome or not is_green(found), shown(pointer)
    desk.path.write_bytes(orjson.dumps(desk.document))
    if outcome == "match":
        assert {pointer for pointer in changed if not FREE.fullmatch(pointer)} == set()
        # The list names nothing that cannot be changed.
        for words in ("/reason", "/seconds", "/placement", "/node/kernel", "/candidate/repetitions/0/cpus/0"):
            assert words in changed


def test_what_a_forger_changes_unseen_does_not_decide(tmp_path: Path) -> None:
    """All of it at once: the verdict is the same but for these words."""
    run = good_run(tmp_path)
    before = run.decide()
    path = run.results / f"test~row~{ROW}~1" / "rows" / ROW / "attempt-1" / "result.json"
    document = orjson.loads(path.read_bytes())
    for pointer, value in list(scalars(document)):
        if FREE.fullmatch(shown(pointer)):
            other = {str: f"{value}!", int: 3, float: 4.5, bool: True}.get(type(value), value)
            document = replaced(document, pointer, other)
    path.write_bytes(orjson.dumps(document))
    reseal(path)
    after = run.decide()
    assert after.rows[0] != before.rows[0]
    deciding = ("verdict", "exit_code", "problems", "counts", "failed_rows", "undecided_rows", "plan_sha256")
    assert [getattr(after, name) for name in deciding] == [getattr(before, name) for name in deciding]
    for name in ("outcome", "fault", "input_sha256", "attempt", "differences", "reports"):
        assert getattr(after.rows[0], name) == getattr(before.rows[0], name)
    assert after.rows[0].candidate.digests == before.rows[0].candidate.digests


def test_a_whole_forgery_is_the_limit(desks: dict[Outcome, Desk]) -> None:
    """The limit that the documentation states: evidence against accident, not against malice.

    The job that runs the candidate also writes the result. An author who copies the baseline's digests into the
    candidate's side, drops the difference and seals again gets a `match`, as one whose binary prints the baseline's
    bytes does. Nothing here can tell; only a person who reads the change can.
    """
    for outcome in ("mismatch", "unqualified"):
        desk = desks[outcome]
        forged = orjson.loads(orjson.dumps(desk.document))
        sides = forged["baseline"], forged["candidate"]
        for key in ("digests", "results_digests"):
            sides[1][key] = sides[0][key]
        for mine, theirs in zip(sides[1]["repetitions"], sides[0]["repetitions"], strict=True):
            mine |= {key: theirs[key] for key in ("canonical_sha256", "results_sha256", "report_bytes")}
        sides[1]["evidence_problems"] = []
        forged |= {"outcome": "match", "differences": None, "reports": [], "reason": "all is well"}
        desk.path.write_bytes(orjson.dumps(forged))
        reseal(desk.path)
        found = desk.accepted()
        desk.path.write_bytes(orjson.dumps(desk.document))
        assert found is not None
        assert is_green(found)


def test_a_golden_digest_narrows_the_limit(tmp_path: Path) -> None:
    """A row that names its digest: two sides that were forged alike are still refused."""
    planned = planned_row(ROW)
    for digest, green in ((sha256_bytes(record_bytes(ROW)), True), ("9" * 64, False)):
        expected = planned.row.expected.model_copy(update={"canonical_sha256": digest})
        row = planned.row.model_copy(update={"expected": expected})
        run = RunFolder(tmp_path / digest[:4], make_plan(planned.model_copy(update={"row": row})))
        run.build()
        path = run.result(ROW, "match" if green else "unqualified") / "result.json"
        document = orjson.loads(path.read_bytes())
        document["outcome"] = "match"
        for side in ("baseline", "candidate"):
            document[side]["evidence_problems"] = []
        path.write_bytes(orjson.dumps(document))
        reseal(path)
        verdict = run.decide()
        assert (verdict.exit_code == EXIT_OK) == green
        if not green:
            assert verdict.rows[0].reason == "the result is a match, but not of the digest that the row expects"


# --- kept files


def refused(desk: Desk) -> str:
    """Why the row is invalid."""
    found = desk.collect()
    assert found.folders == {}
    (result,) = found.attempts[ROW]
    assert result.outcome == "invalid"
    assert result.fault == "both"
    return result.reason


@pytest.fixture
def mismatch(tmp_path: Path) -> Desk:
    return Desk(tmp_path, "mismatch")


def _in(desk: Desk, name: str) -> Path:
    return desk.path.parent / name


_KEPT: list[tuple[Callable[[Path], object], str]] = [
    (lambda folder: (folder / "reports" / "candidate.jsonl.gz").unlink(), "a kept file there is no such file"),
    (lambda folder: (folder / "reports" / "candidate.jsonl.gz").write_bytes(b"no gzip"), "a kept file is damaged"),
    (
        lambda folder: (folder / "reports" / "candidate.jsonl.gz").write_bytes(gzip.compress(b"x" * 99)[:-12]),
        "a kept file is damaged",
    ),
    (
        lambda folder: (folder / "reports" / "candidate.jsonl.gz").write_bytes(gzip.compress(record_bytes(ROW))),
        "must keep the reports of both sides",
    ),
    (
        lambda folder: (folder / "reports" / "candidate.jsonl.gz").write_bytes(gzip.compress(b"{}\n")),
        "a kept report has none of the result's digests",
    ),
    (lambda folder: (folder / "differences.json").unlink(), "a kept file there is no such file"),
    (lambda folder: (folder / "differences.json").write_bytes(b"{"), "a kept file cannot be read"),
    (lambda folder: (folder / "differences.json").write_bytes(b"[" * 100_000), "a kept file cannot be read"),
    (lambda folder: edit(folder / "differences.json", {"count": 2}), "other counts than the result"),
    (lambda folder: edit(folder / "differences.json", {"more": 2}), "a kept file cannot be read: /more"),
]


@pytest.mark.parametrize(("spoil", "words"), _KEPT, ids=range(len(_KEPT)))
def test_kept_files_are_read_again(mismatch: Desk, spoil: Callable[[Path], object], words: str) -> None:
    spoil(mismatch.path.parent)
    assert words in refused(mismatch)


def test_a_kept_file_that_is_a_link_is_refused_and_told(mismatch: Desk) -> None:
    for name in ("reports/candidate.jsonl.gz", "differences.json"):
        path = _in(mismatch, name)
        shutil.move(path, mismatch.run.root / "moved")
        path.symlink_to(mismatch.run.root / "moved")
        assert "a kept file is a symbolic link" in refused(mismatch)
        assert [problem.split("/")[-1] for problem in mismatch.collect().problems] == [
            f"{path.name} is a symbolic link"
        ]
        path.unlink()
        shutil.move(mismatch.run.root / "moved", path)
    assert mismatch.accepted() is not None


def test_a_bomb_is_never_unpacked_whole(mismatch: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("replay_parity.stages.collect.MAX_BYTES", 8 << 20)
    _in(mismatch, "reports/candidate.jsonl.gz").write_bytes(gzip.compress(b"\0" * (64 << 20), 9))
    tracemalloc.start()
    assert refused(mismatch) == "a kept file has more than 8,388,608 bytes"
    assert tracemalloc.get_traced_memory()[1] < 6 << 20
    tracemalloc.stop()


@pytest.mark.parametrize(
    "name",
    [
        "/etc/passwd",
        "plan.json",
        f"rows/{ROW}/attempt-2/reports/candidate.jsonl.gz",
        f"rows/{OTHER_ROW}/attempt-1/reports/candidate.jsonl.gz",
        f"rows/{ROW}/attempt-1/../attempt-1/differences.json",
        f"rows/{ROW}/attempt-1/reports/../../../plan.json",
        f"rows/{ROW}/attempt-1//etc/passwd",
        f"rows/{ROW}/attempt-1/.hidden",
        f"rows/{ROW}/attempt-1/",
        f"rows/{ROW}/attempt-1/a\nb",
        f"rows/{ROW}/attempt-1/" + "x/" * 50_000,
    ],
    ids=range(11),
)
def test_a_result_names_files_of_its_own_folder_only(mismatch: Desk, name: str) -> None:
    for change in (
        {"reports": [*mismatch.document["reports"], name]},
        {"differences": mismatch.document["differences"] | {"file": name}},
    ):
        reseal(mismatch.path, mismatch.document | change)
        reason = refused(mismatch)
        assert reason.endswith("which is not in its own folder")
        assert len(reason) < 300


@pytest.mark.parametrize("outcome", ["mismatch", "unstable_candidate"])
def test_a_difference_of_nothing_is_none(tmp_path: Path, outcome: Outcome) -> None:
    desk = Desk(tmp_path, outcome)
    path = desk.path.parent / "differences.json"
    text = re.sub(rb'("count"|"changed"|"removed"|"added"): \d+', rb"\1: 0", path.read_bytes())
    path.write_bytes(text)
    told = desk.document["differences"] | {"total": 0, "results": 0, "configuration": 0, "requests": 0}
    reseal(desk.path, {"differences": told})
    assert refused(desk) == "the kept difference holds no difference"


# --- exactly the planned set


@pytest.fixture
def run(tmp_path: Path) -> RunFolder:
    return good_run(tmp_path)


def folder_of(run: RunFolder, row: str = ROW, attempt: int = 1) -> Path:
    return run.results / f"test~row~{row}~{attempt}" / "rows" / row / f"attempt-{attempt}"


def not_green(run: RunFolder, *, attempt: int = 1) -> Verdict:
    """The verdict, which is not green, has one sentence for everything, and can be written."""
    verdict = run.decide(attempt=attempt)
    assert verdict.exit_code != EXIT_OK
    for sentence in (*verdict.problems, *(row.reason for row in verdict.rows)):
        assert sentence
        assert len(sentence.splitlines()) == 1
        assert len(sentence) < 1_000
    return verdict


def outcomes(verdict: Verdict) -> list[Outcome]:
    return [row.outcome for row in verdict.rows]


def test_a_missing_row(run: RunFolder) -> None:
    shutil.rmtree(folder_of(run))
    verdict = not_green(run)
    assert outcomes(verdict) == ["missing", "match"]
    assert verdict.rows[0].reason == "no result was found for this planned row"


def test_no_result_at_all(run: RunFolder) -> None:
    shutil.rmtree(run.results)
    assert outcomes(not_green(run)) == ["missing", "missing"]


def test_an_extra_row(run: RunFolder) -> None:
    target = run.results / "x" / "rows" / "extra" / "attempt-1"
    shutil.copytree(folder_of(run), target)
    reseal(target / "result.json", {"row": "extra"})
    verdict = not_green(run)
    assert outcomes(verdict) == ["match", "match"]
    assert verdict.problems == ("result x/rows/extra/attempt-1/result.json: the plan has no row 'extra'",)


@pytest.mark.parametrize("same", [True, False])
def test_two_results_for_one_attempt(run: RunFolder, same: bool) -> None:
    for name in ("a", "z"):
        target = run.results / name / "rows" / ROW / "attempt-1"
        shutil.copytree(folder_of(run), target)
        if not same:
            reseal(target / "result.json", {"reason": name})
    verdict = not_green(run)
    assert outcomes(verdict) == ["invalid", "match"]
    assert verdict.rows[0].reason == "there are 3 results for attempt 1"
    assert verdict.problems == (f"row {ROW}: there are 3 results for attempt 1",)
    # Nothing of either is kept as if it were right, and a later attempt does not make it good.
    assert not (run.output / "rows" / ROW / "attempt-1").exists()
    run.result(ROW, attempt=2)
    assert outcomes(not_green(run, attempt=2)) == ["match", "match"]


def test_another_plan(run: RunFolder) -> None:
    path = folder_of(run) / "result.json"
    reseal(path, {"plan_sha256": "9" * 64})
    verdict = not_green(run)
    assert outcomes(verdict) == ["invalid", "match"]
    assert verdict.rows[0].reason == "the result belongs to another plan"


def test_an_attempt_that_is_not_there_yet(run: RunFolder) -> None:
    target = run.results / "x" / "rows" / ROW / "attempt-2"
    shutil.copytree(folder_of(run), target)
    reseal(target / "result.json", {"attempt": 2})
    verdict = not_green(run)
    assert outcomes(verdict) == ["invalid", "match"]
    assert verdict.rows[0].reason == "the result claims attempt 2 in attempt 1 of the run"
    assert verdict.rows[0].attempt == 1
    # In attempt 2 it is what it says.
    assert run.decide(attempt=2).exit_code == EXIT_OK


def test_many_attempts_that_are_not_there_yet_are_one(run: RunFolder) -> None:
    for attempt in range(2, 40):
        target = run.results / "x" / "rows" / ROW / f"attempt-{attempt}"
        target.mkdir(parents=True)
        shutil.copy(folder_of(run) / "result.json", target)
        reseal(target / "result.json", {"attempt": attempt})
    builds = find_builds(run.builds, run.plan, newest=1)
    found = collect(run.results, run.plan, builds, newest=1)
    assert len(found.attempts[ROW]) == 2
    assert outcomes(not_green(run)) == ["invalid", "match"]


def test_another_runner(tmp_path: Path) -> None:
    rows = planned_row(ROW, runner="large"), planned_row(OTHER_ROW)
    run = RunFolder(tmp_path, make_plan(*rows))
    for runner in ("large", "default"):
        run.build(runner=runner)
    run.result(f"{ROW}@large")
    path = run.result(OTHER_ROW) / "result.json"
    assert run.decide().exit_code == EXIT_OK
    for runner in ("large", "other", "default"):
        reseal(path, {"runner": runner})
        if runner != "default":
            verdict = not_green(run)
            assert outcomes(verdict) == ["match", "missing"]
            assert verdict.problems[0].endswith(f"the plan has no row '{OTHER_ROW}@{runner}'")
    assert run.decide().exit_code == EXIT_OK


def test_a_row_that_is_planned_on_two_runners_needs_both(tmp_path: Path) -> None:
    run = RunFolder(tmp_path, make_plan(planned_row(ROW), planned_row(ROW, runner="large")))
    for runner in ("large", "default"):
        run.build(runner=runner)
    source = run.result(ROW)
    target = run.results / "x" / "rows" / f"{ROW}@large" / "attempt-1"
    shutil.copytree(source, target)
    # The same result again in the other's folder, then with the other's name: artifacts and folder must fit too.
    assert "there are 2 results" in not_green(run).rows[0].reason
    reseal(target / "result.json", {"runner": "large"})
    assert outcomes(run.decide()) == ["match", "match"]
    shutil.rmtree(run.builds / "test~build~large~build~1")
    verdict = not_green(run)
    assert outcomes(verdict) == ["match", "invalid"]
    assert verdict.rows[1].reason == "the result names an artifact of the baseline that no build made"


@pytest.mark.parametrize("place", [f"rows/{OTHER_ROW}/attempt-1", f"rows/{ROW}/attempt-2", f"{ROW}", "attempt-1", ""])
def test_the_wrong_folder(run: RunFolder, place: str) -> None:
    target = run.results / "x" / place
    shutil.copytree(folder_of(run), target)
    shutil.rmtree(folder_of(run))
    verdict = not_green(run)
    assert outcomes(verdict) == ["invalid", "match"]
    assert verdict.rows[0].reason == "the result lies in the folder of another row or attempt"


def test_another_title_or_input(run: RunFolder) -> None:
    path = folder_of(run) / "result.json"
    reseal(path, {"title": "a greener row"})
    assert not_green(run).rows[0].reason == "the result has another title than the planned row"
    run.result(ROW)
    reseal(path, {"input_sha256": "9" * 64})
    assert "was not made from the planned row" in not_green(run).rows[0].reason


def _link(path: Path) -> None:
    shutil.move(path, path.parents[4] / "moved")
    path.symlink_to(path.parents[4] / "moved")


def _folder(path: Path) -> None:
    path.unlink()
    path.mkdir()
    (path / "result.json").write_text("{}")


def _fifo(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def _huge(path: Path) -> None:
    with path.open("r+b") as file:
        file.truncate(100 << 20)


_HOSTILE: list[tuple[str, Callable[[Path], object], str]] = [
    ("link", _link, "is a symbolic link"),
    ("folder", _folder, "is not a regular file"),
    ("fifo", _fifo, "is not a regular file"),
    ("huge", _huge, "is 104,857,600 bytes long, at most 4,194,304 are read"),
    ("empty", lambda path: path.write_bytes(b""), "cannot be read: Invalid JSON"),
    ("nothing", lambda path: path.write_bytes(b"null"), "cannot be read"),
    ("list", lambda path: path.write_bytes(b"[]"), "cannot be read"),
    ("half", lambda path: path.write_bytes(path.read_bytes()[:-40]), "cannot be read: Invalid JSON"),
    ("deep", lambda path: path.write_bytes(b'{"node": ' + b'{"a":' * 500_000), "cannot be read: Invalid JSON"),
    ("deep list", lambda path: path.write_bytes(b"[" * 4_000_000), "cannot be read"),
    ("utf-8", lambda path: path.write_bytes(path.read_bytes().replace(b"worker", b"w\xffrker")), "cannot be read"),
    ("utf-16", lambda path: path.write_bytes(path.read_text().encode("utf-16")), "cannot be read: Invalid JSON"),
    ("surrogate", lambda path: path.write_bytes(b'{"row": "\\ud800"}'), "cannot be read: Invalid JSON"),
    ("number", lambda path: path.write_bytes(b'{"seconds": 1e999}'), "cannot be read"),
    ("digits", lambda path: path.write_bytes(b'{"attempt": ' + b"9" * 1_000_000 + b"}"), "cannot be read"),
    ("key", lambda path: path.write_bytes(b'{"' + b"k" * 1_000_000 + b'": 1}'), "cannot be read"),
    ("nan", lambda path: path.write_bytes(path.read_bytes().replace(b'"seconds": 1.5', b'"seconds": NaN')), "/seconds"),
]


@pytest.mark.parametrize(("spoil", "words"), [item[1:] for item in _HOSTILE], ids=[item[0] for item in _HOSTILE])
def test_hostile_results(run: RunFolder, spoil: Callable[[Path], object], words: str) -> None:
    spoil(folder_of(run) / "result.json")
    verdict = not_green(run)
    assert outcomes(verdict) == ["missing", "match"]
    # A link is told of the folder of builds too, since it may lead to either.
    (problem,) = (problem for problem in verdict.problems if problem.startswith("result "))
    assert problem.startswith(f"result test~row~{ROW}~1/rows/{ROW}/attempt-1/result.json: ")
    assert words in problem


@pytest.mark.parametrize("spoil", [item[1] for item in _HOSTILE], ids=[item[0] for item in _HOSTILE])
def test_hostile_results_take_little_memory(run: RunFolder, spoil: Callable[[Path], object]) -> None:
    spoil(folder_of(run) / "result.json")
    tracemalloc.start()
    found = collect(run.results, run.plan, Builds(), newest=1)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(found.problems) == 1
    assert peak < 16 << 20


@pytest.mark.parametrize(("spoil", "words"), [item[1:] for item in _HOSTILE], ids=[item[0] for item in _HOSTILE])
def test_a_hostile_result_is_not_covered_by_an_older_good_one(
    run: RunFolder, spoil: Callable[[Path], object], words: str
) -> None:
    run.result(ROW, attempt=2)
    assert run.decide(attempt=2).exit_code == EXIT_OK
    spoil(folder_of(run, attempt=2) / "result.json")
    assert words in not_green(run, attempt=2).problems[0]


def test_a_linked_folder(run: RunFolder) -> None:
    for path in (folder_of(run), folder_of(run).parent, folder_of(run).parents[2]):
        shutil.move(path, run.root / "moved")
        path.symlink_to(run.root / "moved")
        verdict = not_green(run)
        assert outcomes(verdict) == ["missing", "match"]
        (problem,) = verdict.problems
        assert problem.endswith("is a symbolic link")
        path.unlink()
        shutil.move(run.root / "moved", path)
    assert run.decide().exit_code == EXIT_OK


def test_a_number_beyond_64_bits_in_a_free_place(run: RunFolder) -> None:
    path = folder_of(run) / "result.json"
    path.write_bytes(path.read_bytes().replace(b'"completed_requests": 1', b'"completed_requests": 1' + b"0" * 30, 1))
    verdict = not_green(run)
    assert verdict.rows[0].reason == "the result was edited after it was sealed"


def test_names_that_are_no_text(run: RunFolder) -> None:
    target = run.results / os.fsdecode(b"\xff\xfe\x1b[31m") / "a\nb"
    target.mkdir(parents=True)
    (target / "result.json").write_text("{}")
    (target / os.fsdecode(b"\xff")).symlink_to("x")
    verdict = not_green(run)
    assert all(problem.isprintable() for problem in verdict.problems)
    assert len(verdict.problems) == 2
    Verdict.model_validate_json((run.output / "verdict.json").read_bytes())


def test_too_many_and_too_deep_are_problems_and_no_result_counts(
    run: RunFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    (run.results / "/".join("x" * 20)).mkdir(parents=True)
    verdict = not_green(run)
    assert outcomes(verdict) == ["missing", "missing"]
    assert verdict.problems == ("the folder results is nested more than 16 folders deep",)
    shutil.rmtree(run.results / "x")
    monkeypatch.setattr("replay_parity.stages.untrusted._MANY", 8)
    assert "the folder results holds more than 8 files" in not_green(run).problems


def test_a_flood_of_problems_is_cut(run: RunFolder) -> None:
    for number in range(200):
        (run.results / str(number)).mkdir()
        (run.results / str(number) / "result.json").write_text("{")
    verdict = not_green(run)
    assert len(verdict.problems) == 51
    assert verdict.problems[-1] == "and 150 more problems"
