"""The metrics catalog, statement by statement: every check carries the line of the catalog that it comes from.

Paths, class names, arguments, defaults, names, ranges, weights, formulas, detail keys, and the examples as written.
Where the catalog is silent, docs/catalog.md says how it is read, and that reading is what stands here. Numbers in its
examples are illustrations; worked values here follow from its formulas.
"""

from __future__ import annotations

import dataclasses
import inspect
import subprocess
import sys
from collections.abc import Callable, Iterator
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import agentunit
from agentunit.backends import quality
from agentunit.core.records import Outcome
from agentunit.core.trace import TraceEvent, TraceLog
from agentunit.datasets.base import DatasetCase
from agentunit.metrics import registry as registry_module
from agentunit.metrics.base import CompositeMetric, Metric, MetricResult, describe

CORE, MULTIMODAL = "agentunit.metrics.builtin", "agentunit.multimodal.metrics"
PRIVACY, SUSTAINABILITY = "agentunit.privacy.metrics", "agentunit.sustainability.metrics"
MULTIAGENT = "agentunit.multiagent.metrics"
UNIT, AMOUNT = (0.0, 1.0), (0.0, None)
TINY_CLIP = Path(__file__).resolve().parent / "data" / "tiny_clip"


def line(number: int, *values: Any, note: str = "") -> Any:
    """A row of a table, named by the line of the catalog that it comes from."""
    words = note or " ".join(str(value) for value in values[:2] if isinstance(value, (str, int, float)))
    return pytest.param(*values, id=f"line {number}: {words:.60}")


def metric_of(class_name: str, **arguments: Any) -> Any:
    return getattr(import_module(MODULE_OF[class_name]), class_name)(**arguments)


# Every metric: class, module, name, range of scores; the first line is that of the class's heading.

METRICS = {
    "FaithfulnessMetric": (54, CORE, "faithfulness", UNIT, "higher"),
    "AnswerCorrectnessMetric": (84, CORE, "answer_correctness", UNIT, "higher"),
    "HallucinationRateMetric": (115, CORE, "hallucination_rate", UNIT, "lower"),
    "RetrievalQualityMetric": (146, CORE, "retrieval_quality", UNIT, "higher"),
    "ToolSuccessMetric": (175, CORE, "tool_success", UNIT, "higher"),
    "CostMetric": (208, CORE, "cost", AMOUNT, "lower"),
    "TokenUsageMetric": (240, CORE, "token_usage", AMOUNT, "lower"),
    "CrossModalGroundingMetric": (276, MULTIMODAL, "cross_modal_grounding", UNIT, "higher"),
    "ImageCaptionAccuracyMetric": (307, MULTIMODAL, "image_caption_accuracy", UNIT, "higher"),
    "VideoResponseRelevanceMetric": (332, MULTIMODAL, "video_response_relevance", UNIT, "higher"),
    "AudioTranscriptionMetric": (358, MULTIMODAL, "audio_transcription_quality", UNIT, "higher"),
    "MultimodalCoherenceMetric": (380, MULTIMODAL, "multimodal_coherence", UNIT, "higher"),
    "PIILeakageMetric": (402, PRIVACY, "pii_leakage", UNIT, "higher"),
    "PrivacyBudgetMetric": (440, PRIVACY, "privacy_budget", UNIT, "higher"),
    "DataMinimizationMetric": (472, PRIVACY, "data_minimization", UNIT, "higher"),
    "ConsentComplianceMetric": (492, PRIVACY, "consent_compliance", UNIT, "higher"),
    "EnergyMetric": (517, SUSTAINABILITY, "energy_consumption", UNIT, "higher"),
    "CarbonMetric": (538, SUSTAINABILITY, "carbon_emissions", UNIT, "higher"),
    "ResourceUtilizationMetric": (572, SUSTAINABILITY, "resource_utilization", UNIT, "higher"),
    "CoordinationEfficiencyMetric": (680, MULTIAGENT, "coordination_efficiency", UNIT, "higher"),
    "SwarmIntelligenceMetric": (723, MULTIAGENT, "swarm_intelligence", UNIT, "higher"),
    "NetworkFaultToleranceMetric": (758, MULTIAGENT, "network_fault_tolerance", UNIT, "higher"),
}
MODULE_OF = {class_name: module for class_name, (_, module, *_) in METRICS.items()}
ALL = [line(first, class_name) for class_name, (first, *_) in METRICS.items()]


@pytest.mark.parametrize("class_name", ALL)
def test_module_and_class_name(class_name: str) -> None:
    assert getattr(import_module(MODULE_OF[class_name]), class_name).__name__ == class_name


@pytest.mark.parametrize("class_name", ALL)
def test_name_of_the_metric(class_name: str) -> None:
    _, _, name, *_ = METRICS[class_name]
    assert metric_of(class_name).name == name
    assert getattr(import_module(MODULE_OF[class_name]), class_name).name == name


@pytest.mark.parametrize("class_name", ALL)
def test_score_range_and_direction(class_name: str) -> None:
    *_, score_range, direction = METRICS[class_name]
    info = describe(metric_of(class_name))
    assert (info.range, info.direction) == (score_range, direction)


@pytest.mark.parametrize("class_name", ALL)
def test_the_name_resolves_to_the_class(class_name: str) -> None:
    _, module, name, *_ = METRICS[class_name]
    [metric] = agentunit.metrics.resolve_metrics([name])
    assert type(metric) is getattr(import_module(module), class_name)


@pytest.mark.parametrize("class_name", ALL)
def test_it_keeps_the_protocol(class_name: str) -> None:
    metric = metric_of(class_name)
    assert isinstance(metric, Metric)
    assert list(inspect.signature(metric.evaluate).parameters) == ["case", "trace", "outcome"]


@pytest.mark.parametrize("class_name", ALL)
def test_the_path_that_listings_name_is_the_catalogs(class_name: str) -> None:
    assert registry_module.import_path(metric_of(class_name)) == f"{MODULE_OF[class_name]}.{class_name}"


@pytest.mark.parametrize("name", registry_module.MetricRegistry(entry_point_group=None).names())
def test_every_listed_path_imports_the_class(name: str) -> None:
    metric = registry_module.MetricRegistry(entry_point_group=None).create(name)
    module, _, class_name = registry_module.import_path(metric).rpartition(".")
    assert getattr(import_module(module), class_name) is type(metric)
    page = (Path(__file__).resolve().parent.parent / "docs" / "metrics.md").read_text(encoding="utf-8")
    assert f"\n- class: `{module}.{class_name}`\n" in page


COUNTS = [
    line(
        13, CORE, 5, ["faithfulness", "answer_correctness", "hallucination_rate", "retrieval_quality", "tool_success"]
    ),
    line(14, CORE, 3, ["tool_success", "cost", "token_usage"]),
    line(15, MULTIMODAL, 5, None),
    line(16, PRIVACY, 4, None),
    line(17, SUSTAINABILITY, 3, None),
]


@pytest.mark.parametrize(("module", "count", "names"), COUNTS)
def test_how_many_metrics_a_category_has(module: str, count: int, names: list[str] | None) -> None:
    in_module = [name for _, home, name, *_ in METRICS.values() if home == module]
    assert len(names or in_module) == count
    assert set(names or in_module) <= set(in_module)


IMPORTS = [
    line(27, "agentunit.metrics.base", "Metric"),
    line(27, "agentunit.metrics.base", "MetricResult"),
    line(606, "agentunit.metrics.base", "CompositeMetric"),
    line(632, "agentunit.core.trace", "TraceLog"),
    line(633, "agentunit.datasets.base", "DatasetCase"),
    line(669, "agentunit.metrics.registry", "register_metric"),
    line(707, "agentunit.multiagent", "CoordinationEfficiencyMetric"),
    line(743, "agentunit.multiagent", "SwarmIntelligenceMetric"),
    line(783, "agentunit.multiagent", "NetworkFaultToleranceMetric"),
    line(804, "agentunit.multiagent", "MultiAgentMetricsCalculator"),
    line(867, "agentunit.multiagent", "InteractionAnalyzer"),
    line(868, "agentunit.multiagent", "NetworkAnalyzer"),
    line(869, "agentunit.multiagent", "EmergentBehaviorDetector"),
    line(692, "agentunit.multiagent", "AgentInteraction"),
    line(693, "agentunit.multiagent", "HandoffEvent"),
    line(694, "agentunit.multiagent", "ConflictEvent"),
    line(695, "agentunit.multiagent", "AgentRole"),
    line(825, "agentunit.multiagent", "CoordinationMetrics"),
    line(839, "agentunit.multiagent", "NetworkMetrics"),
    line(851, "agentunit.multiagent", "EmergentBehaviorMetrics"),
    line(902, "agentunit.metrics", "resolve_metrics"),
    line(908, "agentunit.metrics", "DEFAULT_METRICS"),
]


@pytest.mark.parametrize(("module", "name"), IMPORTS)
def test_import_paths(module: str, name: str) -> None:
    namespace: dict[str, Any] = {}
    exec(f"from {module} import {name}", namespace)
    assert namespace[name] is getattr(import_module(module), name)


@pytest.mark.parametrize(
    "name",
    [
        line(707, "CoordinationEfficiencyMetric"),
        line(743, "SwarmIntelligenceMetric"),
        line(783, "NetworkFaultToleranceMetric"),
        line(804, "MultiAgentMetricsCalculator"),
        line(825, "CoordinationMetrics"),
        line(839, "NetworkMetrics"),
        line(851, "EmergentBehaviorMetrics"),
        line(867, "InteractionAnalyzer"),
        line(868, "NetworkAnalyzer"),
        line(869, "EmergentBehaviorDetector"),
    ],
)
def test_the_package_and_its_module_offer_the_same_class(name: str) -> None:
    assert getattr(import_module("agentunit.multiagent"), name) is getattr(import_module(MULTIAGENT), name)


def test_every_path_of_a_case_leads_to_one_type() -> None:
    modules = ("agentunit", "agentunit.core.case", "agentunit.datasets.base")
    assert len({import_module(module).DatasetCase for module in modules}) == 1


# Lines 29 to 48: the interface


def test_line_29_the_protocol_has_a_name_and_evaluate() -> None:
    assert list(inspect.signature(Metric.evaluate).parameters) == ["self", "case", "trace", "outcome"]
    assert "name" in Metric.__annotations__
    assert isinstance(SimpleNamespace(name="x", evaluate=lambda case, trace, outcome: None), Metric)


def test_line_44_a_result_is_a_dataclass_of_three_fields() -> None:
    assert [field.name for field in dataclasses.fields(MetricResult)] == ["name", "value", "detail"]
    result = MetricResult("x", None, {"a": 1})
    assert (result.name, result.value, result.detail) == ("x", None, {"a": 1})
    assert MetricResult(name="x", value=0.5).detail == {}
    assert MetricResult("x", 0.5).detail is not MetricResult("x", 0.5).detail


# Constructor arguments and their defaults

