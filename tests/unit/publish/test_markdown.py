"""Hostile text yields exactly the text: rendered by a real renderer, then looked at as GitHub's filters would."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.hostile import SPICE
from tests.support.markdown import seen

from replay_parity.publish.markdown import block, code, cut, details, line, table, text
from replay_parity.publish.plain import visible


def one_line(words: str) -> str:
    parts = words.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    return " ⏎ ".join(visible(part) for part in parts)


@given(SPICE)
def test_text_is_exactly_the_text_in_a_paragraph(words: str) -> None:
    shown = seen(f"first\n\n{text(words)}\n\nlast")
    assert shown.text.strip().removeprefix("first\n").removesuffix("last").strip() == one_line(words).strip()
    assert [element for element in shown.elements if element != "code"] == ["p"] * (3 if one_line(words).strip() else 2)
    assert shown.acted_on == []


@given(SPICE, SPICE)
def test_text_is_exactly_the_text_at_the_start_of_any_line(first: str, second: str) -> None:
    shown = seen(f"start\n{text(first)}\n{text(second)}\nend")
    # An empty line ends a paragraph; nothing else does.
    assert set(shown.elements) <= {"p", "code"}
    assert "".join(shown.text.split()) == "".join(f"start{one_line(first)}{one_line(second)}end".split())
    assert shown.acted_on == []


@given(SPICE, SPICE)
def test_text_and_code_keep_to_their_cells(words: str, other: str) -> None:
    shown = seen(table(["a", "b", "c"], [[text(words), code(other), "end"], ["x", text(other), code(words)]]))
    assert [element for element in shown.elements if element != "code"] == [
        *("table", "thead", "tr", "th", "th", "th", "tbody"),
        *(["tr", "td", "td", "td"] * 2),
    ]
    for shown_text in (one_line(words).strip(), one_line(other).strip()):
        assert shown.text.count(shown_text) >= 2
    assert one_line(other) in shown.code or not other
    assert one_line(words) in shown.code or not words
    assert shown.acted_on == []


@given(SPICE)
def test_code_is_exactly_the_text(words: str) -> None:
    shown = seen(f"a {code(words)} b")
    assert shown.elements == ["p", "code"]
    assert shown.code == [one_line(words) or " "]


@given(SPICE, st.sampled_from(["- ", "### ", "> ", "**own words**: ", "1. "]))
def test_text_keeps_to_the_list_or_heading_that_it_stands_in(words: str, marker: str) -> None:
    own = seen(f"{marker}x").elements
    shown = seen(f"{marker}x {text(words)}")
    assert [element for element in shown.elements if element != "code"] == own
    assert shown.text.strip().endswith(one_line(words).strip())
    assert shown.acted_on == []


@given(SPICE)
def test_our_own_words_may_go_on_after_it(words: str) -> None:
    for end in (":", ": x", ".", ", y"):
        assert seen(f"a: {text(words)}{end}").acted_on == []


@given(SPICE)
def test_a_block_ends_where_it_ends(words: str) -> None:
    shown = seen(f"{block(words, 'text')}\n\nafter")
    assert shown.elements == ["pre", "code", "p"]
    lines = words.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    inside = "\n".join("\t".join(map(visible, part.split("\t"))) for part in lines)
    assert shown.code == [f"{inside}\n"]
    assert shown.text.endswith("after\n")


@given(SPICE)
def test_a_folded_part_ends_where_it_ends(words: str) -> None:
    shown = seen(f"{details('more', text(words))}\n\nafter")
    assert [element for element in shown.elements if element not in {"code", "p"}] == ["details", "summary"]
    assert shown.text.strip().endswith("after")


@given(SPICE, st.integers(1, 40))
def test_a_cut_is_never_longer(words: str, length: int) -> None:
    assert len(cut(words, length)) <= length


def test_plain_words_stay_readable_in_the_source() -> None:
    assert text("2 fields of the results differ, in 1 request (50 %)") == (
        "2 fields of the results differ, in 1 request (50 %)"
    )
    assert code("rows/a.json") == "`rows/a.json`"


@pytest.mark.parametrize(
    ("words", "markdown"),
    [
        ("ask @octocat now", "ask `@octocat` now"),
        ("fixes #12", "fixes `#12`"),
        ("owner/name#12", "`owner/name#12`"),
        ("see gh-12", "see `gh-12`"),
        ("at deadbeef, then", "at `deadbeef,` then"),
        (":smile:", "`:smile:`"),
        ("costs $5", "costs `$5`"),
        ("https://example.com/a|b", "`https://example.com/a|b`"),
        ("a|b", "a&#124;b"),
        ("- x", "\\- x"),
        ("12. x", "12\\. x"),
        ("a\nb", "a ⏎ b"),
        ("a\u202eb", "a\\\\u202eb"),
        ("a`b", "a\\`b"),
        ("baseline: 5", "baseline: 5"),
        ("a::boom", "`a::boom`"),
    ],
)
def test_what_github_acts_on_becomes_code(words: str, markdown: str) -> None:
    assert text(words) == markdown


@pytest.mark.parametrize(
    ("words", "markdown"),
    [("a`b", "``a`b``"), ("``", "` `` `"), ("`", "`` ` ``"), ("", "` `"), (" a", "`  a `"), ("a``b`c", "```a``b`c```")],
)
def test_code_holds_any_backticks(words: str, markdown: str) -> None:
    assert code(words) == markdown


def test_pipes_in_code_are_escaped_for_the_table_only() -> None:
    assert code("a|b") == "`a|b`"
    assert line([code("a|b"), code("a\\|b")]) == "| `a\\|b` | `a\\\\|b` |"
