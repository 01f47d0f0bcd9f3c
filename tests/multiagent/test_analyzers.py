"""The catalog's calculator and analyzers as a user meets them: its code as written, and every shape of input."""

from __future__ import annotations

from dataclasses import dataclass, fields
from datetime import datetime, timedelta, timezone
from enum import Enum
from importlib import import_module
from typing import Any

import pytest

from agentunit.core.trace import AgentInteraction, AgentRole, ConflictEvent, HandoffEvent, InteractionType
from agentunit.multiagent import (
    CoordinationMetrics,
    EmergentBehaviorDetector,
    EmergentBehaviorMetrics,
    InteractionAnalyzer,
    MultiAgentMetricsCalculator,
    NetworkAnalyzer,
    NetworkMetrics,
)

CATALOG_NAMES = [
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

# Six interactions of three agents: five succeed, the last half is quicker and more orderly.
INTERACTIONS = [
    AgentInteraction("lead", "coder", "delegation", "plan", timestamp=1.0, response_time=8.0),
    AgentInteraction("coder", "tester", "request", "code", timestamp=2.0, response_time=8.0),
    AgentInteraction("tester", "lead", "negotiation", "report", timestamp=3.0, response_time=8.0, success=False),
    AgentInteraction("lead", "coder", "collaboration", "plan", timestamp=4.0, response_time=2.0),
    AgentInteraction("lead", "coder", "negotiation", "plan", timestamp=5.0, response_time=2.0),
    AgentInteraction("coder", ["lead", "tester"], "response", "code", timestamp=6.0),
]
HANDOFFS = [
    HandoffEvent("lead", "coder", success=done, handoff_time=took) for done, took in ((True, 1.0), (False, 3.0))
]
CONFLICTS = [
    ConflictEvent(["lead", "coder"], resolved=True, resolution_time=4.0),
    ConflictEvent(["coder", "tester"], resolved=None),
    ConflictEvent(["coder", "tester"], resolved=False, resolution_time=6.0),
]
ROLES = {
    "lead": AgentRole("lead", can_delegate=True),
    "coder": AgentRole("coder", can_delegate=False, message_types=["code"]),
    "idle": AgentRole("spare"),
}


@pytest.mark.parametrize("module", ["agentunit.multiagent", "agentunit.multiagent.metrics"])
@pytest.mark.parametrize("name", CATALOG_NAMES)
def test_import_paths(module: str, name: str) -> None:
    assert getattr(import_module(module), name) is getattr(import_module("agentunit.multiagent"), name)


def test_everything_listed_can_be_had() -> None:
    family: Any = import_module("agentunit.multiagent")
    assert [name for name in family.__all__ if not hasattr(family, name)] == []
    assert dir(family) == family.__all__
    with pytest.raises(AttributeError, match="no attribute 'Swarm'"):
        family.Swarm  # noqa: B018


@pytest.mark.parametrize(
    ("kind", "names"),
    [
        (
            CoordinationMetrics,
            "handoff_success_rate avg_handoff_time conflict_rate conflict_resolution_rate avg_resolution_time "
            "communication_efficiency role_adherence load_balance_score",
        ),
        (
            NetworkMetrics,
            "density centralization avg_path_length clustering_coefficient hub_agents bottleneck_agents",
        ),
        (
            EmergentBehaviorMetrics,
            "self_organization_score specialization_emergence collective_decision_score adaptation_rate "
            "swarm_intelligence_score",
        ),
    ],
)
def test_fields_of_the_dataclasses(kind: Any, names: str) -> None:
    assert [each.name for each in fields(kind)] == names.split()


CALCULATOR_SOURCE = """
from agentunit.multiagent import MultiAgentMetricsCalculator

calculator = MultiAgentMetricsCalculator(
    interactions=interaction_list,
    handoffs=handoff_list,
    conflicts=conflict_list,
    agent_roles={"agent_a": role_a, "agent_b": role_b}
)

# Calculate individual metric categories
coordination = calculator.calculate_coordination_metrics()
network = calculator.calculate_network_metrics()
emergent = calculator.calculate_emergent_behavior_metrics()

# Or calculate all at once
all_metrics = calculator.calculate_all()
"""


def test_the_catalogs_calculator_runs_as_written() -> None:
    namespace: dict[str, Any] = {
        "interaction_list": INTERACTIONS,
        "handoff_list": HANDOFFS,
        "conflict_list": CONFLICTS,
        "role_a": ROLES["lead"],
        "role_b": ROLES["coder"],
    }
    exec(CALCULATOR_SOURCE, namespace)
    assert namespace["all_metrics"] == {
        "coordination": namespace["coordination"],
        "network": namespace["network"],
        "emergent": namespace["emergent"],
    }
    kinds = [type(namespace[name]) for name in ("coordination", "network", "emergent")]
    assert kinds == [CoordinationMetrics, NetworkMetrics, EmergentBehaviorMetrics]


ANALYZERS_SOURCE = """
from agentunit.multiagent import (
    InteractionAnalyzer,
    NetworkAnalyzer,
    EmergentBehaviorDetector
)

# Analyze interactions
interaction_analyzer = InteractionAnalyzer(interactions, handoffs, conflicts)
handoff_metrics = interaction_analyzer.calculate_handoff_metrics()
conflict_metrics = interaction_analyzer.calculate_conflict_metrics()
efficiency = interaction_analyzer.calculate_communication_efficiency()
load_balance = interaction_analyzer.calculate_load_balance()

# Analyze network topology
network_analyzer = NetworkAnalyzer(adjacency_dict, agent_list)
density = network_analyzer.calculate_density()
centralization = network_analyzer.calculate_centralization()
hubs = network_analyzer.find_hub_agents(threshold=0.7)
bottlenecks = network_analyzer.find_bottleneck_agents()

# Detect emergent behaviors
detector = EmergentBehaviorDetector(interactions, agent_roles)
self_org = detector.detect_self_organization()
specialization = detector.detect_specialization()
collective = detector.detect_collective_decision_making()
adaptation = detector.detect_adaptation_rate()
swarm_score = detector.calculate_swarm_intelligence()
"""


def test_the_catalogs_analyzers_run_as_written() -> None:
    found: dict[str, Any] = {
        "interactions": INTERACTIONS,
        "handoffs": HANDOFFS,
        "conflicts": CONFLICTS,
        "agent_roles": ROLES,
        "adjacency_dict": {"hub": ["a", "b"], "a": ["hub"]},
        "agent_list": ["hub", "a", "b"],
    }
    exec(ANALYZERS_SOURCE, found)
    assert found["handoff_metrics"] == {"handoff_success_rate": 0.5, "avg_handoff_time": 2.0}
    assert found["conflict_metrics"] == {
        "conflict_rate": 50.0,  # 3 in 6 interactions
        "conflict_resolution_rate": 0.5,  # one unknown
        "avg_resolution_time": 5.0,
    }
    # 5 of 6 succeeded; those that did took 8, 8, 2 and 2 seconds: 5 s within 5 s
    assert found["efficiency"] == pytest.approx((5 / 6 + 1.0) / 2)
    # lead 3, coder 2, tester's only message failed
    assert found["load_balance"] == pytest.approx(0.6126, abs=1e-4)
    assert (found["density"], found["centralization"]) == (0.5, 1.0)
    assert (found["hubs"], found["bottlenecks"]) == (["hub"], ["hub"])
    # early: lead-coder, coder-tester (ln 2); late: 2 lead-coder, coder-lead, coder-tester (1.5·ln 2): more disorder
    assert found["self_org"] == 0.0
    # plan and code are what was said without failing, each by one agent
    assert found["specialization"] == 1.0
    assert found["collective"] == pytest.approx(2 / 6)
    assert found["adaptation"] == pytest.approx(0.75)
    assert found["swarm_score"] == pytest.approx(0.30 * 0.0 + 0.25 * 1.0 + 0.25 * 2 / 6 + 0.20 * 0.75)


def test_coordination_of_the_calculator() -> None:
    given = MultiAgentMetricsCalculator(INTERACTIONS, HANDOFFS, CONFLICTS, ROLES)
    found = given.calculate_coordination_metrics()
    # lead: 3 messages and a handoff, all allowed (the failed one says nothing); coder: 2 of 2
    assert found.role_adherence == 1.0
    # lead 3, coder 2, tester and idle none: 0.6730 / ln 4
    assert found.load_balance_score == pytest.approx(0.4855, abs=1e-4)
    network = given.calculate_network_metrics()
    assert network.density == pytest.approx(4 / 12)  # lead-coder, coder-tester, tester-lead, coder-lead of 12
    assert network.bottleneck_agents == []


def test_a_role_is_broken_by_what_it_forbids() -> None:
    acts = [
        AgentInteraction("coder", "lead", "delegation", "code"),
        AgentInteraction("coder", "lead", "request", "plan"),
        AgentInteraction("coder", "lead", "request", "code"),
        AgentInteraction("coder", "lead", "request", "code", metadata={"capability": "deploy"}),
    ]
    role = AgentRole("coder", can_delegate=False, message_types=["code"], capabilities=["compile"])
    analyzer = InteractionAnalyzer(acts, agent_roles={"coder": role})
    assert analyzer.calculate_role_adherence() == 0.25
    handing_on = InteractionAnalyzer([], [HandoffEvent("coder", "lead")], agent_roles={"coder": role})
    assert handing_on.calculate_role_adherence() == 0.0


def test_nothing_at_all_is_unknown_and_no_number() -> None:
    everything = MultiAgentMetricsCalculator().calculate_all()
    values = [value for part in everything.values() for value in vars(part).values()]  # type: ignore[attr-defined]
    assert all(value is None or value == [] for value in values)


# Shapes of input.


@dataclass
class TheirInteraction:
    from_agent: str
    to_agent: Any
    interaction_type: Any
    message_type: str
    timestamp: Any
    success: bool | None = True
    response_time: Any = None


class TheirTypes(Enum):
    DELEGATION = 1
    REQUEST = 2
    NEGOTIATION = 3
    COLLABORATION = 4
    RESPONSE = 5


def as_dicts(each: AgentInteraction) -> Any:
    return {name: getattr(each, name) for name in TheirInteraction.__dataclass_fields__}


def with_enums(each: AgentInteraction) -> Any:
    return {**as_dicts(each), "interaction_type": InteractionType(each.interaction_type)}


def with_capitals(each: AgentInteraction) -> Any:
    return {**as_dicts(each), "interaction_type": each.interaction_type.upper(), "extra field": 1}


def with_dates(each: AgentInteraction) -> Any:
    moment = datetime.fromtimestamp(each.timestamp or 0.0, tz=timezone.utc)
    took = None if each.response_time is None else timedelta(seconds=each.response_time)
    return {**as_dicts(each), "timestamp": moment, "response_time": took}


def with_iso_times(each: AgentInteraction) -> Any:
    return {**as_dicts(each), "timestamp": f"1970-01-01T00:00:0{int(each.timestamp or 0)}Z"}


def as_their_objects(each: AgentInteraction) -> Any:
    return TheirInteraction(**as_dicts(each))


def with_their_enums(each: AgentInteraction) -> Any:
    return TheirInteraction(**as_dicts(each) | {"interaction_type": TheirTypes[each.interaction_type.upper()]})


def with_tuples(each: AgentInteraction) -> Any:
    to = each.to_agent
    return {**as_dicts(each), "to_agent": (to, to) if isinstance(to, str) else frozenset(to)}


@pytest.mark.parametrize(
    "shape",
    [as_dicts, with_enums, with_capitals, with_dates, with_iso_times, as_their_objects, with_their_enums, with_tuples],
)
def test_every_shape_of_an_interaction_says_the_same(shape: Any) -> None:
    given = [shape(each) for each in INTERACTIONS]
    roles = {name: {"name": role.name, "can_delegate": role.can_delegate} for name, role in ROLES.items()}
    plain = MultiAgentMetricsCalculator(INTERACTIONS, HANDOFFS, CONFLICTS, roles).calculate_all()
    assert MultiAgentMetricsCalculator(given, HANDOFFS, CONFLICTS, roles).calculate_all() == plain


def test_interactions_changed_after_they_were_made_are_read_again() -> None:
    late = [AgentInteraction("a", "b", timestamp=float(n)) for n in range(4)]
    for each in late:
        each.timestamp = datetime(2020, 1, 1, tzinfo=timezone.utc)  # type: ignore[assignment]
        each.interaction_type = InteractionType.NEGOTIATION
    detector = EmergentBehaviorDetector(late)
    assert detector.detect_collective_decision_making() == 1.0
    assert detector.detect_self_organization() is None


@pytest.mark.parametrize(
    ("adjacency", "agents"),
    [
        ({"hub": ["a", "b"], "a": ["hub"]}, ["hub", "a", "b"]),
        ({"hub": {"a", "b"}, "a": ("hub",), "b": []}, None),
        ({"hub": {"a": 3, "b": 1}, "a": {"hub": 1, "b": 0}}, ("a",)),
        ({"hub": ["a", "b", "b", "hub"], "a": "hub"}, {"hub"}),
        ({"hub": {"a": {}, "b": {"weight": 2}}, "a": {"hub": True, "b": None}}, "hub"),
    ],
)
def test_every_shape_of_an_adjacency_says_the_same(adjacency: Any, agents: Any) -> None:
    network = NetworkAnalyzer(adjacency, agents)
    assert network.graph.names == ["a", "b", "hub"]
    assert network.calculate_density() == 0.5
    assert network.calculate_avg_path_length() == pytest.approx(5 / 4)  # hub-a, hub-b, a-hub at 1, a-b at 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"interactions": "a to b"}, "interactions must be a list; received 'a to b'"),
        ({"interactions": [{"from_agent": "a"}]}, r"interactions\[0\] must have 'to_agent'; received"),
        ({"interactions": [AgentInteraction("a", "b"), 5]}, r"interactions\[1\] must have 'from_agent'; received 5"),
        (
            {"interactions": [AgentInteraction("a", "b", response_time=-1.0)]},
            r"interactions\[0\]\.response_time must be a finite number of 0 or more; received -1\.0",
        ),
        (
            {"interactions": [AgentInteraction("a", "b", success="yes")]},  # type: ignore[arg-type]
            r"interactions\[0\]\.success must be true, false or unknown \(None\); received 'yes'",
        ),
        (
            {"interactions": [{"from_agent": "a", "to_agent": "b", "timestamp": "yesterday"}]},
            r"interactions\[0\]: timestamp must be seconds or an ISO 8601 time; received 'yesterday'",
        ),
        (
            {"interactions": [AgentInteraction("a", "b", timestamp=float("nan"))]},
            r"interactions\[0\]\.timestamp: timestamp must be finite seconds; received nan",
        ),
        ({"handoffs": [HandoffEvent("a", None)]}, r"handoffs\[0\]\.to_agent must be the name of an agent"),  # type: ignore[arg-type]
        ({"conflicts": [ConflictEvent(resolved=1)]}, r"conflicts\[0\]\.resolved must be true, false or unknown"),  # type: ignore[arg-type]
        ({"agent_roles": ["lead"]}, "agent_roles must be a dict from agents to roles; received"),
        (
            {"agent_roles": {"a": {"name": "lead", "message_types": 5}}},
            r"agent_roles\['a'\]\.message_types must be a list of texts; received 5",
        ),
    ],
)
def test_what_cannot_be_used_is_named_with_its_place(arguments: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        MultiAgentMetricsCalculator(**arguments)


@pytest.mark.parametrize("threshold", [-0.1, 1.1, "0.7", True, float("nan")])
def test_a_threshold_outside_its_range_is_refused(threshold: Any) -> None:
    with pytest.raises(ValueError, match="threshold must be from 0 to 1; received"):
        NetworkAnalyzer({"a": ["b"]}, ["a", "b"]).find_hub_agents(threshold=threshold)


@pytest.mark.parametrize("amount", [-1, float("nan"), "three"])
def test_an_amount_that_cannot_be_is_refused(amount: Any) -> None:
    with pytest.raises(ValueError, match=r"adjacency\['a'\]\['b'\] must be a finite number of 0 or more; received"):
        NetworkAnalyzer({"a": {"b": amount}})


def test_an_adjacency_that_is_no_dict_is_refused() -> None:
    with pytest.raises(ValueError, match="adjacency must be a dict from agents to agents; received"):
        NetworkAnalyzer([("a", "b")], ["a", "b"])  # type: ignore[arg-type]
