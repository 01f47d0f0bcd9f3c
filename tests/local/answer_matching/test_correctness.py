"""The fitted score on cases whose answer nobody doubts, on odd input, and on people's labels."""

from __future__ import annotations

import gzip
import json
import math
import os
from pathlib import Path

import pytest
from agentunit_local.answer_matching import correctness, match_features
from agentunit_local.answer_matching.features import NAMES
from agentunit_local.answer_matching.score import coefficient_sets
from hypothesis import given, settings
from hypothesis import strategies as st

DATA = Path(os.environ.get("AGENTUNIT_DATA") or Path(__file__).parents[3] / ".." / "shared" / "data")
LABELLED = DATA / "dev" / "answer_correctness.jsonl.gz"
CAPITAL, LANDING, SHOT = "What is the capital of France?", "When did Apollo 11 land?", "Who was shot in Dallas?"

RIGHT = [
    (CAPITAL, ["Paris"], "Paris"),
    (CAPITAL, ["Paris"], "The capital of France is Paris."),
    (CAPITAL, ["Paris"], "It is not Lyon but Paris."),
    (CAPITAL, ["The capital of France is Paris."], "Paris"),
    (CAPITAL, ["Lyon", "Paris"], "paris!"),
    (LANDING, ["20 July 1969"], "1969-07-20"),
    (LANDING, ["20 July 1969"], "In July 1969."),
    (LANDING, ["July 1969"], "on July 20th, 1969"),
    ("How many?", ["1,000"], "one thousand"),
    ("How far is it?", ["10 miles"], "about 16 km"),
    ("How much?", ["$5 million"], "5,000,000 dollars"),
    ("How warm?", ["100 °C"], "212 degrees Fahrenheit"),
    ("What share?", ["50%"], "50 percent"),
    (SHOT, ["John F. Kennedy"], "JFK"),
    (SHOT, ["JFK"], "John F. Kennedy"),
    (SHOT, ["John F. Kennedy"], "President John Kennedy"),
    ("Who wrote it?", ["Sir William Shakespeare"], "Bill Shakespeare"),
    ("Where?", ["USA"], "the United States of America"),
    ("Which war?", ["World War II"], "the Second World War"),
    ("Who sang it?", ["Rufus and Chaka Khan"], "Chaka Khan and Rufus"),
    ("Who sang it?", ["Chaka Khan"], "It was sung byChaka Khan12."),
    ("Which colour?", ["gray-coloured"], "grey coloured"),
    ("Is the sky blue?", ["yes"], "The sky is blue."),
    ("Is the sky green?", ["No"], "No, it is blue."),
    ("首都は？", ["東京"], "日本の首都は東京です。"),
    ("수도?", ["서울"], "한국의 수도는 서울입니다"),
    ("Столица?", ["Москва"], "Столица — Москва."),
    ("What was done?", ["The refund was issued to the customer's card."], "We issued a refund to the customer's card."),
    (None, ["!!!"], "!!!"),
]
WRONG = [
    (CAPITAL, ["Paris"], "London"),
    (CAPITAL, ["Paris"], "It is not Paris."),
    (CAPITAL, ["Paris"], "It isn't Paris, it's London."),
    (CAPITAL, ["Paris"], "It is no longer Paris."),
    (CAPITAL, ["Paris"], "It is either Paris or Lyon."),
    (CAPITAL, ["Paris"], "I don't know."),
    (CAPITAL, ["Paris"], "I don't know if it is Paris."),
    (CAPITAL, ["Paris"], ""),
    (CAPITAL, [], "Paris"),
    (CAPITAL, ["The capital of France is Paris."], "The capital of France is Lyon."),
    (LANDING, ["20 July 1969"], "21 July 1969"),
    (LANDING, ["1969"], "In 1970."),
    ("How many?", ["1000"], "1001"),
    ("How many?", ["4"], "The answer is 44."),
    ("How far is it?", ["10 miles"], "10 km"),
    ("How cold?", ["-5"], "5"),
    (SHOT, ["John F. Kennedy"], "Robert Kennedy"),
    ("Is the sky blue?", ["yes"], "No."),
    ("Is the sky blue?", ["yes"], "The sky is not blue."),
    ("What can it do?", ["cat"], "concatenate"),
    ("How tall is the tower?", ["The tower is 330 metres tall."], "The tower is 300 metres tall."),
    ("What was done?", ["The refund was issued to the customer's card."], "The refund was not issued to the card."),
    ("首都は？", ["東京"], "大阪です"),
]


