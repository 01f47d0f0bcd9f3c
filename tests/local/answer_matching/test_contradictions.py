"""Answers that share the words of the expected one and are wrong all the same."""

from __future__ import annotations

import pytest
from agentunit_local.answer_matching.contradictions import contradiction

CAPITAL = "Is Paris or Rome the capital of France?"
VALVE = "Is the valve made of brass or steel?"
FOUNDER = "Was it founded by Maria Lund or by Peter Dahl?"
AMOUNT, OTHER, OPEN, REPEATED = "another amount", "the other choice", "leaves open", "only repeats"


@pytest.mark.parametrize(
    ("question", "expected", "answer", "rule"),
    [
        (CAPITAL, "Paris", "is Paris, or Rome, the capital of France", REPEATED),
        (CAPITAL, "Paris", "Paris or Rome.", OPEN),
        ("Which is larger, 5 or 7?", "7", "5 or 7", OPEN),
        ("Which plan has it, Alder or Birch?", "The Birch plan", "Alder or Birch", OPEN),
        (VALVE, "Brass", "It is made of brass or steel.", OPEN),
        (FOUNDER, "Maria Lund", "It was founded by Maria Lund or Peter Dahl.", OPEN),
        (VALVE, "It is made of brass.", "It is made of steel.", OTHER),
        (FOUNDER, "Maria Lund", "Peter Dahl", OTHER),
        ("How often do trams run?", "Every 20 minutes", "On Sundays, trams on line 7 run every 12 minutes.", AMOUNT),
        ("How long?", "Within 30 days", "Within 60 days", AMOUNT),
        (None, "25 euros a month", "The Birch plan costs 18 euros a month.", AMOUNT),
        (CAPITAL, "Paris", "Paris is the capital of France.", None),
        (CAPITAL, "Paris", "Paris, or Lutetia", None),
        (VALVE, "Brass", "Brass or steel? It is brass.", None),
        (VALVE, "Brass", "It is not steel.", None),
        (VALVE, "Brass or steel", "brass or steel", None),
        (
            "Is it Marley and Me or Marley and I?",
            "Marley & Me",
            "'Marley and Me' or 'Marley and I': Marley & Me.",
            None,
        ),
        ("Who played guitar on 25 or 6 to 4?", "Terry Kath", "Guitar on 25 or 6 to 4: Terry Kath.", None),
        ("Which city is the capital of France?", "Paris", "Paris or Lutetia", None),
        ("How are you?", "How are you", "how are you", None),
        ("Who said 'to be or not to be'?", "To be, or not to be", "to be or not to be", None),
        ("Did Ann or Bo win, or both?", "either Ann or Bo", "Ann or Bo", None),
        ("How long is it?", "5 km", "5,000 meters", None),
        ("How old is it?", "2.45 billion years", "2.4 billion years", None),
        ("How long?", "around 9 days", "6-12 days", None),
        ("How long?", "30 days", "30 days, or 720 hours", None),
        ("How many?", "20", "12", None),
        ("?", "Paris", "!", None),
        ("", "Paris", "", None),
    ],
)
def test_why_an_answer_is_wrong(question: str | None, expected: str, answer: str, rule: str | None) -> None:
    found = contradiction(question or "", [expected], answer)
    assert (None if found is None else rule in found.rule) == (None if rule is None else True), found


def test_one_expected_answer_that_agrees_is_enough() -> None:
    assert contradiction("How long?", ["30 days", "60 days"], "60 days of leave") is None
    assert contradiction(VALVE, ["Brass", "Steel"], "It is steel.") is None
