from __future__ import annotations

from typing import Any

import pytest

from agentunit.core.case import DatasetCase
from agentunit.core.records import Outcome
from agentunit.core.trace import TraceEvent, TraceLog
from agentunit.metrics.builtin import (
    AnswerCorrectnessMetric,
    FaithfulnessMetric,
    HallucinationRateMetric,
    RetrievalQualityMetric,
    ToolSuccessMetric,
)

pytestmark = pytest.mark.usefixtures("no_backends_installed")


def context_case(*passages: str) -> DatasetCase:
    return DatasetCase("q1", "?", context=list(passages))


def retrieval(*documents: Any) -> TraceLog:
    trace = TraceLog()
    trace.record("retrieval", documents=list(documents))
    return trace


# The lexical fallback over context. Hallucination is all or nothing: 1.0 as soon as one passage is absent.
CONTEXT_TABLE = [
    # passages, answer, share found, hallucination rate
    (["Paris"], "It is Paris.", 1.0, 0.0),
    (["Paris"], "It is PARIS.", 1.0, 0.0),  # letters' case does not matter
    (["STRASSE"], "die straße", 1.0, 0.0),  # nor does the spelling that upper case forces
    (["Paris", "France"], "Paris is in France", 1.0, 0.0),
    (["Paris", "Rome"], "Paris", 0.5, 1.0),  # 1 of 2
    (["a1", "b2", "c3", "d4"], "a1 c3 d4", 0.75, 1.0),  # 3 of 4
    (["Paris"], "Rome", 0.0, 1.0),
    (["Paris", "Paris", "Rome"], "Paris", 2 / 3, 1.0),  # a passage given twice counts twice
    (["Paris"], "", 0.0, 1.0),  # an empty answer is an answer: it repeats nothing
    (["Paris", "", "  "], "Paris", 1.0, 0.0),  # blank passages say nothing
    (["Par is"], "Paris", 0.0, 1.0),
]


@pytest.mark.parametrize(("passages", "answer", "share", "rate"), CONTEXT_TABLE)
@pytest.mark.parametrize("as_outcome", [lambda text: text, lambda text: Outcome(output=text)])
def test_lexical_fallback_over_context(
    passages: list[str], answer: str, share: float, rate: float, as_outcome: Any
) -> None:
    case, outcome = context_case(*passages), as_outcome(answer)
    assert FaithfulnessMetric().evaluate(case, TraceLog(), outcome).value == share
    assert RetrievalQualityMetric().evaluate(case, TraceLog(), outcome).value == share
    assert HallucinationRateMetric().evaluate(case, TraceLog(), outcome).value == rate


CONTEXT_METRICS = [FaithfulnessMetric, RetrievalQualityMetric, HallucinationRateMetric]


@pytest.mark.parametrize("metric_class", CONTEXT_METRICS)
@pytest.mark.parametrize(
    ("case", "trace", "outcome", "named"),
    [
        (context_case(), TraceLog(), "Paris", "case.context"),
        (DatasetCase("q1"), TraceLog(), "Paris", "case.context"),
        (context_case("", " \n"), TraceLog(), "Paris", "case.context"),
        (DatasetCase("q1"), retrieval(), "Paris", "retrieval"),
        (context_case("Paris"), TraceLog(), None, "outcome.output"),
        (context_case("Paris"), TraceLog(), Outcome(), "outcome.output"),
        (context_case("Paris"), TraceLog(), object(), "outcome.output"),
    ],
)
def test_missing_context_or_answer(metric_class: Any, case: Any, trace: Any, outcome: Any, named: str) -> None:
    result = metric_class().evaluate(case, trace, outcome)
    assert result.value is None
    assert named in result.detail["reason"]
    assert "error" not in result.detail
    assert set(result.detail) >= {"answer", "references", "backend"}


@pytest.mark.parametrize("metric_class", CONTEXT_METRICS)
def test_detail_shows_answer_references_and_backend(metric_class: Any) -> None:
    result = metric_class().evaluate(context_case("Paris", "Rome"), TraceLog(), Outcome(output="Paris!"))
    why = '1 of 2 context texts are in the answer, word for word; not "Rome"'
    assert result.detail == {"answer": "Paris!", "references": ["Paris", "Rome"], "backend": "lexical", "why": why}


