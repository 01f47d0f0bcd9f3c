"""Dates, amounts, and how two of them agree."""

from __future__ import annotations

from datetime import date, timedelta

import pytest
from agentunit_local.answer_matching.dates import COARSER, NEAR, OTHER, SAME, Date, agreement, read_dates
from agentunit_local.answer_matching.quantities import equal, read_quantities, read_ranges
from agentunit_local.answer_matching.words import read_words
from hypothesis import given, settings
from hypothesis import strategies as st


def dates_of(text: str) -> list[tuple[int | None, ...]]:
    return [tuple(found) for found in read_dates(read_words(text))[0]]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("July 20, 1969", [(1969, 1969, 7, 20)]),
        ("20th of July 1969", [(1969, 1969, 7, 20)]),
        ("1969-07-20", [(1969, 1969, 7, 20)]),
        ("20 Jul 1969", [(1969, 1969, 7, 20)]),
        ("3/4/2020", [(2020, 2020, 3, 4), (2020, 2020, 4, 3)]),
        ("25/12/2020", [(2020, 2020, 12, 25)]),
        ("July 1969", [(1969, 1969, 7, None)]),
        ("4 July", [(None, None, 7, 4)]),
        ("the 1840s", [(1840, 1849, None, None)]),
        ("the 90s", [(1990, 1999, None, None)]),
        ("the sixteenth century", [(1500, 1599, None, None)]),
        ("44 BC", [(-44, -44, None, None)]),
        ("the season 1946-47", [(1946, 1946, None, None), (1947, 1947, None, None)]),
        ("released in 19741", [(1974, 1974, None, None)]),
        ("it may be that they march", []),
        ("$1999", []),
        ("1999%", []),
        ("in 1999 and in 1999", [(1999, 1999, None, None)]),
    ],
)
def test_dates_found(text: str, found: list[tuple[int | None, ...]]) -> None:
    assert dates_of(text) == found


@pytest.mark.parametrize(
    ("expected", "given_text", "grade"),
    [
        ("20 July 1969", "July 20th, 1969", SAME),
        ("July 1969", "20 July 1969", SAME),
        ("1969", "20 July 1969", SAME),
        ("the 1960s", "1969", SAME),
        ("20 July 1969", "July 1969", COARSER),
        ("20 July 1969", "1969", COARSER),
        ("1969", "the 1960s", COARSER),
        ("1969", "the 20th century", COARSER),
        ("20 July 1969", "20 July", COARSER),
        ("20 July 1969", "21 July 1969", NEAR),
        ("20 July 1969", "August 1969", NEAR),
        ("20 July 1969", "20 July 1970", OTHER),
        ("1969", "the 1970s", OTHER),
        ("20 July", "21 July", OTHER),
    ],
)
def test_agreement_of_dates(expected: str, given_text: str, grade: int) -> None:
    [wanted] = read_dates(read_words(expected))[0]
    assert agreement(wanted, read_dates(read_words(given_text))[0]) == grade


def test_without_a_date_none_agrees() -> None:
    assert agreement(Date(1969, 1969), []) == OTHER


@settings(deadline=None)
@given(st.dates(date(1000, 1, 1), date(2100, 12, 31)))
def test_every_spelling_of_a_day_is_that_day(day: date) -> None:
    spellings = (f"{day:%B} {day.day}, {day.year}", f"{day.day} {day:%b} {day.year}", f"{day.year}-{day:%m-%d}")
    for text in spellings:
        assert dates_of(text) == [(day.year, day.year, day.month, day.day)]
    following = day + timedelta(days=1)
    wanted = Date(day.year, day.year, day.month, day.day)
    other = Date(following.year, following.year, following.month, following.day)
    assert agreement(wanted, [other]) < SAME
    assert agreement(wanted, [other, wanted]) == SAME


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("10 miles", "16.1 km", True),
        ("10 miles", "10 km", False),
        ("10 miles", "10", True),
        ("5 feet 6 inches", "1.68 m", True),
        ("100 °C", "212 degrees Fahrenheit", True),
        ("20 °C", "21 °C", False),
        ("2 hours", "120 minutes", True),
        ("60 seconds", "61 seconds", False),
        ("$5", "5 dollars", True),
        ("$5", "5 euros", False),
        ("50%", "50 percent", True),
        ("3.14", "3.14159", True),
        ("3.14159", "3.14", False),
        ("1,000", "one thousand", True),
        ("7", "8", False),
        ("30 square miles", "30 miles", False),
    ],
)
def test_equal_amounts(one: str, other: str, same: bool) -> None:
    [expected], [found] = read_quantities(read_words(one)), read_quantities(read_words(other))
    assert equal(expected, found) is same


@pytest.mark.parametrize(
    ("text", "ranges"), [("6-12 days", [(6, 12)]), ("between 5 and 10", [(5, 10)]), ("12 to 6", []), ("none", [])]
)
def test_ranges(text: str, ranges: list[tuple[float, float]]) -> None:
    assert read_ranges(read_words(text)) == ranges


@settings(deadline=None)
@given(st.integers(1, 10**6), st.sampled_from(["km", "kg", "hours", "%", "dollars", "cats"]))
def test_an_amount_equals_itself(number: int, unit: str) -> None:
    [quantity] = read_quantities(read_words(f"{number} {unit}"))
    assert equal(quantity, quantity)
    [other] = read_quantities(read_words(f"{number + 1} {unit}"))
    assert not equal(quantity, other)
