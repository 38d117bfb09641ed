"""The proof against everything that JSON can do: what serialises to itself is accepted, nothing else."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from replay_parity.canonical import proof
from replay_parity.canonical.digest import RESULT_ROOTS, SORTED_LINE, canonical_digest
from replay_parity.canonical.proof import prove, prove_digest
from replay_parity.canonical.rules import RESULT_EXCLUSIONS, SCHEMA_VERSION
from replay_parity.canonical.scan import ScanRefusal, scan
from replay_parity.errors import BadInputError, CanonicalFormError

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXT
    | st.sampled_from([0.0, -0.0, 1e16, 1e-5, 1e-6, 5e-324, 2**53 + 1, "\x7f", "e+", "\ud7ff\ue000"])
)
VALUES = st.recursive(SCALARS, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4))
# What edits of a canonical text are made of: the characters that mean something, in pieces that break something.
PIECES = st.sampled_from(
    [*'{}[]:,"\\ \t\r\n.-+eE0159aun/\x00\x7fé', "\\u0041", "\\ud800", "\\n", "1e16", "1e+16", "1.0", "-0", "NaN", ",,"]
)


def line(document: object) -> bytes:
    return orjson.dumps(document, option=SORTED_LINE)


def record(**summary: Any) -> dict[str, Any]:
    metadata = {"result_exclusions": list(RESULT_EXCLUSIONS), "schema_version": SCHEMA_VERSION}
    requests = [{"uuid": f"00000000-0000-0000-0000-{number:012x}"} for number in (1, 2)]
    return {"coverage": {}, "metadata": metadata, "per_request": requests, "planner": None, "summary": summary}


@given(VALUES)
def test_what_serialises_to_itself_is_accepted(value: Any) -> None:
    document = record(value=value)
    data = line(document)
    proven = prove(data, where="record")
    assert line(proven.document) == data
    assert proven.canonical_sha256 == canonical_digest(data)
    assert proven.results_sha256 == canonical_digest(line({root: document[root] for root in RESULT_ROOTS}))
    assert proven.size == len(data)


@settings(max_examples=400)
@given(VALUES, st.lists(st.tuples(st.integers(0, 200), st.integers(0, 3), PIECES), min_size=1, max_size=2))
@example([1e16, 1e17], [(4, 1, "")])
def test_fast_and_slow_path_agree(value: Any, edits: list[tuple[int, int, str]]) -> None:
    text = line({"a": value, "b": 1.5}).decode()
    for anywhere, removed, piece in edits:
        place = anywhere % (len(text) + 1)
        text = text[:place] + piece + text[place + removed :]
    data = text.encode()
    fast = proof._fast_path(data) is not None
    refusal = slow_refusal(data)
    assert refusal != "not_reproduced"
    if fast:
        assert refusal is None or data == b"null\n"
    elif refusal is None and data != b"null\n":
        # All that the fast path may refuse alone is the other spelling of positive exponents.
        again = line(orjson.loads(data))
        assert again != data
        assert again.replace(b"e+", b"e") == data.replace(b"e+", b"e")


def slow_refusal(data: bytes) -> str | None:
    try:
        proof._slow_path(data, "record")
    except CanonicalFormError as error:
        return error.reason
    return None


@given(st.binary(max_size=40))
def test_any_bytes_are_accepted_or_refused_by_name(data: bytes) -> None:
    with pytest.raises(CanonicalFormError) as caught:
        prove(data, where="record")
    assert caught.value.reason
    assert str(caught.value).startswith("record")


@given(VALUES, st.data())
def test_every_cut_is_refused(value: Any, data: st.DataObject) -> None:
    whole = line(record(value=value))
    cut = data.draw(st.integers(0, len(whole) - 1))
    with pytest.raises(CanonicalFormError) as caught:
        prove(whole[:cut], where="record")
    assert caught.value.reason in {"empty", "not_utf8", "not_json", "no_final_newline"}


def test_a_number_that_is_cut_in_its_exponent_is_a_truncated_record() -> None:
    whole = line(record(value=3.2866530719402254e-186))
    for cut in (whole.index(b"e-186"), whole.index(b"e-186") + 1, whole.index(b"e-186") + 2):
        with pytest.raises(CanonicalFormError) as caught:
            prove(whole[:cut], where="record")
        assert caught.value.reason == "not_json"


def test_a_broken_record_that_is_far_too_deep_needs_no_stack() -> None:
    with pytest.raises(ScanRefusal, match="nests more"):
        scan("[" * 1_000_000)


def test_a_record_over_the_cap_is_refused() -> None:
    data = line(record())
    assert prove(data, where="record", max_bytes=len(data)).size == len(data)
    with pytest.raises(CanonicalFormError) as caught:
        prove(data, where="record", max_bytes=len(data) - 1)
    assert caught.value.reason == "too_long"


def test_a_file_over_the_cap_is_refused_without_being_read_whole(tmp_path: Path) -> None:
    path = tmp_path / "record.jsonl"
    with path.open("wb") as file:
        file.truncate(1 << 40)
    with pytest.raises(CanonicalFormError) as caught:
        prove_digest(path, where="record", max_bytes=1000)
    assert caught.value.reason == "too_long"


def test_a_link_or_a_missing_file_is_bad_input(tmp_path: Path) -> None:
    (tmp_path / "record.jsonl").write_bytes(line(record()))
    (tmp_path / "link").symlink_to("record.jsonl")
    for name in ("link", "missing"):
        with pytest.raises(BadInputError):
            prove_digest(tmp_path / name, where="record")


def test_a_disagreement_of_the_parsers_is_never_accepted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(proof, "scan", lambda _text: None)
    for broken in (b'{"b":1,"a":2}\n', b"[1\n", b"[" * 300 + b"]" * 300 + b"\n"):
        with pytest.raises(CanonicalFormError) as caught:
            prove(broken, where="record")
        assert caught.value.reason == "not_reproduced"


def test_digests_leave_nothing_behind_and_hold_little() -> None:
    document = record()
    document["per_request"] = [
        {"uuid": f"00000000-0000-0000-0000-{number:012x}", "at_ms": number * 1.1, "history": [{"ordinal": 0}]}
        for number in range(1, 5001)
    ]
    data = line(document)
    del document
    parsed, _ = traced(lambda: orjson.loads(data))
    peak, kept = traced(lambda: prove_digest(data, where="record"))
    assert peak < parsed + 3 * len(data)
    assert kept < len(data) // 4


def traced(work: Callable[[], object]) -> tuple[int, int]:
    """Peak and kept bytes of the second run; the first fills the caches of the interpreter."""
    work()
    tracemalloc.start()
    try:
        work()
        kept, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    return peak, kept
