"""Metrics with parameters given as data."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import pytest

from agentunit.metrics.base import MetricResult
from agentunit.metrics.builtin import CostMetric, FaithfulnessMetric
from agentunit.metrics.parameters import (
    ABOVE_0_TO_1,
    FROM_0_TO_1,
    ParameterError,
    adjusted,
    check_parameters,
    kept_here,
)
from agentunit.metrics.registry import MetricRegistry


class Plain:
    """A user's metric that is no dataclass."""

    name = "plain"

    def __init__(self, threshold: float = 0.5) -> None:
        self.threshold = threshold

    def evaluate(self, case: Any, trace: Any, outcome: Any) -> MetricResult:
        return MetricResult(self.name, self.threshold)


class Open(Plain):
    def __init__(self, **anything: Any) -> None:
        super().__init__(**anything)


@dataclass(frozen=True)
class Sending:
    """A metric that asks a service and has no other way."""

    name: str = "sending"
    asks_service = True

    def evaluate(self, case: Any, trace: Any, outcome: Any) -> MetricResult:
        raise AssertionError("sent")


@pytest.fixture
def registry() -> MetricRegistry:
    made = MetricRegistry(entry_point_group=None)
    made.register("plain", Plain)
    made.register("open", Open)
    made.register("made", FaithfulnessMetric(backend="lexical"))
    made.register("plain made", Plain())
    return made


@pytest.mark.parametrize(
    ("given", "name", "parameter", "value"),
    [
        ({"faithfulness": {"backend": "lexical"}}, "faithfulness", "backend", "lexical"),
        ({"faithfulness": None}, "faithfulness", "backend", "auto"),
        ({"faithfulness": {}}, "faithfulness", "backend", "auto"),
        ({"contains": {"values": ["a"], "name": "polite"}}, "polite", "values", ["a"]),
        ({"plain": {"threshold": 0.25}}, "plain", "threshold", 0.25),
        ({"open": {"threshold": 0.75}}, "plain", "threshold", 0.75),
        ({"made": {"backend": "auto"}}, "faithfulness", "backend", "auto"),
        (
            {"agentunit.metrics.builtin:FaithfulnessMetric": {"backend": "lexical"}},
            "faithfulness",
            "backend",
            "lexical",
        ),
    ],
)
def test_a_name_with_parameters(registry: MetricRegistry, given: Any, name: str, parameter: str, value: Any) -> None:
    for written in (given, [given]):
        (metric,) = registry.resolve(written)
        assert metric.name == name
        assert getattr(metric, parameter) == value


def test_names_and_parameters_mix(registry: MetricRegistry) -> None:
    metrics = registry.resolve(["cost", {"contains": {"name": "one"}}, {"contains": {"name": "other"}}])
    assert [metric.name for metric in metrics] == ["cost", "one", "other"]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (
            {"faithfulness": {"backnd": "judge"}},
            "metric 'faithfulness' has no parameter 'backnd'; did you mean 'backend'?",
        ),
        ({"cost": {"zzz": 1}}, "metric 'cost' has no parameter 'zzz'; it has none"),
        ({"plain": {"zzz": 1}}, "'plain' has no parameter 'zzz'; it has threshold"),
        ({"plain made": {"threshold": 1}}, "'plain made' is made already, and its parameters stay; received threshold"),
        (
            {"faithfulness": None, "backend": "judge"},
            "received the keys faithfulness, backend (parameters are indented",
        ),
        ({"faithfulness": "judge"}, "received {'faithfulness': 'judge'}"),
        ({"faithfulness": {1: "judge"}}, "received {'faithfulness': {1: 'judge'}}"),
        ({}, "received the keys none"),
        ({"faithfullness": {}}, "did you mean 'faithfulness'?"),
        ({"faithfulness": {"backend": 5}}, "FaithfulnessMetric: backend must be a name; received 5"),
    ],
)
def test_what_is_wrong_is_said(registry: MetricRegistry, given: Any, said: str) -> None:
    with pytest.raises(ValueError, match=re.escape(said)):
        registry.resolve([given])


def test_a_metric_that_is_no_dataclass_cannot_be_changed() -> None:
    with pytest.raises(ParameterError, match="is made already"):
        adjusted(Plain(), {"threshold": 1}, "metric 'plain'")


def test_what_stays_here() -> None:
    cost, lexical = CostMetric(), FaithfulnessMetric(backend="lexical")
    assert kept_here(cost) is cost
    assert kept_here(lexical) is lexical
    assert kept_here(Sending()) is None


@pytest.mark.parametrize("value", [True, "high", None, -0.1, 1.1, float("nan")])
def test_a_parameter_that_breaks_its_rule_is_named_with_its_metric(value: object) -> None:
    class Brevity:
        threshold = value

    with pytest.raises(ValueError, match=f"Brevity: threshold must be from 0 to 1; received {value!r}"):
        check_parameters(Brevity(), threshold=FROM_0_TO_1)


def test_a_parameter_that_keeps_its_rule_passes() -> None:
    class Brevity:
        threshold, share = 0, 1.0

    check_parameters(Brevity(), threshold=FROM_0_TO_1, share=ABOVE_0_TO_1)
