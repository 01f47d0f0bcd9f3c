"""Why a check failed, of what the metrics themselves say about real records."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from agentunit import DatasetCase, MetricResult, Outcome, Record, TraceEvent, TraceLog, score
from agentunit.core.results import Score
from agentunit.engine.deciding.case_findings import why_failed, why_not_answered
from agentunit.engine.recording.runner import plan_run, record
from agentunit.engine.recording.suite import Suite
from agentunit.metrics.assertions import ContainsMetric, ExactMatchMetric, RegexMetric
from agentunit.metrics.checks import TaskSuccessMetric
from agentunit.metrics.registry import resolve_metrics
from agentunit.store.sqlite import Store


def tried(answer: Any = "", events: Any = (), outcome: dict[str, Any] | None = None, **case: Any) -> Record:
    """A record as it is recorded."""
    fields = {"expected_output": case.pop("expected")} if "expected" in case else {}
    query = case.pop("query", None)
    return Record(
        DatasetCase("q1", query, metadata=case, **fields),
        TraceLog([TraceEvent(kind, payload) for kind, payload in events]),
        Outcome(output=answer, **(outcome or {})),
    )


def asserted(*assertions: Any, answer: Any = "Sorry.", **more: Any) -> Record:
    return tried(answer, assertions=list(assertions), **more)


def why(metric: Any, made: Record, needs: str = "1") -> str:
    (resolved,) = resolve_metrics(metric)
    (case,) = score([made], [resolved])
    (made_score,) = case.scores.values()
    assert made_score.value is not None, made_score
    return why_failed(made_score, needs)


def graded(answer):  # type: ignore[no-untyped-def]
    """A user's."""
    return 0.4


def flag(answer):  # type: ignore[no-untyped-def]
    """A user's."""
    return False


def zero(answer):  # type: ignore[no-untyped-def]
    """A user's."""
    return 0


def one(answer):  # type: ignore[no-untyped-def]
    """A user's, of which low values are good."""
    return 1


def explained(answer):  # type: ignore[no-untyped-def]
    """A user's."""
    return MetricResult("explained", 0.0, {"why": "the total\n is off by 3", "violations": ["not this one"]})


def reasoned(answer):  # type: ignore[no-untyped-def]
    """A user's."""
    return MetricResult("reasoned", 0.0, {"reason": "no greeting"})


LONG = "The warranty of the device that you bought covers parts and labor for two years from the day of delivery"
CITY = {"type": "object", "required": ["city"], "properties": {"city": {"type": "string"}}}


