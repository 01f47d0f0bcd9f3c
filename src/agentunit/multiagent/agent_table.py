"""One line an agent: what it said, called, spent and failed at, and how it is connected."""

from __future__ import annotations

from collections import Counter
from typing import Any

from msgspec import Struct

from agentunit.formulas.graph import Graph, degree_centrality
from agentunit.metrics.inputs import Item
from agentunit.metrics.usage import llm_calls
from agentunit.multiagent.derivation import derived, reading, receivers_of, sender_of
from agentunit.multiagent.steps import HUMANS, agent_in, trace_of


class AgentRow(Struct, frozen=True):
    """What one agent did.

    ``tokens`` is ``None`` when no model call of the agent states them. ``failures`` are failed tool calls and failed
    handoffs to it, of the ``outcomes`` that are known; ``share`` is its part of all messages and calls.
    ``centrality`` is the share of the other agents it exchanged messages with.
    """

    agent: str
    messages: int
    words: int
    tool_calls: int
    tokens: int | None
    failures: int
    outcomes: int
    received: int
    centrality: float | None
    share: float | None


def agents_table(record: Any) -> list[AgentRow]:
    """The agents of a run, busiest first: those that act, send, receive or hold a role. Give a record or a trace.

    >>> said = [("planner", "Find it."), ("searcher", "Here it is."), ("planner", "Thanks.")]
    >>> events = [{"type": "message", "payload": {"role": "assistant", "agent": a, "content": t}} for a, t in said]
    >>> [(row.agent, row.messages, row.received, row.share) for row in agents_table({"events": events})]
    [('planner', 2, 1, 0.6666666666666666), ('searcher', 1, 1, 0.3333333333333333)]
    """
    trace = trace_of(record)
    found = derived(trace)
    messages, n_words, calls = Counter[str](), Counter[str](), Counter[str]()
    failures, outcomes, received = Counter[str](), Counter[str](), Counter[str]()
    edges: list[tuple[str, str]] = []
    for step in found.steps:
        if step.agent is None or step.by_human:
            continue
        if step.kind == "tool_call" or step.is_result:
            calls[step.agent] += 1
            outcomes[step.agent] += step.failed is not None
            failures[step.agent] += step.failed is True
        else:
            messages[step.agent] += 1
            n_words[step.agent] += len(step.text.split())
    for each in found.interactions:
        sender = sender_of(each)
        for receiver in receivers_of(each):
            received[receiver] += 1
            edges.append((sender, receiver))
    if not messages:
        # A user who records interactions only has said who spoke, too.
        messages.update(sender_of(each) for each in found.interactions)
    if "handoffs" not in found.derived:
        for handoff in found.handoffs:
            success = reading(handoff, "success")
            for taker in receivers_of(handoff):
                outcomes[taker] += success is not None
                failures[taker] += success is False
    tokens = _tokens(trace)
    linked = Graph(found.roles, edges)
    centrality = degree_centrality(linked)
    names = {*linked.names, *messages, *calls, *tokens}
    work = {name: messages[name] + calls[name] for name in names if name.lower() not in HUMANS}
    total = sum(work.values())
    rows = [
        AgentRow(
            name, messages[name], n_words[name], calls[name], tokens.get(name), failures[name], outcomes[name],
            received[name], centrality.get(name), done / total if total else None,
        )
        for name, done in work.items()
    ]  # fmt: skip
    return sorted(rows, key=lambda row: (-(row.messages + row.tool_calls), row.agent))


def _tokens(trace: Any) -> dict[str, int]:
    """The tokens of each agent's model calls; an agent with a call that states none is left out."""
    spent: dict[str, int] = {}
    unknown: set[str] = set()
    for _, payload, tokens in llm_calls(Item(None, trace, None)):
        agent = agent_in(payload)
        if agent is None:
            continue
        if tokens.total is None:
            unknown.add(agent)
        else:
            spent[agent] = spent.get(agent, 0) + tokens.total
    return {agent: total for agent, total in spent.items() if agent not in unknown}
