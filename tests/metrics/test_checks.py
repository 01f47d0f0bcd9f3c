from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import pytest

from agentunit.core.case import DatasetCase
from agentunit.core.records import Outcome
from agentunit.core.trace import TraceLog
from agentunit.metrics.checks import TaskSuccessMetric


def case_with(**metadata: Any) -> DatasetCase:
    return DatasetCase("q1", "Where?", expected_output="Paris", metadata=metadata)


def ask(metric: TaskSuccessMetric, case: DatasetCase | None = None, outcome: Any = None) -> Any:
    return metric.evaluate(case or case_with(), TraceLog(), outcome)


def passes(output: Any) -> bool:
    return True


def fails(output: Any) -> bool:
    return False


# The best evidence a case has decides: its own check, the check for all, the state, the flag.
EVERYTHING = Outcome(success=False, output="Paris", state={"order": "open"})


@pytest.mark.parametrize(
    ("metric", "metadata", "outcome", "value", "backend", "basis"),
    [
        (TaskSuccessMetric(check=fails), {"check": passes, "expected_state": {}}, EVERYTHING, 1.0, "check", "passes"),
        (
            TaskSuccessMetric(check=fails, checks={"own": passes}),
            {"check": "own"},
            EVERYTHING,
            1.0,
            "check",
            "passes",
        ),
        (TaskSuccessMetric(check=fails), {"expected_state": {"order": "open"}}, EVERYTHING, 0.0, "check", "fails"),
        (TaskSuccessMetric(), {"expected_state": {"order": "open"}}, EVERYTHING, 1.0, "state", "expected_state"),
        (TaskSuccessMetric(), {"expected_state": {"order": "sent"}}, EVERYTHING, 0.0, "state", "expected_state"),
        (TaskSuccessMetric(), {"expected_state": {}}, EVERYTHING, 1.0, "state", "expected_state"),
        (TaskSuccessMetric(), {}, EVERYTHING, 0.0, "outcome", "outcome.success"),
        (TaskSuccessMetric(), {}, Outcome(success=True), 1.0, "outcome", "outcome.success"),
    ],
)
def test_evidence_in_order(
    metric: TaskSuccessMetric, metadata: Any, outcome: Any, value: float, backend: str, basis: str
) -> None:
    result = ask(metric, case_with(**metadata), outcome)
    assert (result.value, result.detail["backend"], result.detail["basis"]) == (value, backend, basis)


@pytest.mark.parametrize("outcome", [None, "Paris", Outcome(), Outcome(output="Paris"), 5])
def test_no_evidence_is_none_with_a_reason(outcome: Any) -> None:
    result = ask(TaskSuccessMetric(), outcome=outcome)
    assert result.value is None
    assert "outcome.success" in result.detail["reason"]
    assert "error" not in result.detail


def test_an_expected_state_without_a_state_is_not_judged_by_the_flag() -> None:
    result = ask(TaskSuccessMetric(), case_with(expected_state={"a": 1}), Outcome(success=True))
    assert result.value is None
    assert "outcome.state" in result.detail["reason"]


def test_state_differences_are_told() -> None:
    expected = {"order": {"status": "sent", "paid": True}, "stock": 3}
    outcome = Outcome(state={"order": {"status": "open", "paid": 1}, "users": []})
    why = ask(TaskSuccessMetric(), case_with(expected_state=expected), outcome).detail["why"]
    assert "order.status is 'open', expected 'sent'" in why
    assert "order.paid is 1, expected True" in why
    assert "stock is missing, expected 3" in why


def test_the_outcomes_error_says_why_it_failed() -> None:
    result = ask(TaskSuccessMetric(), outcome=Outcome(success=False, error="timeout"))
    assert result.detail["why"] == "the agent says that it failed: timeout"
    error = "Traceback (most recent call last):\n  File \"agent.py\", line 3, in run\nKeyError: 'city'\n"
    result = ask(TaskSuccessMetric(), outcome=Outcome(success=False, error=error))
    assert result.detail["why"] == "the agent says that it failed: KeyError: 'city'"


# What a check may return.


@pytest.mark.parametrize(
    ("verdict", "value", "why"),
    [
        (True, 1.0, "the check passed"),
        (False, 0.0, "the check failed"),
        (1, 1.0, "the check passed"),
        (0, 0.0, "the check failed"),
        (0.25, 0.25, "the check gave 0.25"),
        ((True, "all found"), 1.0, "the check passed: all found"),
        ((0.5, None), 0.5, "the check gave 0.5"),
        ((False, ["a", "b"]), 0.0, "the check failed: ['a', 'b']"),
    ],
)
def test_verdicts(verdict: Any, value: float, why: str) -> None:
    result = ask(TaskSuccessMetric(check=lambda output: verdict))
    assert (result.value, result.detail["why"]) == (value, why)
    assert type(result.value) is float