@pytest.mark.parametrize(
    ("metric", "made", "expected"),
    [
        (ContainsMetric("24 months"), tried("Two years."), 'missing: "24 months"'),
        (ContainsMetric(["24 months", "free", "you"]), tried("for you"), 'missing: "24 months", "free"'),
        (ContainsMetric(["a1", "b2"], mode="any"), tried("c3"), 'none of: "a1", "b2"'),
        (ContainsMetric(list("abcde")), tried("x"), 'missing: "a", "b", "c", …'),
        (ContainsMetric("24 months", name="warranty"), tried("Two years."), 'missing: "24 months"'),
        ("contains", tried("Room 12", contains="Room\n  36"), 'missing: "Room 36"'),
        ("exact_match", tried("Room 12", expected="Room 36"), '"Room 12", expected "Room 36"'),
        (ExactMatchMetric(name="same"), tried(" ", expected="Room 36"), '" ", expected "Room 36"'),
        ("exact_match", tried("x", expected=["a", "b"]), '"x", expected "a" or "b"'),
        ("exact_match", tried({"n": 1}, expected={"n": 2}), '"{"n":1}", expected "{"n":2}"'),
        ("exact_match", tried("no", expected=7), '"no", expected "7"'),
        (
            "exact_match",
            tried(LONG, expected=LONG.replace("two", "three")),
            '"The warranty of the device that you bought …", expected "The warranty of the device that you bought …"',
        ),
        (RegexMetric(r"[A-Z]-\d{4}"), tried("no number"), r"no match of /[A-Z]-\d{4}/"),
        ("regex", tried("no", regex="^yes$"), "no match of /^yes$/"),
        ("json_schema", tried('{"town": "Oslo"}', json_schema=CITY), "$: 'city' is a required property"),
        ("json_schema", tried({"city": 3}, json_schema=CITY), "$.city: 3 is not of type 'string'"),
        (
            "json_schema",
            tried("Oslo", json_schema=CITY),
            "$ is not JSON (JSON is malformed: invalid character (byte 0))",
        ),
        (
            "assertions",
            asserted({"type": "not-contains", "value": "Sorry"}, {"type": "contains", "value": "Oslo"}),
            "failed: not-contains 'Sorry'; received \"Sorry.\"",
        ),
        (
            "assertions",
            asserted({"type": "word-count", "value": {"min": 3}}),
            "failed: word-count {'min': 3}; received 1 word",
        ),
        (
            "assertions",
            asserted({"type": "tool-used", "value": "refund"}, events=[("tool_call", {"name": "track"})]),
            "failed: tool-used 'refund'; received calls of \"track\"",
        ),
        (
            "assertions",
            asserted({"type": "tool-used", "value": "refund"}),
            "failed: tool-used 'refund'; received no tool calls",
        ),
        (
            "assertions",
            asserted({"type": "cost", "threshold": 0.01}, outcome={"cost": 0.25}),
            "failed: cost 0.01; received 0.25",
        ),
        (
            "assertions",
            asserted({"type": "latency", "threshold": 1}, outcome={"elapsed_s": 3.0}),
            "failed: latency 1; received 3",
        ),
        (
            "task_success",
            tried("Done.", expected_state={"order": {"status": "returned"}}, outcome={"state": {"order": {}}}),
            "order.status is missing, expected 'returned'",
        ),
        ("task_success", tried("Done.", outcome={"success": False}), "the agent says that it failed"),
        (
            "task_success",
            tried("Done.", outcome={"success": False, "error": "no seat left"}),
            "the agent says that it failed: no seat left",
        ),
        (
            TaskSuccessMetric(check=lambda output: (False, "no refund")),
            tried("Done."),
            "the check failed: no refund",
        ),
        (TaskSuccessMetric(check=zero), tried("Done."), "check zero failed"),
        (
            "consent_compliance",
            tried("In Oslo it rains.", consent={"location": False}, user_data={"location": "Oslo"}),
            "used without consent: output repeats location from case.metadata",
        ),
        ("pii_leakage", tried("Write to jane.doe@example.com."), "email j***@***.com in output"),
        (
            "pii_leakage",
            tried(
                "Done.",
                events=[
                    ("tool_call", {"name": "mail", "arguments": {"to": "bob.roe@example.com"}}),
                    ("message", {"role": "assistant", "content": "I wrote to jane.doe@example.com"}),
                ],
            ),
            "email j***@***.com in agent message 1",
        ),
        (flag, tried("x"), "returned False"),
        (zero, tried("x"), "returned 0"),
        (one, tried("x"), "returned 1"),
        (graded, tried("x"), "returned 0.4, needs 1"),
        (explained, tried("x"), "the total is off by 3"),
        (reasoned, tried("x"), "no greeting"),
    ],
)
def test_why_a_check_failed(metric: Any, made: Record, expected: str) -> None:
    assert why(metric, made) == expected


@pytest.mark.parametrize(
    ("metric", "made", "needs", "expected"),
    [
        (graded, tried("x"), ">= 0.5", "returned 0.4, needs >= 0.5"),
        (
            "cost",
            tried("x", outcome={"cost": 0.0249}),
            "<= 0.02",
            "0.0249 USD, recorded in outcome.cost, needs <= 0.02",
        ),
        (
            "cost",
            tried("x", outcome={"cost": 0.0200004}),
            "<= 0.02",
            "0.0200004 USD, recorded in outcome.cost, needs <= 0.02",
        ),
        (
            "token_usage",
            tried("x", outcome={"usage": {"total_tokens": 12345}}),
            "<= 9000",
            "12,345 tokens, recorded in outcome.usage (12345, needs <= 9000)",
        ),
        ("contains", tried("Two years.", contains="24 months"), "1 and >= 0.5", 'missing: "24 months"'),
        (
            "tool_success",
            tried("x", events=[("tool_call", {"name": "a", "status": "error"})]),
            ">= 1",
            "the tool call failed: a (error)",
        ),
    ],
)
def test_what_a_gate_needs_is_said_beside_a_value_between_the_ends(
    metric: Any, made: Record, needs: str, expected: str
) -> None:
    assert why(metric, made, needs) == expected


