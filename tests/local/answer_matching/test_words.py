"""Texts as comparable words."""

from __future__ import annotations

import pytest
from agentunit_local.answer_matching.number_words import number_of, plain_number, roman_value
from agentunit_local.answer_matching.words import folded, read_words
from hypothesis import given, settings
from hypothesis import strategies as st


@pytest.mark.parametrize(
    ("text", "forms"),
    [
        ("The cat", ["cat"]),
        ("The The", ["the", "the"]),
        ("U.S.A.", ["united", "states"]),
        ("give it to us", ["give", "it", "to", "us"]),
        ("J. R. R. Tolkien", ["jrr", "tolkien"]),
        ("Children's isn't O'Neil", ["children", "isnt", "oneil"]),
        ("sung byRufus12 in19741", ["sung", "by", "rufus", "12", "in", "19741"]),
        ("R&B", ["r", "and", "b"]),
        ("naïve Œuvre Łódź Straße", ["naive", "oeuvre", "lodz", "strasse"]),
        ("World War I, World War Two", ["world", "war", "1", "world", "war", "2"]),
        ("Then I saw Henry VIII", ["then", "i", "saw", "henry", "8"]),
        ("WWII", ["world", "war", "2"]),
        ("東京タワー", ["東", "京", "タ", "ワ", "ー"]),
        ("हिन्दी भाषा", ["हिन्दी", "भाषा"]),
        ("٣ кошки", ["3", "кошки"]),
        ("5km, 1990s, the 1990's", ["5", "km", "1990s", "1990s"]),
        ("H2O and mp3", ["h2o", "and", "mp3"]),
        ("", []),
        ("?!…", []),
    ],
)
def test_forms(text: str, forms: list[str]) -> None:
    assert read_words(text).forms == forms


@pytest.mark.parametrize(
    ("text", "forms"),
    [
        ("twenty-one", ["21"]),
        ("two hundred and five", ["205"]),
        ("one thousand two hundred", ["1200"]),
        ("nineteen sixty-nine", ["1969"]),
        ("twenty twenty", ["2020"]),
        ("three million", ["3000000"]),
        ("1.5 million", ["1500000"]),
        ("1,234,567.5", ["1234567.5"]),
        ("10\u00a0000", ["10000"]),
        ("3,5", ["3.5"]),
        ("third", ["3"]),
        ("twenty-first", ["21"]),
        ("21st", ["21"]),
        ("-5", ["-5"]),
        ("6-12", ["6", "12"]),
        ("one of them", ["one", "of", "them"]),
        ("$5M", ["$", "5000000"]),
        ("10 second pause", ["10", "second", "pause"]),
        ("five six", ["5", "6"]),
        ("9" * 40, ["9" * 40]),
    ],
)
def test_numbers_have_one_spelling(text: str, forms: list[str]) -> None:
    assert read_words(text).forms == forms


def test_sentences_end_at_stops_and_not_after_titles_or_initials() -> None:
    assert read_words("Dr. Smith came. He left! J. Doe\nstayed").sentences == [0, 0, 0, 1, 1, 2, 2, 3]


@pytest.mark.parametrize(
    ("numeral", "value"), [("IV", 4), ("XIX", 19), ("MCMXCIV", 1994), ("IIII", None), ("DC", None)]
)
def test_roman_numerals(numeral: str, value: int | None) -> None:
    assert roman_value(numeral) == value


@settings(deadline=None)
@given(st.integers(min_value=0, max_value=10**12))
def test_thousands_separators_change_nothing(number: int) -> None:
    assert read_words(f"{number:,}").forms == read_words(str(number)).forms == [str(number)]


@settings(deadline=None)
@given(st.floats(min_value=-1e9, max_value=1e9, allow_nan=False))
def test_plain_numbers_read_back(value: float) -> None:
    written = plain_number(round(value, 4))
    if "e" not in written:
        assert number_of(written) == pytest.approx(round(value, 4))


@settings(deadline=None)
@given(st.text(max_size=200))
def test_any_text_can_be_read(text: str) -> None:
    words = read_words(text)
    assert len(words.forms) == len(words.values) == len(words.capitals) == len(words.sentences)
    assert all(words.forms)
    assert words.sentences == sorted(words.sentences)
    assert all(place < len(words) for place in words.ordinals)


@settings(deadline=None)
@given(st.text(alphabet="abc ABC123.,'é-", max_size=60))
def test_folding_twice_changes_nothing(text: str) -> None:
    assert folded(folded(text)) == folded(text)
