"""Cases, traces and outcomes have one shape where a metric reads them, whatever a record held."""

from __future__ import annotations

import copy
from types import SimpleNamespace
from typing import Any

import pytest

import agentunit
from agentunit.core.case import DatasetCase
from agentunit.core.records import Outcome, OwnPart, Record
from agentunit.core.trace import TraceEvent, TraceLog
from agentunit.metrics.base import CompositeMetric, ItemMetric, MetricInfo, MetricResult, evaluate_item
from agentunit.metrics.builtin import AnswerCorrectnessMetric, ToolSuccessMetric
from agentunit.metrics.checks import TaskSuccessMetric
from agentunit.metrics.inputs import Item


class Seeing:
    """A user's metric that reads the three without looking at their types first."""

    name = "seeing"

    def __init__(self) -> None:
        self.seen: list[tuple[Any, Any, Any]] = []

    def evaluate(self, case: Any, trace: Any, outcome: Any) -> MetricResult:
        self.seen.append((case, trace, outcome))
        read = (outcome.output, outcome.success, outcome.metadata, case.query, case.metadata, trace.metadata)
        return MetricResult(self.name, float(len(trace.events)), {"read": [repr(each) for each in read]})


class Reply:
    """An outcome of a user's own class, which knows nothing of ours."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __len__(self) -> int:
        return len(self.text)


@pytest.mark.parametrize(
    ("outcome", "output"),
    [
        ("Paris", "Paris"),
        ("", ""),
        (4, 4),
        (True, True),
        (["a", "b"], ["a", "b"]),
        ({"output": "Paris"}, "Paris"),
        (Outcome(output="Paris"), "Paris"),
        (SimpleNamespace(output="Paris"), "Paris"),
        (Reply("Paris"), None),
        (None, None),
    ],
)
@pytest.mark.parametrize("as_record", [dict, lambda **parts: tuple(parts.values())], ids=["dict", "tuple"])
def test_a_users_metric_reads_the_output_of_every_outcome(as_record: Any, outcome: Any, output: Any) -> None:
    metric = Seeing()
    (scored,) = agentunit.score([as_record(case={"id": "q1"}, trace=None, outcome=outcome)], [metric])
    assert scored.scores["seeing"].status == "ok", scored.scores["seeing"].result.detail
    assert metric.seen[0][2].output == output


def test_a_record_of_a_file_has_the_same_shape() -> None:
    metric = Seeing()
    list(agentunit.score([Record(DatasetCase("q1"), TraceLog(), "Paris")], [metric]))
    assert [type(each) for each in metric.seen[0]] == [DatasetCase, TraceLog, Outcome]


def test_events_written_as_dicts_are_events_to_a_users_metric() -> None:
    metric = Seeing()
    built_by_hand = TraceLog(events=[{"type": "tool_call", "name": "search"}])  # type: ignore[list-item]
    list(agentunit.score([({"id": "q1"}, built_by_hand, "Paris")], [metric]))
    assert metric.seen[0][1].events == [TraceEvent("tool_call", {"name": "search"})]
    assert isinstance(built_by_hand.events[0], dict), "what the user handed over is not changed"


def test_an_object_of_a_users_class_keeps_all_that_is_its_own() -> None:
    own = Reply("Paris")
    outcome = Item({"id": "q1"}, None, own).outcome
    assert isinstance(outcome, Reply)
    assert (outcome.text, len(outcome), bool(outcome), outcome == own) == ("Paris", 5, True, True)
    assert (outcome.output, outcome.cost, outcome.metadata) == (None, None, {})
    with pytest.raises(AttributeError, match="nonsense"):
        _ = outcome.nonsense
    outcome.seen = True
    assert own.seen  # type: ignore[attr-defined]
    assert type(copy.copy(outcome)) is OwnPart
    assert Item({"id": "q1"}, None, outcome).outcome is outcome


def test_a_case_and_a_trace_of_a_users_class_have_every_field() -> None:
    item = Item(SimpleNamespace(id="q1", context=["Paris"]), SimpleNamespace(events=[]), "Paris")
    assert (item.case.query, item.case.metadata, item.context) == (None, {}, ["Paris"])
    assert (item.trace.metadata, item.trace.interactions, item.tool_calls) == ({}, [], [])


def test_direct_calls_take_plain_text() -> None:
    case = {"id": "q1", "expected_output": "4"}
    assert AnswerCorrectnessMetric().evaluate(case, None, "4").value == 1.0  # type: ignore[arg-type]
    composite = CompositeMetric([Seeing(), AnswerCorrectnessMetric()])
    assert composite.evaluate(case, None, "4").detail["seeing"]["read"][0] == "'4'"  # type: ignore[arg-type]


def test_a_check_gets_the_output_of_plain_text() -> None:
    metric = TaskSuccessMetric(check=lambda output, outcome: output == outcome.output == "Paris")
    assert metric.evaluate({"id": "q1"}, None, "Paris").value == 1.0  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("facts", "status"),
    [
        ({"is_error": True}, "error"),
        ({"is_error": False}, "success"),
        ({"isError": True}, "error"),
        ({"exit_code": 0}, "success"),
        ({"exit_code": 127}, "error"),
        ({"exit_code": 0, "is_error": True}, "error"),
        ({"result": {"isError": True, "content": [{"type": "text", "text": "no such file"}]}}, "error"),
        ({"result": {"isError": False, "content": []}}, "success"),
        ({"result": '{"content": [], "isError": true}'}, "error"),
        ({"status": "success", "is_error": True}, "success"),
        ({"status": None, "exit_code": 2}, "error"),
        # What says neither stays unknown: in the total, and listed.
        ({}, None),
        ({"exit_code": True}, None),
        ({"is_error": "yes"}, None),
        ({"result": {"content": []}}, None),
        ({"result": '"isError" is a field of MCP'}, None),
        ({"result": {"isError": True}}, None),
    ],
)
def test_tool_calls_have_the_status_that_their_facts_state(facts: dict[str, Any], status: str | None) -> None:
    event = TraceEvent("tool_call", {"name": "read", **facts})
    trace = TraceLog(events=[event])
    for item in (
        Item({"id": "q1"}, trace, "done"),
        Item({"id": "q1"}, {"events": [{"type": "tool_call", "payload": {"name": "read", **facts}}]}, "done"),
        Item({"id": "q1"}, SimpleNamespace(events=[event]), "done"),
    ):
        assert item.tool_calls[0].get("status") == status
        known = None if status is None else float(status == "success")
        assert ToolSuccessMetric().measure(item).value == known
    seeing = Seeing()
    evaluate_item(seeing, Item({"id": "q1"}, trace, "done"))
    assert seeing.seen[0][1].events[0].payload.get("status") == status
    # The record itself is not changed.
    assert event.payload == {"name": "read", **facts}


def test_a_metric_that_implements_judge_still_works():
    class Old(ItemMetric):
        info = MetricInfo("old", "custom", "")
        name = "old"

        def judge(self, item):
            return MetricResult(self.name, 0.25)

    class Older(ToolSuccessMetric):
        def judge(self, item):
            result = super().judge(item)
            return MetricResult(self.name, 1.0 - result.value)

    class Newer(Older):
        def score_item(self, item):
            return MetricResult(self.name, 0.5 * super().score_item(item).value)

    class Mixin:
        def judge(self, item):
            return MetricResult("mixed", 0.75)

    class Mixed(Mixin, ItemMetric):
        info = MetricInfo("mixed", "custom", "")
        name = "mixed"

    trace = {"events": [{"type": "tool_call", "payload": {"name": "a", "status": "error"}}]}
    values = [metric.evaluate({"id": "q1"}, trace, "done").value for metric in (Old(), Older(), Newer(), Mixed())]
    assert values == [0.25, 1.0, 0.5, 0.75]
    assert Newer().judge(Item({"id": "q1"}, trace, "done")).value == 0.5