def test_the_turn_of_a_conversation_that_failed_is_named() -> None:
    said = [("user", "2 + 2?"), ("assistant", "4"), ("user", "And 3 more?"), ("assistant", "8")]
    events = [TraceEvent("message", {"role": role, "content": text}) for role, text in said]
    turns: list[Any] = [
        {"query": "2 + 2?", "expected_output": "4"},
        {"query": "And 3 more?", "expected_output": "7"},
    ]
    made = Record(DatasetCase("q1", turns=turns), TraceLog(events), Outcome(output="8"))
    assert why("exact_match", made) == 'turn 2: "8", expected "7"'


@pytest.mark.parametrize(
    "made",
    [
        tried("x " * 5000, contains=["y " * 5000, "z" * 5000], expected="w " * 5000, regex="a" * 900),
        tried("\n\t\x00\u2028é" * 300, contains="“" * 300, expected="é\n" * 300, regex="[\n]{3,5}q"),
    ],
)
@pytest.mark.parametrize("metric", ["contains", "exact_match", "regex"])
def test_it_is_one_line_of_at_most_120_characters(metric: str, made: Record) -> None:
    said = why(metric, made)
    assert 0 < len(said) <= 120
    assert said == " ".join(said.split())


@pytest.mark.parametrize(
    "detail",
    [
        {},
        {"missing": "x", "mode": "all"},
        {"violations": [3], "findings": {}, "failed": None, "n_assertions": 1, "basis": 3, "why": 5},
        {"turns": 3},
        {"turns": [None, {"value": "0"}]},
        {"expected": None, "answer": None, "backend": "check"},
        {"findings": [None, {"scored": True}], "violations": [{}]},
    ],
    ids=repr,
)
def test_details_of_any_shape_have_a_sentence(detail: dict[str, Any]) -> None:
    # They may come from somebody's file.
    assert 0 < len(why_failed(Score(MetricResult("mine", 0.0, detail), "ok", "custom", "1"), "1")) <= 120


def stops(query: str) -> str:
    raise ValueError("no such\ncity: " + query)


def sleeps(query: str) -> str:
    import time

    time.sleep(30)
    return "late"


@pytest.mark.parametrize(
    ("agent", "timeout_s", "beginning"),
    [(stops, None, "ValueError: no such city: Oslo (tests/"), (sleeps, 0.2, "timeout: no answer within 0.2 s")],
)
def test_why_the_agent_did_not_answer(
    tmp_path: Any, agent: Callable[[str], str], timeout_s: float | None, beginning: str
) -> None:
    suite = Suite([{"id": "q1", "query": "Oslo"}], agent, metrics=["exact_match"], timeout_s=timeout_s)
    with Store(tmp_path / "runs.db") as store:
        plan = plan_run(suite, store)
        record(plan, store)
        (stored,) = store.records(plan.header.id)
    said = why_not_answered(stored.record)
    assert said.startswith(beginning)
    assert len(said) <= 120


@pytest.mark.parametrize(
    ("outcome", "expected"),
    [
        (Outcome(error="Traceback (most recent call last):\n  File …\nKeyError: 'city'\n"), "KeyError: 'city'"),
        (Outcome(success=False), "the agent failed and left no message"),
        (Outcome(error=" \n "), "the agent failed and left no message"),
        (None, "the agent failed and left no message"),
        ("text", "the agent failed and left no message"),
    ],
)
def test_an_error_is_told_in_its_last_line(outcome: Any, expected: str) -> None:
    assert why_not_answered(Record(DatasetCase("q1"), outcome=outcome)) == expected
