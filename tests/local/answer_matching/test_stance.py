"""Denying, guessing, refusing, and saying yes or no."""

from __future__ import annotations

import pytest
from agentunit_local.answer_matching.stance import declines, is_left_open, is_negated, polarity
from agentunit_local.answer_matching.words import read_words


@pytest.mark.parametrize(
    ("text", "negated"),
    [
        ("It is not Paris", True),
        ("It isn't Paris", True),
        ("no longer Paris", True),
        ("Rome rather than Paris", True),
        ("Rome instead of Paris", True),
        ("Paris is not the capital", True),
        ("Paris isn't the capital", True),
        ("It is Paris", False),
        ("not Rome but Paris", False),
        ("not only Paris", False),
        ("It is not Rome. Paris it is", False),
        ("I am not quite the right person to ask about Paris", False),
        ("Paris, not Rome", False),
    ],
)
def test_negation(text: str, negated: bool) -> None:
    words = read_words(text)
    place = words.forms.index("paris")
    assert is_negated(words, place, place + 1) is negated


def test_a_negation_that_was_asked_for_denies_nothing() -> None:
    words = read_words("It did not go to Paris")
    assert is_negated(words, 5, 6)
    assert not is_negated(words, 5, 6, frozenset({"not"}))


@pytest.mark.parametrize(
    ("text", "left_open"),
    [("either Paris or Rome", True), ("maybe Paris", True), ("Paris or Lutetia", False), ("It is Paris", False)],
)
def test_guesses(text: str, left_open: bool) -> None:
    words = read_words(text)
    assert is_left_open(words, words.forms.index("paris")) is left_open


@pytest.mark.parametrize(
    ("answer", "declined"),
    [
        ("I don’t know.", True),
        ("I'm sorry, I cannot answer that.", True),
        ("Unknown", True),
        ("There is no such person.", True),
        ("It is unclear to me.", True),
        ("It is not known.", True),
        ("I do not have recent data. However, it was Paris.", False),
        ("Paris", False),
        ("", False),
    ],
)
def test_refusals(answer: str, declined: bool) -> None:
    assert declines(answer) is declined


@pytest.mark.parametrize(
    ("answer", "sign"),
    [("Yes.", 1), ("No, never", -1), ("The sky is blue", 1), ("The sky isn't blue", -1), ("Grass", 0), ("", 0)],
)
def test_polarity(answer: str, sign: int) -> None:
    assert polarity(read_words(answer), frozenset({"sky", "blue"})) == sign