@pytest.mark.parametrize(("question", "expected", "answer"), RIGHT)
def test_right_answers(question: str | None, expected: list[str], answer: str) -> None:
    assert correctness(match_features(question, expected, answer)) >= 0.5


@pytest.mark.parametrize(("question", "expected", "answer"), WRONG)
def test_wrong_answers(question: str | None, expected: list[str], answer: str) -> None:
    assert correctness(match_features(question, expected, answer)) < 0.5


CITIES = ("paris", "rome", "london", "tokyo", "oslo", "cairo")
PIECES = (
    "Paris",
    "not",
    "Rome",
    "1969",
    "July",
    "20",
    "the",
    "either",
    "no",
    "yes",
    "5",
    "km",
    "%",
    "J.",
    "東",
    "½",
    "or",
)
TEXTS = st.one_of(
    st.text(max_size=80),
    st.lists(
        st.sampled_from(
            [
                "Paris",
                "not",
                "Rome",
                "1969",
                "July",
                "20",
                "the",
                "either",
                "no",
                "yes",
                "5",
                "km",
                "%",
                "J.",
                "I",
                "東",
                "½",
                "or",
            ]
        )
    ).map(" ".join),
)


@settings(max_examples=300, deadline=None)
@given(st.one_of(st.none(), TEXTS), st.lists(TEXTS, max_size=4), TEXTS)
def test_any_input_has_a_score(question: str | None, expected: list[str], answer: str) -> None:
    features = match_features(question, expected, answer)
    assert tuple(sorted(features)) == tuple(sorted(NAMES))
    assert all(math.isfinite(value) for value in features.values())
    assert 0 <= correctness(features) <= 1
    assert features == match_features(question, expected, answer)


@given(
    st.lists(
        st.sampled_from(["paris", "rome", "london", "tokyo", "oslo", "cairo"]), min_size=1, max_size=3, unique=True
    )
)
def test_an_answer_in_the_expected_words_is_right(words: list[str]) -> None:
    text = " ".join(words)
    assert correctness(match_features("Which?", [text], text)) > 0.9
    assert correctness(match_features("Which?", ["Vladivostok", text], f"It is {text}.")) > 0.9


@pytest.mark.parametrize(
    "answer",
    [
        "word " * 20_000 + "Paris", "a" * 100_000, "1" * 100_000, "." * 100_000, "A. " * 33_000, "東" * 50_000,
        "not Paris " * 10_000, "1,000," * 16_000, "May 1, 2020 " * 8_000, "aaBb" * 25_000, "a'" * 50_000,
        " ".join(f"{number}x" for number in range(15_000)), " ".join(map(str, range(15_000))),
    ],
    ids=lambda answer: answer[:12],
)  # fmt: skip
def test_very_long_texts_are_compared(answer: str) -> None:
    assert 0 <= correctness(match_features(CAPITAL, ["Paris"], answer)) <= 1
    part = answer[-20_000:]
    assert correctness(match_features(CAPITAL, [part], part)) > 0.5
    assert 0 <= correctness(match_features(CAPITAL, [part[::-1]], part)) <= 1


def test_signals_that_nothing_was_fitted_for_are_refused() -> None:
    features = match_features(CAPITAL, ["Paris"], "Paris")
    with pytest.raises(ValueError, match=r"extra must be a combination of signals that was fitted .*'moonlight'"):
        correctness(features, {"moonlight": 0.5})


def test_every_set_of_coefficients_names_known_features_and_its_own_signals() -> None:
    assert frozenset() in coefficient_sets()
    for extra, fitted in coefficient_sets().items():
        assert set(fitted.weights) <= {*NAMES, *extra}


def test_evidence_for_never_lowers_the_score() -> None:
    weights = coefficient_sets()[frozenset()].weights
    assert all(weights.get(name, 0) >= 0 for name in ("exact", "contained", "recall", "key_recall", "date_same"))
    assert all(weights[name] < -1 for name in ("negated", "left_open", "declines", "twisted"))


@pytest.mark.skipif(not LABELLED.is_file(), reason="set AGENTUNIT_DATA to the folder of shared data")
def test_agreement_with_people() -> None:
    with gzip.open(LABELLED, "rt", encoding="utf-8") as lines:
        rows = [json.loads(line) for number, line in enumerate(lines) if number % 10 == 0]
    scores = [correctness(match_features(row["question"], row["expected"], row["answer"])) for row in rows]
    agrees = [(score >= 0.5) == row["correct"] for score, row in zip(scores, rows, strict=True)]
    assert sum(agrees) / len(agrees) > 0.91
