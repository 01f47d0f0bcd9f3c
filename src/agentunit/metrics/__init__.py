"""Metrics: what AgentUnit can say about a case, its trace and its outcome.

The names below load on first use, so that importing a metric does not load them all.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentunit.public import lazy_names

if TYPE_CHECKING:
    from agentunit.metrics.base import CompositeMetric, Metric, MetricInfo, MetricResult
    from agentunit.metrics.builtin import (
        AnswerCorrectnessMetric,
        CostMetric,
        FaithfulnessMetric,
        HallucinationRateMetric,
        RetrievalQualityMetric,
        TokenUsageMetric,
        ToolSuccessMetric,
    )
    from agentunit.metrics.registry import DEFAULT_METRICS, register_metric, resolve_metrics

__all__ = [
    "DEFAULT_METRICS",
    "AnswerCorrectnessMetric",
    "CompositeMetric",
    "CostMetric",
    "FaithfulnessMetric",
    "HallucinationRateMetric",
    "Metric",
    "MetricInfo",
    "MetricResult",
    "RetrievalQualityMetric",
    "TokenUsageMetric",
    "ToolSuccessMetric",
    "register_metric",
    "resolve_metrics",
]

if not TYPE_CHECKING:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            ".base": "CompositeMetric Metric MetricInfo MetricResult",
            ".builtin": (
                "AnswerCorrectnessMetric CostMetric FaithfulnessMetric HallucinationRateMetric RetrievalQualityMetric "
                "TokenUsageMetric ToolSuccessMetric"
            ),
            ".registry": "DEFAULT_METRICS register_metric resolve_metrics",
        },
    )
