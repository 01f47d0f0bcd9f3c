from __future__ import annotations

from typing import Any

import pytest

from agentunit.core.case import DatasetCase
from agentunit.core.trace import TraceEvent, TraceLog
from agentunit.metrics.trajectory import ToolTrajectoryMetric


def ask(metric: ToolTrajectoryMetric, expected: Any, made: list[Any]) -> Any:
    payloads = [{"name": call} if isinstance(call, str) else call for call in made]
    trace = TraceLog([TraceEvent("tool_call", payload) for payload in payloads])
    case = DatasetCase("q1", metadata={} if expected is ... else {"expected_tool_calls": expected})
    return metric.evaluate(case, trace, "done")


def find(**arguments: Any) -> dict[str, Any]:
    return {"name": "find", "arguments": arguments}


ORDERED, UNORDERED, STRICT = (ToolTrajectoryMetric(mode=mode) for mode in ("ordered", "unordered", "strict"))
SUBSET, IGNORE = (ToolTrajectoryMetric(arguments=rule) for rule in ("subset", "ignore"))

TABLE = [
    # metric, expected, made, matched, precision, recall, F1 = 2m / (e + a)
    (ORDERED, ["a", "b"], ["a", "b"], 2, 1.0, 1.0, 1.0),
    (ORDERED, ["a", "b"], ["a"], 1, 1.0, 0.5, 2 / 3),
    (ORDERED, ["a", "b"], ["a", "x", "b"], 2, 2 / 3, 1.0, 4 / 5),
    (ORDERED, ["a", "b"], ["b", "a"], 1, 0.5, 0.5, 0.5),
    (UNORDERED, ["a", "b"], ["b", "a"], 2, 1.0, 1.0, 1.0),
    (UNORDERED, ["a"], ["a", "a"], 1, 0.5, 1.0, 2 / 3),  # an expected call is answered once
    (STRICT, ["a", "b"], ["a", "b"], 2, 1.0, 1.0, 1.0),
    (STRICT, ["a", "b"], ["x", "a", "b"], 0, 0.0, 0.0, 0.0),
    (STRICT, ["a", "b"], ["a", "x", "b"], 1, 1 / 3, 0.5, 2 / 5),
    (ORDERED, ["a"], [], 0, None, 0.0, 0.0),
    (ORDERED, [], ["a"], 0, 0.0, None, 0.0),  # a call where none was wanted
    (ORDERED, [], [], 0, None, None, 1.0),
    (ORDERED, [find(id=1)], [find(id=1)], 1, 1.0, 1.0, 1.0),
    (ORDERED, [find(id=1)], [find(id=2)], 0, 0.0, 0.0, 0.0),
    (ORDERED, [find(id=1)], [find(id=1, limit=5)], 0, 0.0, 0.0, 0.0),
    (SUBSET, [find(id=1)], [find(id=1, limit=5)], 1, 1.0, 1.0, 1.0),
    (SUBSET, [find(id=1, limit=5)], [find(id=1)], 0, 0.0, 0.0, 0.0),
    (IGNORE, [find(id=1)], [find(id=2)], 1, 1.0, 1.0, 1.0),
    (ORDERED, ["find"], [find(id=2)], 1, 1.0, 1.0, 1.0),  # no arguments stated: any will do
    (ORDERED, [{"name": "find"}], [find(id=2)], 1, 1.0, 1.0, 1.0),
    (ORDERED, [{"name": "find", "arguments": None}], [find(id=2)], 1, 1.0, 1.0, 1.0),
    (ORDERED, [find()], [find(id=2)], 0, 0.0, 0.0, 0.0),  # no arguments, stated
    (ORDERED, [find()], ["find"], 1, 1.0, 1.0, 1.0),
    (ORDERED, [find(id=1)], [{"name": "find", "arguments": '{"id": 1}'}], 1, 1.0, 1.0, 1.0),  # JSON text
    (ORDERED, [{"name": "find", "arguments": '{"id": 1}'}], [find(id=1)], 1, 1.0, 1.0, 1.0),
    (ORDERED, [find()], [{"name": "find", "arguments": "{}"}], 1, 1.0, 1.0, 1.0),
    (ORDERED, [find()], [{"name": "find", "arguments": ""}], 1, 1.0, 1.0, 1.0),  # as streams end for a tool without any
    (ORDERED, [find(a=1, b=2)], [find(b=2, a=1)], 1, 1.0, 1.0, 1.0),
    (ORDERED, [find(id=1)], [find(id=True)], 0, 0.0, 0.0, 0.0),
    (ORDERED, [find(id=1)], [find(id=1.0)], 1, 1.0, 1.0, 1.0),
    (ORDERED, [find(id=1)], [find(id="1")], 0, 0.0, 0.0, 0.0),
    (ORDERED, [{"name": "find", "arguments": "not JSON"}], [{"name": "find", "arguments": "not JSON"}], 1, 1, 1, 1.0),
    (ORDERED, [{"name": "find", "arguments": "not JSON"}], [{"name": "find", "arguments": "others"}], 0, 0.0, 0.0, 0.0),
    (ORDERED, ["None"], [{}], 0, 0.0, 0.0, 0.0),  # a call without a name is no call of "None"
    (ORDERED, ["5"], [{"name": 5}], 0, 0.0, 0.0, 0.0),
]


