"""The catalog's analyzers: interactions, the network they form, what emerges from them, and all of it at once.

Each number is ``None`` when there is nothing to compute it from.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypedDict

from agentunit.formulas.coordination import (
    SWARM_WEIGHTS,
    act_allowed,
    adaptation,
    collective_share,
    communication_efficiency,
    early_and_late,
    known_rate,
    load_balance,
    mean_of_known,
    role_adherence,
    self_organization,
    specialization,
    weighted_score,
)
from agentunit.formulas.graph import (
    Graph,
    WorstLoss,
    articulation_points,
    average_path_length,
    centralisation,
    clustering_coefficient,
    degree_centrality,
    density,
    fault_tolerance,
    worst_single_loss,
)
from agentunit.metrics.inputs import InputProblem, number_at
from agentunit.multiagent._team_inputs import (
    Interactions,
    Messages,
    name_at,
    names_at,
    read_conflicts,
    read_handoffs,
    read_interactions,
    read_roles,
)
from agentunit.public import publish


class InteractionAnalyzer:
    """How agents deal with each other. Entries may be the data model's types, objects like them, or plain dicts.

    >>> analyzer = InteractionAnalyzer([{"from_agent": "a", "to_agent": "b"}], [], [])
    >>> analyzer.calculate_load_balance(), analyzer.calculate_communication_efficiency()
    (0.0, 1.0)
    """

    def __init__(
        self, interactions: Any = (), handoffs: Any = (), conflicts: Any = (), agent_roles: Any = None
    ) -> None:
        self._interactions = Interactions(
            read_interactions(interactions), read_handoffs(handoffs), read_conflicts(conflicts), read_roles(agent_roles)
        )

    @classmethod
    def of(cls, interactions: Interactions) -> InteractionAnalyzer:
        """The analyzer of interactions that are read already."""
        return cls(interactions.messages, interactions.handoffs, interactions.conflicts, interactions.roles)

    @property
    def components(self) -> dict[str, float | None]:
        """All that the methods below compute, by name."""
        return {
            **self.calculate_handoff_metrics(),
            **self.calculate_conflict_metrics(),
            "communication_efficiency": self.calculate_communication_efficiency(),
            "role_adherence": self.calculate_role_adherence(),
            "load_balance_score": self.calculate_load_balance(),
        }

    def calculate_handoff_metrics(self) -> dict[str, float | None]:
        """``handoff_success_rate`` over the handoffs that tell, and ``avg_handoff_time`` in seconds."""
        handoffs = self._interactions.handoffs
        return {
            "handoff_success_rate": known_rate(handoffs.successes),
            "avg_handoff_time": mean_of_known(handoffs.times_s),
        }

    def calculate_conflict_metrics(self) -> dict[str, float | None]:
        """``conflict_rate`` per 100 interactions, ``conflict_resolution_rate``, ``avg_resolution_time`` in seconds."""
        conflicts, n_messages = self._interactions.conflicts, len(self._interactions.messages)
        return {
            "conflict_rate": 100 * len(conflicts) / n_messages if n_messages else None,
            "conflict_resolution_rate": known_rate(conflicts.resolved),
            "avg_resolution_time": mean_of_known(conflicts.times_s),
        }

    def calculate_communication_efficiency(self) -> float | None:
        """Half the success rate, half the speed of answers; see :mod:`agentunit.formulas.coordination`."""
        messages = self._interactions.messages
        return communication_efficiency(messages.successes, messages.response_times_s)

    def calculate_role_adherence(self) -> float | None:
        """The share of an agent's messages and handoffs that its role allows, as a mean over agents with a role."""
        messages, handoffs = self._interactions.messages, self._interactions.handoffs
        binding = {agent: duties for agent, duties in self._interactions.roles.items() if duties.say_something}
        if not binding:
            return None
        said = zip(messages.types, messages.message_types, messages.capabilities, strict=True)
        acts: defaultdict[str, list[tuple[bool | None, bool | None]]] = defaultdict(list)
        for (sender, what, success), n_alike in Counter(
            zip(messages.senders, said, messages.successes, strict=True)
        ).items():
            if sender in binding:
                acts[sender] += [(act_allowed(binding[sender], *what), success)] * n_alike
        for giver, success in zip(handoffs.givers, handoffs.successes, strict=True):
            if giver in binding:
                acts[giver].append((act_allowed(binding[giver], "handoff"), success))
        return role_adherence(acts)

    def calculate_load_balance(self) -> float | None:
        """How evenly the messages that did not fail come from all agents; those that send none count too."""
        messages = self._interactions.messages
        work = dict.fromkeys(self._interactions.agents, 0)
        done = [
            sender for sender, success in zip(messages.senders, messages.successes, strict=True) if success is not False
        ]
        work.update(Counter(done))
        return load_balance(work.values())


