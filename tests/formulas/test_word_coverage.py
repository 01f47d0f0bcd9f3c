"""How much of a statement a text tells."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentunit.formulas.text import content_words, word_coverage

STATEMENT = "Jane is considering treatment options for diabetes."  # jane, consider, treat, option, diabet


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (STATEMENT, 1.0),
        ("For her diabetes, Jane considers several options of treatment.", 1.0),
        ("Jane has diabetes.", 2 / 5),
        ("Options are listed below.", 1 / 5),
        ("", 0.0),
    ],
)
def test_hand_checked(text: str, expected: float) -> None:
    assert word_coverage(STATEMENT, text) == pytest.approx(expected)


def test_words_that_a_long_text_scatters_do_not_add_up() -> None:
    filler = " ".join(f"word{number}" for number in range(40))
    scattered = f" {filler} ".join(["Jane", "considering", "treatment", "options", "diabetes"])
    assert word_coverage(STATEMENT, scattered) == pytest.approx(1 / 5)


def test_words_the_reader_has_anyway_do_not_count() -> None:
    known = content_words("What are Jane's options?")
    assert word_coverage(STATEMENT, "Jane has options.", known) == 0.0
    assert word_coverage("Jane has options.", "Jane has options.", known) is None


@given(st.text(max_size=80), st.text(max_size=200))
def test_a_share_or_none(sentence: str, text: str) -> None:
    share = word_coverage(sentence, text)
    assert share is None or 0.0 <= share <= 1.0


@given(st.lists(st.sampled_from(["jane", "diabetes", "walks", "fast", "london"]), min_size=1, max_size=8))
def test_a_text_that_repeats_the_statement_tells_all_of_it(words: list[str]) -> None:
    assert word_coverage(" ".join(words), "before " * 30 + " ".join(words) + " after" * 30) == 1.0
