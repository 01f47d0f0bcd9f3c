from __future__ import annotations

import unicodedata

import jiwer
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentunit.formulas.similarity import (
    character_error_rate,
    edit_distance,
    error_rate,
    normalised_transcript,
    spoken_words,
    word_error_rate,
)


@pytest.mark.parametrize(
    ("left", "right", "distance"),
    [
        ("", "", 0),
        ("", "abc", 3),
        ("abc", "abc", 0),
        ("kitten", "sitting", 3),
        ("flaw", "lawn", 2),
        ("intention", "execution", 5),
        ("ab", "ba", 2),  # a swap is two edits
        ("a" * 200, "a" * 100, 100),  # more elements than a machine word has bits
        ("abc" * 50, "abd" * 50, 50),
        ("x" + "y" * 70, "y" * 70 + "z", 2),
        ("café", "cafe", 1),
    ],
)
def test_hand_checked_distances(left: str, right: str, distance: int) -> None:
    assert edit_distance(left, right) == distance
    assert edit_distance(right, left) == distance


def table_distance(left: str, right: str) -> int:
    """The textbook table, whole."""
    rows = [list(range(len(right) + 1))]
    for i, one in enumerate(left, 1):
        rows.append([i])
        for j, other in enumerate(right, 1):
            rows[i].append(min(rows[i - 1][j] + 1, rows[i][j - 1] + 1, rows[i - 1][j - 1] + (one != other)))
    return rows[-1][-1]


FEW_LETTERS = st.text(alphabet="ab ", max_size=90)
ANY_TEXT = st.text(max_size=40)


@given(FEW_LETTERS, FEW_LETTERS)
@settings(deadline=None)
def test_distance_is_that_of_the_table(left: str, right: str) -> None:
    assert edit_distance(left, right) == table_distance(left, right)


@given(FEW_LETTERS, FEW_LETTERS, FEW_LETTERS)
@settings(deadline=None)
def test_distance_is_a_metric(left: str, middle: str, right: str) -> None:
    assert edit_distance(left, right) == edit_distance(right, left)
    assert (edit_distance(left, right) == 0) == (left == right)
    assert edit_distance(left, right) <= edit_distance(left, middle) + edit_distance(middle, right)
    assert abs(len(left) - len(right)) <= edit_distance(left, right) <= max(len(left), len(right))


SPOKEN = st.lists(
    st.sampled_from(["a", "the", "cat", "Cat", "e\u0301té", "été", "東京", "🙂", "\t", " ", "\n", "don't"]), max_size=12
)


@given(SPOKEN.map(" ".join) | ANY_TEXT, SPOKEN.map(" ".join) | ANY_TEXT)
@settings(deadline=None, max_examples=400)
def test_rates_are_jiwers(reference: str, hypothesis: str) -> None:
    assert word_error_rate(reference, hypothesis) == jiwer.wer(reference, hypothesis)
    assert character_error_rate(reference, hypothesis) == jiwer.cer(reference, hypothesis)


@pytest.mark.parametrize(
    ("reference", "hypothesis", "wer", "cer"),
    [
        ("", "", 0.0, 0.0),
        ("", "two words", 2.0, 9.0),  # nothing to divide by: insertions are counted
        ("two words", "", 1.0, 1.0),
        ("ten of clubs", "ten of clubs", 0.0, 0.0),
        ("five", "five five five", 2.0, 2.5),  # two insertions over one word; ten over four letters
        ("the cat", "cat the", 1.0, 6 / 7),
    ],
)
def test_hand_checked_rates(reference: str, hypothesis: str, wer: float, cer: float) -> None:
    assert word_error_rate(reference, hypothesis) == wer
    assert character_error_rate(reference, hypothesis) == pytest.approx(cer)


def test_an_error_rate_of_anything_hashable() -> None:
    assert error_rate([1, 2, 3, 4], [1, 3, 4]) == 0.25


def test_long_texts_are_quick_enough_to_finish() -> None:
    words = [str(number % 997) for number in range(20_000)]
    assert edit_distance(words, words[5:] + ["x"] * 5) == 10


@pytest.mark.parametrize(
    ("text", "normalised"),
    [
        ("Ten of CLUBS.", "ten of clubs"),
        ("  spaced\tout \n text ", "spaced out text"),
        ("Don’t", "don't"),
        ("'quoted' words’", "quoted words"),
        ("rock 'n' roll", "rock n roll"),
        ("well-known", "well known"),
        ("ﬁne Ⅷ ½", "fine viii 1⁄2"),
        ("STRASSE straße", "strasse strasse"),
        ("e\u0301t\u00e9", "été"),
        ("soft\u00adhyphen zero\u200bwidth", "softhyphen zerowidth"),
        ("हिन्दी में", "हिन्दी में"),  # vowel signs are marks, not letters, and stay
        ("¿Qué? ¡Sí!", "qué sí"),
        ("東京、大阪。", "東 京 大 阪"),
        ("สวัสดีครับ", "ส วั ส ดี ค รั บ"),  # a mark stays with its letter
        ("我有iPhone 15", "我 有 iphone 15"),
        ("1,000 or 12,345,678", "1000 or 12345678"),
        ("1,2,3 and 3.14 and 5. End", "1 2 3 and 3.14 and 5 end"),
        ("... — !", ""),
        # A letter of a script without spaces is a word by itself: no word holds the apostrophe.
        ("0`\u3400 \u3400'a", "0 \u3400 \u3400 a"),
        ("", ""),
    ],
)
def test_what_cannot_be_heard_goes(text: str, normalised: str) -> None:
    assert normalised_transcript(text) == normalised


@given(ANY_TEXT)
@settings(deadline=None, max_examples=300)
def test_normalising_again_changes_nothing_and_leaves_no_punctuation(text: str) -> None:
    once = normalised_transcript(text)
    assert normalised_transcript(once) == once
    assert not [letter for letter in once if unicodedata.category(letter)[0] == "P" and letter not in "'."]
    assert once == " ".join(spoken_words(once))
