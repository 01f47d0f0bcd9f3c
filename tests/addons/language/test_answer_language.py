from __future__ import annotations

from typing import Any

import pytest

import agentunit
from agentunit.addons.language.answer_language import AnswerLanguageMetric

QUESTION = "When is the parcel going to be here?"
ENGLISH = "It is going to be here in two days, and we are sorry for the delay."
FRENCH = "Je suis désolé, mais je ne peux pas vous aider avec cette demande."
NAMED = "the question names a language or asks for a translation"
SAME = "the question and the answer are in English"
GERMAN = "Es tut mir leid, aber ich kann Ihnen dabei nicht helfen."


def score(query: Any, answer: Any, **case: Any) -> Any:
    return AnswerLanguageMetric().evaluate({"id": "q1", "query": query, **case}, None, answer)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("query", "answer", "value", "why"),
    [
        (QUESTION, ENGLISH, 1.0, SAME),
        (QUESTION, FRENCH, 0.0, "the question is in English, the answer in French"),
        ("Wann ist das Paket da, und wer hat es?", ENGLISH, 0.0, "the question is in German, the answer in English"),
        (QUESTION, "荷物がどこにあるかは分かりません。", 0.0, "the question is in English, the answer in Japanese"),
        ("포장은 언제 도착합니까? 알려 주세요.", ENGLISH, 0.0, "the question is in Korean, the answer in English"),
        (QUESTION, f"It is in the letter that we have sent to you: “{FRENCH}”", 1.0, SAME),
    ],
)  # fmt: skip
def test_the_two_languages(query: str, answer: str, value: float, why: str) -> None:
    result = score(query, answer)
    assert (result.value, result.detail["why"]) == (value, why)


@pytest.mark.parametrize(
    ("query", "answer", "reason"),
    [
        (None, ENGLISH, "no question: case.query is missing"),
        (" ", ENGLISH, "no question: case.query is missing"),
        (QUESTION, None, "no answer: outcome.output is missing"),
        (QUESTION, "Paris", "the language of the answer is not sure"),
        ("Paris?", "Rome", "the language of the question and of the answer is not sure"),
        (QUESTION, {"output": {"city": "it is on the hill"}}, "the language of the answer is not sure"),
        ("Say in French that you are not able to help.", FRENCH, NAMED),
        ("Translate this for me, if you can", FRENCH, NAMED),
        (f"Sum this up for me:\n{FRENCH}", ENGLISH, "the language of the question is not sure"),
        ("Где этот пакет и когда он будет?", "Добрый вечер, дорогие друзья! Пакет отправлен.",
         "the question is in Russian, the answer in Cyrillic script, or both in a kindred language"),
    ],
)  # fmt: skip
def test_no_value_with_a_reason(query: Any, answer: Any, reason: str) -> None:
    result = score(query, answer)
    assert (result.value, result.detail["reason"]) == (None, reason)
    assert set(AnswerLanguageMetric.info.detail_keys) <= set(result.detail)


@pytest.mark.parametrize(
    ("expected", "value"),
    [
        (FRENCH, None),
        (["Paris", FRENCH], None),
        (ENGLISH, 0.0),
        (GERMAN, 0.0),
        ("Paris", 0.0),
        (None, 0.0),
        ({"a": 1}, 0.0),
    ],
)
def test_an_expected_answer_in_the_answers_language_excuses_it(expected: Any, value: float | None) -> None:
    result = score(QUESTION, FRENCH, expected_output=expected)
    assert result.value == value
    if value is None:
        assert result.detail["reason"] == "the expected answer is in French, too"
    # An answer in the language of the question passes, whatever is expected.
    assert score(QUESTION, ENGLISH, expected_output=expected).value == 1.0


def test_each_turn_of_a_conversation_has_its_own_question() -> None:
    said = [("user", QUESTION), ("assistant", ENGLISH), ("user", "Und wo ist das Paket jetzt?"), ("assistant", ENGLISH)]
    events = [{"type": "message", "payload": {"role": role, "content": text}} for role, text in said]
    case = {"id": "q1", "turns": [QUESTION, "Und wo ist das Paket jetzt?"]}
    result = AnswerLanguageMetric().evaluate(case, {"events": events}, ENGLISH)  # type: ignore[arg-type]
    assert [turn["value"] for turn in result.detail["turns"]] == [1.0, 0.0]
    assert result.value == 0.5


def test_a_run_counts_what_has_no_value_as_not_applicable() -> None:
    records = [
        {"case": {"id": str(at), "query": QUESTION}, "outcome": text}
        for at, text in enumerate([ENGLISH, FRENCH, "Paris"])
    ]
    run = agentunit.score(records, ["answer_language"])
    assert [case.scores["answer_language"].status for case in run] == ["ok", "ok", "not_applicable"]
