from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentunit.reports.case_view import closest, marked_differences


@pytest.mark.parametrize(
    ("answer", "expected", "mine", "theirs"),
    [
        ("a b", "a b", [("a b", True)], [("a b", True)]),
        # The space between two words that differ is part of the difference.
        (
            "It is not open now.",
            "It is very much open now.",
            [("It is ", True), ("not", False), (" open now.", True)],
            [("It is ", True), ("very much", False), (" open now.", True)],
        ),
        (
            "5 days",
            "5 working days",
            [("5 ", True), ("days", True)],
            [("5 ", True), ("working ", False), ("days", True)],
        ),
        ("yes", "the parcel is lost", [], []),
        ("", "x", [], []),
    ],
)
def test_differences_are_marked_word_by_word(answer, expected, mine, theirs):
    found_mine, found_theirs = marked_differences(answer, expected)
    assert "".join(text for text, _ in found_mine) == "".join(text for text, _ in mine)
    assert [each for each in found_mine if not each[1]] == [each for each in mine if not each[1]]
    assert [each for each in found_theirs if not each[1]] == [each for each in theirs if not each[1]]


WORDS = st.lists(st.sampled_from(["due", "on", "11", "October", ",", "\n", "lost"]), max_size=12).map(" ".join)


@given(WORDS, WORDS)
def test_the_parts_put_together_are_the_texts(answer, expected):
    mine, theirs = marked_differences(answer, expected)
    if mine or theirs:
        assert "".join(text for text, _ in mine) == answer
        assert "".join(text for text, _ in theirs) == expected
        shared = ["".join(text for text, same in parts if same).split() for parts in (mine, theirs)]
        assert shared[0] == shared[1]


def test_a_text_too_long_to_compare_is_not_compared():
    assert marked_differences("word " * 2000, "word " * 2000) == ([], [])


def test_the_closest_of_several_answers_is_compared():
    assert closest("It opens at nine.", ["never", "It opens at ten.", "x"]) == "It opens at ten."
    assert closest("anything", ["only"]) == "only"