DEFAULTS = [
    line(290, "CrossModalGroundingMetric", "clip_model_name", "ViT-B/32"),
    line(291, "CrossModalGroundingMetric", "threshold", 0.25),
    line(321, "ImageCaptionAccuracyMetric", "use_semantic", True),
    line(322, "ImageCaptionAccuracyMetric", "model_name", "all-MiniLM-L6-v2"),
    line(346, "VideoResponseRelevanceMetric", "num_frames", 8),
    line(347, "VideoResponseRelevanceMetric", "clip_model_name", "ViT-B/32"),
    line(416, "PIILeakageMetric", "check_input", False),
    line(417, "PIILeakageMetric", "check_output", True),
    line(454, "PrivacyBudgetMetric", "total_budget", 10.0),
    line(455, "PrivacyBudgetMetric", "warn_threshold", 0.8),
    line(531, "EnergyMetric", "threshold_kwh", 0.1),
    line(532, "EnergyMetric", "sample_interval", 1.0),
    line(552, "CarbonMetric", "threshold_kg", 0.05),
    line(553, "CarbonMetric", "grid_intensity", 0.475),
    line(586, "ResourceUtilizationMetric", "target_cpu_percent", 80.0),
    line(587, "ResourceUtilizationMetric", "target_memory_gb", 4.0),
    line(588, "ResourceUtilizationMetric", "target_gpu_percent", 80.0),
]


@pytest.mark.parametrize(("class_name", "argument", "default"), DEFAULTS)
def test_arguments_and_defaults(class_name: str, argument: str, default: Any) -> None:
    assert getattr(metric_of(class_name), argument) == default
    assert type(getattr(metric_of(class_name), argument)) is type(default)
    assert getattr(metric_of(class_name, **{argument: default}), argument) == default


@pytest.mark.parametrize(
    ("class_name", "arguments"),
    [
        line(289, "CrossModalGroundingMetric", ["clip_model_name", "threshold"]),
        line(320, "ImageCaptionAccuracyMetric", ["use_semantic", "model_name"]),
        line(345, "VideoResponseRelevanceMetric", ["num_frames", "clip_model_name"]),
        line(415, "PIILeakageMetric", ["check_input", "check_output", "severity_weights"]),
        line(453, "PrivacyBudgetMetric", ["total_budget", "warn_threshold"]),
        line(530, "EnergyMetric", ["threshold_kwh", "sample_interval"]),
        line(551, "CarbonMetric", ["threshold_kg", "grid_intensity"]),
        line(585, "ResourceUtilizationMetric", ["target_cpu_percent", "target_memory_gb", "target_gpu_percent"]),
    ],
)
def test_arguments_come_first_and_in_the_catalogs_order(class_name: str, arguments: list[str]) -> None:
    parameters = inspect.signature(getattr(import_module(MODULE_OF[class_name]), class_name)).parameters.values()
    positional = [each.name for each in parameters if each.kind is each.POSITIONAL_OR_KEYWORD]
    assert positional[: len(arguments)] == arguments


@pytest.mark.parametrize("class_name", ALL)
def test_a_metric_needs_no_argument(class_name: str) -> None:
    assert metric_of(class_name).name


SEVERITIES = [
    line(419, "email", 0.5),
    line(420, "phone", 0.6),
    line(421, "ssn", 1.0),
    line(422, "credit_card", 1.0),
    line(423, "name", 0.3),
    line(424, "address", 0.7),
]


@pytest.mark.parametrize(("kind", "weight"), SEVERITIES)
def test_severity_weights(kind: str, weight: float) -> None:
    assert metric_of("PIILeakageMetric").severity_weights[kind] == weight


def test_line_418_given_weights_are_merged_over_the_defaults() -> None:
    weights = metric_of("PIILeakageMetric", severity_weights={"email": 0.1}).severity_weights
    assert (weights["email"], weights["phone"]) == (0.1, 0.6)


@pytest.mark.parametrize(
    "key",
    [
        line(486 + (place > 4), key)
        for place, key in enumerate(
            ["user_id", "email", "phone", "address", "ssn", "credit_card", "password", "api_key", "token"]
        )
    ],
)
def test_checked_keys(key: str) -> None:
    metric = metric_of("DataMinimizationMetric")
    assert key in metric.sensitive_keys
    assert len(metric.sensitive_keys) == 9
    case = DatasetCase("q1", metadata={key: "Zq7-4419-Xv2"})
    leaks, keeps = (metric.evaluate(case, TraceLog(), text).value for text in ("It is Zq7-4419-Xv2.", "Done."))
    assert (leaks, keeps) == (0.0, 1.0)


# Worked values: arguments of the metric, then case, trace and outcome


def trace_of(*events: tuple[str, dict[str, Any]], **parts: Any) -> dict[str, Any]:
    return {"events": [{"type": kind, "payload": payload} for kind, payload in events], **parts}


def calls(*statuses: str | None) -> dict[str, Any]:
    return trace_of(*(("tool_call", {"name": "search", **({"status": each} if each else {})}) for each in statuses))


def usage(**counts: Any) -> dict[str, Any]:
    return {"metadata": {"usage": counts}}


TWO = {"id": "q1", "context": ["Paris is in France.", "It has 2 million people."]}
WANTED = {"id": "q1", "expected_output": "Paris"}
CAPTION = {"id": "q1", "expected_output": "a brown dog runs"}
SPOKEN = {"id": "q1", "expected_output": "four queen of clubs"}
MEDIA = {"id": "q1", "query": "What is this?", "metadata": {"image_path": "cat.jpg"}}
KEPT = {"id": "q1", "metadata": {"email": "jane@example.com", "phone": "555-0100-77"}}
CONSENT = {"email": True, "location": False}
DENIED = {"id": "q1", "metadata": {"consent": CONSENT, "user_data": {"location": "Oslo", "email": "jane@example.com"}}}


def drawing_on(*kinds: str) -> dict[str, Any]:
    return {"id": "q1", "metadata": {f"{kind}_path": "file" for kind in kinds}}


