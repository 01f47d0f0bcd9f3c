"""Suites that are sound, of kinds that people often have: no check may warn of them."""

from __future__ import annotations

from typing import Any

import pytest

from agentunit.addons.review.soundness.examine import examine_soundness
from agentunit.addons.review.soundness.material import Material
from agentunit.core.case import DatasetCase


def _few_shot(number: int) -> DatasetCase:
    shots = "Q: Colour of grass?\nAnswer: B\n\nQ: Colour of snow?\nAnswer: C\n\n"
    return DatasetCase(f"m{number}", f"{shots}Q: Colour of thing {number}?\nAnswer:", "ABCD"[number % 4])


def _classified(number: int) -> DatasetCase:
    feeling = ("love", "hate")[number % 2]
    return DatasetCase(
        f"r{number}", "Classify the review.", ("good", "bad")[number % 2], None, [f"I {feeling} thing {number}."]
    )


def _about(context: str, query: str, expected: Any) -> list[DatasetCase]:
    return [DatasetCase("c1", query, expected, None, [context])]


SUITES: dict[str, list[DatasetCase]] = {
    "few-shot prompts of a choice": [_few_shot(number) for number in range(20)],
    "classes of texts": [_classified(number) for number in range(12)],
    "yes and no in balance": [
        DatasetCase(f"y{number}", f"Is {number} even?", ("yes", "no")[number % 2]) for number in range(20)
    ],
    "tables and their schema": [
        DatasetCase(
            "s1",
            "How many users?",
            "SELECT COUNT(*) FROM t",
            None,
            None,
            {"schema": "CREATE TABLE t", "pattern": "count"},
        )
    ],
    "names with a slash": [
        DatasetCase(f"n{number}", f"What is thing {number}?", name)
        for number, name in enumerate(("TCP/IP", "AC/DC", "application/json", "src/main.py", "and/or", "/usr/bin"))
    ],
    "a language without spaces": _about("日本の首都は東京都です。", "首都は?", "東京都"),
    "a compound": _about("Die Haftpflichtversicherung zahlt.", "Wer zahlt?", "Versicherung"),
    "a text to work on": [DatasetCase("c1", "Speak in French: Hello world", "Hello world")],
    "a sum": _about(
        "There are 5 apples and 3 pears, which are fruits too, in 2 boxes.", "How many apples?", "10 apples"
    ),
    "a total": _about("Each of the four guests pays 15 dollars.", "What is the total?", "60 dollars"),
    "a year before a common word": _about(
        "In 1970 the band broke up.", "When did they play?", "In 1969 the last time."
    ),
}


@pytest.mark.parametrize("name", SUITES)
def test_nothing_is_said_of_a_sound_suite(name):
    warnings = examine_soundness(Material(SUITES[name])).warnings
    assert [(warning.check, warning.evidence[0].text) for warning in warnings] == []


def test_an_answer_that_is_too_frequent_is_seen_among_few_choices():
    cases = [
        DatasetCase(f"m{number}", f"Question {number}?", "ABCD"[number % 4 * (number % 3 > 1)]) for number in range(24)
    ]
    (warning,) = examine_soundness(Material(cases)).warnings
    assert warning.check == "constant_answer"
    assert warning.n_cases == sum(case.expected_output == "A" for case in cases)


@pytest.mark.parametrize(
    ("key", "value"),
    [("schema", {"type": "object"}), ("pattern", "^[A-Z]+$"), ("tool_calls", ["search"]), ("rubrics", ["polite"])],
)
def test_an_expectation_under_another_name_is_known_by_its_shape(key, value):
    case = DatasetCase("c1", "Where?", "There.", None, None, {key: value})
    assert "misnamed" in {warning.check for warning in examine_soundness(Material([case])).warnings}
