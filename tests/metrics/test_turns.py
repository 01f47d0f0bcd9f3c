"""Metrics over conversations: each turn by itself, the whole by its turns, amounts over all of it."""

from __future__ import annotations

from typing import Any

import pytest

from agentunit import DatasetCase, Record, score
from agentunit.addons.judge.rubric_metric import RubricMetric
from agentunit.backends.quality import QualityQuestion, Verdict
from agentunit.core.codec import as_trace
from agentunit.metrics import builtin
from agentunit.metrics.assertions import ExactMatchMetric
from agentunit.metrics.builtin import AnswerCorrectnessMetric, FaithfulnessMetric, RetrievalQualityMetric
from agentunit.metrics.functions import FunctionMetric
from agentunit.metrics.inputs import Item
from agentunit.traces.expected import ExpectedAnswers


def talk(*turns: tuple[str, str | None, list[dict[str, Any]]]) -> dict[str, Any]:
    events: list[dict[str, Any]] = []
    for query, answer, between in turns:
        events.append({"type": "message", "payload": {"role": "user", "content": query}})
        events += between
        if answer is not None:
            events.append({"type": "message", "payload": {"role": "assistant", "content": answer}})
    return {"events": events}


def result(text: str) -> dict[str, Any]:
    return {"type": "tool_call", "payload": {"name": "find", "status": "success", "result": text}}


SCRIPT = {"id": "c", "turns": ["Hi", {"query": "2 + 2?", "expected_output": "4"}, "Sure?"], "expected_output": "Yes."}


@pytest.mark.parametrize("metric", [AnswerCorrectnessMetric("lexical"), ExactMatchMetric()])
def test_each_turn_with_an_expected_output_counts(metric: Any) -> None:
    trace = talk(("Hi", "Hello!", []), ("2 + 2?", "5", []), ("Sure?", "Yes.", []))
    made = metric.evaluate(SCRIPT, trace, "Yes.")
    assert made.value == 0.5
    assert [turn["value"] for turn in made.detail["turns"]] == [None, 0.0, 1.0]
    assert "nothing to compare with" in made.detail["turns"][0]["reason"]
    assert made.detail["scored_turns"] == 2


def test_a_turn_without_an_answer_leaves_the_case_without_a_value() -> None:
    trace = talk(("Hi", "Hello!", []), ("2 + 2?", "4", []), ("Sure?", None, []))
    made = AnswerCorrectnessMetric("lexical").evaluate(SCRIPT, trace, None)
    assert made.value is None
    assert made.detail["reason"] == "turn 3: no answer"


def test_a_case_of_one_question_and_a_recording_without_turns_are_scored_as_ever() -> None:
    trace = talk(("Hi", "4", []), ("2 + 2?", "5", []))
    made = AnswerCorrectnessMetric("lexical").evaluate({"id": "c", "expected_output": "4"}, trace, "4")
    assert made.value == 1.0
    assert set(made.detail) == {"expected", "answer", "backend", "why"}


class Noting:
    """A backend that keeps what it is asked, and fails where it is told to."""

    name = "judge"
    measures = frozenset({"faithfulness", "retrieval_quality"})

    def __init__(self) -> None:
        self.asked: list[QualityQuestion] = []
        self.notes: dict[str, dict[str, str]] = {}

    def judge(self, measure: str, questions: Any) -> list[Verdict]:
        self.asked += questions
        spent = {"model": "m", "calls": 1, "cached": 0, "prompt_tokens": 10, "completion_tokens": 1, "cost_usd": 0.5}
        return [
            Verdict(None, {"reason": "down", "error": {}, "judge": spent})
            if each.answer == "fails"
            else Verdict(0.25 if "lie" in each.answer else 0.75, {"judge": spent, **self.notes.get(each.answer, {})})
            for each in questions
        ]


@pytest.fixture
def noting(monkeypatch: pytest.MonkeyPatch) -> Noting:
    backend = Noting()
    monkeypatch.setattr(builtin, "resolve_backend", lambda *_: backend)
    return backend