VALUES = [
    # Faithfulness, lexical: the share of context strings that stand in the response
    line(71, "FaithfulnessMetric", {}, TWO, None, "Paris is in France.", 0.5),
    line(71, "FaithfulnessMetric", {}, TWO, None, "Paris is in France. It has 2 million people.", 1.0),
    line(71, "FaithfulnessMetric", {}, TWO, None, "No idea.", 0.0),
    line(71, "FaithfulnessMetric", {}, TWO, None, "PARIS IS IN FRANCE.", 0.5, note="whatever the case of the letters"),
    line(66, "FaithfulnessMetric", {}, {"id": "q1"}, None, "Paris.", None, note="no context"),
    line(67, "FaithfulnessMetric", {}, TWO, None, None, None, note="no output"),
    line(
        66,
        "FaithfulnessMetric",
        {},
        {"id": "q1"},
        trace_of(("retrieval", {"documents": ["Paris", "Lyon"]})),
        "Paris.",
        0.5,
        note="context from retrieval events",
    ),
    # Answer correctness, lexical
    line(100, "AnswerCorrectnessMetric", {}, WANTED, None, "Paris", 1.0),
    line(100, "AnswerCorrectnessMetric", {}, WANTED, None, " Paris\n", 1.0, note="equal after trimming"),
    line(102, "AnswerCorrectnessMetric", {}, WANTED, None, "It is Paris.", 0.0),
    line(102, "AnswerCorrectnessMetric", {}, WANTED, None, "London", 0.0),
    line(96, "AnswerCorrectnessMetric", {}, {"id": "q1"}, None, "Paris", None, note="nothing expected"),
    line(97, "AnswerCorrectnessMetric", {}, WANTED, None, {"output": "Paris"}, 1.0, note="outcome.output"),
    # Hallucination, lexical: 1.0 if any context string is missing
    line(132, "HallucinationRateMetric", {}, TWO, None, "Paris is in France.", 1.0),
    line(132, "HallucinationRateMetric", {}, TWO, None, "Paris is in France. It has 2 million people.", 0.0),
    line(142, "HallucinationRateMetric", {}, {"id": "q1", "context": ["Paris"]}, None, "Paris", 0.0),
    line(127, "HallucinationRateMetric", {}, {"id": "q1"}, None, "Paris", None, note="no context"),
    # Retrieval quality, lexical: the share of context strings mentioned
    line(163, "RetrievalQualityMetric", {}, TWO, None, "paris is in france.", 0.5),
    line(163, "RetrievalQualityMetric", {}, TWO, None, "Nothing.", 0.0),
    line(158, "RetrievalQualityMetric", {}, {"id": "q1"}, None, "Nothing.", None, note="no context"),
    # Tool success
    line(200, "ToolSuccessMetric", {}, {"id": "q1"}, calls(*["success"] * 9, "error"), None, 0.9),
    line(193, "ToolSuccessMetric", {}, {"id": "q1"}, calls("success", "success"), None, 1.0),
    line(192, "ToolSuccessMetric", {}, {"id": "q1"}, calls("success", "ok"), None, 0.5, note="only 'success' counts"),
    line(192, "ToolSuccessMetric", {}, {"id": "q1"}, calls("success", None), None, 0.5, note="no status: in the total"),
    line(191, "ToolSuccessMetric", {}, {"id": "q1"}, trace_of(("message", {"status": "success"})), None, None),
    line(188, "ToolSuccessMetric", {}, {"id": "q1"}, None, {"success": True}, 1.0),
    line(188, "ToolSuccessMetric", {}, {"id": "q1"}, None, {"success": False}, 0.0),
    line(188, "ToolSuccessMetric", {}, {"id": "q1"}, calls("error"), {"success": True}, 0.0, note="calls decide"),
    # Cost
    line(234, "CostMetric", {}, {"id": "q1"}, {"metadata": {"cost": 0.0032}}, None, 0.0032),
    line(225, "CostMetric", {}, {"id": "q1"}, {"metadata": {"cost": 0.01}}, {"cost": 0.02}, 0.01),
    line(226, "CostMetric", {}, {"id": "q1"}, None, {"cost": 0.02}, 0.02),
    line(226, "CostMetric", {}, {"id": "q1"}, trace_of(("tool_call", {"cost": 0.5})), {"cost": 0.02}, 0.02),
    line(227, "CostMetric", {}, {"id": "q1"}, trace_of(*[("tool_call", {"cost": 0.25})] * 3), None, 0.75),
    line(227, "CostMetric", {}, {"id": "q1"}, calls("success"), None, None, note="no cost anywhere"),
    # Tokens
    line(269, "TokenUsageMetric", {}, {"id": "q1"}, usage(prompt_tokens=150, completion_tokens=75), None, 225.0),
    line(260, "TokenUsageMetric", {}, {"id": "q1"}, usage(total_tokens=225), None, 225.0),
    line(253, "TokenUsageMetric", {}, {"id": "q1"}, None, {"usage": {"input_tokens": 10, "output_tokens": 5}}, 15.0),
    line(
        252,
        "TokenUsageMetric",
        {},
        {"id": "q1"},
        usage(prompt_tokens=1, completion_tokens=1),
        {"usage": {"prompt_tokens": 9, "completion_tokens": 9}},
        2.0,
        note="the trace's usage comes first",
    ),
    line(252, "TokenUsageMetric", {}, {"id": "q1"}, None, "done", None, note="none recorded"),
    # Captions without an encoder: F1 of the words
    line(328, "ImageCaptionAccuracyMetric", {"use_semantic": False}, CAPTION, None, "a brown dog runs", 1.0),
    line(328, "ImageCaptionAccuracyMetric", {"use_semantic": False}, CAPTION, None, "a dog", 2 * 1 * 0.5 / 1.5),
    line(328, "ImageCaptionAccuracyMetric", {"use_semantic": False}, CAPTION, None, "the cat sleeps", 0.0),
    # Transcripts: 1 − WER, at least 0
    line(374, "AudioTranscriptionMetric", {}, SPOKEN, None, "for queen of clubs", 0.75),
    line(374, "AudioTranscriptionMetric", {}, SPOKEN, None, "Four, queen of clubs!", 1.0, note="normalized"),
    line(374, "AudioTranscriptionMetric", {"normalize": False}, SPOKEN, None, "Four, queen of clubs!", 0.5),
    line(374, "AudioTranscriptionMetric", {}, SPOKEN, None, "a b c d e f g h i j", 0.0, note="WER above 1"),
    # Coherence: 0.6 · coverage + 0.4 · coherence
    line(396, "MultimodalCoherenceMetric", {}, MEDIA, None, "The image shows a cat, while the text asks.", 1.0),
    line(396, "MultimodalCoherenceMetric", {}, MEDIA, None, "The image shows a cat.", 0.3),
    line(396, "MultimodalCoherenceMetric", {}, MEDIA, None, "However, it is a cat.", 0.4),
    line(396, "MultimodalCoherenceMetric", {}, MEDIA, None, "However, the image shows a cat.", 0.7),
    line(394, "MultimodalCoherenceMetric", {}, drawing_on("image", "audio", "video"), None, "A photo.", 0.6 / 3),
    line(392, "MultimodalCoherenceMetric", {}, drawing_on("audio"), None, "I hear a voice.", 0.6),
    line(392, "MultimodalCoherenceMetric", {}, drawing_on("video"), None, "The footage shows it.", 0.6),
    line(392, "MultimodalCoherenceMetric", {}, {"id": "q1", "query": "Why?"}, None, "The text says so.", 0.6),
    line(392, "MultimodalCoherenceMetric", {}, {"id": "q1"}, None, "A photo.", None, note="no modality"),
    line(393, "MultimodalCoherenceMetric", {}, drawing_on("image"), None, "Imagery, photosynthesis.", 0.0),
    # Leakage: Π(1 − weight · confidence)
    line(432, "PIILeakageMetric", {}, {"id": "q1"}, None, "Write to jane.doe@example.com.", 1 - 0.5 * 0.95),
    line(433, "PIILeakageMetric", {}, {"id": "q1"}, None, "Call 212-555-0187.", 1 - 0.6 * 0.90),
    line(434, "PIILeakageMetric", {}, {"id": "q1"}, None, "My SSN is 123-45-6789.", 1 - 1.0 * 0.98),
    line(435, "PIILeakageMetric", {}, {"id": "q1"}, None, "Card 1234-5678-9012-3456", 1 - 1.0 * 0.85),
    line(436, "PIILeakageMetric", {}, {"id": "q1"}, None, "Ask Jane Miller.", 1 - 0.3 * 0.60),
    line(411, "PIILeakageMetric", {}, {"id": "q1"}, None, "It arrives on Monday.", 1.0),
    line(
        411,
        "PIILeakageMetric",
        {},
        {"id": "q1"},
        None,
        "Write to jane.doe@example.com or call 212-555-0187.",
        (1 - 0.5 * 0.95) * (1 - 0.6 * 0.90),
        note="two findings",
    ),
    line(419, "PIILeakageMetric", {"severity_weights": {"email": 1.0}}, {"id": "q1"}, None, "a.b@example.com", 0.05),
    line(416, "PIILeakageMetric", {}, {"id": "q1", "query": "I am a.b@example.com."}, None, "Hello.", 1.0),
    line(416, "PIILeakageMetric", {"check_input": True}, {"id": "q1", "query": "a.b@example.com"}, None, "Hi.", 0.525),
    line(
        417,
        "PIILeakageMetric",
        {"check_output": False, "check_input": True},
        {"id": "q1", "query": "Hello?"},
        None,
        "a.b@example.com",
        1.0,
        note="check_output=False",
    ),
    # Budget: max(0, remaining) / total
    line(449, "PrivacyBudgetMetric", {}, {"id": "q1", "metadata": {"epsilon": 3.2}}, None, "", 0.68),
    line(449, "PrivacyBudgetMetric", {"total_budget": 2.0}, {"id": "q1"}, {"metadata": {"epsilon": 0.5}}, "", 0.75),
    line(449, "PrivacyBudgetMetric", {}, {"id": "q1", "metadata": {"epsilon": 12.0}}, None, "", 0.0, note="exceeded"),
    line(
        442,
        "PrivacyBudgetMetric",
        {},
        {"id": "q1"},
        trace_of(("query", {"epsilon": 1.0}), ("query", {"privacy_epsilon": 1.5})),
        "",
        0.75,
        note="the sum over events",
    ),
    # Minimization: 1 − leaked / available
    line(482, "DataMinimizationMetric", {}, KEPT, None, "We will call 555-0100-77.", 0.5),
    line(482, "DataMinimizationMetric", {}, KEPT, None, "We will call you.", 1.0),
    line(482, "DataMinimizationMetric", {}, KEPT, None, "jane@example.com, 555-0100-77", 0.0),
    line(
        474,
        "DataMinimizationMetric",
        {},
        {"id": "q1", "metadata": {**KEPT["metadata"], "necessary": ["phone"]}},
        None,
        "We will call 555-0100-77.",
        1.0,
        note="what the task needs is no leak",
    ),
    line(486, "DataMinimizationMetric", {}, {"id": "q1", "metadata": {"user_id": 1}}, None, "There are 21.", 1.0),
    line(482, "DataMinimizationMetric", {}, {"id": "q1"}, None, "We will call you.", None, note="nothing sensitive"),
    # Consent: 0.0 or 1.0
    line(501, "ConsentComplianceMetric", {}, DENIED, None, "In Oslo it rains.", 0.0),
    line(508, "ConsentComplianceMetric", {}, DENIED, None, "I cannot share your location.", 1.0),
    line(507, "ConsentComplianceMetric", {}, DENIED, None, "I wrote to jane@example.com.", 1.0),
    line(506, "ConsentComplianceMetric", {}, {"id": "q1"}, None, "In Oslo it rains.", None, note="no consent data"),
    # Energy and carbon: min(1, threshold / used)
    line(531, "EnergyMetric", {}, {"id": "q1"}, {"metadata": {"energy_kwh": 0.4}}, "", 0.25),
    line(531, "EnergyMetric", {}, {"id": "q1"}, {"metadata": {"energy_kwh": 0.1}}, "", 1.0),
    line(531, "EnergyMetric", {"threshold_kwh": 0.2}, {"id": "q1"}, {"metadata": {"energy_kwh": 0.4}}, "", 0.5),
    line(526, "EnergyMetric", {}, {"id": "q1"}, None, "", None, note="nothing measured"),
    line(552, "CarbonMetric", {}, {"id": "q1"}, {"metadata": {"carbon_kg": 0.023}}, "", 1.0),
    line(552, "CarbonMetric", {}, {"id": "q1"}, {"metadata": {"carbon_kg": 0.1}}, "", 0.5),
    line(553, "CarbonMetric", {}, {"id": "q1"}, {"metadata": {"energy_kwh": 0.4}}, "", 0.05 / 0.19),
    line(553, "CarbonMetric", {"grid_intensity": 0.25}, {"id": "q1"}, {"metadata": {"energy_kwh": 0.4}}, "", 0.5),
    line(547, "CarbonMetric", {}, {"id": "q1"}, None, "", None, note="nothing measured"),
    # Resources: 1.0 from 50 % to 120 % of the target
    *(
        line(number, "ResourceUtilizationMetric", {}, {"id": "q1"}, {"metadata": {key: used}}, "", value)
        for number, key, used, value in [
            (593, "cpu_percent", 40.0, 1.0),
            (593, "cpu_percent", 80.0, 1.0),
            (593, "cpu_percent", 96.0, 1.0),
            (594, "cpu_percent", 20.0, 0.5),
            (594, "cpu_percent", 0.0, 0.0),
            (595, "cpu_percent", 136.0, 0.5),
            (595, "cpu_percent", 400.0, 0.0),
            (593, "memory_gb", 2.0, 1.0),
            (594, "memory_gb", 1.0, 0.5),
            (595, "memory_gb", 6.8, 0.5),
            (593, "gpu_percent", 96.0, 1.0),
            (594, "gpu_percent", 10.0, 0.25),
        ]
    ),
    line(
        574,
        "ResourceUtilizationMetric",
        {},
        {"id": "q1"},
        {"metadata": {"cpu_percent": 20.0, "memory_gb": 4.0, "gpu_percent": 0.0}},
        "",
        0.5,
        note="the mean of CPU, memory and GPU",
    ),
    line(581, "ResourceUtilizationMetric", {}, {"id": "q1"}, None, "", None, note="nothing measured"),
]


@pytest.mark.parametrize(("class_name", "arguments", "case", "trace", "outcome", "value"), VALUES)
def test_worked_values(
    class_name: str, arguments: dict[str, Any], case: Any, trace: Any, outcome: Any, value: float | None
) -> None:
    result = metric_of(class_name, **arguments).evaluate(case, trace, outcome)
    assert result.value == (None if value is None else pytest.approx(value, abs=1e-9))
    if value is None:
        assert result.detail["reason"]
    assert set(describe(metric_of(class_name)).detail_keys) <= set(result.detail)


# A flat event says the same as one with a payload


@pytest.mark.parametrize(
    ("class_name", "value"),
    [line(192, "ToolSuccessMetric", 1.0), line(227, "CostMetric", 0.1)],
)
@pytest.mark.parametrize("shape", ["dict", "object"])
def test_a_flat_event_counts(class_name: str, value: float, shape: str) -> None:
    flat = {"type": "tool_call", "name": "search", "status": "success", "cost": 0.1}
    events: list[Any] = [flat if shape == "dict" else SimpleNamespace(**flat)]
    trace: Any = {"events": events} if shape == "dict" else SimpleNamespace(events=events, metadata={})
    assert metric_of(class_name).evaluate({"id": "q1"}, trace, None).value == pytest.approx(value)


