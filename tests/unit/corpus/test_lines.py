from __future__ import annotations

import io
from typing import BinaryIO

import pytest
from hypothesis import given
from hypothesis import strategies as st

from replay_parity.corpus import lines
from replay_parity.corpus.lines import form_problem, trace_lines
from replay_parity.errors import CorpusError


@given(st.lists(st.sampled_from([b"a", b"\n", b"\r", b"\0", b"\xff"])).map(b"".join))
def test_lines_are_the_file_again(data: bytes) -> None:
    found = list(trace_lines(io.BytesIO(data), where="x"))
    assert b"".join(found) == data
    assert all(line.endswith(b"\n") for line in found[:-1])
    assert all(line.count(b"\n") <= 1 for line in found)


def test_an_over_long_line_is_refused_before_it_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines, "LINE_CAP", 10)
    assert list(trace_lines(io.BytesIO(b"123456789\n"), where="t.jsonl")) == [b"123456789\n"]
    with pytest.raises(CorpusError, match=r"^t\.jsonl: line 2 is longer than 10 bytes"):
        list(trace_lines(io.BytesIO(b"{}\n" + b"x" * 11), where="t.jsonl"))


def test_a_failing_disk_is_named_with_the_line() -> None:
    class Failing(io.BytesIO):
        def readline(self, _: int | None = -1, /) -> bytes:
            raise OSError(5, "Input/output error")

    file: BinaryIO = Failing()
    with pytest.raises(CorpusError, match="cannot be read further at line 1: Input/output error"):
        list(trace_lines(file, where="t.jsonl"))


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (b"{}\n", None),
        (b"{}", None),
        (b"{}\r\n", "carriage return"),
        (b"{}\r{}\r", "carriage return"),
        (b"\n", "is blank"),
        (b" \t\n", "is blank"),
        (b'{"a":"\0"}\n', "NUL byte"),
        (b"\xef\xbb\xbf{}\n", "byte order mark"),
        (b"\xff\xfe{\0}\0\n", "byte order mark"),
    ],
)
def test_form_of_a_first_line(line: bytes, expected: str | None) -> None:
    problem = form_problem(line, first=True)
    if expected is None:
        assert problem is None
    else:
        assert problem is not None
        assert expected in problem


def test_a_byte_order_mark_stands_at_the_start_of_a_file_only() -> None:
    assert form_problem(b"\xef\xbb\xbf{}\n", first=False) is None
