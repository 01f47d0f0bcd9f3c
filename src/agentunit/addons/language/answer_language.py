"""Whether the answer is in the language of the question."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from agentunit.addons.language.languages import (
    PossibleLanguages,
    names_a_language,
    read_language,
    read_question,
    same_language,
)
from agentunit.core.results import MetricResult
from agentunit.metrics.base import ItemMetric, MetricInfo
from agentunit.metrics.inputs import Item, acceptable_answers, no_answer
from agentunit.metrics.turns import by_turn


@dataclass(frozen=True)
class AnswerLanguageMetric(ItemMetric):
    """Whether the answer is in the language of the question: 1.0 if it is, 0.0 if it is in another one.

    Script, function words and letters decide; where they leave a doubt, there is no value: names, numbers, code and
    most answers of one or two words are in no language. It does not apply to a question that names a language or
    asks for a translation, nor where the expected answer is in the answer's language. A conversation has the mean
    of its turns.

    >>> question = {"id": "q1", "query": "When is the parcel going to be here?"}
    >>> result = AnswerLanguageMetric().evaluate(question, None, "Je suis désolé, mais je ne peux pas vous aider.")
    >>> result.value, result.detail["why"]
    (0.0, 'the question is in English, the answer in French')
    """

    info = MetricInfo(
        name="answer_language",
        family="quality",
        summary="Whether the answer is in the language of the question.",
        direction="higher",
        range=(0.0, 1.0),
        inputs=("case.query", "outcome.output"),
        detail_keys=("question_language", "answer_language", "why"),
        backend="words",
        trust={"words": "silent where unsure"},
        check=True,
        question="Is the answer in the language of the question?",
    )
    name = info.name

    def score_item(self, item: Item) -> MetricResult:
        """Compare the two languages; in a conversation, those of each turn."""
        return by_turn(item, self._compared) or self._compared(item)

    def _compared(self, item: Item) -> MetricResult:
        query = item.case.query
        if not isinstance(query, str) or not query.strip():
            return self.unscored("no question: case.query is missing")
        if item.answer is None:
            return self.unscored(no_answer(item))
        if names_a_language(query):
            return self.unscored("the question names a language or asks for a translation")
        question, answer = read_question(query), read_language(item.answer)
        detail = {"question_language": _shown(question), "answer_language": _shown(answer)}
        same = same_language(question, answer)
        if same is None:
            return self.unscored(_why_unsure(question, answer), **detail)
        if same:
            why = f"the question and the answer are in {answer}"
        elif any(_may_be_alike(text, answer) for text in acceptable_answers(item.case.expected_output)):
            return self.unscored(f"the expected answer is in {answer}, too", **detail)
        else:
            why = f"the question is in {question}, the answer in {answer}"
        return MetricResult(self.name, float(same), {**detail, "why": why, "backend": self.info.backend})


def _may_be_alike(expected: str, answer: PossibleLanguages | None) -> bool:
    read = read_language(expected)
    return read is not None and same_language(read, answer) is not False


def _shown(reading: PossibleLanguages | None) -> Any:
    return None if reading is None else str(reading)


def _why_unsure(question: PossibleLanguages | None, answer: PossibleLanguages | None) -> str:
    unread = [name for name, reading in (("question", question), ("answer", answer)) if reading is None]
    if unread:
        return f"the language of the {' and of the '.join(unread)} is not sure"
    return f"the question is in {question}, the answer in {answer}, or both in a kindred language"
