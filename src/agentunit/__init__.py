"""AgentUnit: tells you how good your AI agents are, from the traces they leave.

Everything below loads on first use, so that ``import agentunit`` costs next to nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from agentunit.configuration import configure
    from agentunit.core.case import DatasetCase
    from agentunit.core.codec import decode_record, encode_record
    from agentunit.core.interactions import (
        AgentInteraction,
        AgentRole,
        ConflictEvent,
        HandoffEvent,
        InteractionType,
    )
    from agentunit.core.outcome import Outcome
    from agentunit.core.records import Record
    from agentunit.core.results import CaseScores, MetricResult, RunSummary, Score
    from agentunit.core.trace import TraceEvent, TraceLog
    from agentunit.engine.scoring import Run, score
    from agentunit.engine.suite import Suite
    from agentunit.metrics.base import CompositeMetric, Metric, MetricInfo
    from agentunit.metrics.registry import DEFAULT_METRICS, register_metric, resolve_metrics
    from agentunit.privacy.live import redacting_processor
    from agentunit.traces.live.capture import capture_spans
    from agentunit.traces.live.instrument import instrument
    from agentunit.traces.reading import read_records

__version__ = "0.1.0"

_HOMES = {
    "AgentInteraction": "core.interactions",
    "AgentRole": "core.interactions",
    "CaseScores": "core.results",
    "CompositeMetric": "metrics.base",
    "ConflictEvent": "core.interactions",
    "DEFAULT_METRICS": "metrics.registry",
    "DatasetCase": "core.case",
    "HandoffEvent": "core.interactions",
    "InteractionType": "core.interactions",
    "Metric": "metrics.base",
    "MetricInfo": "metrics.base",
    "MetricResult": "core.results",
    "Outcome": "core.outcome",
    "Record": "core.records",
    "Run": "engine.scoring",
    "RunSummary": "core.results",
    "Score": "core.results",
    "Suite": "engine.suite",
    "TraceEvent": "core.trace",
    "TraceLog": "core.trace",
    "capture_spans": "traces.live.capture",
    "configure": "configuration",
    "decode_record": "core.codec",
    "encode_record": "core.codec",
    "instrument": "traces.live.instrument",
    "read_records": "traces.reading",
    "register_metric": "metrics.registry",
    "redacting_processor": "privacy.live",
    "resolve_metrics": "metrics.registry",
    "score": "engine.scoring",
}

__all__ = [
    "DEFAULT_METRICS",
    "AgentInteraction",
    "AgentRole",
    "CaseScores",
    "CompositeMetric",
    "ConflictEvent",
    "DatasetCase",
    "HandoffEvent",
    "InteractionType",
    "Metric",
    "MetricInfo",
    "MetricResult",
    "Outcome",
    "Record",
    "Run",
    "RunSummary",
    "Score",
    "Suite",
    "TraceEvent",
    "TraceLog",
    "capture_spans",
    "configure",
    "decode_record",
    "encode_record",
    "instrument",
    "read_records",
    "redacting_processor",
    "register_metric",
    "resolve_metrics",
    "score",
]


def __getattr__(name: str) -> Any:
    if name == "probes":
        return import_module("agentunit.probes")
    if name in _HOMES:
        value = getattr(import_module(f"agentunit.{_HOMES[name]}"), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module 'agentunit' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