@pytest.mark.parametrize("verdict", [None, "yes", 2, -0.1, float("nan"), float("inf"), (), (1, 2, 3), {"ok": True}])
def test_a_verdict_that_is_none_raises_a_sentence(verdict: Any) -> None:
    with pytest.raises(ValueError, match="a check must return a bool or a number from 0 to 1; received"):
        ask(TaskSuccessMetric(check=lambda output: verdict))


# What a check is given.


def test_parameters_are_filled_by_name() -> None:
    seen: dict[str, Any] = {}

    def check(output: Any, outcome: Any, case: Any, trace: Any, state: Any, query: Any, expected: Any) -> bool:
        seen.update(locals())
        return True

    case, trace, outcome = case_with(), TraceLog(), Outcome(output="Rome", state={"a": 1})
    TaskSuccessMetric(check=check).evaluate(case, trace, outcome)
    seen.pop("seen")
    assert seen == {
        "output": "Rome",
        "outcome": outcome,
        "case": case,
        "trace": trace,
        "state": {"a": 1},
        "query": "Where?",
        "expected": "Paris",
    }


def test_a_single_parameter_of_any_other_name_gets_the_output() -> None:
    assert ask(TaskSuccessMetric(check=lambda whatever: whatever == "Paris"), outcome="Paris").value == 1.0
    assert ask(TaskSuccessMetric(check=lambda x: x == {"a": 1}), outcome=Outcome(output={"a": 1})).value == 1.0


def test_a_single_parameter_of_a_known_name_gets_that() -> None:
    assert ask(TaskSuccessMetric(check=lambda query: query == "Where?"), outcome="x").value == 1.0


def test_a_known_parameter_is_filled_although_it_has_a_default() -> None:
    def check(output: str = "") -> bool:
        return output == "Paris"

    assert ask(TaskSuccessMetric(check=check), outcome="Paris").value == 1.0


def test_the_output_under_a_name_of_ones_own_beside_a_known_parameter() -> None:
    def check(text: str, expected: str | None = None) -> bool:
        return text == expected

    assert ask(TaskSuccessMetric(check=check), outcome="Paris").value == 1.0


def test_own_parameters_with_defaults_are_left_alone() -> None:
    def check(output: str, tolerance: float = 0.5, *rest: Any, **more: Any) -> float:
        return tolerance

    assert ask(TaskSuccessMetric(check=check), outcome="Paris").value == 0.5


def test_a_positional_only_parameter_is_filled() -> None:
    def check(output: str, /) -> bool:
        return output == "Paris"

    assert ask(TaskSuccessMetric(check=check), outcome="Paris").value == 1.0


def test_two_unknown_parameters_are_refused_by_name() -> None:
    with pytest.raises(TypeError, match=r"a check's parameters must be among .*; received 'mood'"):
        ask(TaskSuccessMetric(check=lambda output, mood: True))


class Keyword:
    def __init__(self, word: str) -> None:
        self.word = word

    def __call__(self, output: str) -> bool:
        return self.word in output

    def method(self, output: str) -> bool:
        return self.word in output


@dataclass
class KeywordData:
    """A dataclass compares by value and so has no hash, as many people's checks do."""

    word: str

    def __call__(self, output: str) -> bool:
        return self.word in output


@pytest.mark.parametrize(
    "check",
    [Keyword("Par"), Keyword("Par").method, KeywordData("Par"), partial(lambda word, output: word in output, "Par")],
    ids=["object", "method", "dataclass", "partial"],
)
def test_any_callable_is_a_check(check: Any) -> None:
    result = ask(TaskSuccessMetric(check=check), outcome="Paris")
    assert result.value == 1.0
    assert isinstance(result.detail["basis"], str)
    assert ask(TaskSuccessMetric(), case_with(check=check), "Rome").value == 0.0


def test_an_exception_in_a_check_is_the_users_and_comes_through() -> None:
    with pytest.raises(ZeroDivisionError):
        ask(TaskSuccessMetric(check=lambda output: 1 / 0))


@pytest.mark.parametrize("named", ["other", 5, ["own"], {}])
def test_an_unknown_check_name_lists_the_known(named: Any) -> None:
    result = ask(TaskSuccessMetric(check=passes, checks={"own": passes}), case_with(check=named))
    assert result.value is None
    assert "known: own" in result.detail["reason"]
    assert result.detail["error"]["type"] == "InputProblem"


@pytest.mark.parametrize(
    ("arguments", "parameter"), [({"check": "own"}, "check"), ({"checks": {"own": 5}}, r"checks\['own'\]")]
)
def test_what_is_no_function_is_refused_at_construction(arguments: Any, parameter: str) -> None:
    with pytest.raises(ValueError, match=rf"TaskSuccessMetric: {parameter} must be callable; received"):
        TaskSuccessMetric(**arguments)