@pytest.mark.parametrize(
    ("documents", "references"),
    [
        (["Paris", "Rome"], ["Paris", "Rome"]),
        ([{"text": "Paris"}, {"content": "Rome"}, {"page_content": "Bern"}], ["Paris", "Rome", "Bern"]),
        ([{"text": "Paris", "content": "ignored"}], ["Paris"]),
        ([{"text": None, "page_content": "Paris"}], ["Paris"]),  # a serialiser that writes every field
        ([{"title": "no text"}, "Paris", "", None, 5], ["Paris"]),
    ],
)
def test_context_comes_from_retrieval_events_when_the_case_has_none(documents: Any, references: list[str]) -> None:
    result = FaithfulnessMetric().evaluate(DatasetCase("q1"), retrieval(*documents), "Paris")
    assert result.detail["references"] == references
    assert result.value == pytest.approx(1 / len(references))


def test_the_cases_own_context_wins_over_retrieval() -> None:
    result = FaithfulnessMetric().evaluate(context_case("Rome"), retrieval("Paris"), "Rome")
    assert (result.value, result.detail["references"]) == (1.0, ["Rome"])


def test_documents_of_all_retrieval_events_in_order_and_of_no_other_event() -> None:
    trace = TraceLog()
    trace.record("retrieval", documents=["one"])
    trace.record("tool_call", documents=["not me"])
    trace.record("retrieval", documents="two")
    trace.record("retrieval", documents={"text": "three"})
    trace.record("retrieval")
    assert FaithfulnessMetric().evaluate(None, trace, "x").detail["references"] == ["one", "two", "three"]


def test_a_single_context_string_is_one_passage() -> None:
    result = FaithfulnessMetric().evaluate({"id": "q1", "context": "Paris"}, None, "Paris")
    assert result.detail["references"] == ["Paris"]
    by_hand = FaithfulnessMetric().evaluate(DatasetCase("q1", context="Paris"), TraceLog(), "Paris")
    assert by_hand.detail["references"] == ["Paris"]


CORRECTNESS_TABLE = [
    # expected, outcome, value
    ("Paris", "Paris", 1.0),
    ("Paris", "  Paris\n", 1.0),
    (" Paris ", "Paris", 1.0),
    ("Paris", "paris", 0.0),  # trimming only: no case folding
    ("Paris", "Paris.", 0.0),
    ("Paris", "It is Paris", 0.0),
    ("", "", 1.0),
    (["4", "four"], "four", 1.0),  # several acceptable answers
    (["4", "four"], "4", 1.0),
    (["4", "four"], "five", 0.0),
    (4, "4", 1.0),
    (4, Outcome(output=4), 1.0),
    (True, Outcome(output=True), 1.0),
    (True, Outcome(output=1), 0.0),
    ({"city": "Paris"}, Outcome(output={"city": "Paris"}), 1.0),
    ({"city": "Paris"}, Outcome(output={"city": "Rome"}), 0.0),
    ({"a": 1, "b": 2}, Outcome(output={"b": 2, "a": 1}), 1.0),  # an object has no order
    ([1, 2], Outcome(output=[1, 2]), 1.0),
    ([1, 2], Outcome(output=[2, 1]), 0.0),
    ({"a": 1}, '{"a": 1.0}', 1.0),  # text that is the expected data
]


@pytest.mark.parametrize(("expected", "outcome", "value"), CORRECTNESS_TABLE)
def test_lexical_answer_correctness(expected: Any, outcome: Any, value: float) -> None:
    result = AnswerCorrectnessMetric().evaluate(DatasetCase("q1", expected_output=expected), TraceLog(), outcome)
    assert result.value == value
    assert result.detail["expected"] == expected
    assert result.detail["backend"] == "lexical"


@pytest.mark.parametrize(
    ("expected", "outcome", "named"),
    [
        (None, "Paris", "case.expected_output"),
        ("Paris", None, "outcome.output"),
        ("Paris", Outcome(), "outcome.output"),
    ],
)
def test_answer_correctness_without_an_input(expected: Any, outcome: Any, named: str) -> None:
    result = AnswerCorrectnessMetric().evaluate(DatasetCase("q1", expected_output=expected), TraceLog(), outcome)
    assert result.value is None
    assert named in result.detail["reason"]
    assert set(result.detail) >= {"expected", "answer", "backend"}


@pytest.mark.parametrize("metric_class", [*CONTEXT_METRICS, AnswerCorrectnessMetric])
def test_backend_must_be_a_name(metric_class: Any) -> None:
    with pytest.raises(ValueError, match=rf"{metric_class.__name__}: backend must be a name; received 5"):
        metric_class(backend=5)


