"""Several agents at work: how they coordinate, how they are connected, and where a run went wrong.

Everything below loads on first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentunit.public import lazy_names

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

if not TYPE_CHECKING:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "..addons.drawing.pictures": "Picture interaction_graph timeline",
            "..core.trace": "AgentInteraction AgentRole ConflictEvent HandoffEvent InteractionType",
            ".analyzers": (
                "CoordinationMetrics EmergentBehaviorDetector EmergentBehaviorMetrics InteractionAnalyzer "
                "MultiAgentMetricsCalculator NetworkAnalyzer NetworkMetrics"
            ),
            ".conversation_metrics": (
                "AgentDominanceMetric PingPongMetric StepRepetitionMetric UnansweredRequestsMetric"
            ),
            ".derivation": "Derived derived",
            ".metrics": "CoordinationEfficiencyMetric NetworkFaultToleranceMetric SwarmIntelligenceMetric",
            ".team": "AgentRow agents_table",
        },
    )
