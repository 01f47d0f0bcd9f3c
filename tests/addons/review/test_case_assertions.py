from __future__ import annotations

import json
from typing import Any

import pytest

from agentunit.addons.review.case_assertions import AssertionsMetric, _json_within
from agentunit.core.case import DatasetCase
from agentunit.core.records import Outcome
from agentunit.core.trace import TraceEvent, TraceLog

TRACE = TraceLog(events=[TraceEvent("tool_call", {"name": "search"})], metadata={"cost": 0.01, "duration_s": 2.0})


def ask(outcome: Any, *assertions: Any, trace: TraceLog = TRACE) -> Any:
    return AssertionsMetric().evaluate(DatasetCase("q1", metadata={"assertions": list(assertions)}), trace, outcome)


@pytest.mark.parametrize(
    ("answer", "assertion"),
    [
        ("Paris", {"type": "equals", "value": "Paris"}),
        ('{"a": 1, "b": [2]}', {"type": "equals", "value": {"b": [2], "a": 1}}),
        ("in Paris", {"type": "contains", "value": "Paris"}),
        ("in PARIS", {"type": "icontains", "value": "paris"}),
        ("a b", {"type": "contains-all", "value": ["a", "b"]}),
        ("a", {"type": "contains-any", "value": ["a", "b"]}),
        ("A b", {"type": "icontains-all", "value": ["a", "B"]}),
        ("A", {"type": "icontains-any", "value": ["a", "b"]}),
        ("Paris is", {"type": "starts-with", "value": "Paris"}),
        ("order A-1", {"type": "regex", "value": "[A-Z]-[0-9]"}),
        ("[1]", {"type": "is-json"}),
        ('{"city": "Paris"}', {"type": "is-json", "value": {"required": ["city"]}}),
        ('so: {"x" {"city": "Paris"} ok', {"type": "contains-json", "value": {"required": ["city"]}}),
        ("one two", {"type": "word-count", "value": 2}),
        ("one two", {"type": "word-count", "value": {"min": 1, "max": 2}}),
        ("kitten", {"type": "levenshtein", "value": "sitting", "threshold": 3}),
        ("a" * 200_000, {"type": "levenshtein", "value": "a" * 200_000, "threshold": 0}),
        ("x", {"type": "tool-used", "value": "search"}),
        ("x", {"type": "cost", "threshold": 0.01}),
        ("x", {"type": "latency", "threshold": 2}),
    ],
)
def test_each_type_holds_and_its_opposite_does_not(answer: str, assertion: dict[str, Any]) -> None:
    assert ask(answer, assertion).value == 1.0
    assert ask(answer, {**assertion, "type": f"not-{assertion['type']}"}).value == 0.0


@pytest.mark.parametrize(
    ("answer", "assertion"),
    [
        ("paris", {"type": "equals", "value": "Paris"}),
        ("1", {"type": "equals", "value": True}),
        ("a", {"type": "contains-all", "value": ["a", "b"]}),
        ("c", {"type": "icontains-any", "value": ["a", "b"]}),
        ("is Paris", {"type": "starts-with", "value": "Paris"}),
        ("Paris", {"type": "is-json"}),
        ('{"town": 1}', {"type": "is-json", "value": {"required": ["city"]}}),
        ("{ } [", {"type": "contains-json", "value": {"type": "array"}}),
        ("one two three", {"type": "word-count", "value": {"max": 2}}),
        ("kitten", {"type": "levenshtein", "value": "sitting", "threshold": 2}),
        ("x", {"type": "tool-used", "value": ["search", "book"]}),
        ("x", {"type": "cost", "threshold": 0.009}),
        ("x", {"type": "latency", "threshold": 1.9}),
    ],
)
def test_what_does_not_hold_is_named(answer: str, assertion: dict[str, Any]) -> None:
    result = ask(answer, {"type": "not-equals", "value": "never"}, assertion)
    assert result.value == 0.0
    assert [each.split()[0] for each in result.detail["failed"]] == [assertion["type"]]
    assert result.detail["n_assertions"] == 2


def test_a_cost_that_nobody_recorded_is_unknown_unless_something_else_failed() -> None:
    cost = {"type": "cost", "threshold": 1}
    unknown = ask("x", cost, trace=TraceLog())
    assert unknown.value is None
    assert unknown.detail["reason"] == "not recorded: cost 1"
    assert ask("x", cost, {"type": "contains", "value": "y"}, trace=TraceLog()).value == 0.0


def test_no_answer_and_no_assertions_have_no_score() -> None:
    assert ask(Outcome(error="timeout"), {"type": "is-json"}).value is None
    assert "is missing" in ask("x").detail["reason"]


@pytest.mark.parametrize(
    ("assertion", "says"),
    [
        ({"type": "javascript", "value": "1"}, "type must be among"),
        ("contains x", "objects with a type"),
        ({"type": "contains", "value": ""}, "one or more texts"),
        ({"type": "regex", "value": "("}, "regular expression"),
        ({"type": "regex", "value": "(?=x)"}, "look-around"),
        ({"type": "is-json", "value": {"type": "colour"}}, "JSON Schema"),
        ({"type": "levenshtein", "value": "x"}, "threshold must be a number"),
        ({"type": "word-count", "value": {}}, "min and max"),
    ],
)
def test_what_cannot_be_checked_is_an_error_not_a_pass(assertion: Any, says: str) -> None:
    result = ask("1", assertion)
    assert result.value is None
    assert says in result.detail["reason"]
    assert result.detail["error"]


def test_a_text_full_of_brackets_is_not_read_again_from_each_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agentunit.addons.review.case_assertions._MOST_SEARCHED", 5_000)
    text = "[1," * 900 + "1," * 1_000
    starts: list[int] = []
    decode = json.JSONDecoder.raw_decode
    monkeypatch.setattr(
        json.JSONDecoder, "raw_decode", lambda self, text, start: (starts.append(start), decode(self, text, start))[1]
    )
    assert _json_within(text + "{}") == []
    assert len(starts) < 10
    assert _json_within('see { here: {"a": [1]} and [2]') == [{"a": [1]}, [2]]


def test_tools_without_usable_names_are_not_used_and_do_no_harm() -> None:
    trace = {"events": [{"type": "tool_call", "payload": {"name": name}} for name in ({"a": 1}, None, "search")]}
    case = {"id": "q1", "metadata": {"assertions": [{"type": "tool-used", "value": "search"}]}}
    assert AssertionsMetric().evaluate(case, trace, "x").value == 1.0
    case["metadata"]["assertions"] = [{"type": "tool-used", "value": [["search"]]}]
    assert "names of tools" in AssertionsMetric().evaluate(case, trace, "x").detail["reason"]