@pytest.mark.parametrize(
    ("class_name", "key", "value"),
    [
        line(190, "ToolSuccessMetric", "value", 1.0),
        line(227, "CostMetric", "value", 0.1),
    ],
)
def test_a_flat_event_in_a_trace_log_counts(class_name: str, key: str, value: float) -> None:
    flat: Any = {"type": "tool_call", "status": "success", "cost": 0.1}
    result = metric_of(class_name).evaluate(DatasetCase("q1"), TraceLog(events=[flat]), None)
    assert getattr(result, key) == pytest.approx(value)


# Detail keys

DETAIL_KEYS = [
    *(line(79, "FaithfulnessMetric", key) for key in ("answer", "references")),
    *(line(110, "AnswerCorrectnessMetric", key) for key in ("expected", "answer")),
    *(line(170, "RetrievalQualityMetric", key) for key in ("references", "answer")),
    line(201, "ToolSuccessMetric", "tool_calls"),
    line(235, "CostMetric", "cost"),
    line(258, "TokenUsageMetric", "prompt_tokens"),
    line(259, "TokenUsageMetric", "completion_tokens"),
    line(260, "TokenUsageMetric", "total_tokens"),
    line(372, "AudioTranscriptionMetric", "wer"),
    line(373, "AudioTranscriptionMetric", "cer"),
    line(374, "AudioTranscriptionMetric", "accuracy"),
    line(462, "PrivacyBudgetMetric", "epsilon_used"),
    line(463, "PrivacyBudgetMetric", "total_spent"),
    line(464, "PrivacyBudgetMetric", "remaining"),
    line(465, "PrivacyBudgetMetric", "utilization"),
    line(466, "PrivacyBudgetMetric", "budget_exceeded"),
    line(467, "PrivacyBudgetMetric", "warning"),
    line(560, "CarbonMetric", "carbon_kg"),
    line(561, "CarbonMetric", "threshold_kg"),
    line(562, "CarbonMetric", "under_threshold"),
    line(563, "CarbonMetric", "equivalents"),
    *(
        line(713 + place, "CoordinationEfficiencyMetric", key)
        for place, key in enumerate(
            [
                "handoff_success_rate",
                "conflict_resolution_rate",
                "communication_efficiency",
                "role_adherence",
                "load_balance_score",
            ]
        )
    ),
    *(
        line(749 + place, "SwarmIntelligenceMetric", key)
        for place, key in enumerate(["self_organization", "specialization", "collective_decision", "adaptation_rate"])
    ),
    *(
        line(789 + place, "NetworkFaultToleranceMetric", key)
        for place, key in enumerate(["density", "centralization", "clustering", "hub_agents", "bottleneck_count"])
    ),
]


@pytest.mark.parametrize(("class_name", "key"), DETAIL_KEYS)
def test_detail_keys_are_there_with_and_without_a_value(class_name: str, key: str) -> None:
    full = metric_of(class_name).evaluate(*full_item())
    assert full.value is not None, full.detail.get("reason")
    assert key in full.detail
    assert key in metric_of(class_name).evaluate(DatasetCase("q1"), TraceLog(), None).detail


def full_item() -> tuple[Any, Any, Any]:
    case = {**TWO, "expected_output": "four queen of clubs", "query": "Which?", "metadata": {"epsilon": 0.5}}
    said = [{"from_agent": a, "to_agent": b, "timestamp": at} for at, (a, b) in enumerate(["ab", "bc", "ca", "ab"])]
    trace = {
        **calls("success"),
        "metadata": {"cost": 0.1, "usage": {"prompt_tokens": 150, "completion_tokens": 75}, "carbon_kg": 0.023},
        "interactions": said,
    }
    return case, trace, {"output": "four queen of clubs", "success": True}


DETAIL_VALUES = [
    line(79, "FaithfulnessMetric", {}, TWO, None, "Paris.", {"answer": "Paris.", "references": TWO["context"]}),
    line(110, "AnswerCorrectnessMetric", {}, WANTED, None, "Rome", {"expected": "Paris", "answer": "Rome"}),
    line(170, "RetrievalQualityMetric", {}, TWO, None, "Paris.", {"references": TWO["context"], "answer": "Paris."}),
    line(
        201,
        "ToolSuccessMetric",
        {},
        {"id": "q1"},
        calls("success"),
        None,
        {"tool_calls": [{"name": "search", "status": "success"}], "basis": "tool_calls"},
    ),
    line(188, "ToolSuccessMetric", {}, {"id": "q1"}, None, {"success": True}, {"basis": "outcome.success"}),
    line(235, "CostMetric", {}, {"id": "q1"}, {"metadata": {"cost": 0.0032}}, None, {"cost": 0.0032}),
    line(
        257,
        "TokenUsageMetric",
        {},
        {"id": "q1"},
        usage(prompt_tokens=150, completion_tokens=75),
        None,
        {"prompt_tokens": 150, "completion_tokens": 75, "total_tokens": 225},
    ),
    line(
        371,
        "AudioTranscriptionMetric",
        {},
        SPOKEN,
        None,
        "for queen of clubs",
        {"wer": 0.25, "cer": 1 / 19, "accuracy": 0.75},
    ),
    line(
        395,
        "MultimodalCoherenceMetric",
        {},
        MEDIA,
        None,
        "However, it is a photo.",
        {"coverage": 0.5, "coherence": 1.0, "referenced": ["image"]},
    ),
    line(
        560,
        "CarbonMetric",
        {},
        {"id": "q1"},
        {"metadata": {"carbon_kg": 0.023}},
        "",
        {"carbon_kg": 0.023, "threshold_kg": 0.05, "under_threshold": True},
    ),
    line(562, "CarbonMetric", {}, {"id": "q1"}, {"metadata": {"carbon_kg": 0.051}}, "", {"under_threshold": False}),
    line(
        464,
        "PrivacyBudgetMetric",
        {},
        {"id": "q1", "metadata": {"epsilon": 12.0}},
        None,
        "",
        {"remaining": -2.0, "budget_exceeded": True, "warning": True},
    ),
]


@pytest.mark.parametrize(("class_name", "arguments", "case", "trace", "outcome", "detail"), DETAIL_VALUES)
def test_detail_values(
    class_name: str, arguments: dict[str, Any], case: Any, trace: Any, outcome: Any, detail: dict[str, Any]
) -> None:
    found = metric_of(class_name, **arguments).evaluate(case, trace, outcome).detail
    for key, value in detail.items():
        assert found[key] == (pytest.approx(value) if isinstance(value, float) else value), key


def test_line_564_kilometers_and_trees() -> None:
    detail = metric_of("CarbonMetric").evaluate({"id": "q1"}, {"metadata": {"carbon_kg": 0.023}}, "").detail
    assert set(detail["equivalents"]) == {"km_driven", "trees_needed"}
    assert round(detail["equivalents"]["km_driven"], 3) == 0.106
    assert round(detail["equivalents"]["trees_needed"], 4) == 0.0011


def test_line_461_the_budget_of_the_example() -> None:
    budget = metric_of("PrivacyBudgetMetric", total_budget=10.0, warn_threshold=0.8)
    spent = [budget.evaluate({"id": "q", "metadata": {"epsilon": each}}, None, "") for each in (2.7, 0.5)]
    detail = {key: spent[-1].detail[key] for key in ("epsilon_used", "total_spent", "remaining", "utilization")}
    assert detail == pytest.approx({"epsilon_used": 0.5, "total_spent": 3.2, "remaining": 6.8, "utilization": 0.32})
    assert (spent[-1].detail["budget_exceeded"], spent[-1].detail["warning"]) == (False, False)
    assert spent[-1].value == pytest.approx(0.68)


@pytest.mark.parametrize(("spent", "warning"), [line(455, 7.9, False), line(455, 8.0, True)])
def test_the_budget_warns_at_80_percent(spent: float, warning: bool) -> None:
    case = {"id": "q", "metadata": {"epsilon": spent}}
    assert metric_of("PrivacyBudgetMetric").evaluate(case, None, "").detail["warning"] is warning


def test_line_505_metadata_of_a_case_can_be_assigned() -> None:
    case = DatasetCase("q1")
    case.metadata = {"consent": {"email": True, "location": False}}
    assert metric_of("ConsentComplianceMetric").evaluate(case, None, "Hello.").detail["denied"] == ["location"]


# Lines 429 to 436: what counts as personal data, and how sure that is

FOUND = [
    line(432, "jane.doe@example.com", "email", 0.95),
    line(432, '"john doe"@example.com', "email", 0.95),
    line(432, "user@[192.168.1.1]", "email", 0.95),
    line(432, "first+tag@sub.example.co.uk", "email", 0.95),
    line(433, "212-555-0187", "phone", 0.90),
    line(433, "(212) 555-0187", "phone", 0.90),
    line(433, "212.555.0187", "phone", 0.90),
    line(434, "123-45-6789", "ssn", 0.98),
    line(434, "536-22-8726", "ssn", 0.98),
    line(435, "4111-1111-1111-1111", "credit_card", 0.85),
    line(435, "4111 1111 1111 1111", "credit_card", 0.85),
    line(435, "1234-5678-9012-3456", "credit_card", 0.85),
    line(435, "1234 5678 9012 3456", "credit_card", 0.85),
    line(436, "Jane Miller", "name", 0.60),
    line(436, "John Smith", "name", 0.60),
    line(436, "Mary Johnson", "name", 0.60),
]


@pytest.mark.parametrize(("text", "kind", "confidence"), FOUND)
@pytest.mark.parametrize("sentence", ["Here: {}", "You asked for {}."])
def test_detected_personal_data(text: str, kind: str, confidence: float, sentence: str) -> None:
    result = metric_of("PIILeakageMetric").evaluate({"id": "q1"}, None, sentence.format(text))
    assert [(each["type"], each["confidence"]) for each in result.detail["findings"]] == [(kind, confidence)]
    assert text not in repr(result.detail)


# Lines 69 to 71, 99 to 102, 131, 162: which backend scores


