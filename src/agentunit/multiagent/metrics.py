"""The catalog's multi-agent metrics: coordination, swarm intelligence, and the network's fault tolerance.

What a trace does not record is derived from its events; ``detail["derived"]`` names it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from agentunit.core.results import MetricResult
from agentunit.formulas.coordination import COORDINATION_WEIGHTS, SWARM_WEIGHTS, weighted_score
from agentunit.metrics.base import ItemMetric, MetricInfo
from agentunit.metrics.inputs import Item
from agentunit.metrics.parameters import FROM_0_TO_1, check_parameters
from agentunit.multiagent.analyzers import EmergentBehaviorDetector, InteractionAnalyzer, NetworkAnalyzer
from agentunit.multiagent.calculator import (
    CoordinationMetrics,
    EmergentBehaviorMetrics,
    MultiAgentMetricsCalculator,
    NetworkMetrics,
)
from agentunit.multiagent.inputs import Interactions, interactions_of

__all__ = [
    "CoordinationEfficiencyMetric",
    "CoordinationMetrics",
    "EmergentBehaviorDetector",
    "EmergentBehaviorMetrics",
    "InteractionAnalyzer",
    "MultiAgentMetricsCalculator",
    "NetworkAnalyzer",
    "NetworkFaultToleranceMetric",
    "NetworkMetrics",
    "SwarmIntelligenceMetric",
]

_RECORDED, _DERIVED = "trace", "derived"
_share_info = partial(
    MetricInfo,
    family="multiagent",
    direction="higher",
    range=(0.0, 1.0),
    backend=_RECORDED,
    trust={_RECORDED: "descriptive", _DERIVED: "descriptive"},
)
_ALL = ("interactions", "response_times", "handoffs", "conflicts", "agent_roles")
_NO_MESSAGES = "no messages between agents: neither trace.interactions nor events that name several agents"
_UNKNOWN_COORDINATION = {
    "handoff_success_rate": "no handoff tells whether it succeeded",
    "conflict_resolution_rate": "no conflict tells whether it was resolved",
    "communication_efficiency": "no interaction tells whether it succeeded or how long the answer took",
    "role_adherence": "no role limits what its agent may do, or no act of such an agent can be judged",
    "load_balance_score": "fewer than two agents, or no interaction that did not fail",
}
_UNKNOWN_SWARM = {
    "self_organization": "fewer than two timed interactions in each half that did not fail, or no disorder to lose",
    "specialization": "no agent sent two messages that did not fail, or nothing says of what type they are",
    "collective_decision": "no interaction tells whether it was a joint one that succeeded",
    "adaptation_rate": "fewer than two timed answers in each half, or early ones that took no time",
}


@dataclass(frozen=True)
class CoordinationEfficiencyMetric(ItemMetric):
    """How well agents work together: handoffs, conflicts, communication, roles and the spread of work.

    25 % share of handoffs that succeeded, 20 % share of conflicts that were resolved, 25 % communication (half the
    success rate of messages, half min(1, 5 s / mean response time)), 15 % share of acts that an agent's role allows,
    15 % evenness of the messages sent. A component without data is ``None`` and the weights of the rest are scaled up;
    ``unknown`` says why. What failed earns nothing, so a run in which everything failed scores 0.

    >>> handoffs = [{"from_agent": "a", "to_agent": "b", "success": done} for done in (True, True, False, True)]
    >>> CoordinationEfficiencyMetric().evaluate({"id": "q1"}, {"handoffs": handoffs}, None).value
    0.75
    """

    info = _share_info(
        name="coordination_efficiency",
        summary="How well agents hand over, settle conflicts, communicate, keep to roles and share the work.",
        inputs=("trace.interactions or trace.handoffs or trace.conflicts or trace message agent",),
        detail_keys=(
            *COORDINATION_WEIGHTS,
            "avg_handoff_time",
            "conflict_rate",
            "avg_resolution_time",
            "unknown",
            "derived",
        ),
    )

    def score_item(self, item: Item) -> MetricResult:
        """Compute the components, and weigh those that are known."""
        interactions = interactions_of(item.trace)
        found = InteractionAnalyzer.of(interactions).components
        detail = {**found, "unknown": _unknown(found, _UNKNOWN_COORDINATION), **_provenance(interactions, *_ALL)}
        value = weighted_score(found, COORDINATION_WEIGHTS)
        if value is None:
            recorded = len(interactions.messages) + len(interactions.handoffs) + len(interactions.conflicts)
            reason = (
                "the interactions, handoffs and conflicts there are tell neither success nor time"
                if recorded
                else "no interactions, handoffs or conflicts between agents, nor events of several agents"
            )
            return self.unscored(reason, **detail)
        return MetricResult(self.name, value, detail)


@dataclass(frozen=True)
class SwarmIntelligenceMetric(ItemMetric):
    """What emerges among agents over time, the early half of their interactions held against the late half.

    30 % self-organization (less disorder in who talks to whom), 25 % specialization (each agent keeps to few message
    types), 25 % collective decisions (share of interactions that are negotiation or collaboration and succeeded), 20 %
    adaptation (quicker answers). A component without data is ``None`` and the weights of the rest are scaled up;
    ``unknown`` says why. Interactions that failed organize nothing.

    >>> said = [{"from_agent": "a", "to_agent": "b", "interaction_type": kind} for kind in ("negotiation", "request")]
    >>> result = SwarmIntelligenceMetric().evaluate({"id": "q1"}, {"interactions": said}, None)
    >>> result.detail["collective_decision"], result.detail["self_organization"]
    (0.5, None)
    """

    info = _share_info(
        name="swarm_intelligence",
        summary="How far order, division of labour, joint decisions and quicker answers emerge among agents.",
        inputs=("trace.interactions or trace message agent",),
        detail_keys=(*SWARM_WEIGHTS, "unknown", "derived"),
    )

    def score_item(self, item: Item) -> MetricResult:
        """Detect the four behaviors, and weigh those that are known."""
        interactions = interactions_of(item.trace)
        detector = EmergentBehaviorDetector(interactions.messages, interactions.roles)
        found = detector.components
        value = detector.calculate_swarm_intelligence()
        detail = {
            **found,
            "unknown": _unknown(found, _UNKNOWN_SWARM),
            **_provenance(interactions, "interactions", "response_times"),
        }
        if value is None:
            reason = "too few messages, or too little said of their types, times and success"
            return self.unscored(reason if interactions.messages else _NO_MESSAGES, **detail)
        return MetricResult(self.name, value, detail)


@dataclass(frozen=True)
class NetworkFaultToleranceMetric(ItemMetric):
    """How the network of who addresses whom would bear the loss of an agent: a description, not a prediction.

    0.6 · density + 0.4 · (1 − share of agents that are bottlenecks). Density is the share of possible directed
    connections; a bottleneck is an agent whose loss parts others from each other (an articulation point).
    ``connected_after_worst_loss`` says it more plainly: the share of the other agents that still hang together after
    the loss of ``worst_loss``. Agents with a role but no message count. Hubs are connected with at least
    ``hub_threshold`` of the others.

    >>> ring = [{"from_agent": a, "to_agent": b} for a, b in ("ab", "bc", "cd", "da")]
    >>> result = NetworkFaultToleranceMetric().evaluate({"id": "q1"}, {"interactions": ring}, None)
    >>> round(result.value, 3), result.detail["bottleneck_agents"], result.detail["connected_after_worst_loss"]
    (0.6, [], 1.0)
    """

    hub_threshold: float = 0.7

    info = _share_info(
        name="network_fault_tolerance",
        summary="How densely agents are connected, and how few of them are single points of failure.",
        inputs=("trace.interactions or trace message agent",),
        detail_keys=(
            "density",
            "centralization",
            "clustering",
            "hub_agents",
            "bottleneck_count",
            "bottleneck_agents",
            "avg_path_length",
            "worst_loss",
            "connected_after_worst_loss",
            "agents",
            "derived",
        ),
    )

    def __post_init__(self) -> None:
        check_parameters(self, hub_threshold=FROM_0_TO_1)

    def score_item(self, item: Item) -> MetricResult:
        """Measure the network."""
        interactions = interactions_of(item.trace)
        network = NetworkAnalyzer(interactions.graph())
        value = network.calculate_fault_tolerance()
        known = {"agents": len(network.graph), **_provenance(interactions, "interactions", "agent_roles")}
        if value is None:
            return self.unscored(_NO_MESSAGES, **known)
        bottlenecks = network.find_bottleneck_agents()
        worst = network.find_worst_loss()
        detail = {
            "density": network.calculate_density(),
            "centralization": network.calculate_centralization(),
            "clustering": network.calculate_clustering_coefficient(),
            "hub_agents": network.find_hub_agents(self.hub_threshold),
            "bottleneck_count": len(bottlenecks),
            "bottleneck_agents": bottlenecks,
            "avg_path_length": network.calculate_avg_path_length(),
            "worst_loss": worst and worst.node,
            "connected_after_worst_loss": worst and worst.share_connected,
            **known,
        }
        return MetricResult(self.name, value, detail)


def _unknown(found: Mapping[str, float | None], reasons: Mapping[str, str]) -> dict[str, str]:
    return {name: reason for name, reason in reasons.items() if found[name] is None}


def _provenance(interactions: Interactions, *used: str) -> dict[str, Any]:
    """What of the things a metric used nobody recorded, and the backend: what the messages came from, if there are any.

    A conflict that happens to be found in the words of one case must not part it from the others of its run.
    """
    derived = [name for name in interactions.derived if name in used]
    main = {"interactions"} if interactions.messages else {"handoffs", "conflicts"}
    return {"derived": derived, "backend": _RECORDED if main.isdisjoint(derived) else _DERIVED}
