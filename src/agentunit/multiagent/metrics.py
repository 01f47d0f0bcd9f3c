"""The catalog's multi-agent metrics: coordination, swarm intelligence, and the network's fault tolerance.

What a trace does not record is derived from its events; ``detail["derived"]`` names it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from agentunit.core.results import MetricResult
from agentunit.formulas.coordination import (
    COORDINATION_WEIGHTS,
    SWARM_WEIGHTS,
    act_allowed,
    mean_of_known,
    weighted_score,
)
from agentunit.formulas.graph import WorstLoss
from agentunit.formulas.text import shown_share
from agentunit.metrics.base import ItemMetric, MetricInfo
from agentunit.metrics.inputs import Item
from agentunit.metrics.parameters import FROM_0_TO_1, check_parameters
from agentunit.metrics.sentences import amount, counted, on_one_line, part_of, sentence
from agentunit.multiagent._team_inputs import Interactions, interactions_of
from agentunit.multiagent.analyzers import (
    CoordinationMetrics,
    EmergentBehaviorDetector,
    EmergentBehaviorMetrics,
    InteractionAnalyzer,
    MultiAgentMetricsCalculator,
    NetworkAnalyzer,
    NetworkMetrics,
)

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
        detail["why"] = why_coordination(found, interactions)
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
        detail["why"] = why_swarm(found)
        return MetricResult(self.name, value, detail)


@dataclass(frozen=True)
class NetworkFaultToleranceMetric(ItemMetric):
    """How the network of who addresses whom would bear the loss of an agent: a description, not a prediction.

    0.6 · density + 0.4 · (1 − share of agents that are bottlenecks). Density is the share of possible directed
    connections; a bottleneck is an agent whose loss parts others from each other (an articulation point).
    ``connected_after_worst_loss`` is the share of the other agents that are still connected after the loss of
    ``worst_loss``. Hubs are connected with at least ``hub_threshold`` of the others.

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
            "why": why_network(len(network.graph), bottlenecks, worst),
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


# Why the catalog's multi-agent metrics score as they do: the part that costs most, and who had to do with it.

Components = Mapping[str, float | None]
# What is said of a part that is 0, and of any other.
_SWARM_WORDS = {
    "self_organization": (
        "which agents talk to each other did not become more regular",
        "which agents talk to each other became {share} more regular",
    ),
    "specialization": (
        "agents do not specialize in types of messages",
        "agents specialize in types of messages by {share} (100%: one type each)",
    ),
    "collective_decision": (
        "no interaction was a joint decision that succeeded",
        "{share} of interactions were joint decisions that succeeded",
    ),
    "adaptation_rate": ("answers did not become quicker", "answers became {share} quicker"),
}


def why_coordination(found: Components, interactions: Interactions) -> str:
    """The component that takes most of the score away, with the agents that it is about."""
    name = _costliest(found, COORDINATION_WEIGHTS)
    if name is None:
        return "nothing failed, and the work is spread evenly"
    return sentence(_OF_COORDINATION[name](interactions))


def _of_handoffs(interactions: Interactions) -> str:
    handoffs = interactions.handoffs
    first = handoffs.successes.index(False)
    of_all = part_of(handoffs.successes.count(False), len(handoffs), "handoff")
    return f"{of_all} failed: {_who(handoffs.givers[first])} to {_who(handoffs.takers[first])}"


def _of_conflicts(interactions: Interactions) -> str:
    conflicts = interactions.conflicts
    parties = conflicts.parties[conflicts.resolved.index(False)]
    of_all = part_of(conflicts.resolved.count(False), len(conflicts), "conflict")
    return f"{of_all} stayed unresolved: {' and '.join(map(_who, parties[:2]))}"


def _of_messages(interactions: Interactions) -> str:
    messages = interactions.messages
    told = f"{part_of(messages.successes.count(False), len(messages), 'message')} failed"
    answered = zip(messages.response_times_s, messages.successes, strict=True)
    mean_s = mean_of_known([time_s for time_s, success in answered if success is not False])
    return told if mean_s is None else f"{told}; answers take {amount(mean_s)} s on average"


def _of_roles(interactions: Interactions) -> str:
    messages, handoffs, roles = interactions.messages, interactions.handoffs, interactions.roles
    for place, sender in enumerate(messages.senders):
        what = messages.types[place], messages.message_types[place], messages.capabilities[place]
        if sender in roles and act_allowed(roles[sender], *what) is False:
            return f"{_who(sender)} did what its role does not allow: {on_one_line(what[0], 30)}, message {place + 1}"
    giver = next(giver for giver in handoffs.givers if giver in roles and not act_allowed(roles[giver], "handoff"))
    return f"{_who(giver)} handed over, which its role does not allow"


def _of_load(interactions: Interactions) -> str:
    messages = interactions.messages
    sent: Counter[str] = Counter()
    for sender, success in zip(messages.senders, messages.successes, strict=True):
        sent[sender] += success is not False
    busiest = max(sorted(sent), key=sent.__getitem__)
    of_all = f"{part_of(sent[busiest], sent.total(), 'message')} that did not fail"
    return f"uneven work: {_who(busiest)} sent {of_all}; {len(interactions.agents)} agents"


_OF_COORDINATION: Mapping[str, Callable[[Interactions], str]] = {
    "handoff_success_rate": _of_handoffs,
    "conflict_resolution_rate": _of_conflicts,
    "communication_efficiency": _of_messages,
    "role_adherence": _of_roles,
    "load_balance_score": _of_load,
}


def why_swarm(found: Components) -> str:
    """The behavior that is farthest from what it could be, by its weight."""
    name = _costliest(found, SWARM_WEIGHTS)
    if name is None:
        return "all that can be told of emergent behavior is at its best"
    value = found[name] or 0.0
    at_zero, above = _SWARM_WORDS[name]
    return f"weakest part: {above.format(share=shown_share(value)) if value else at_zero}"


def why_network(n_agents: int, bottlenecks: Sequence[str], worst: WorstLoss | None) -> str:
    """What the loss of one agent would do."""
    if worst is None or worst.share_connected == 1.0:
        return f"{counted(n_agents, 'agent')}: when any one of them is lost, the others stay connected"
    told = f"without {_who(worst.node)}, {shown_share(worst.share_connected)} of the other agents stay connected"
    if len(bottlenecks) > 1:
        told += f"; the loss of any of {len(bottlenecks)} agents separates others"
    return sentence(told)


def _costliest(found: Components, weights: Mapping[str, float]) -> str | None:
    costs = {name: weights[name] * (1.0 - value) for name in weights if (value := found[name]) is not None}
    name = max(costs, key=costs.__getitem__)
    return name if costs[name] > 0 else None


def _who(agent: str) -> str:
    return on_one_line(agent, 30)
