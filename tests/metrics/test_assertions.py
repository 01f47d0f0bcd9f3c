from __future__ import annotations

import re
from typing import Any

import pytest

from agentunit.core.case import DatasetCase
from agentunit.core.records import Outcome
from agentunit.core.trace import TraceLog
from agentunit.metrics.assertions import ContainsMetric, ExactMatchMetric, JsonSchemaMetric, RegexMetric


def ask(metric: Any, outcome: Any, expected: Any = None, **metadata: Any) -> Any:
    return metric.evaluate(DatasetCase("q1", expected_output=expected, metadata=metadata), TraceLog(), outcome)


# contains


@pytest.mark.parametrize(
    ("metric", "answer", "value", "missing"),
    [
        (ContainsMetric("refund"), "a refund", 1.0, []),
        (ContainsMetric(["refund", "5 days"]), "refund in 5 days", 1.0, []),
        (ContainsMetric(("refund", "5 days")), "refund", 0.0, ["5 days"]),
        (ContainsMetric(["refund", "5 days"], mode="any"), "refund", 1.0, ["5 days"]),
        (ContainsMetric(["refund", "5 days"], mode="any"), "no", 0.0, ["refund", "5 days"]),
        (ContainsMetric("Refund"), "a refund", 0.0, ["Refund"]),
        (ContainsMetric("Refund", ignore_case=True), "a REFUND", 1.0, []),
        (ContainsMetric("STRASSE", ignore_case=True), "straße", 1.0, []),
        (ContainsMetric("x"), "", 0.0, ["x"]),
        (ContainsMetric('"city":"Paris"'), {"output": {"city": "Paris"}}, 1.0, []),
    ],
)
def test_contains(metric: ContainsMetric, answer: Any, value: float, missing: list[str]) -> None:
    result = ask(metric, answer)
    assert result.value == value
    assert result.detail["missing"] == missing
    assert result.detail["mode"] == metric.mode
    assert result.detail["backend"] == "check"


def test_contains_of_the_case_and_the_parameter_before_it() -> None:
    assert ask(ContainsMetric(), "Paris", contains=["Paris"]).value == 1.0
    assert ask(ContainsMetric(), "Paris", contains="Rome").value == 0.0
    assert ask(ContainsMetric("Paris"), "Paris", contains="Rome").value == 1.0


@pytest.mark.parametrize("bad", [5, [5], [], {}, ["a", None]])
def test_contains_refuses_what_is_no_text(bad: Any) -> None:
    with pytest.raises(ValueError, match="ContainsMetric: values must be one or more texts; received"):
        ContainsMetric(bad)
    result = ask(ContainsMetric(), "Paris", contains=bad)
    assert result.value is None
    assert "case.metadata['contains']" in result.detail["reason"]
    assert result.detail["error"]["type"] == "InputProblem"


def test_contains_mode_is_checked() -> None:
    with pytest.raises(ValueError, match="ContainsMetric: mode must be all or any; received 'some'"):
        ContainsMetric("x", mode="some")


# regex


@pytest.mark.parametrize(
    ("metric", "answer", "value", "matched"),
    [
        (RegexMetric(r"[A-Z]-\d{4}"), "Order A-1042.", 1.0, "A-1042"),
        (RegexMetric(r"[A-Z]-\d{4}"), "Order a-1042.", 0.0, None),
        (RegexMetric(r"[A-Z]-\d{4}", ignore_case=True), "Order a-1042.", 1.0, "a-1042"),
        (RegexMetric(r"\d+", full_match=True), "1042", 1.0, "1042"),
        (RegexMetric(r"\d+", full_match=True), "1042!", 0.0, None),
        (RegexMetric(r"a|ab", full_match=True), "ab", 1.0, "ab"),
        (RegexMetric(r""), "anything", 1.0, ""),
        (RegexMetric(r"^b$"), "a\nb", 0.0, None),
        (RegexMetric(r"(?m)^b$"), "a\nb", 1.0, "b"),
    ],
)
def test_regex(metric: RegexMetric, answer: str, value: float, matched: str | None) -> None:
    result = ask(metric, answer)
    assert (result.value, result.detail["matched"]) == (value, matched)
    assert result.detail["pattern"] == metric.pattern


def test_regex_of_the_case_and_the_parameter_before_it() -> None:
    assert ask(RegexMetric(), "Paris", regex="^P").value == 1.0
    assert ask(RegexMetric("^P"), "Paris", regex="^R").value == 1.0


# A group that never closes, a nonsense type, a repetition the engine cannot count, nesting it cannot follow.
UNUSABLE_PATTERNS = ["(", "[", "*", 5, "a{99999999999}", "(" * 5000 + ")" * 5000, b"bytes"]


@pytest.mark.parametrize("bad", UNUSABLE_PATTERNS, ids=lambda bad: repr(bad)[:20])
def test_an_unusable_pattern_is_refused(bad: Any) -> None:
    with pytest.raises(ValueError, match="RegexMetric: pattern must be a regular expression"):
        RegexMetric(bad)


@pytest.mark.parametrize("bad", ["(", "[", "*", 5, b"bytes", "(?=look)", ["a"], {}], ids=lambda bad: repr(bad)[:20])
def test_an_unusable_pattern_of_a_case_is_an_error_that_names_its_place(bad: Any) -> None:
    result = ask(RegexMetric(), "Paris", regex=bad)
    assert result.value is None
    assert "case.metadata['regex']" in result.detail["reason"]
    assert result.detail["error"]["type"] == "InputProblem"


# json_schema

CITY = {"type": "object", "required": ["city"], "properties": {"city": {"type": "string"}}}