TRACE = talk(("A?", "a truth", [result("first")]), ("B?", "a lie", [result("second")]))


def test_an_answer_may_rest_on_what_the_agent_saw_in_earlier_turns(noting: Noting) -> None:
    (case,) = score([({"id": "c", "turns": ["A?", "B?"]}, TRACE, "a lie")], [FaithfulnessMetric("judge")])
    made = case.scores["faithfulness"]
    assert [each.question for each in noting.asked] == ["A?", "B?"]
    assert [list(each.context) for each in noting.asked] == [["first"], ["first", "second"]]
    assert made.value == 0.5
    assert made.result.detail["judge"]["calls"] == 2
    assert made.result.detail["judge"]["cost_usd"] == 1.0


def test_one_informational_turn_makes_the_score_of_the_case_informational(noting: Noting) -> None:
    noting.notes = {"a truth": {"informational": "the text is in 'de'"}}
    (case,) = score([({"id": "c", "turns": ["A?", "B?"]}, TRACE, "a lie")], [FaithfulnessMetric("judge")])
    made = case.scores["faithfulness"]
    assert (made.status, made.result.detail["informational"]) == ("informational", "the text is in 'de'")


def test_retrieval_is_judged_by_what_the_turn_itself_retrieved(noting: Noting) -> None:
    documents = [{"type": "retrieval", "payload": {"documents": [text]}} for text in ("first", "second")]
    trace = talk(("A?", "x", documents[:1]), ("B?", "y", documents[1:]))
    RetrievalQualityMetric("judge").evaluate({"id": "c", "turns": ["A?", "B?"]}, trace, "y")
    assert [list(each.context) for each in noting.asked] == [["first"], ["second"]]


def test_a_turn_whose_scoring_fails_is_an_error_of_the_case(noting: Noting) -> None:
    trace = talk(("A?", "a truth", [result("first")]), ("B?", "fails", []))
    (case,) = score([({"id": "c", "turns": ["A?", "B?"]}, trace, "fails")], [FaithfulnessMetric("judge")])
    assert case.scores["faithfulness"].status == "error"
    assert case.scores["faithfulness"].result.detail["reason"] == "turn 2: down"


def test_a_rubric_is_held_against_the_whole_conversation() -> None:
    question = RubricMetric(criteria="It is polite.").question(Item({"id": "c", "turns": ["A?", "B?"]}, TRACE, "a lie"))
    assert question.question == "user: A?\nassistant: a truth\nuser: B?"
    assert question.answer == "a lie"


def test_a_function_gets_the_messages() -> None:
    def n_messages(messages: Any) -> float:
        return len(messages)

    metric = FunctionMetric(n_messages)
    assert metric.evaluate({"id": "c"}, TRACE, "a lie").value == 4
    assert metric.evaluate({"id": "c", "query": "A?"}, None, "a truth").value == 2


def test_no_metric_scores_a_case_whose_simulated_user_failed() -> None:
    trace = {**TRACE, "metadata": {"cost": 1, "simulated_user": {"kind": "judge", "failed": "HTTP 500"}}}
    run = score([({"id": "c", "turns": ["A?"], "expected_output": "x"}, trace, "x")], ["exact_match", "cost"])
    (case,) = run
    assert {each.result.detail["reason"] for each in case.scores.values()} == {"the simulated user failed: HTTP 500"}
    assert {each.status for each in case.scores.values()} == {"not_applicable"}
    assert run.summary().n_user_failed == 1


def test_turns_of_a_dataset_are_joined_to_a_recorded_conversation() -> None:
    recorded = Record(DatasetCase("c", "2 + 2?"), as_trace(talk(("2 + 2?", "4", []), ("Twice?", "9", []))), "9")
    turns = [{"query": "2 + 2?", "expected_output": "4"}, {"query": "Twice?", "expected_output": "8"}]
    assert ExpectedAnswers([DatasetCase("c", turns=turns)]).join(recorded)
    (case,) = score([recorded], ["exact_match"])
    assert case.scores["exact_match"].value == 0.5
