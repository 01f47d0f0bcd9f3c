"""Metrics: what AgentUnit can say about a case, its trace and its outcome.

The names below load on first use, so that importing a metric does not load them all.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from agentunit.metrics.base import CompositeMetric, Metric, MetricInfo, MetricResult
    from agentunit.metrics.registry import DEFAULT_METRICS, register_metric, resolve_metrics

_HOMES = {
    "CompositeMetric": "base",
    "Metric": "base",
    "MetricInfo": "base",
    "MetricResult": "base",
    "DEFAULT_METRICS": "registry",
    "register_metric": "registry",
    "resolve_metrics": "registry",
}

__all__ = [
    "DEFAULT_METRICS",
    "CompositeMetric",
    "Metric",
    "MetricInfo",
    "MetricResult",
    "register_metric",
    "resolve_metrics",
]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(f"agentunit.metrics.{_HOMES[name]}"), name)
    raise AttributeError(f"module 'agentunit.metrics' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