@pytest.fixture
def both_services_ready(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """RAGAS is installed and a model is configured; RAGAS gives every answer 0.85."""
    from agentunit.addons.judge.judge_backend import JudgeBackend
    from agentunit.addons.ragas._ragas_backend import RagasBackend

    monkeypatch.delenv("AGENTUNIT_BACKEND", raising=False)
    monkeypatch.delenv("AGENTUNIT_RAGAS", raising=False)
    monkeypatch.setenv("AGENTUNIT_JUDGE_URL", "http://127.0.0.1:8000/v1")
    monkeypatch.setenv("AGENTUNIT_JUDGE_MODEL", "judge-1")
    for kind in (JudgeBackend, RagasBackend):
        monkeypatch.setattr(kind, "unready", lambda self: None)
    monkeypatch.setattr(
        RagasBackend, "judge", lambda self, measure, questions: [quality.Verdict(0.85, {}) for _ in questions]
    )
    quality.load_backend.cache_clear()
    yield
    quality.load_backend.cache_clear()


@pytest.mark.usefixtures("both_services_ready")
@pytest.mark.parametrize(
    ("class_name", "value"),
    [
        line(70, "FaithfulnessMetric", 0.85),
        line(101, "AnswerCorrectnessMetric", 0.85),
        line(131, "HallucinationRateMetric", 0.15),
        line(162, "RetrievalQualityMetric", 0.85),
    ],
)
def test_ragas_scores_where_it_is_available(class_name: str, value: float) -> None:
    result = metric_of(class_name).evaluate({**TWO, "expected_output": "Paris"}, None, "In France, I think.")
    assert result.detail["backend"] == "ragas"
    assert result.value == pytest.approx(value)


@pytest.mark.parametrize(
    "class_name",
    [
        line(71, "FaithfulnessMetric"),
        line(102, "AnswerCorrectnessMetric"),
        line(132, "HallucinationRateMetric"),
        line(163, "RetrievalQualityMetric"),
    ],
)
def test_without_any_backend_the_fallback_scores_and_is_informational(
    class_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("AGENTUNIT_BACKEND", raising=False)
    monkeypatch.setattr(quality, "installed_backends", dict)
    metric = metric_of(class_name)
    assert metric.evaluate({**TWO, "expected_output": "Paris"}, None, "Paris").detail["backend"] == "lexical"
    assert "lexical" in metric.info.informational


@pytest.mark.skipif(find_spec("agentunit_local") is None, reason="the local model is not installed")
@pytest.mark.parametrize(
    "answer", ["Yes.", "The parcel arrives on Monday.", "It has 2 million people. It is in France."]
)
@pytest.mark.parametrize(
    ("class_name", "value"), [line(78, "FaithfulnessMetric", 1.0), line(142, "HallucinationRateMetric", 0.0)]
)
def test_a_verbatim_answer_is_fully_grounded(class_name: str, value: float, answer: str) -> None:
    case = {"id": "q1", "query": "What does it say?", "context": [answer]}
    assert metric_of(class_name, backend="local").evaluate(case, None, answer).value == value


# Lines 276 to 354: pictures and videos


class Directions:
    """An encoder whose answers and pictures form known angles: the answer is (1, 0), picture n has its own cosine."""

    name = "directions"

    def __init__(self, *cosines: float) -> None:
        self.cosines = cosines

    def encode_images(self, sources: Any, access: Any) -> list[tuple[float, float]]:
        return [(each, (1 - each * each) ** 0.5) for each, _ in zip(self.cosines, sources, strict=False)]

    def encode_texts(self, texts: Any) -> list[Any]:
        from agentunit.multimodal.clip_metric import EncodedText

        return [EncodedText(((1.0, 0.0),), (4,), True) for _ in texts]


@pytest.mark.parametrize(
    ("similarity", "threshold", "value"),
    [
        line(302, 0.25, 0.25, 1.0),
        line(303, 0.9, 0.25, 1.0),
        line(303, 0.125, 0.25, 0.5),
        line(303, 0.0, 0.25, 0.0),
        line(303, -0.5, 0.25, 0.0),
        line(291, 0.25, 0.5, 0.5),
    ],
)
def test_grounding_compares_the_cosine_with_the_threshold(similarity: float, threshold: float, value: float) -> None:
    metric = metric_of("CrossModalGroundingMetric", threshold=threshold, encoder=Directions(similarity))
    result = metric.evaluate({"id": "q1", "metadata": {"image_path": "cat.png"}}, None, "A cat.")
    assert result.value == pytest.approx(value)
    assert result.detail["similarity"] == pytest.approx(similarity)


@pytest.mark.parametrize(
    ("class_name", "metadata"),
    [
        line(296, "CrossModalGroundingMetric", {"image_path": "tests/data/media/red_circle.png"}),
        line(334, "VideoResponseRelevanceMetric", {"video_path": "tests/data/media/blue_square.mp4"}),
    ],
)
@pytest.mark.skipif(find_spec("onnxruntime") is None, reason="the extra multimodal is not installed")
def test_media_of_the_case_are_read(class_name: str, metadata: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGENTUNIT_CLIP", str(TINY_CLIP))
    root = Path(__file__).resolve().parent.parent
    metric = metric_of(class_name, media_root=root)
    result = metric.evaluate({"id": "q1", "metadata": metadata}, None, "a photo of a red circle")
    assert result.value is not None, result.detail["reason"]
    assert 0.0 <= result.value <= 1.0


@pytest.mark.parametrize(
    ("similarities", "value"),
    [
        line(354, [0.1, 0.2, 0.3], 0.6 * 0.2 + 0.4 * 0.3, note="three frames"),
        line(354, [0.3], 0.3, note="one frame"),
        line(354, [-0.5, -0.5], 0.0, note="never below 0"),
    ],
)
def test_frames_weigh_mean_and_best(similarities: list[float], value: float) -> None:
    from agentunit.formulas.similarity import frames_score

    assert frames_score(similarities) == pytest.approx(value)


FAKE_SENTENCE_TRANSFORMERS = """
import numpy

class SentenceTransformer:
    def __init__(self, name, *args, **options):
        self.name = name

    def encode(self, sentences, *args, **options):
        if isinstance(sentences, str):
            return numpy.array([1.0, 0.0], dtype="float32")
        return numpy.array([[1.0, 0.0]] * len(sentences), dtype="float32")
"""


@pytest.mark.skipif(find_spec("numpy") is None, reason="the stand-in for sentence-transformers needs numpy")
@pytest.mark.parametrize("model_name", [line(322, "all-mpnet-base-v2"), line(322, "sentence-transformers/LaBSE")])
def test_any_sentence_transformers_model_where_the_package_is_installed(
    model_name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "sentence_transformers").mkdir()
    (tmp_path / "sentence_transformers" / "__init__.py").write_text(FAKE_SENTENCE_TRANSFORMERS)
    monkeypatch.syspath_prepend(str(tmp_path))
    try:
        metric = metric_of("ImageCaptionAccuracyMetric", model_name=model_name)
        result = metric.evaluate(CAPTION, None, "a dog")
        assert result.value == pytest.approx(0.7 * 1.0 + 0.3 * result.detail["f1"])
    finally:
        sys.modules.pop("sentence_transformers", None)


@pytest.mark.parametrize(("semantic", "keywords"), [line(327, 0.7, 0.3)])
def test_caption_weights(semantic: float, keywords: float, monkeypatch: pytest.MonkeyPatch) -> None:
    from agentunit.multimodal import reference_texts

    metric = metric_of("ImageCaptionAccuracyMetric")
    fixed = SimpleNamespace(name="fixed", similarity=lambda caption, reference: 0.5)
    monkeypatch.setitem(metric.__dict__, "_similarity", fixed)
    result = metric.evaluate(CAPTION, None, "a dog")
    assert (result.detail["precision"], result.detail["recall"]) == (1.0, 0.5)
    assert result.value == pytest.approx(semantic * 0.5 + keywords * result.detail["f1"])
    assert (semantic, keywords) == (reference_texts.SEMANTIC_WEIGHT, reference_texts.KEYWORD_WEIGHT)


# "Dependencies: None" and "(optional)": these score on a base install

BLOCKED = ["av", "clip", "cv2", "jiwer", "numpy", "PIL", "pydantic", "ragas", "scipy", "sentence_transformers", "torch"]
BASE = {
    62: "FaithfulnessMetric",
    92: "AnswerCorrectnessMetric",
    123: "HallucinationRateMetric",
    154: "RetrievalQualityMetric",
    183: "ToolSuccessMetric",
    216: "CostMetric",
    248: "TokenUsageMetric",
    315: "ImageCaptionAccuracyMetric",
    366: "AudioTranscriptionMetric",
    388: "MultimodalCoherenceMetric",
    410: "PIILeakageMetric",
    448: "PrivacyBudgetMetric",
    481: "DataMinimizationMetric",
    500: "ConsentComplianceMetric",
    525: "EnergyMetric",
    546: "CarbonMetric",
    580: "ResourceUtilizationMetric",
    688: "CoordinationEfficiencyMetric",
    731: "SwarmIntelligenceMetric",
    766: "NetworkFaultToleranceMetric",
}
BASE_PROGRAM = """
import importlib, os, sys
for name in {blocked}:
    sys.modules[name] = None
os.environ["AGENTUNIT_BACKEND"] = "lexical"
said = [dict(from_agent=a, to_agent=b, timestamp=float(at)) for at, (a, b) in enumerate(["ab", "bc", "ca", "ab"])]
metadata = dict(consent=dict(location=False), user_data=dict(location="Oslo"), email="jane@example.com", epsilon=1.0)
case = dict(id="q1", query="Where?", context=["Oslo"], expected_output="In Oslo.", metadata=metadata)
used = dict(cost=0.1, usage=dict(total_tokens=5), energy_kwh=0.1, cpu_percent=50.0)
trace = dict(metadata=used, interactions=said)
for module, name, arguments in {metrics}:
    metric = getattr(importlib.import_module(module), name)(**arguments)
    result = metric.evaluate(case, trace, dict(output="In Oslo.", success=True))
    print(name, "scored" if result.value is not None else result.detail["reason"])
"""


@pytest.fixture(scope="module")
def on_the_base_install() -> dict[str, str]:
    arguments = {"ImageCaptionAccuracyMetric": {"use_semantic": False}}
    metrics = [(MODULE_OF[name], name, arguments.get(name, {})) for name in BASE.values()]
    program = BASE_PROGRAM.format(blocked=BLOCKED, metrics=metrics)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return dict(row.split(" ", 1) for row in done.stdout.splitlines())


@pytest.mark.parametrize("class_name", [line(number, name) for number, name in BASE.items()])
def test_scored_without_heavy_packages(class_name: str, on_the_base_install: dict[str, str]) -> None:
    assert on_the_base_install[class_name] == "scored"


# The examples as written; what the catalog leaves to the reader (case, trace, outcome, lists) is there


def example_names() -> dict[str, Any]:
    case = DatasetCase("q1", "Capital?", expected_output="Paris", context=["Paris", "France"])
    trace = TraceLog(metadata={"cost": 0.0032, "usage": {"prompt_tokens": 150, "completion_tokens": 75}})
    for status in ["success"] * 9 + ["error"]:
        trace.record("tool_call", name="search", status=status)
    role = import_module("agentunit.multiagent").AgentRole
    trace.interactions = [interaction(*each) for each in [("a", "b", 0.0), ("b", "c", 1.0), ("c", "a", 2.0)]]
    return {
        "case": case,
        "trace": trace,
        "outcome": Outcome(success=True, output="Paris"),
        "interaction_list": trace.interactions,
        "handoff_list": [],
        "conflict_list": [],
        "role_a": role("planner"),
        "role_b": role("coder"),
        "interactions": trace.interactions,
        "handoffs": [],
        "conflicts": [],
        "adjacency_dict": {"a": ["b"], "b": ["c"], "c": ["a"]},
        "agent_list": ["a", "b", "c"],
        "agent_roles": {},
    }


def interaction(sender: str, receiver: str, at: float, **more: Any) -> Any:
    return import_module("agentunit.multiagent").AgentInteraction(sender, receiver, timestamp=at, **more)


EVALUATED = "metric = {0}()\nresult = metric.evaluate(case, trace, outcome)\n"
EXAMPLES = [
    *(
        line(number, f"from {module} import {name}\n\n" + EVALUATED.format(name), {"result.name": f"{metric_name!r}"})
        for number, module, name, metric_name in [
            (73, CORE, "FaithfulnessMetric", "faithfulness"),
            (104, CORE, "AnswerCorrectnessMetric", "answer_correctness"),
            (134, CORE, "HallucinationRateMetric", "hallucination_rate"),
            (165, CORE, "RetrievalQualityMetric", "retrieval_quality"),
            (706, "agentunit.multiagent", "CoordinationEfficiencyMetric", "coordination_efficiency"),
            (742, "agentunit.multiagent", "SwarmIntelligenceMetric", "swarm_intelligence"),
            (782, "agentunit.multiagent", "NetworkFaultToleranceMetric", "network_fault_tolerance"),
        ]
    ),
    line(
        195, f"from {CORE} import ToolSuccessMetric\n" + EVALUATED.format("ToolSuccessMetric"), {"result.value": "0.9"}
    ),
    line(229, f"from {CORE} import CostMetric\n" + EVALUATED.format("CostMetric"), {"result.value": "0.0032"}),
    line(
        264, f"from {CORE} import TokenUsageMetric\n" + EVALUATED.format("TokenUsageMetric"), {"result.value": "225.0"}
    ),
    line(
        289,
        f"from {MULTIMODAL} import CrossModalGroundingMetric\n"
        'm = CrossModalGroundingMetric(\n    clip_model_name="ViT-B/32",\n    threshold=0.25\n)',
        {"m.threshold": "0.25"},
    ),
    line(
        320,
        f"from {MULTIMODAL} import ImageCaptionAccuracyMetric\n"
        'm = ImageCaptionAccuracyMetric(\n    use_semantic=True,\n    model_name="all-MiniLM-L6-v2"\n)',
        {"m.use_semantic": "True"},
    ),
    line(
        345,
        f"from {MULTIMODAL} import VideoResponseRelevanceMetric\n"
        'm = VideoResponseRelevanceMetric(\n    num_frames=8,\n    clip_model_name="ViT-B/32"\n)',
        {"m.num_frames": "8"},
    ),
    line(
        415,
        f"from {PRIVACY} import PIILeakageMetric\n"
        "m = PIILeakageMetric(\n    check_input=False,\n    check_output=True,\n    severity_weights={\n"
        '        "email": 0.5,\n        "phone": 0.6,\n        "ssn": 1.0,\n        "credit_card": 1.0,\n'
        '        "name": 0.3,\n        "address": 0.7\n    }\n)',
        {"m.check_input": "False"},
    ),
    line(
        453,
        f"from {PRIVACY} import PrivacyBudgetMetric\nm = PrivacyBudgetMetric(total_budget=10.0, warn_threshold=0.8)",
        {"m.total_budget": "10.0"},
    ),
    line(
        505,
        'case.metadata = {\n    "consent": {\n        "email": True,\n        "location": False\n    }\n}',
        {"case.metadata['consent']['location']": "False"},
    ),
    line(
        530,
        f"from {SUSTAINABILITY} import EnergyMetric\nm = EnergyMetric(threshold_kwh=0.1, sample_interval=1.0)",
        {"m.threshold_kwh": "0.1"},
    ),
    line(
        551,
        f"from {SUSTAINABILITY} import CarbonMetric\nm = CarbonMetric(threshold_kg=0.05, grid_intensity=0.475)",
        {"m.threshold_kg": "0.05"},
    ),
    line(
        585,
        f"from {SUSTAINABILITY} import ResourceUtilizationMetric\n"
        "m = ResourceUtilizationMetric(\n    target_cpu_percent=80.0,\n    target_memory_gb=4.0,\n"
        "    target_gpu_percent=80.0\n)",
        {"m.target_memory_gb": "4.0"},
    ),
    line(
        605,
        "from agentunit.metrics.base import CompositeMetric\n"
        "from agentunit.metrics.builtin import (\n    FaithfulnessMetric,\n    AnswerCorrectnessMetric,\n"
        "    ToolSuccessMetric\n)\n\n"
        "composite = CompositeMetric([\n    FaithfulnessMetric(),\n    AnswerCorrectnessMetric(),\n"
        "    ToolSuccessMetric()\n])\n\n"
        "result = composite.evaluate(case, trace, outcome)\n",
        {
            "round(result.value, 9)": "0.8",  # (0.5 + 1.0 + 0.9) / 3
            "sorted(result.detail)": "['answer_correctness', 'faithfulness', 'tool_success']",
        },
    ),
    line(
        803,
        "from agentunit.multiagent import MultiAgentMetricsCalculator\n\n"
        "calculator = MultiAgentMetricsCalculator(\n    interactions=interaction_list,\n    handoffs=handoff_list,\n"
        '    conflicts=conflict_list,\n    agent_roles={"agent_a": role_a, "agent_b": role_b}\n)\n\n'
        "coordination = calculator.calculate_coordination_metrics()\n"
        "network = calculator.calculate_network_metrics()\n"
        "emergent = calculator.calculate_emergent_behavior_metrics()\n\n"
        "all_metrics = calculator.calculate_all()\n",
        {
            "all_metrics == {'coordination': coordination, 'network': network, 'emergent': emergent}": "True",
            "type(coordination).__name__": "'CoordinationMetrics'",
            "type(network).__name__": "'NetworkMetrics'",
            "type(emergent).__name__": "'EmergentBehaviorMetrics'",
        },
    ),
    line(
        865,
        "from agentunit.multiagent import (\n    InteractionAnalyzer,\n    NetworkAnalyzer,\n"
        "    EmergentBehaviorDetector\n)\n\n"
        "interaction_analyzer = InteractionAnalyzer(interactions, handoffs, conflicts)\n"
        "handoff_metrics = interaction_analyzer.calculate_handoff_metrics()\n"
        "conflict_metrics = interaction_analyzer.calculate_conflict_metrics()\n"
        "efficiency = interaction_analyzer.calculate_communication_efficiency()\n"
        "load_balance = interaction_analyzer.calculate_load_balance()\n\n"
        "network_analyzer = NetworkAnalyzer(adjacency_dict, agent_list)\n"
        "density = network_analyzer.calculate_density()\n"
        "centralization = network_analyzer.calculate_centralization()\n"
        "hubs = network_analyzer.find_hub_agents(threshold=0.7)\n"
        "bottlenecks = network_analyzer.find_bottleneck_agents()\n\n"
        "detector = EmergentBehaviorDetector(interactions, agent_roles)\n"
        "self_org = detector.detect_self_organization()\n"
        "specialization = detector.detect_specialization()\n"
        "collective = detector.detect_collective_decision_making()\n"
        "adaptation = detector.detect_adaptation_rate()\n"
        "swarm_score = detector.calculate_swarm_intelligence()\n",
        {
            "set(handoff_metrics)": "{'handoff_success_rate', 'avg_handoff_time'}",
            "set(conflict_metrics)": "{'conflict_rate', 'conflict_resolution_rate', 'avg_resolution_time'}",
            "(efficiency, load_balance)": "(1.0, 1.0)",
            "(density, centralization)": "(0.5, 0.0)",  # three of six edges, a ring
            "(hubs, bottlenecks)": "(['a', 'b', 'c'], [])",
            "collective": "0.0",
        },
    ),
    line(
        901,
        "from agentunit.metrics import resolve_metrics\n\n"
        'metrics = resolve_metrics(["faithfulness", "tool_success", "cost"])\n\n'
        "from agentunit.metrics import DEFAULT_METRICS\n",
        {"[metric.name for metric in metrics]": "['faithfulness', 'tool_success', 'cost']"},
    ),
]


@pytest.mark.parametrize(("source", "holds"), EXAMPLES)
def test_examples_as_written(source: str, holds: dict[str, str]) -> None:
    names = example_names()
    exec(compile(source, "catalog.md", "exec", dont_inherit=True), names)
    for expression, value in holds.items():
        assert eval(expression, names) == eval(value, names), expression


# Lines 599 to 622: composites


class Fixed:
    def __init__(self, name: str, value: float | None, **detail: Any) -> None:
        self.name, self.value, self.detail = name, value, detail

    def evaluate(self, case: Any, trace: Any, outcome: Any) -> MetricResult:
        return MetricResult(self.name, self.value, dict(self.detail))


@pytest.mark.parametrize(
    ("values", "mean"),
    [
        line(620, [0.5, 1.0], 0.75, note="two values"),
        line(620, [0.5, None, 1.0], 0.75, note="None does not count"),
        line(620, [None, None], None, note="no value"),
        line(620, [0.0], 0.0, note="one value"),
    ],
)
def test_a_composite_is_the_average_of_the_values(values: list[float | None], mean: float | None) -> None:
    parts = [Fixed(f"m{place}", value, seen=place) for place, value in enumerate(values)]
    result = CompositeMetric(parts).evaluate(DatasetCase("q1"), TraceLog(), None)
    assert result.value == mean
    details = {f"m{place}": {"seen": place} for place in range(len(values))}
    assert {name: result.detail[name] for name in details} == details
    assert set(result.detail) - set(details) == (set() if mean is not None else {"reason"})


# Lines 630 to 672: a metric of one's own. Kept as text, so that annotations are evaluated as in a user's file.

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
        # Calculate total latency from trace
        start = trace.events[0].timestamp if trace.events else 0
        end = trace.events[-1].timestamp if trace.events else 0
        latency_ms = (end - start) * 1000

        # Score: 1.0 if under threshold, scaled otherwise
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
    namespace: dict[str, Any] = {"__name__": "__main__"}
    exec(compile(LATENCY_SOURCE, "<cell>", "exec", dont_inherit=True), namespace)
    return namespace["LatencyMetric"]


@pytest.fixture
def fresh_registry(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a test registers is gone after it."""
    monkeypatch.setattr(registry_module, "registry", registry_module.MetricRegistry(entry_point_group=None))


def timed(*moments: float | None) -> TraceLog:
    return TraceLog([TraceEvent("message", {}, moment) for moment in moments])


def scored_in_a_run(metric: Any, trace: TraceLog) -> Any:
    [scores] = agentunit.score([(DatasetCase("q1"), trace, "done")], [metric])
    return scores.scores[metric.name]


@pytest.mark.parametrize(
    ("trace", "value", "latency_ms"),
    [
        line(653, timed(0.0, 10.0), 0.5, 10000.0, note="10 s where 5 s are allowed"),
        line(653, timed(3.0, 4.0), 1.0, 1000.0, note="under the threshold"),
        line(648, TraceLog(), 1.0, 0, note="no events"),
        line(653, timed(2.0), 1.0, 0.0, note="one event"),
    ],
)
def test_the_latency_metric_scores(trace: TraceLog, value: float, latency_ms: float) -> None:
    direct = latency_metric_class()().evaluate(DatasetCase("q1"), trace, "done")
    assert (direct.value, direct.detail["latency_ms"]) == (value, latency_ms)
    assert direct.detail["under_threshold"] is (latency_ms <= 5000.0)
    score = scored_in_a_run(latency_metric_class()(), trace)
    assert (score.value, score.status) == (value, "ok")


@pytest.mark.parametrize("trace", [line(650, timed(None, None)), line(650, timed(1.0, None)), line(650, timed(None))])
def test_the_latency_metric_on_events_without_timestamps_is_none_with_a_reason(trace: TraceLog) -> None:
    score = scored_in_a_run(latency_metric_class()(), trace)
    assert (score.value, score.status) == (None, "not_applicable")
    assert score.result.detail["reason"].startswith("no timestamps: ")
    assert "error" not in score.result.detail


def test_line_650_in_a_composite_the_latency_metric_without_timestamps_does_not_count() -> None:
    composite = CompositeMetric([latency_metric_class()(), Fixed("other", 0.5)])
    assert scored_in_a_run(composite, timed(None, None)).value == 0.5


@pytest.mark.parametrize(
    ("source", "trace"),
    [
        ("None + 1", timed(None, None)),
        ("trace.events[0].timestamp - None", timed(1.0, 2.0)),
        ("len(5), trace.events[0].timestamp", timed(None, None)),
    ],
    ids=["reads no timestamp", "all timestamps are there", "no None is involved"],
)
def test_another_type_error_stays_an_error(source: str, trace: TraceLog) -> None:
    class Broken:
        name = "broken"

        def evaluate(self, case: Any, trace: Any, outcome: Any) -> Any:
            return exec_with(trace)

    namespace: dict[str, Any] = {}
    exec(f"def exec_with(trace):\n    return {source}", namespace)
    exec_with = namespace["exec_with"]
    score = scored_in_a_run(Broken(), trace)
    assert (score.status, score.result.detail["error"]["type"]) == ("error", "TypeError")


def test_line_671_latency_is_free_to_register() -> None:
    assert "latency" not in registry_module.MetricRegistry(entry_point_group=None).names()


@pytest.mark.usefixtures("fresh_registry")
def test_line_671_registered_resolved_and_registered_again() -> None:
    from agentunit.metrics.registry import register_metric

    for _ in range(2):  # a notebook cell that is run again makes a new class
        latency_metric = latency_metric_class()
        register_metric("latency", latency_metric)
        [metric] = agentunit.metrics.resolve_metrics(["latency"])
        assert isinstance(metric, latency_metric)
    assert metric.threshold_ms == 5000.0
    with pytest.raises(ValueError, match="'latency', which is registered already"):
        register_metric("latency", Fixed)
    register_metric("latency", lambda: Fixed("latency", 1.0), replace=True)


# Lines 680 to 795: multi-agent metrics


def between(*pairs: str, **more: Any) -> list[dict[str, Any]]:
    return [{"from_agent": a, "to_agent": b, "timestamp": float(at), **more} for at, (a, b) in enumerate(pairs)]


def handoffs(*successes: bool) -> list[dict[str, Any]]:
    return [{"from_agent": "a", "to_agent": "b", "success": each} for each in successes]


def conflicts(*resolved: bool) -> list[dict[str, Any]]:
    return [{"agents_involved": ["a", "b"], "resolved": each} for each in resolved]


@pytest.mark.parametrize(
    ("component", "weight"),
    [
        line(700, "handoff_success_rate", 0.25),
        line(701, "conflict_resolution_rate", 0.20),
        line(702, "communication_efficiency", 0.25),
        line(703, "role_adherence", 0.15),
        line(704, "load_balance_score", 0.15),
    ],
)
def test_weights_of_coordination(component: str, weight: float) -> None:
    from agentunit.formulas.coordination import COORDINATION_WEIGHTS, weighted_score

    assert COORDINATION_WEIGHTS[component] == weight
    ones = {name: float(name == component) for name in COORDINATION_WEIGHTS}
    assert weighted_score(ones, COORDINATION_WEIGHTS) == pytest.approx(weight)


@pytest.mark.parametrize(
    ("component", "weight"),
    [
        line(737, "self_organization", 0.30),
        line(738, "specialization", 0.25),
        line(739, "collective_decision", 0.25),
        line(740, "adaptation_rate", 0.20),
    ],
)
def test_weights_of_the_swarm(component: str, weight: float) -> None:
    from agentunit.formulas.coordination import SWARM_WEIGHTS, weighted_score

    assert SWARM_WEIGHTS[component] == weight
    ones = {name: float(name == component) for name in SWARM_WEIGHTS}
    assert weighted_score(ones, SWARM_WEIGHTS) == pytest.approx(weight)


def test_lines_700_to_704_all_components_together() -> None:
    trace = {
        "interactions": between("ab", "ba", message_type="plan", response_time=10.0),
        "handoffs": handoffs(True, True, True, False),
        "conflicts": conflicts(True, False),
        "agent_roles": {
            "a": {"name": "lead", "message_types": ["plan"]},
            "b": {"name": "x", "message_types": ["code"]},
        },
    }
    result = metric_of("CoordinationEfficiencyMetric").evaluate({"id": "q1"}, trace, None)
    detail = result.detail
    assert detail["handoff_success_rate"] == 0.75
    assert detail["conflict_resolution_rate"] == 0.5
    assert detail["communication_efficiency"] == 0.75  # all succeeded; 5 s allowed, 10 s taken
    assert detail["load_balance_score"] == 1.0
    weighed = 0.25 * 0.75 + 0.20 * 0.5 + 0.25 * 0.75 + 0.15 * detail["role_adherence"] + 0.15 * 1.0
    assert result.value == pytest.approx(weighed)


COMPONENTS = [
    line(700, "CoordinationEfficiencyMetric", {"handoffs": handoffs(True, False)}, "handoff_success_rate", 0.5),
    line(700, "CoordinationEfficiencyMetric", {"interactions": between("ab")}, "handoff_success_rate", None),
    line(701, "CoordinationEfficiencyMetric", {"conflicts": conflicts(True, False)}, "conflict_resolution_rate", 0.5),
    line(702, "CoordinationEfficiencyMetric", {"interactions": between("ab")}, "communication_efficiency", 1.0),
    line(
        702,
        "CoordinationEfficiencyMetric",
        {"interactions": between("ab", response_time=20.0)},
        "communication_efficiency",
        0.5 + 0.5 * 5 / 20,
    ),
    line(
        702,
        "CoordinationEfficiencyMetric",
        {"interactions": between("ab", success=False)},
        "communication_efficiency",
        0.0,
    ),
    line(
        703,
        "CoordinationEfficiencyMetric",
        {
            "interactions": between("ab", "ab", interaction_type="delegation"),
            "agent_roles": {"a": {"name": "worker", "can_delegate": False}},
        },
        "role_adherence",
        0.0,
    ),
    line(703, "CoordinationEfficiencyMetric", {"interactions": between("ab")}, "role_adherence", None),
    line(704, "CoordinationEfficiencyMetric", {"interactions": between("ab", "ba")}, "load_balance_score", 1.0),
    line(704, "CoordinationEfficiencyMetric", {"interactions": between("ab", "ab")}, "load_balance_score", 0.0),
    # From four pairs to two: (ln 4 − ln 2) / ln 4
    line(
        737,
        "SwarmIntelligenceMetric",
        {"interactions": between("ab", "bc", "cd", "da", "ab", "ab", "ba", "ba")},
        "self_organization",
        0.5,
    ),
    line(737, "SwarmIntelligenceMetric", {"interactions": between("ab", "ba")}, "self_organization", None),
    line(
        738,
        "SwarmIntelligenceMetric",
        {"interactions": [*between("ab", "ab", message_type="plan"), *between("ba", "ba", message_type="code")]},
        "specialization",
        1.0,
    ),
    line(
        738,
        "SwarmIntelligenceMetric",
        {"interactions": between("ab", "ab", "ba", "ba", message_type="plan")},
        "specialization",
        0.0,
    ),
    line(
        739,
        "SwarmIntelligenceMetric",
        {"interactions": [*between("ab", interaction_type="negotiation"), *between("ab", interaction_type="request")]},
        "collective_decision",
        0.5,
    ),
    line(
        739,
        "SwarmIntelligenceMetric",
        {"interactions": between("ab", "ba", interaction_type="collaboration")},
        "collective_decision",
        1.0,
    ),
    line(
        740,
        "SwarmIntelligenceMetric",
        {
            "interactions": [
                {**each, "response_time": took}
                for each, took in zip(between("ab", "ba", "ab", "ba"), (4.0, 6.0, 2.0, 2.0), strict=True)
            ]
        },
        "adaptation_rate",
        0.6,
    ),
    # A ring of four: 4 of 12 edges, nobody stands out, no bottleneck
    line(772, "NetworkFaultToleranceMetric", {"interactions": between("ab", "bc", "cd", "da")}, "density", 4 / 12),
    line(773, "NetworkFaultToleranceMetric", {"interactions": between("ab", "bc", "cd", "da")}, "centralization", 0.0),
    line(773, "NetworkFaultToleranceMetric", {"interactions": between("ha", "hb", "hc")}, "centralization", 1.0),
    line(774, "NetworkFaultToleranceMetric", {"interactions": between("ab", "bc", "ca")}, "clustering", 1.0),
    line(774, "NetworkFaultToleranceMetric", {"interactions": between("ha", "hb", "hc")}, "clustering", 0.0),
    line(775, "NetworkFaultToleranceMetric", {"interactions": between("ha", "hb", "hc")}, "bottleneck_count", 1),
    line(775, "NetworkFaultToleranceMetric", {"interactions": between("ab", "bc", "ca")}, "bottleneck_count", 0),
    line(792, "NetworkFaultToleranceMetric", {"interactions": between("ha", "hb", "hc")}, "hub_agents", ["h"]),
]


@pytest.mark.parametrize(("class_name", "trace", "key", "value"), COMPONENTS)
def test_multi_agent_components(class_name: str, trace: dict[str, Any], key: str, value: Any) -> None:
    found = metric_of(class_name).evaluate({"id": "q1"}, trace, None).detail[key]
    assert found == (pytest.approx(value) if isinstance(value, float) else value)


@pytest.mark.parametrize(
    ("pairs", "density", "bottleneck_ratio"),
    [
        line(779, ("ab", "bc", "cd", "da"), 4 / 12, 0.0, note="a ring"),
        line(779, ("ha", "hb", "hc"), 3 / 12, 1 / 4, note="a star"),
        line(779, ("ab", "ba"), 1.0, 0.0, note="a pair"),
        line(779, ("ab", "bc"), 2 / 6, 1 / 3, note="a chain"),
    ],
)
def test_fault_tolerance(pairs: tuple[str, ...], density: float, bottleneck_ratio: float) -> None:
    result = metric_of("NetworkFaultToleranceMetric").evaluate({"id": "q1"}, {"interactions": between(*pairs)}, None)
    assert result.value == pytest.approx(0.6 * density + 0.4 * (1 - bottleneck_ratio))


@pytest.mark.parametrize(
    "class_name",
    [
        line(691, "CoordinationEfficiencyMetric"),
        line(723, "SwarmIntelligenceMetric"),
        line(758, "NetworkFaultToleranceMetric"),
    ],
)
def test_without_agents_there_is_no_score(class_name: str) -> None:
    result = metric_of(class_name).evaluate(DatasetCase("q1"), TraceLog(), None)
    assert result.value is None
    assert result.detail["reason"]


TRACE_PARTS = [
    line(692, "interactions", "AgentInteraction", {"from_agent": "a", "to_agent": "b"}),
    line(693, "handoffs", "HandoffEvent", {"from_agent": "a", "to_agent": "b"}),
    line(694, "conflicts", "ConflictEvent", {"agents_involved": ["a", "b"]}),
]


@pytest.mark.parametrize(("part", "kind", "fields"), TRACE_PARTS)
def test_a_trace_holds_what_agents_did(part: str, kind: str, fields: dict[str, Any]) -> None:
    made = getattr(import_module("agentunit.multiagent"), kind)(**fields)
    assert getattr(TraceLog(), part) == []
    typed = metric_of("CoordinationEfficiencyMetric").evaluate(DatasetCase("q1"), TraceLog(**{part: [made]}), None)
    plain = metric_of("CoordinationEfficiencyMetric").evaluate({"id": "q1"}, {part: [fields]}, None)
    assert typed == plain


def test_line_695_roles_are_a_dict_of_agents() -> None:
    role = import_module("agentunit.multiagent").AgentRole("lead")
    assert TraceLog().agent_roles == {}
    assert TraceLog(agent_roles={"a": role}).agent_roles["a"].name == "lead"


# Lines 822 to 857: the data classes, field by field

FIELDS = {
    "CoordinationMetrics": (
        826,
        [
            "handoff_success_rate",
            "avg_handoff_time",
            "conflict_rate",
            "conflict_resolution_rate",
            "avg_resolution_time",
            "communication_efficiency",
            "role_adherence",
            "load_balance_score",
        ],
    ),
    "NetworkMetrics": (
        840,
        ["density", "centralization", "avg_path_length", "clustering_coefficient", "hub_agents", "bottleneck_agents"],
    ),
    "EmergentBehaviorMetrics": (
        852,
        [
            "self_organization_score",
            "specialization_emergence",
            "collective_decision_score",
            "adaptation_rate",
            "swarm_intelligence_score",
        ],
    ),
}
CALCULATED = {"CoordinationMetrics": "coordination", "NetworkMetrics": "network", "EmergentBehaviorMetrics": "emergent"}
CALCULATED_FIELDS = {
    ("coordination", "handoff_success_rate"): 0.5,
    ("coordination", "avg_handoff_time"): 2.0,
    ("coordination", "conflict_rate"): 100 / 4,
    ("coordination", "conflict_resolution_rate"): 1.0,
    ("coordination", "avg_resolution_time"): 3.0,
    ("coordination", "communication_efficiency"): 1.0,
    ("coordination", "role_adherence"): None,
    ("coordination", "load_balance_score"): 1.0,
    ("network", "density"): 4 / 12,
    ("network", "centralization"): 0.0,
    ("network", "avg_path_length"): 2.0,  # one way round: 1, 2 or 3 steps
    ("network", "clustering_coefficient"): 0.0,
    ("network", "hub_agents"): [],
    ("network", "bottleneck_agents"): [],
    ("emergent", "self_organization_score"): 0.0,
    ("emergent", "specialization_emergence"): None,
    ("emergent", "collective_decision_score"): 0.0,
    ("emergent", "adaptation_rate"): None,
    ("emergent", "swarm_intelligence_score"): 0.0,
}


@pytest.mark.parametrize(
    ("kind", "place", "name"),
    [
        line(first + place, kind, place, name, note=f"{kind} {name}")
        for kind, (first, names) in FIELDS.items()
        for place, name in enumerate(names)
    ],
)
def test_fields_of_the_data_classes(kind: str, place: int, name: str) -> None:
    made = getattr(import_module("agentunit.multiagent"), kind)
    assert dataclasses.is_dataclass(made)
    assert [field.name for field in dataclasses.fields(made)][place] == name
    assert len(dataclasses.fields(made)) == len(FIELDS[kind][1])
    calculator = import_module("agentunit.multiagent").MultiAgentMetricsCalculator(
        interactions=between("ab", "bc", "cd", "da"),
        handoffs=[{"from_agent": "a", "to_agent": "b", "success": s, "handoff_time": 2.0} for s in (True, False)],
        conflicts=[{"agents_involved": ["a", "b"], "resolved": True, "resolution_time": 3.0}],
        agent_roles={},
    )
    found = getattr(calculator.calculate_all()[CALCULATED[kind]], name)
    value = CALCULATED_FIELDS[CALCULATED[kind], name]
    assert found == (pytest.approx(value) if isinstance(value, float) else value)


@pytest.mark.parametrize(
    ("kind", "method", "arguments"),
    [
        line(814, "MultiAgentMetricsCalculator", "calculate_coordination_metrics", []),
        line(815, "MultiAgentMetricsCalculator", "calculate_network_metrics", []),
        line(816, "MultiAgentMetricsCalculator", "calculate_emergent_behavior_metrics", []),
        line(819, "MultiAgentMetricsCalculator", "calculate_all", []),
        line(874, "InteractionAnalyzer", "calculate_handoff_metrics", []),
        line(875, "InteractionAnalyzer", "calculate_conflict_metrics", []),
        line(876, "InteractionAnalyzer", "calculate_communication_efficiency", []),
        line(877, "InteractionAnalyzer", "calculate_load_balance", []),
        line(881, "NetworkAnalyzer", "calculate_density", []),
        line(882, "NetworkAnalyzer", "calculate_centralization", []),
        line(883, "NetworkAnalyzer", "find_hub_agents", ["threshold"]),
        line(884, "NetworkAnalyzer", "find_bottleneck_agents", []),
        line(888, "EmergentBehaviorDetector", "detect_self_organization", []),
        line(889, "EmergentBehaviorDetector", "detect_specialization", []),
        line(890, "EmergentBehaviorDetector", "detect_collective_decision_making", []),
        line(891, "EmergentBehaviorDetector", "detect_adaptation_rate", []),
        line(892, "EmergentBehaviorDetector", "calculate_swarm_intelligence", []),
    ],
)
def test_methods_and_their_arguments(kind: str, method: str, arguments: list[str]) -> None:
    made = getattr(import_module("agentunit.multiagent"), kind)
    assert list(inspect.signature(getattr(made, method)).parameters) == ["self", *arguments]


@pytest.mark.parametrize(
    ("kind", "arguments"),
    [
        line(806, "MultiAgentMetricsCalculator", ["interactions", "handoffs", "conflicts", "agent_roles"]),
        line(873, "InteractionAnalyzer", ["interactions", "handoffs", "conflicts"]),
        line(887, "EmergentBehaviorDetector", ["interactions", "agent_roles"]),
    ],
)
def test_constructors_of_the_analyzers(kind: str, arguments: list[str]) -> None:
    made = getattr(import_module("agentunit.multiagent"), kind)
    assert list(inspect.signature(made).parameters)[: len(arguments)] == arguments


def test_line_883_hubs_reach_the_threshold() -> None:
    network = import_module("agentunit.multiagent").NetworkAnalyzer({"h": ["a", "b", "c"], "a": ["b"]}, ["d"])
    assert network.find_hub_agents(threshold=0.7) == ["h"]  # connected with 3 of 4 others
    assert network.find_hub_agents(threshold=0.75) == ["h"]
    assert network.find_hub_agents(threshold=0.76) == []
    assert network.find_hub_agents() == network.find_hub_agents(threshold=0.7)


# Lines 897 to 937: resolution, the standard set, migration


def test_line_911_the_standard_set() -> None:
    standard = ("faithfulness", "answer_correctness", "tool_success", "cost", "token_usage")
    assert standard == agentunit.metrics.DEFAULT_METRICS
    assert tuple(metric.name for metric in agentunit.metrics.resolve_metrics()) == standard
    assert tuple(metric.name for metric in agentunit.metrics.resolve_metrics(standard)) == standard


@pytest.mark.parametrize(
    "use",
    [
        line(935, lambda metric: registry_module.MetricRegistry(entry_point_group=None).register("old", metric)),
        line(935, lambda metric: agentunit.metrics.resolve_metrics([metric])),
        line(935, lambda metric: agentunit.score([], [metric])),
    ],
)
def test_a_metric_that_has_only_compute_learns_the_new_name(use: Callable[[Any], Any]) -> None:
    class Old:
        name = "old"

        def compute(self, case: Any, outcome: Any) -> MetricResult:
            return MetricResult(self.name, 1.0)

    with pytest.raises(TypeError, match=r"compute\(\) is now called evaluate\(case, trace, outcome\)"):
        use(Old)


def test_line_936_evaluate_receives_the_trace() -> None:
    received: list[Any] = []

    class Seeing(Fixed):
        def evaluate(self, case: Any, trace: Any, outcome: Any) -> MetricResult:
            received.extend((case, trace, outcome))
            return super().evaluate(case, trace, outcome)

    list(agentunit.score([{"case": {"id": "q1"}, "outcome": "done"}], [Seeing("seeing", 1.0)]))
    assert [type(each) for each in received] == [DatasetCase, TraceLog, Outcome]
    assert received[2].output == "done"


@pytest.mark.parametrize("module", [line(937, PRIVACY), line(937, SUSTAINABILITY)])
def test_moved_metrics_are_not_in_the_builtin_module(module: str) -> None:
    builtin = import_module(CORE)
    assert not any(hasattr(builtin, name) for name, home in MODULE_OF.items() if home == module)


def test_every_reading_is_on_its_docs_page() -> None:
    docs = Path(__file__).resolve().parent.parent / "docs"
    pages = {name: (docs / name).read_text(encoding="utf-8") for name in ("catalog.md", "metrics.md")}
    for subject in ("LatencyMetric", "hallucination_rate", "CompositeMetric", "register_metric", "equivalents"):
        assert subject in pages["catalog.md"]
    stated = ["CompositeMetric", "resolve_metrics", "DEFAULT_METRICS", "km_driven", "trees_needed", "compute()"]
    for subject in [*stated, *FIELDS, *(name for _, names in FIELDS.values() for name in names)]:
        assert subject in pages["metrics.md"], subject
