"""AgentUnit: tells you how good your AI agents are, from the traces they leave.

Everything below loads on first use, so that ``import agentunit`` costs next to nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentunit.moved import find_moved_modules
from agentunit.public import lazy_names

if TYPE_CHECKING:
    from agentunit import metrics as metrics
    from agentunit import multiagent as multiagent
    from agentunit import multimodal as multimodal
    from agentunit import privacy as privacy
    from agentunit import probes as probes
    from agentunit import sustainability as sustainability
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
    from agentunit.engine.deciding.comparison import Comparison
    from agentunit.engine.recording.suite import Suite
    from agentunit.engine.recording.suite_run import RunResult, compare, run
    from agentunit.engine.scoring.records import Run, score
    from agentunit.metrics.base import CompositeMetric, Metric, MetricInfo
    from agentunit.metrics.registry import DEFAULT_METRICS, register_metric, resolve_metrics
    from agentunit.traces.live.capture import capture_spans
    from agentunit.traces.live.instrument import instrument
    from agentunit.traces.reading import read_records

__version__ = "0.1.0"

__all__ = [
    "DEFAULT_METRICS",
    "AgentInteraction",
    "AgentRole",
    "CaseScores",
    "Comparison",
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
    "compare",
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

if not TYPE_CHECKING:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            ".": "metrics multiagent multimodal privacy probes sustainability",
            ".addons.redact.live": "redacting_processor",
            ".configuration": "configure",
            ".core.case": "DatasetCase",
            ".core.codec": "decode_record encode_record",
            ".core.records": "Outcome Record",
            ".core.results": "CaseScores MetricResult RunSummary Score",
            ".core.trace": "AgentInteraction AgentRole ConflictEvent HandoffEvent InteractionType TraceEvent TraceLog",
            ".engine.deciding.comparison": "Comparison",
            ".engine.recording.suite": "Suite",
            ".engine.recording.suite_run": "RunResult compare run",
            ".engine.scoring.records": "Run score",
            ".metrics.base": "CompositeMetric Metric MetricInfo",
            ".metrics.registry": "DEFAULT_METRICS register_metric resolve_metrics",
            ".traces.live.capture": "capture_spans",
            ".traces.live.instrument": "instrument",
            ".traces.reading": "read_records",
        },
    )