def calls(*statuses: Any) -> TraceLog:
    payloads = [{"name": "t"} if status is ... else {"name": "t", "status": status} for status in statuses]
    return TraceLog(events=[TraceEvent("tool_call", payload) for payload in payloads])


TOOL_TABLE = [
    # trace, outcome, value, basis
    (calls("success"), None, 1.0, "tool_calls"),
    (calls("success", "error"), None, 0.5, "tool_calls"),
    (calls(*["success"] * 9, "error"), None, 0.9, "tool_calls"),
    (calls("success", ...), None, 0.5, "tool_calls"),  # without a status: in the total, not a success
    (calls(...), None, None, None),  # nothing is known about any call: not a failure
    (calls(..., None), Outcome(success=True), None, None),
    (calls("Success", "ok", True, None), None, 0.0, "tool_calls"),  # status == "success", nothing near it
    (calls("error"), Outcome(success=True), 0.0, "tool_calls"),  # the calls speak before the outcome
    (calls(), Outcome(success=True), 1.0, "outcome.success"),
    (calls(), Outcome(success=False), 0.0, "outcome.success"),
    (calls(), Outcome(), None, None),
    (calls(), "a string has no success flag", None, None),
    (calls(), None, None, None),
]


@pytest.mark.parametrize(("trace", "outcome", "value", "basis"), TOOL_TABLE)
def test_tool_success(trace: TraceLog, outcome: Any, value: float | None, basis: str | None) -> None:
    result = ToolSuccessMetric().evaluate(DatasetCase("q1"), trace, outcome)
    assert result.value == value
    assert result.detail["basis"] == basis
    assert result.detail["tool_calls"] == [event.payload for event in trace.events]
    assert ("reason" in result.detail) is (value is None)


@pytest.mark.parametrize(
    ("trace", "partial", "without_status", "why"),
    [
        (calls("success", "error"), False, [], "1 of 2 tool calls failed: t (error)"),
        (calls("success", ...), True, ["t"], "1 of 2 tool calls ended without a status: t"),
        (calls(..., "success", "error"), True, ["t"], "1 of 3 tool calls failed: t (error); 1 without a status"),
    ],
)
def test_calls_without_a_status_are_listed(trace: TraceLog, partial: bool, without_status: list[str], why: str) -> None:
    detail = ToolSuccessMetric().evaluate(DatasetCase("q1"), trace, None).detail
    assert (detail["partial"], detail["without_status"], detail["why"]) == (partial, without_status, why)


@pytest.mark.parametrize("name", ["finish", "submit", "attempt_completion", "final_answer"])
@pytest.mark.parametrize(
    ("before", "outcome", "status", "value"),
    [
        (calls("success"), "Done.", ..., 1.0),  # the answer was handed in
        (calls(), "Done.", ..., 1.0),
        (calls("success"), None, ..., 0.5),  # the run has no answer: nobody took it
        (calls("success"), "Done.", "error", 0.5),  # what is stated holds
        (calls(...), "Done.", ..., None),  # the answer says nothing about the other calls
        (calls("error", ...), "Done.", ..., 1 / 3),
    ],
)
def test_a_last_call_that_delivers_the_answer_is_the_answer(
    name: str, before: TraceLog, outcome: Any, status: Any, value: float | None
) -> None:
    payload = {"name": name} if status is ... else {"name": name, "status": status}
    trace = TraceLog(events=[*before.events, TraceEvent("tool_call", payload)])
    assert ToolSuccessMetric().evaluate(DatasetCase("q1"), trace, outcome).value == value
    # In the middle of a run it is a call like any other.
    trace.events.append(TraceEvent("tool_call", {"name": "search", "status": "success"}))
    in_the_middle = ToolSuccessMetric().evaluate(DatasetCase("q1"), trace, outcome)
    assert in_the_middle.detail["without_status"].count(name) == (status is ...)


def test_other_events_are_not_tool_calls() -> None:
    trace = calls("success")
    trace.record("llm_call", status="error")
    trace.record("tool_result", status="error")
    assert ToolSuccessMetric().evaluate(None, trace, None).value == 1.0


def test_an_empty_list_of_acceptable_answers_is_nothing_to_compare_with() -> None:
    result = AnswerCorrectnessMetric().evaluate({"id": "q1", "expected_output": []}, None, "[]")
    assert result.value is None
    assert "case.expected_output is missing" in result.detail["reason"]
