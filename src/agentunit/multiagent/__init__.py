"""Several agents at work: how they coordinate, how they are connected, and where a run went wrong.

Everything below loads on first use.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from agentunit.addons.drawing.pictures import Picture, interaction_graph, timeline
    from agentunit.core.trace import AgentInteraction, AgentRole, ConflictEvent, HandoffEvent, InteractionType
    from agentunit.multiagent.analyzers import (
        CoordinationMetrics,
        EmergentBehaviorDetector,
        EmergentBehaviorMetrics,
        InteractionAnalyzer,
        MultiAgentMetricsCalculator,
        NetworkAnalyzer,
        NetworkMetrics,
    )
    from agentunit.multiagent.conversation_metrics import (
        AgentDominanceMetric,
        PingPongMetric,
        StepRepetitionMetric,
        UnansweredRequestsMetric,
    )
    from agentunit.multiagent.derivation import Derived, derived
    from agentunit.multiagent.metrics import (
        CoordinationEfficiencyMetric,
        NetworkFaultToleranceMetric,
        SwarmIntelligenceMetric,
    )
    from agentunit.multiagent.team import AgentRow, agents_table

_NAMES = {
    "..addons.drawing.pictures": "Picture interaction_graph timeline",
    "..core.trace": "AgentInteraction AgentRole ConflictEvent HandoffEvent InteractionType",
    ".analyzers": (
        "CoordinationMetrics EmergentBehaviorDetector EmergentBehaviorMetrics InteractionAnalyzer "
        "MultiAgentMetricsCalculator NetworkAnalyzer NetworkMetrics"
    ),
    ".conversation_metrics": "AgentDominanceMetric PingPongMetric StepRepetitionMetric UnansweredRequestsMetric",
    ".derivation": "Derived derived",
    ".metrics": "CoordinationEfficiencyMetric NetworkFaultToleranceMetric SwarmIntelligenceMetric",
    ".team": "AgentRow agents_table",
}
_HOMES = {name: module for module, names in _NAMES.items() for name in names.split()}

__all__ = [
    "AgentDominanceMetric",
    "AgentInteraction",
    "AgentRole",
    "AgentRow",
    "ConflictEvent",
    "CoordinationEfficiencyMetric",
    "CoordinationMetrics",
    "Derived",
    "EmergentBehaviorDetector",
    "EmergentBehaviorMetrics",
    "HandoffEvent",
    "InteractionAnalyzer",
    "InteractionType",
    "MultiAgentMetricsCalculator",
    "NetworkAnalyzer",
    "NetworkFaultToleranceMetric",
    "NetworkMetrics",
    "Picture",
    "PingPongMetric",
    "StepRepetitionMetric",
    "SwarmIntelligenceMetric",
    "UnansweredRequestsMetric",
    "agents_table",
    "derived",
    "interaction_graph",
    "timeline",
]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        value = getattr(import_module(_HOMES[name], __name__), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return list(__all__)
