"""Styled texts and tables: what wraps, what gives way, and what reaches something that is not a terminal."""

from __future__ import annotations

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentunit.reports.terminal import Column, Terminal, Text, TextTable, cell_len


def lines_of(part: Text | TextTable | str, width: int = 20, **options) -> list[str]:
    return Terminal(file=io.StringIO(), width=width).rendered(part, **options)


@pytest.mark.parametrize(
    ("text", "width", "lines"),
    [
        ("", 5, [""]),
        ("one two", 20, ["one two"]),
        ("one two three", 8, ["one two", "three"]),
        ("  indented words", 10, ["  indented", "words"]),
        ("abcdefgh", 3, ["abc", "def", "gh"]),
        ("a bcdefgh i", 3, ["a", "bcd", "efg", "h i"]),
        ("one\n\ntwo\n", 20, ["one", "", "two", ""]),
        ("日本語の文", 4, ["日本", "語の", "文"]),
        ("日本", 1, ["日", "本"]),
        ("a\tb", 20, ["a       b"]),
        ("[bold]not markup[/bold]", 40, ["[bold]not markup[/bold]"]),
    ],
)
def test_texts_wrap_between_words_and_long_words_where_they_must(text: str, width: int, lines: list[str]) -> None:
    assert lines_of(text, width) == lines


@given(st.text(alphabet=st.sampled_from("ab 日\n\u0301é"), max_size=60), st.integers(2, 12))
def test_wrapping_loses_no_character_and_fits(text: str, width: int) -> None:
    lines = lines_of(text, width)
    assert "".join("".join(lines).split()) == "".join(text.split())
    assert all(cell_len(line) <= width for line in lines)


def test_a_line_may_be_of_any_length_where_it_is_asked_for() -> None:
    assert lines_of("word " * 20, 10, soft_wrap=True) == [("word " * 20).rstrip()]


def test_of_a_table_that_is_too_wide_the_widest_column_wraps_and_words_of_state_stay_whole() -> None:
    table = TextTable(Column("id", no_wrap=True), Column("why"), Column("n", right=True))
    table.add_row("case-0001", "because of a long story", "7")
    table.add_row("b", Text("short", "red"), "12")
    assert lines_of(table, 26) == [
        "id         why           n",
        "case-0001  because of    7",
        "           a long",
        "           story",
        "b          short        12",
    ]


def test_rows_may_lack_cells_and_tables_headings() -> None:
    table = TextTable(Column(), Column(width=4), gap=1)
    table.add_row("heading")
    table.add_row("a", "b c d e")
    assert lines_of(table) == ["heading", "a       b c", "        d e"]
    assert lines_of(TextTable(Column("only"))) == ["only"]


def test_styles_reach_terminals_only(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    text = Text("worse", "bold red").append(" than", "not bold")
    styled = Terminal(file=io.StringIO(), width=20, styled=True)
    assert styled.rendered(text) == ["\x1b[1;31mworse\x1b[0m\x1b[31m than\x1b[0m"]
    assert styled.rendered(text, style="dim", indent=2) == ["  \x1b[1;2;31mworse\x1b[0m\x1b[2;31m than\x1b[0m"]
    assert lines_of(text) == ["worse than"]
    monkeypatch.setenv("NO_COLOR", "1")
    without_colors = Terminal(file=io.StringIO(), width=20, styled=True)
    assert without_colors.rendered(text) == ["\x1b[1mworse\x1b[0m than"]
    assert not without_colors.shows_colors
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "dumb")
    assert Terminal(file=io.StringIO(), width=20).rendered(text) == ["worse than"]


def test_the_size_is_what_the_environment_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "33")
    monkeypatch.setenv("LINES", "7")
    assert (Terminal().width, Terminal().height) == (33, 7)


def test_stacked_texts_keep_their_styles() -> None:
    stacked = Text.stacked([Text("a", "dim"), Text("b").append("c", "red")])
    assert Terminal(file=io.StringIO(), width=9, styled=True).rendered(stacked)[0] == "\x1b[2ma\x1b[0m"
    assert lines_of(stacked) == ["a", "bc"]