@pytest.mark.parametrize(("metric", "expected", "made", "matched", "precision", "recall", "f1"), TABLE)
def test_trajectories(
    metric: ToolTrajectoryMetric,
    expected: Any,
    made: list[Any],
    matched: int,
    precision: float | None,
    recall: float | None,
    f1: float,
) -> None:
    result = ask(metric, expected, made)
    detail = result.detail
    assert (detail["matched"], detail["precision"], detail["recall"]) == (matched, precision, recall)
    assert result.value == detail["f1"] == pytest.approx(f1)
    assert detail["mode"] == metric.mode
    assert len(detail["expected"]) == len(expected)
    assert len(detail["actual"]) == len(made)


def test_alignment_is_tolerant_where_f1_is_not() -> None:
    result = ask(ORDERED, [find(city="Paris", nights=2)], [find(city="Paris", nights=4)])
    assert result.value == 0.0
    # same tool 0.5, arguments (1 + 1/2) / 2 = 0.75: 0.5 + 0.5 × 0.75, doubled and divided by two calls
    assert result.detail["alignment"] == pytest.approx(0.875)


def test_only_tool_calls_count() -> None:
    trace = TraceLog()
    trace.record("llm_call", name="a")
    trace.record("tool_call", name="a")
    result = ToolTrajectoryMetric().evaluate({"id": "q", "metadata": {"expected_tool_calls": ["a"]}}, trace, None)
    assert result.value == 1.0


def test_without_expectations_nothing_is_judged() -> None:
    for expected in (..., None):
        result = ask(ORDERED, expected, ["a"])
        assert result.value is None
        assert "case.metadata['expected_tool_calls']" in result.detail["reason"]
        assert "error" not in result.detail


@pytest.mark.parametrize(
    ("bad", "place"),
    [
        ("find", "expected_tool_calls'] must be a list"),
        ({"name": "find"}, "expected_tool_calls'] must be a list"),
        (5, "expected_tool_calls'] must be a list"),
        (["a", 5], "expected_tool_calls'][1] must be"),
        ([{"arguments": {}}], "expected_tool_calls'][0] must be"),
        ([{"name": 5}], "expected_tool_calls'][0] must be"),
        ([None], "expected_tool_calls'][0] must be"),
    ],
)
def test_unusable_expectations_name_their_place(bad: Any, place: str) -> None:
    result = ask(ORDERED, bad, ["a"])
    assert result.value is None
    assert place in result.detail["reason"]
    assert result.detail["error"]["type"] == "InputProblem"


@pytest.mark.parametrize("arguments", [{"mode": "sloppy"}, {"arguments": "some"}, {"mode": None}])
def test_parameters_are_checked(arguments: Any) -> None:
    parameter, value = next(iter(arguments.items()))
    with pytest.raises(ValueError, match=f"ToolTrajectoryMetric: {parameter} must be one of .*; received {value!r}"):
        ToolTrajectoryMetric(**arguments)
