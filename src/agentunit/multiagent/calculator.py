"""All multi-agent measures of one set of interactions at once, for use from Python."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypedDict

from agentunit.multiagent.analyzers import EmergentBehaviorDetector, InteractionAnalyzer, NetworkAnalyzer
from agentunit.multiagent.inputs import Interactions, read_conflicts, read_handoffs, read_interactions, read_roles


@dataclass
class CoordinationMetrics:
    """How well agents work together. ``None`` is unknown."""

    handoff_success_rate: float | None
    """0.0 to 1.0"""
    avg_handoff_time: float | None
    """seconds"""
    conflict_rate: float | None
    """per 100 interactions"""
    conflict_resolution_rate: float | None
    avg_resolution_time: float | None
    """seconds"""
    communication_efficiency: float | None
    role_adherence: float | None
    load_balance_score: float | None


@dataclass
class NetworkMetrics:
    """How agents are connected. ``None`` is unknown."""

    density: float | None
    """0.0 to 1.0"""
    centralization: float | None
    """0.0 to 1.0"""
    avg_path_length: float | None
    clustering_coefficient: float | None
    hub_agents: list[str]
    bottleneck_agents: list[str]


@dataclass
class EmergentBehaviorMetrics:
    """What emerges among agents over time. ``None`` is unknown."""

    self_organization_score: float | None
    specialization_emergence: float | None
    collective_decision_score: float | None
    adaptation_rate: float | None
    swarm_intelligence_score: float | None


class AllMetrics(TypedDict):
    """What :meth:`MultiAgentMetricsCalculator.calculate_all` gives."""

    coordination: CoordinationMetrics
    network: NetworkMetrics
    emergent: EmergentBehaviorMetrics


class MultiAgentMetricsCalculator:
    """Coordination, network and emergent behavior of a set of interactions, handoffs, conflicts and roles.

    >>> calculator = MultiAgentMetricsCalculator(interactions=[{"from_agent": "a", "to_agent": "b", "success": False}])
    >>> calculator.calculate_coordination_metrics().communication_efficiency
    0.0
    >>> calculator.calculate_all()["network"].density
    0.5
    """

    def __init__(
        self,
        interactions: Any = None,
        handoffs: Any = None,
        conflicts: Any = None,
        agent_roles: Any = None,
    ) -> None:
        self._interactions = Interactions(
            read_interactions(interactions), read_handoffs(handoffs), read_conflicts(conflicts), read_roles(agent_roles)
        )

    def calculate_coordination_metrics(self) -> CoordinationMetrics:
        """How well the agents work together."""
        return CoordinationMetrics(**InteractionAnalyzer.of(self._interactions).components)

    def calculate_network_metrics(self) -> NetworkMetrics:
        """How the agents are connected by who addressed whom."""
        return NetworkMetrics(
            density=self.network.calculate_density(),
            centralization=self.network.calculate_centralization(),
            avg_path_length=self.network.calculate_avg_path_length(),
            clustering_coefficient=self.network.calculate_clustering_coefficient(),
            hub_agents=self.network.find_hub_agents(),
            bottleneck_agents=self.network.find_bottleneck_agents(),
        )

    def calculate_emergent_behavior_metrics(self) -> EmergentBehaviorMetrics:
        """What emerges among the agents over time."""
        detector = EmergentBehaviorDetector(self._interactions.messages, self._interactions.roles)
        found = detector.components
        return EmergentBehaviorMetrics(
            self_organization_score=found["self_organization"],
            specialization_emergence=found["specialization"],
            collective_decision_score=found["collective_decision"],
            adaptation_rate=found["adaptation_rate"],
            swarm_intelligence_score=detector.calculate_swarm_intelligence(),
        )

    def calculate_all(self) -> AllMetrics:
        """All three, by the names ``coordination``, ``network`` and ``emergent``."""
        return {
            "coordination": self.calculate_coordination_metrics(),
            "network": self.calculate_network_metrics(),
            "emergent": self.calculate_emergent_behavior_metrics(),
        }

    @cached_property
    def network(self) -> NetworkAnalyzer:
        """The network the agents form."""
        return NetworkAnalyzer(self._interactions.graph())