@pytest.mark.parametrize(
    ("outcome", "value"),
    [
        ('{"city": "Paris"}', 1.0),
        (' \n{"city": "Paris"}\n ', 1.0),
        ('{"city": 5}', 0.0),
        ("{}", 0.0),
        ("Paris", 0.0),  # not JSON
        ('The answer: {"city": "Paris"}', 0.0),  # JSON and nothing else
        ("", 0.0),
        ('{"city": "Paris"', 0.0),
        ('"' + "\ud800" + '"', 0.0),
        (Outcome(output={"city": "Paris"}), 1.0),
        (Outcome(output={"city": 5}), 0.0),
        (Outcome(output=[1]), 0.0),
        ([1], 0.0),
    ],
    ids=lambda value: repr(value)[:40].encode("ascii", "replace").decode(),
)
def test_json_schema(outcome: Any, value: float) -> None:
    result = ask(JsonSchemaMetric(CITY), outcome)
    assert result.value == value
    assert bool(result.detail["violations"]) is (value == 0.0)
    assert ask(JsonSchemaMetric(), outcome, json_schema=CITY).value == value


def test_json_schema_violations_name_the_place() -> None:
    violations = ask(JsonSchemaMetric(CITY), '{"city": 5}').detail["violations"]
    assert len(violations) == 1
    assert violations[0].startswith("$.city")


@pytest.mark.parametrize("schema", [True, {}])
def test_json_schemas_that_everything_satisfies(schema: Any) -> None:
    assert ask(JsonSchemaMetric(schema), "[1, 2]").value == 1.0


def test_the_schema_false_refuses_everything() -> None:
    assert ask(JsonSchemaMetric(False), "[1, 2]").value == 0.0


@pytest.mark.parametrize("bad", [{"type": "colour"}, 5, ["a"]])
def test_an_unusable_schema(bad: Any) -> None:
    with pytest.raises(ValueError, match="JsonSchemaMetric: "):
        JsonSchemaMetric(bad)
    result = ask(JsonSchemaMetric(), "{}", json_schema=bad)
    assert result.value is None
    assert "case.metadata['json_schema']" in result.detail["reason"]


# exact_match


@pytest.mark.parametrize(
    ("metric", "expected", "answer", "value"),
    [
        (ExactMatchMetric(), "Paris", " Paris\n", 1.0),
        (ExactMatchMetric(strip=False), "Paris", " Paris", 0.0),
        (ExactMatchMetric(strip=False), "Paris", "Paris", 1.0),
        (ExactMatchMetric(), "Paris", "paris", 0.0),
        (ExactMatchMetric(ignore_case=True), "Paris", "pARIS", 1.0),
        (ExactMatchMetric(), "Paris", "Paris.", 0.0),
        (ExactMatchMetric(ignore_punctuation=True), "Paris!", "'Paris'.", 1.0),
        (ExactMatchMetric(ignore_punctuation=True), "Paris", "Paris .", 1.0),  # what is left is trimmed
        (ExactMatchMetric(ignore_punctuation=True, ignore_case=True), "it's", "ITS", 1.0),
        (ExactMatchMetric(), ["4", "four"], "four", 1.0),
        (ExactMatchMetric(), ["4", "four"], "five", 0.0),
        (ExactMatchMetric(), 4, "4", 1.0),
        (ExactMatchMetric(), {"a": 1, "b": 2}, Outcome(output={"b": 2, "a": 1}), 1.0),
        (ExactMatchMetric(), "", "", 1.0),
    ],
)
def test_exact_match(metric: ExactMatchMetric, expected: Any, answer: Any, value: float) -> None:
    result = ask(metric, answer, expected)
    assert result.value == value
    assert result.detail["expected"] == expected


# What the four share.


@pytest.mark.parametrize(
    "metric", [ContainsMetric("x"), RegexMetric("x"), JsonSchemaMetric(True), ExactMatchMetric()], ids=lambda m: m.name
)
@pytest.mark.parametrize("outcome", [None, Outcome(), object()], ids=["None", "no output", "object"])
def test_no_answer_is_none_with_a_reason(metric: Any, outcome: Any) -> None:
    result = ask(metric, outcome, "x")
    assert result.value is None
    assert "outcome.output" in result.detail["reason"]
    assert "error" not in result.detail
    assert set(result.detail) >= set(metric.info.detail_keys)


@pytest.mark.parametrize("metric_class", [ContainsMetric, RegexMetric, JsonSchemaMetric])
def test_nothing_to_look_for_is_none_with_a_reason(metric_class: Any) -> None:
    metric = metric_class()
    result = ask(metric, "Paris")
    assert result.value is None
    assert re.search(rf"case\.metadata\['{metric.name}'\]", result.detail["reason"])


@pytest.mark.parametrize(
    ("metric", "wanted"),
    [
        (ContainsMetric(name="city"), "Paris"),
        (RegexMetric(name="city"), "Paris"),
        (JsonSchemaMetric(name="city"), {"type": "string"}),
    ],
)
def test_a_name_of_its_own_is_read_in_the_case_and_given_to_the_result(metric: Any, wanted: Any) -> None:
    result = ask(metric, '"Paris"', city=wanted)
    assert (result.name, result.value) == ("city", 1.0)
    assert ask(metric, '"Paris"').name == "city"
    assert "case.metadata['city']" in ask(metric, '"Paris"').detail["reason"]


@pytest.mark.parametrize("values", ["", [""], ["refund", ""], [], [5]])
def test_a_text_that_every_answer_contains_is_refused(values: Any) -> None:
    with pytest.raises(ValueError, match="ContainsMetric: values must be one or more texts"):
        ContainsMetric(values)
    result = ContainsMetric().evaluate({"id": "q1", "metadata": {"contains": values}}, None, "A refund.")
    assert (result.value, result.detail["error"]["type"]) == (None, "InputProblem")
