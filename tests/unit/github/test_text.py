"""Cut Markdown fits, says that it was cut, and leaves nothing open: markdown-it is the judge."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from replay_parity.github.text import cut, shorten, well_formed

NOTICE = "CUT HERE"
LIMIT = 300


def size(text: str) -> int:
    return len(text.encode())


def check_closed(markdown: str) -> None:
    """The notice is a paragraph of its own, outside of code, tables and folded parts."""
    tokens = MarkdownIt("commonmark").enable("table").parse(markdown)
    assert [token.type for token in tokens[-3:]] == ["paragraph_open", "inline", "paragraph_close"]
    assert tokens[-2].content == NOTICE
    assert tokens[-3].level == 0
    html = "".join(
        piece.content
        for token in tokens
        for piece in [token, *(token.children or [])]
        if piece.type in {"html_block", "html_inline"}
    )
    assert len(re.findall(r"<details", html)) <= len(re.findall(r"</details>", html))


@pytest.mark.parametrize("character", ["a", "é", "€", "😀"])
@pytest.mark.parametrize("beyond", [-1, 0, 1, 2, 3, 4])
def test_bytes_are_counted_and_characters_stay_whole(character: str, beyond: int) -> None:
    wanted = 65_535 + beyond
    text = "x" * (wanted % size(character)) + character * (wanted // size(character))
    assert size(text) == wanted
    result = cut(text, 65_535, NOTICE)
    if beyond <= 0:
        assert result == text
    else:
        assert 65_535 - 8 <= size(result) <= 65_535
        check_closed(result)
        assert set(result.removesuffix(f"\n\n{NOTICE}")) <= {"x", character}


@pytest.mark.parametrize("fence", ["```", "````", "~~~", "~~~~~~", "```json", "   ```"])
def test_fences_are_closed(fence: str) -> None:
    inner = "~~" if fence.strip().startswith("`") else "``"
    result = cut(f"before\n\n{fence}\n{inner}\n" + "code\n" * 200, LIMIT, NOTICE)
    assert size(result) <= LIMIT
    check_closed(result)
    assert result.count("code") > 20


def test_a_fence_that_is_closed_is_not_closed_again() -> None:
    result = cut("```\ncode\n```\n" + "word\n" * 200, LIMIT, NOTICE)
    assert result.count("```") == 2
    check_closed(result)


@pytest.mark.parametrize(
    "text",
    [
        "````\n```\n" + "a\n" * 400,
        "```\n~~~\n" + "a\n" * 400,
        "~~~\n```\n~~~\n" + "word\n" * 400,
        "``` not ` a fence\n" + "word\n" * 400,
        "    ```\n" + "word\n" * 400,
        "```\n" + "x" * 2000,
        "<details><summary>s</summary>\n\n```\n" + "a\n" * 400,
        "<details>\n```\n\n" + "word\n" * 400,
        "<details>\n\n<details open>\n\n" + "a\n\n" * 400,
        "<details><summary>s</summary>\n\nx\n\n</details>\n\n" + "a\n\n" * 400,
        "`<details>` is a tag\n\n" + "a\n\n" * 400,
        "```\n<details>\n```\n" + "word\n" * 400,
        "<details><summary>" + "x" * 2000,
        "x" * 200 + "<details>" + "x" * 2000,
        "\n" * 1000,
        "word\n" * 55 + "a very long line " * 100,
    ],
)
def test_whatever_is_open_the_notice_stands_alone(text: str) -> None:
    result = cut(text, LIMIT, NOTICE)
    assert size(result) <= LIMIT
    check_closed(result)


def test_a_tag_is_not_cut_in_two() -> None:
    result = cut("x" * 270 + '<a href="https://example.com/' + "y" * 2000 + '">', LIMIT, NOTICE)
    assert result == "x" * 270 + f"\n\n{NOTICE}"


def test_details_are_closed_within_each_other() -> None:
    result = cut("<details>\n\n<details>\n\n~~~\n" + "a\n" * 400, LIMIT, NOTICE)
    assert result.endswith(f"\n~~~\n\n</details>\n\n</details>\n\n{NOTICE}")


@pytest.mark.parametrize("pipe", ["|", ""])
def test_rows_of_a_table_stay_whole(pipe: str) -> None:
    rows = [f"{pipe} row {number} | {'y' * 60} {pipe}".strip() for number in range(40)]
    result = cut("\n".join([f"{pipe} a | b {pipe}".strip(), "|---|---|", *rows]), LIMIT, NOTICE)
    check_closed(result)
    shown = [line for line in result.splitlines() if "row" in line]
    assert shown == rows[: len(shown)]
    assert shown


def test_a_row_as_long_as_the_room_is_left_out() -> None:
    result = cut("before\n\n| a |\n|---|\n| " + "y" * 2000 + " |", LIMIT, NOTICE)
    assert "y" not in result
    check_closed(result)


def test_the_head_of_a_table_does_not_stay_alone() -> None:
    text = "x" * 253 + "\n\n| head | of it |\n|------|-----------|\n" + "| a | b |\n" * 50
    result = cut(text, LIMIT, NOTICE)
    assert "head" not in result
    assert "xxx" in result


@given(
    st.lists(
        st.sampled_from(
            ["```", "~~~~", "```x", "", "", "word", "é😀", "| a | b |", "|---|---|", "<details>", "</details>", "    x"]
        ),
        max_size=60,
    ),
    st.integers(min_value=80, max_value=250),
)
def test_any_mixture_fits_and_is_closed(lines: list[str], limit: int) -> None:
    text = "\n".join(lines)
    result = cut(text, limit, NOTICE)
    assert size(result) <= limit
    if size(text) <= limit:
        assert result == text
    else:
        check_closed(result)


def test_a_limit_that_only_the_notice_fills() -> None:
    assert size(cut("x" * 100, 10, "a notice that is longer")) <= 10


def test_plain_text_is_shortened_by_bytes() -> None:
    assert shorten("ééé", 6) == "ééé"
    assert shorten("éééé", 7) == "éé…"
    assert shorten("a😀b😀", 7) == "a…"


def test_what_no_json_carries_is_replaced() -> None:
    assert well_formed("a\ud800b\0c😀\n") == "a\ufffdb\ufffdc😀\n"
