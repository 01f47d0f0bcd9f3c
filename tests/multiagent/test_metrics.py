"""The catalog's three multi-agent metrics: values, details, what must never happen, and properties."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise, permutations
from math import isfinite
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import agentunit
from agentunit.core.trace import AgentInteraction, AgentRole, ConflictEvent, HandoffEvent, TraceLog
from agentunit.metrics.base import MetricResult
from agentunit.multiagent.analyzers import MultiAgentMetricsCalculator
from agentunit.multiagent.metrics import (
    CoordinationEfficiencyMetric,
    NetworkFaultToleranceMetric,
    SwarmIntelligenceMetric,
)

COORDINATION, SWARM, NETWORK = CoordinationEfficiencyMetric(), SwarmIntelligenceMetric(), NetworkFaultToleranceMetric()
METRICS: list[Any] = [COORDINATION, SWARM, NETWORK]


def scored(metric: Any, **trace: Any) -> MetricResult:
    result: MetricResult = metric.evaluate({"id": "q1"}, TraceLog(**trace), None)
    return result


def talk(*pairs: str, **fields: Any) -> list[AgentInteraction]:
    """A message for each pair of letters, a second apart."""
    return [AgentInteraction(a, b, timestamp=float(at), **fields) for at, (a, b) in enumerate(pairs)]


# Values.


def test_coordination_adds_up_by_the_catalogs_weights() -> None:
    result = scored(
        COORDINATION,
        interactions=talk("ab", "ba", response_time=10.0),
        handoffs=[HandoffEvent("a", "b", success=done) for done in (True, False)],
        conflicts=[ConflictEvent(["a", "b"], resolved=True)],
        agent_roles={"a": AgentRole("a", can_delegate=False), "b": AgentRole("b")},
    )
    components = {
        "handoff_success_rate": 0.5,
        "conflict_resolution_rate": 1.0,
        "communication_efficiency": 0.75,  # all succeed, twice too slow
        "role_adherence": 1 / 3,  # a: one message, two handoffs it may not make
        "load_balance_score": 1.0,
    }
    assert {name: result.detail[name] for name in components} == pytest.approx(components)
    assert result.value == pytest.approx(0.25 * 0.5 + 0.20 * 1.0 + 0.25 * 0.75 + 0.15 / 3 + 0.15 * 1.0)
    assert (result.detail["unknown"], result.detail["derived"], result.detail["backend"]) == ({}, [], "trace")
    assert result.detail["conflict_rate"] == 50.0


def test_components_without_data_are_none_and_say_why() -> None:
    result = scored(COORDINATION, handoffs=[HandoffEvent("a", "b"), HandoffEvent("a", "b", success=None)])
    assert result.value == 1.0
    assert set(result.detail["unknown"]) == {
        "conflict_resolution_rate",
        "communication_efficiency",
        "role_adherence",
        "load_balance_score",
    }
    assert all(result.detail[name] is None for name in result.detail["unknown"])


def test_swarm_of_a_team_that_finds_its_order() -> None:
    early = talk("ab", "bc", "ca", "ac", interaction_type="request", response_time=4.0)
    late = [AgentInteraction("a", "b", "negotiation", "plan", timestamp=9.0 + n, response_time=1.0) for n in range(4)]
    result = scored(SWARM, interactions=[*late, *early])
    assert result.detail["self_organization"] == 1.0  # four pairs, then one
    assert result.detail["collective_decision"] == 0.5
    assert result.detail["adaptation_rate"] == 0.75
    # a: 2 generic, 4 plan of 2 types: (4/9 + 16/36·… ) = (20/36 − 1/2)·2; b and c sent one each
    assert result.detail["specialization"] == pytest.approx((20 / 36 - 0.5) * 2)
    assert result.value == pytest.approx(0.30 + 0.25 * (20 / 36 - 0.5) * 2 + 0.25 * 0.5 + 0.20 * 0.75)


def test_network_of_a_star() -> None:
    result = scored(NETWORK, interactions=talk("ha", "hb", "hc", "ah"), agent_roles={"idle": AgentRole("spare")})
    assert result.value == pytest.approx(0.6 * 4 / 20 + 0.4 * (1 - 1 / 5))
    assert result.detail == {
        "density": 0.2,
        "centralization": pytest.approx((5 * 3 - 6) / 12),
        "clustering": 0.0,
        "hub_agents": ["h"],
        "bottleneck_count": 1,
        "bottleneck_agents": ["h"],
        "avg_path_length": pytest.approx((4 + 2 * 2) / 6),
        "worst_loss": "h",
        "connected_after_worst_loss": 0.25,
        "agents": 5,
        "derived": [],
        "backend": "trace",
        "why": "without h, 25% of the other agents stay connected",
    }


def test_the_hub_threshold_is_a_parameter() -> None:
    chain = talk("ab", "bc")
    assert scored(NETWORK, interactions=chain).detail["hub_agents"] == ["b"]
    assert scored(NetworkFaultToleranceMetric(0.5), interactions=chain).detail["hub_agents"] == ["a", "b", "c"]
    with pytest.raises(ValueError, match="NetworkFaultToleranceMetric: hub_threshold must be from 0 to 1; received 7"):
        NetworkFaultToleranceMetric(hub_threshold=7)


@pytest.mark.parametrize("metric", METRICS)
def test_nothing_between_agents_is_none_with_a_reason(metric: Any) -> None:
    for trace in ({}, {"interactions": talk("aa", "bb")}, {"agent_roles": {"a": AgentRole("a"), "b": AgentRole("b")}}):
        result = scored(metric, **trace)
        assert result.value is None
        assert result.detail["reason"].startswith("no ")
        assert set(metric.info.detail_keys) <= set(result.detail)


@pytest.mark.parametrize("metric", METRICS)
def test_names_of_the_registry(metric: Any) -> None:
    [resolved] = agentunit.resolve_metrics([metric.name])
    assert resolved == metric
    assert metric.info.trust == {"trace": "descriptive", "derived": "descriptive"}


def test_what_nobody_recorded_is_derived_and_said_to_be() -> None:
    said = [("planner", "Find the date."), ("searcher", "It was in May."), ("planner", "Of which year?")]
    said += [("searcher", "1921."), ("planner", "Thanks.")]
    events = [{"type": "message", "payload": {"role": "assistant", "agent": a, "content": t}} for a, t in said]
    trace = {"events": events}
    for metric in METRICS:
        result = metric.evaluate({"id": "q1"}, trace, None)
        assert "interactions" in result.detail["derived"]
        assert result.detail["backend"] == "derived"
    assert NETWORK.evaluate({"id": "q1"}, trace, None).value == 1.0
    # Without time stamps the order of the events tells early from late: each half has both pairs.
    assert SWARM.evaluate({"id": "q1"}, trace, None).detail["self_organization"] == 0.0


def test_what_a_reader_of_chat_logs_derived_counts_as_derived() -> None:
    marked = [
        AgentInteraction(a, b, success=None, metadata={"derived_from": "the next speaker"}) for a, b in ("ab", "ba") * 3
    ]
    result = scored(SWARM, interactions=marked)
    assert (result.detail["derived"], result.detail["backend"]) == (["interactions"], "derived")
    # In the order of the chat; nobody said of what type the messages are.
    assert result.detail["self_organization"] == 0.0
    assert result.detail["specialization"] is None
    assert result.detail["collective_decision"] is None
    marked[0].interaction_type, marked[0].message_type = "negotiation", "plan"
    assert scored(SWARM, interactions=marked).detail["specialization"] is not None
    assert scored(SWARM, interactions=marked).detail["collective_decision"] == 0.0


# What was absurd elsewhere.


def test_a_full_mesh_is_no_set_of_bottlenecks_and_a_sole_bridge_is_one() -> None:
    mesh = talk(*map("".join, permutations("abcde", 2)))
    assert scored(NETWORK, interactions=mesh).detail["bottleneck_agents"] == []
    assert scored(NETWORK, interactions=mesh).value == 1.0
    halves = talk(*map("".join, [*permutations("abcd", 2), *permutations("wxyz", 2)]), "aB", "Bz")
    assert "B" in scored(NETWORK, interactions=halves).detail["bottleneck_agents"]


def test_density_stays_within_1() -> None:
    busy = talk(*["ab", "ba", "aa"] * 50)
    assert scored(NETWORK, interactions=busy).detail["density"] == 1.0


def test_a_hundred_one_way_messages_are_not_balanced() -> None:
    assert scored(COORDINATION, interactions=talk(*["ab"] * 100)).detail["load_balance_score"] == 0.0


@pytest.mark.parametrize("with_handoffs", [False, True])
@pytest.mark.parametrize("with_conflicts", [False, True])
@pytest.mark.parametrize("with_roles", [False, True])
def test_everything_failed_scores_zero(with_handoffs: bool, with_conflicts: bool, with_roles: bool) -> None:
    failed: dict[str, Any] = {"interactions": talk("ab", "ba", "ab", "ba", success=False, response_time=0.1)}
    if with_handoffs:
        failed["handoffs"] = [HandoffEvent("a", "b", success=False), HandoffEvent("b", "a", success=False)]
    if with_conflicts:
        failed["conflicts"] = [ConflictEvent(["a", "b"], resolved=False)]
    if with_roles:
        failed["agent_roles"] = {name: AgentRole(name, can_delegate=True) for name in "ab"}
    assert scored(COORDINATION, **failed).value == 0.0
    assert scored(SWARM, **failed).value == 0.0


def test_messages_that_are_all_generic_show_no_specialisation() -> None:
    assert scored(SWARM, interactions=talk("ab", "ba", "ab", "ba")).detail["specialization"] == 0.0


def test_halves_go_by_time_and_not_by_the_order_of_the_list() -> None:
    messages = talk("ab", "bc", "ca", "ac", "ab", "ab", "ab", "ab", response_time=1.0)
    in_order = scored(SWARM, interactions=messages)
    assert in_order.detail["self_organization"] == 1.0
    assert scored(SWARM, interactions=messages[::-1]) == in_order
    untimed = [AgentInteraction(each.from_agent, each.to_agent) for each in messages]
    assert scored(SWARM, interactions=untimed).detail["self_organization"] is None


def test_no_number_of_messages_is_a_threshold() -> None:
    def swarm_of(n: int) -> float:
        messages = talk(*["ab", "ba", "bc", "cb"] * 8, response_time=1.0)[:n]
        value = scored(SWARM, interactions=messages).value
        assert value is not None
        return value

    values = [swarm_of(n) for n in range(4, 30)]
    assert max(abs(after - before) for before, after in pairwise(values)) < 0.2


# Properties.

AGENTS = st.sampled_from("abcd")
VERDICTS = st.sampled_from([True, False, None])
TIMES = st.none() | st.floats(0, 1e6)
INTERACTIONS = st.builds(
    AgentInteraction,
    from_agent=AGENTS,
    to_agent=AGENTS | st.lists(AGENTS, max_size=3),
    interaction_type=st.sampled_from(["request", "delegation", "negotiation", "collaboration", "escalation"]),
    message_type=st.sampled_from(["generic", "plan", "code"]),
    timestamp=TIMES,
    success=VERDICTS,
    response_time=TIMES,
)
HANDOFFS = st.builds(HandoffEvent, from_agent=AGENTS, to_agent=AGENTS, success=VERDICTS, handoff_time=TIMES)
CONFLICTS = st.builds(
    ConflictEvent, agents_involved=st.lists(AGENTS, max_size=3), resolved=VERDICTS, resolution_time=TIMES
)
ROLES = st.dictionaries(
    AGENTS,
    st.builds(
        AgentRole,
        name=st.just("role"),
        message_types=st.none() | st.lists(st.sampled_from(["plan", "code"]), max_size=2),
        can_delegate=VERDICTS,
        can_escalate=VERDICTS,
    ),
    max_size=4,
)
TRACES = st.fixed_dictionaries(
    {
        "interactions": st.lists(INTERACTIONS, max_size=12),
        "handoffs": st.lists(HANDOFFS, max_size=4),
        "conflicts": st.lists(CONFLICTS, max_size=4),
        "agent_roles": ROLES,
    }
)


@given(TRACES)
def test_in_range_and_complete_for_any_trace(trace: dict[str, Any]) -> None:
    for metric in METRICS:
        result = scored(metric, **trace)
        assert result.value is None or 0.0 <= result.value <= 1.0
        assert result.value is not None or result.detail["reason"]
        numbers = [value for value in result.detail.values() if isinstance(value, float)]
        assert all(isfinite(value) and value >= 0.0 for value in numbers)


def worsened(trace: dict[str, Any], name: str, entry: Any) -> dict[str, Any]:
    return {**trace, name: [*trace[name], entry]}


def never_better(metric: Any, before: dict[str, Any], after: dict[str, Any]) -> None:
    was, is_now = calculated(metric, before), calculated(metric, after)
    if was is None:
        assert not is_now
    else:
        assert is_now is not None
        assert is_now <= was + 1e-9


def calculated(metric: Any, trace: dict[str, Any]) -> float | None:
    """The value over exactly what is given: response times that stamps would tell are not derived."""
    calculator = MultiAgentMetricsCalculator(**trace)
    if metric is SWARM:
        return calculator.calculate_emergent_behavior_metrics().swarm_intelligence_score
    from agentunit.formulas.coordination import COORDINATION_WEIGHTS, weighted_score

    return weighted_score(vars(calculator.calculate_coordination_metrics()), COORDINATION_WEIGHTS)


@given(TRACES, HANDOFFS)
def test_one_more_failed_handoff_never_raises_the_score(trace: dict[str, Any], handoff: HandoffEvent) -> None:
    handoff.success = False
    never_better(COORDINATION, trace, worsened(trace, "handoffs", handoff))
    before, after = (scored(COORDINATION, **each).value for each in (trace, worsened(trace, "handoffs", handoff)))
    assert after is not None
    assert after <= (0.0 if before is None else before) + 1e-9


@given(TRACES, CONFLICTS)
def test_one_more_open_conflict_never_raises_the_score(trace: dict[str, Any], conflict: ConflictEvent) -> None:
    conflict.resolved = False
    never_better(COORDINATION, trace, worsened(trace, "conflicts", conflict))


@given(TRACES, INTERACTIONS)
def test_one_more_failed_message_never_raises_a_score(trace: dict[str, Any], message: AgentInteraction) -> None:
    message.success = False
    for metric in (COORDINATION, SWARM):
        never_better(metric, trace, worsened(trace, "interactions", message))


@given(TRACES)
def test_a_trace_in_which_everything_failed_scores_zero_or_nothing(trace: dict[str, Any]) -> None:
    for each in (*trace["interactions"], *trace["handoffs"]):
        each.success = False
    for each in trace["conflicts"]:
        each.resolved = False
    for metric in (COORDINATION, SWARM):
        assert not scored(metric, **trace).value


@given(TRACES, st.permutations("abcd"))
def test_other_names_change_nothing(trace: dict[str, Any], names: list[str]) -> None:
    renamed = dict(zip("abcd", names, strict=True))

    def name_of(names: Any) -> Any:
        return renamed[names] if isinstance(names, str) else [renamed[each] for each in names]

    def copied(each: Any, **changes: Any) -> Any:
        known = {name: getattr(each, name) for name in each.__struct_fields__}
        return type(each)(**{**known, **changes})

    after = {
        "interactions": [
            copied(each, from_agent=name_of(each.from_agent), to_agent=name_of(each.to_agent))
            for each in trace["interactions"]
        ],
        "handoffs": [
            copied(each, from_agent=name_of(each.from_agent), to_agent=name_of(each.to_agent))
            for each in trace["handoffs"]
        ],
        "conflicts": [copied(each, agents_involved=name_of(each.agents_involved)) for each in trace["conflicts"]],
        "agent_roles": {renamed[agent]: role for agent, role in trace["agent_roles"].items()},
    }
    for metric in METRICS:
        was, is_now = scored(metric, **trace), scored(metric, **after)
        assert is_now.value == pytest.approx(was.value)
        assert set(is_now.detail.get("hub_agents") or ()) == {
            renamed[name] for name in was.detail.get("hub_agents") or ()
        }


ODD = st.sampled_from(
    [None, 5, -1.0, "", "x", [], [None], {}, {"a": 1}, [[]], True, float("nan"), float("inf"), object()]
)
ODD_ENTRIES: list[Callable[..., st.SearchStrategy[Any]]] = [
    lambda: st.builds(
        AgentInteraction, from_agent=ODD, to_agent=ODD, interaction_type=ODD, message_type=ODD, success=ODD,
        response_time=ODD, metadata=ODD,
    ),
    lambda: st.builds(HandoffEvent, from_agent=ODD, to_agent=ODD, success=ODD, handoff_time=ODD),
    lambda: st.builds(ConflictEvent, agents_involved=ODD, resolved=ODD, resolution_time=ODD),
    lambda: st.builds(AgentRole, name=ODD, message_types=ODD, capabilities=ODD, can_delegate=ODD, can_escalate=ODD),
]  # fmt: skip


@given(
    ODD | st.lists(ODD_ENTRIES[0]() | ODD, max_size=3),
    ODD | st.lists(ODD_ENTRIES[1]() | ODD, max_size=3),
    ODD | st.lists(ODD_ENTRIES[2]() | ODD, max_size=3),
    ODD | st.dictionaries(st.sampled_from("ab") | st.integers(), ODD_ENTRIES[3]() | ODD, max_size=3),
)
def test_objects_built_by_hand_with_odd_fields(
    interactions: Any, handoffs: Any, conflicts: Any, agent_roles: Any
) -> None:
    for metric in METRICS:
        result = scored(
            metric, interactions=interactions, handoffs=handoffs, conflicts=conflicts, agent_roles=agent_roles
        )
        assert result.value is None or 0.0 <= result.value <= 1.0
        assert result.value is not None or result.detail["reason"]