class NetworkAnalyzer:
    """The network of who addresses whom: each agent's receivers, and the agents besides those.

    >>> network = NetworkAnalyzer({"lead": ["coder", "tester"]}, ["lead", "coder", "tester"])
    >>> network.calculate_centralization(), network.find_bottleneck_agents(), network.find_hub_agents(threshold=0.7)
    (1.0, ['lead'], ['lead'])
    """

    def __init__(self, adjacency: Mapping[str, Any] | Graph, agents: Iterable[str] | None = None) -> None:
        self.graph = adjacency if isinstance(adjacency, Graph) else _graph(adjacency, agents)

    def calculate_density(self) -> float | None:
        """The share of possible directed connections that are there."""
        return density(self.graph)

    def calculate_centralization(self) -> float | None:
        """How far one agent stands out by its connections: 1 is a star, 0 a full mesh."""
        return centralisation(self.graph)

    def calculate_avg_path_length(self) -> float | None:
        """The mean number of steps from agent to agent, where there is a way."""
        return average_path_length(self.graph)

    def calculate_clustering_coefficient(self) -> float | None:
        """How many of an agent's partners are partners of each other, as a mean over agents."""
        return clustering_coefficient(self.graph)

    def calculate_fault_tolerance(self) -> float | None:
        """0.6 · density + 0.4 · (1 − share of bottlenecks): a description of the topology."""
        return fault_tolerance(self.graph)

    def find_hub_agents(self, threshold: float = 0.7) -> list[str]:
        """The agents connected with at least this share of the others, sorted by name."""
        if isinstance(threshold, bool) or not isinstance(threshold, (int, float)) or not 0 <= threshold <= 1:
            raise ValueError(f"find_hub_agents: threshold must be from 0 to 1; received {threshold!r}")
        return [name for name, share in degree_centrality(self.graph).items() if share >= threshold]

    def find_bottleneck_agents(self) -> list[str]:
        """The agents whose loss parts others from each other, sorted by name."""
        return articulation_points(self.graph)

    def find_worst_loss(self) -> WorstLoss | None:
        """The agent whose loss leaves the smallest share of the others connected, and that share."""
        return worst_single_loss(self.graph)


class EmergentBehaviorDetector:
    """What emerges from interactions over time. Those that failed organize nothing and count for nothing.

    ``agent_roles`` is taken as the catalog shows it: what emerges is read from what agents do, not from what they are
    called.

    >>> said = [{"from_agent": "a", "to_agent": "b", "interaction_type": kind} for kind in ("negotiation", "request")]
    >>> EmergentBehaviorDetector(said).detect_collective_decision_making()
    0.5
    """

    def __init__(self, interactions: Any = (), agent_roles: Any = None) -> None:
        self._messages = read_interactions(interactions)
        self._roles = read_roles(agent_roles)

    def detect_self_organization(self) -> float | None:
        """How much more orderly it became who talks to whom, from the early half to the late."""
        halves = early_and_late(self._standing.moments)
        if halves is None:
            return None
        early, late = (self._standing.pair_counts(half) for half in halves)
        return self_organization(early, late)

    def detect_specialization(self) -> float | None:
        """How far each agent keeps to few of the message types in use."""
        if not self._messages.message_types_are_known:
            return None
        types_of: defaultdict[str, Counter[str]] = defaultdict(Counter)
        sent = Counter(zip(self._standing.senders, self._standing.message_types, strict=True))
        for (sender, message_type), count in sent.items():
            types_of[sender][message_type] = count
        return specialization(types_of)

    def detect_collective_decision_making(self) -> float | None:
        """The share of interactions that are negotiation or collaboration and succeeded."""
        if not self._messages.types_are_known:
            return None
        return collective_share(self._messages.types, self._messages.successes)

    def detect_adaptation_rate(self) -> float | None:
        """How much quicker answers became, from the early half to the late."""
        timed = self._standing.only(time_s is not None for time_s in self._standing.response_times_s)
        halves = early_and_late(timed.moments)
        if halves is None:
            return None
        early, late = ([timed.response_times_s[place] for place in half] for half in halves)
        return adaptation(early, late)

    def calculate_swarm_intelligence(self) -> float | None:
        """The four above by the catalog's weights; what is unknown does not count."""
        return weighted_score(self.components, SWARM_WEIGHTS)

    @cached_property
    def components(self) -> dict[str, float | None]:
        """The four by the names of their weights."""
        return {
            "self_organization": self.detect_self_organization(),
            "specialization": self.detect_specialization(),
            "collective_decision": self.detect_collective_decision_making(),
            "adaptation_rate": self.detect_adaptation_rate(),
        }

    @cached_property
    def _standing(self) -> Messages:
        """The interactions that did not fail."""
        return self._messages.only(success is not False for success in self._messages.successes)


def _graph(adjacency: Any, agents: Any) -> Graph:
    """The graph of receivers by sender: one name, several, or a dict from names to how much was sent."""
    if not isinstance(adjacency, Mapping):
        raise InputProblem(
            f"NetworkAnalyzer: adjacency must be a dict from agents to agents; received {adjacency!r:.80}"
        )
    edges = []
    for sender, receivers in adjacency.items():
        place = f"adjacency[{sender!r:.40}]"
        named = _addressed(place, receivers) if isinstance(receivers, Mapping) else receivers
        edges += [(name_at(place, sender), name) for name in names_at(place, named)]
    senders = [name_at("adjacency", sender) for sender in adjacency]
    many = isinstance(agents, Iterable) and not isinstance(agents, str)
    return Graph([*senders, *names_at("agents", list(agents) if many else agents)], edges)


def _addressed(place: str, amounts: Mapping[Any, Any]) -> list[Any]:
    """The receivers to whom something was sent; a dict in place of an amount describes a link that is there."""
    return [
        name
        for name, amount in amounts.items()
        if isinstance(amount, Mapping) or amount is True or (amount and number_at(f"{place}[{name!r:.40}]", amount))
    ]


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


publish("agentunit.multiagent", CoordinationMetrics, EmergentBehaviorDetector, EmergentBehaviorMetrics)
publish("agentunit.multiagent", InteractionAnalyzer, MultiAgentMetricsCalculator, NetworkAnalyzer, NetworkMetrics)
