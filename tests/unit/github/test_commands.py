"""Commands and outputs, read back as GitHub's runner reads them: no text breaks out."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.hostile import INJECTIONS, SPICE

from replay_parity.github.check_run import Annotation
from replay_parity.github.commands import command, log_annotations, output, stopped

TEXT = st.one_of(SPICE, st.sampled_from(INJECTIONS))


def read_command(line: str) -> tuple[str, dict[str, str], str]:
    """As the runner reads a command: name, properties, data."""
    assert "\n" not in line
    assert "\r" not in line
    head, data = re.fullmatch(r"::(.*?)::(.*)", line, re.DOTALL).groups()  # type: ignore[union-attr]
    name, _, rest = head.partition(" ")
    pairs = [pair.split("=", 1) for pair in rest.split(",") if pair]
    return name, {key: unescape(value, ":,") for key, value in pairs}, unescape(data, "")


def unescape(text: str, more: str) -> str:
    for character in ("\r", "\n", *more):
        text = text.replace(f"%{ord(character):02X}", character)
    return text.replace("%25", "%")


def read_outputs(text: str) -> dict[str, str]:
    """As the runner reads GITHUB_OUTPUT."""
    lines = text.split("\n")
    assert lines.pop() == ""
    found = {}
    while lines:
        name, delimiter = lines.pop(0).split("<<", 1)
        end = lines.index(delimiter)
        found[name] = "\n".join(lines[:end])
        del lines[: end + 1]
    return found


@given(TEXT, TEXT, TEXT)
def test_a_command_says_what_it_was_given(message: str, title: str, file: str) -> None:
    line = command("error", message, file=file, line=3, title=title)
    assert read_command(line) == ("error", {"file": file, "line": "3", "title": title}, message)


def test_a_command_without_properties() -> None:
    assert command("notice", "50% a:b,c\nd") == "::notice::50%25 a:b,c%0Ad"


@given(TEXT, TEXT)
def test_outputs_hold_any_value(first: str, second: str) -> None:
    assert read_outputs(output("a", first) + output("b-2", second)) == {"a": first, "b-2": second}


def test_a_delimiter_that_occurs_in_the_value_is_not_used() -> None:
    tokens = iter(["one", "two", "three"])
    assert output("a", "one\ntwo", token=lambda: next(tokens)) == "a<<three\none\ntwo\nthree\n"


def test_delimiters_cannot_be_guessed() -> None:
    marks = {output("a", "x").split("\n")[0] for _ in range(20)}
    assert len(marks) == 20
    assert all(len(mark) == len("a<<") + 32 for mark in marks)


@pytest.mark.parametrize("name", ["", "a\nb", "a=b", "a<<b", "a b", "1a", "ä"])
def test_odd_names_of_outputs_are_refused(name: str) -> None:
    with pytest.raises(ValueError, match="no name of an output"):
        output(name, "x")


@given(st.lists(TEXT, max_size=5))
def test_lines_of_a_program_start_no_command(lines: list[str]) -> None:
    first, *body, last, end = stopped(lines).split("\n")
    mark = first.removeprefix("::stop-commands::")
    assert (last, end) == (f"::{mark}::", "")
    assert re.fullmatch("[0-9a-f]{32}", mark)
    assert "\n".join(body) == "\n".join(lines) if lines else body == []
    assert not any(mark in line for line in body)


def remark(level: str, index: int, message: str = "m") -> Annotation:
    return Annotation.model_validate(
        {"path": f"a{index}", "start_line": 1, "end_line": 2, "level": level, "title": "t: u", "message": message}
    )


def test_annotations_failures_first_ten_of_a_kind_and_the_rest_counted() -> None:
    found = [remark("warning", index) for index in range(3)] + [remark("failure", index) for index in range(12)]
    lines = [read_command(line) for line in log_annotations(found)]
    assert [name for name, _, _ in lines] == ["error"] * 10 + ["warning"] * 3
    assert lines[0] == ("error", {"file": "a0", "line": "1", "endLine": "2", "title": "t: u"}, "m")
    assert "and 2 more" in lines[9][2]
    assert all("more" not in data for _, _, data in lines[:9] + lines[10:])


@pytest.mark.parametrize("number", [1, 11])
def test_messages_are_cut_where_github_cuts_them(number: int) -> None:
    found = [remark("failure", index, "é" * 9_000) for index in range(number)]
    data = [read_command(line)[2] for line in log_annotations(found)]
    assert max(map(len, data)) == 4_096
    assert ("and 1 more" in data[-1]) == (number == 11)


@given(TEXT.map("x{}".format))
def test_hostile_annotations_are_one_command_each(words: str) -> None:
    hostile = Annotation(path=words, start_line=1, end_line=1, level="notice", title=words, message=words)
    (line,) = log_annotations([hostile])
    name, properties, data = read_command(line)
    assert (name, properties["file"], properties["title"], data) == (
        "notice",
        hostile.path,
        hostile.title,
        hostile.message,
    )
