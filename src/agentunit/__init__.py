"""AgentUnit: tells you how good your AI agents are, from the traces they leave.

Everything below loads on first use, so that ``import agentunit`` costs next to nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from agentunit.moved import find_moved_modules

if TYPE_CHECKING:
    from agentunit.addons.redact.live import redacting_processor
    from agentunit.configuration import configure
    from agentunit.core.case import DatasetCase
    from agentunit.core.codec import decode_record, encode_record
    from agentunit.core.records import Outcome, Record
    from agentunit.core.results import CaseScores, MetricResult, RunSummary, Score
    from agentunit.core.trace import (
        AgentInteraction,
        AgentRole,
        ConflictEvent,
        HandoffEvent,
        InteractionType,
        TraceEvent,
        TraceLog,
    )
    from agentunit.engine.recording.suite import Suite
    from agentunit.engine.recording.suite_run import RunResult, run
    from agentunit.engine.scoring.records import Run, score
    from agentunit.metrics.base import CompositeMetric, Metric, MetricInfo
    from agentunit.metrics.registry import DEFAULT_METRICS, register_metric, resolve_metrics
    from agentunit.traces.live.capture import capture_spans
    from agentunit.traces.live.instrument import instrument
    from agentunit.traces.reading import read_records

__version__ = "0.1.0"

_HOMES = {
    "AgentInteraction": "core.trace",
    "AgentRole": "core.trace",
    "CaseScores": "core.results",
    "CompositeMetric": "metrics.base",
    "ConflictEvent": "core.trace",
    "DEFAULT_METRICS": "metrics.registry",
    "DatasetCase": "core.case",
    "HandoffEvent": "core.trace",
    "InteractionType": "core.trace",
    "Metric": "metrics.base",
    "MetricInfo": "metrics.base",
    "MetricResult": "core.results",
    "Outcome": "core.records",
    "Record": "core.records",
    "Run": "engine.scoring.records",
    "RunResult": "engine.recording.suite_run",
    "RunSummary": "core.results",
    "Score": "core.results",
    "Suite": "engine.recording.suite",
    "TraceEvent": "core.trace",
    "TraceLog": "core.trace",
    "capture_spans": "traces.live.capture",
    "configure": "configuration",
    "decode_record": "core.codec",
    "encode_record": "core.codec",
    "instrument": "traces.live.instrument",
    "read_records": "traces.reading",
    "register_metric": "metrics.registry",
    "redacting_processor": "addons.redact.live",
    "resolve_metrics": "metrics.registry",
    "run": "engine.recording.suite_run",
    "score": "engine.scoring.records",
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
    "RunResult",
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
    "run",
    "score",
]

find_moved_modules()


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
