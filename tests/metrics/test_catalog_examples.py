"""The catalog as a user meets it: every path, name, default and argument of its core sections, as written there."""

from __future__ import annotations

import inspect
from importlib import import_module
from typing import Any

import pytest

from agentunit.core.outcome import Outcome
from agentunit.metrics import registry as registry_module

pytestmark = pytest.mark.usefixtures("no_backends_installed")


@pytest.fixture
def fresh_registry(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a test registers is gone after it."""
    monkeypatch.setattr(registry_module, "registry", registry_module.MetricRegistry(entry_point_group=None))


def case_trace_outcome() -> tuple[Any, Any, Any]:
    from agentunit.core.trace import TraceLog
    from agentunit.datasets.base import DatasetCase

    case = DatasetCase(id="q1", query="Capital?", expected_output="Paris", context=["Paris", "France"])
    trace = TraceLog()
    trace.record("tool_call", name="search", status="success", cost=0.002)
    trace.record("tool_call", name="search", status="error", cost=0.0012)
    return case, trace, Outcome(success=True, output="Paris", usage={"prompt_tokens": 150, "completion_tokens": 75})


# class, name, range, detail keys of the catalog, value for the case above
CORE = [
    ("FaithfulnessMetric", "faithfulness", (0.0, 1.0), {"answer", "references"}, 0.5),
    ("AnswerCorrectnessMetric", "answer_correctness", (0.0, 1.0), {"expected", "answer"}, 1.0),
    ("HallucinationRateMetric", "hallucination_rate", (0.0, 1.0), set(), 1.0),
    ("RetrievalQualityMetric", "retrieval_quality", (0.0, 1.0), {"references", "answer"}, 0.5),
    ("ToolSuccessMetric", "tool_success", (0.0, 1.0), {"tool_calls"}, 0.5),
    ("CostMetric", "cost", (0.0, None), {"cost"}, 0.0032),
    ("TokenUsageMetric", "token_usage", (0.0, None), {"prompt_tokens", "completion_tokens", "total_tokens"}, 225.0),
]


@pytest.mark.parametrize(("class_name", "name", "score_range", "detail_keys", "value"), CORE)
def test_core_and_operational_metrics(
    class_name: str, name: str, score_range: Any, detail_keys: set[str], value: float
) -> None:
    metric = getattr(import_module("agentunit.metrics.builtin"), class_name)()
    assert metric.name == name
    assert metric.info.range == score_range
    assert detail_keys <= set(metric.info.detail_keys)
    result = metric.evaluate(*case_trace_outcome())
    assert result.name == name
    assert result.value == pytest.approx(value)
    assert detail_keys <= set(result.detail)


def test_hallucination_is_the_one_where_lower_is_better() -> None:
    from agentunit.metrics.builtin import FaithfulnessMetric, HallucinationRateMetric

    assert HallucinationRateMetric().info.direction == "lower"
    assert FaithfulnessMetric().info.direction == "higher"


def test_metric_interface() -> None:
    from agentunit.metrics.base import Metric, MetricResult
    from agentunit.metrics.builtin import FaithfulnessMetric

    assert isinstance(FaithfulnessMetric(), Metric)
    assert list(inspect.signature(Metric.evaluate).parameters) == ["self", "case", "trace", "outcome"]
    result = MetricResult(name="x", value=None, detail={})
    assert list(MetricResult.__dataclass_fields__) == ["name", "value", "detail"]
    assert MetricResult("x", 0.5).detail == {}
    assert MetricResult("x", 0.5).detail is not MetricResult("x", 0.5).detail
    assert (result.name, result.value, result.detail) == ("x", None, {})


def test_tool_and_usage_details_hold_what_was_recorded() -> None:
    from agentunit.metrics.builtin import CostMetric, TokenUsageMetric, ToolSuccessMetric

    case, trace, outcome = case_trace_outcome()
    calls = ToolSuccessMetric().evaluate(case, trace, outcome).detail["tool_calls"]
    assert [call["name"] for call in calls] == ["search", "search"]
    assert CostMetric().evaluate(case, trace, outcome).detail["cost"] == pytest.approx(0.0032)
    usage = TokenUsageMetric().evaluate(case, trace, outcome).detail
    assert (usage["prompt_tokens"], usage["completion_tokens"], usage["total_tokens"]) == (150, 75, 225)


def test_composite_of_instances() -> None:
    from agentunit.metrics.base import CompositeMetric
    from agentunit.metrics.builtin import AnswerCorrectnessMetric, FaithfulnessMetric, ToolSuccessMetric

    composite = CompositeMetric([FaithfulnessMetric(), AnswerCorrectnessMetric(), ToolSuccessMetric()])
    case, trace, outcome = case_trace_outcome()
    result = composite.evaluate(case, trace, outcome)
    assert result.value == pytest.approx((0.5 + 1.0 + 0.5) / 3)
    assert set(result.detail) == {"faithfulness", "answer_correctness", "tool_success"}
    assert result.detail["tool_success"] == ToolSuccessMetric().evaluate(case, trace, outcome).detail


# Kept as text, so that its annotations are evaluated as in a user's file and not as this one puts them off.
LATENCY_SOURCE = """
from typing import Any

from agentunit.metrics.base import Metric, MetricResult
from agentunit.core.trace import TraceLog
from agentunit.datasets.base import DatasetCase

class LatencyMetric(Metric):
    name = "latency"

    def __init__(self, threshold_ms: float = 5000.0):
        self.threshold_ms = threshold_ms

    def evaluate(
        self,
        case: DatasetCase,
        trace: TraceLog,
        outcome: Any
    ) -> MetricResult:
        start = trace.events[0].timestamp if trace.events else 0
        end = trace.events[-1].timestamp if trace.events else 0
        latency_ms = (end - start) * 1000

        score = min(1.0, self.threshold_ms / latency_ms) if latency_ms > 0 else 1.0

        return MetricResult(
            name=self.name,
            value=score,
            detail={
                "latency_ms": latency_ms,
                "threshold_ms": self.threshold_ms,
                "under_threshold": latency_ms <= self.threshold_ms
            }
        )
"""


def latency_metric_class() -> Any:
    namespace: dict[str, Any] = {"__name__": "users_metrics"}
    exec(compile(LATENCY_SOURCE, "users_metrics.py", "exec", dont_inherit=True), namespace)
    return namespace["LatencyMetric"]


@pytest.mark.usefixtures("fresh_registry")
def test_the_custom_latency_metric_registered_resolved_and_scored() -> None:
    import agentunit
    from agentunit.metrics import resolve_metrics
    from agentunit.metrics.registry import register_metric

    latency_metric = latency_metric_class()
    register_metric("latency", latency_metric)
    [metric] = resolve_metrics(["latency"])
    assert isinstance(metric, latency_metric)
    assert metric.threshold_ms == 5000.0

    events = [{"type": "message", "timestamp": 0.0}, {"type": "message", "timestamp": 10.0}]
    records = [
        {"case": {"id": "slow"}, "trace": {"events": events}},
        {"case": {"id": "idle"}},
    ]
    run = agentunit.score(records, ["latency"])
    slow, idle = list(run)
    assert slow.scores["latency"].value == 0.5  # 5,000 ms allowed, 10,000 ms taken
    assert slow.scores["latency"].result.detail == {
        "latency_ms": 10000.0,
        "threshold_ms": 5000.0,
        "under_threshold": False,
    }
    assert idle.scores["latency"].value == 1.0
    assert slow.scores["latency"].status == "ok"
    assert run.summary().metrics[0].mean == 0.75


def test_the_name_latency_is_free() -> None:
    assert "latency" not in registry_module.MetricRegistry(entry_point_group=None).names()


def test_resolution_from_names_and_the_standard_set() -> None:
    from agentunit.metrics import DEFAULT_METRICS, resolve_metrics

    assert [metric.name for metric in resolve_metrics(["faithfulness", "tool_success", "cost"])] == [
        "faithfulness",
        "tool_success",
        "cost",
    ]
    assert DEFAULT_METRICS == ("faithfulness", "answer_correctness", "tool_success", "cost", "token_usage")
    assert tuple(metric.name for metric in resolve_metrics()) == DEFAULT_METRICS
    assert tuple(metric.name for metric in resolve_metrics(DEFAULT_METRICS)) == DEFAULT_METRICS


def test_metadata_of_a_case_can_be_assigned() -> None:
    case, _, _ = case_trace_outcome()
    case.metadata = {"consent": {"email": True, "location": False}}
    assert case.metadata["consent"]["location"] is False


@pytest.mark.parametrize(
    ("module", "names"),
    [
        ("agentunit.metrics.base", ["Metric", "MetricResult", "CompositeMetric"]),
        ("agentunit.metrics.builtin", [class_name for class_name, *_ in CORE]),
        ("agentunit.metrics", ["resolve_metrics", "DEFAULT_METRICS"]),
        ("agentunit.metrics.registry", ["register_metric"]),
        ("agentunit.core.trace", ["TraceLog"]),
        ("agentunit.datasets.base", ["DatasetCase"]),
    ],
)
def test_import_paths(module: str, names: list[str]) -> None:
    loaded = import_module(module)
    assert [name for name in names if not hasattr(loaded, name)] == []


def test_every_path_of_a_case_leads_to_one_type() -> None:
    modules = ("agentunit", "agentunit.core.case", "agentunit.datasets.base")
    assert len({import_module(module).DatasetCase for module in modules}) == 1
