"""The agents of a run: what each said, called, spent and failed at, and who writes to whom."""

from __future__ import annotations

from collections import Counter
from typing import Any

from msgspec import Struct, field

from agentunit.formulas.graph import Graph, articulation_points, degree_centrality
from agentunit.metrics.inputs import Item
from agentunit.metrics.usage import llm_calls
from agentunit.multiagent.derivation import derived, reading, receivers_of, sender_of
from agentunit.multiagent.inputs import interactions_of
from agentunit.multiagent.steps import HUMANS, agent_in, steps_of, trace_of


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


class Link(Struct, frozen=True, omit_defaults=True):
    """What one agent sent to another. ``failed`` counts messages and handoffs that are known to have failed."""

    sender: str
    receiver: str
    messages: int
    handoffs: int = 0
    failed: int = 0

    @property
    def weight(self) -> int:
        """How much passed along it: messages, or handoffs where only those were recorded."""
        return self.messages or self.handoffs


class Network(Struct, frozen=True, omit_defaults=True):
    """The agents of a run in order of appearance, their links, busiest first, and how many messages each sent.

    ``bottlenecks`` are the agents without whom others could no longer reach each other.
    """

    agents: list[str]
    links: list[Link] = field(default_factory=list)
    bottlenecks: list[str] = field(default_factory=list)
    sent: dict[str, int] = field(default_factory=dict)


def network_of(record: Any) -> Network:
    """The network of a record or a trace: as recorded, else as its events tell it.

    >>> said = [("planner", "Find it."), ("searcher", "Here it is."), ("planner", "Write it."), ("writer", "Done.")]
    >>> events = [{"type": "message", "payload": {"role": "assistant", "agent": a, "content": t}} for a, t in said]
    >>> network = network_of({"events": events})
    >>> [(link.sender, link.receiver, link.messages) for link in network.links], network.bottlenecks
    ([('planner', 'searcher', 1), ('planner', 'writer', 1), ('searcher', 'planner', 1)], ['planner'])
    """
    trace = trace_of(record)
    interactions = interactions_of(trace)
    said, handed = interactions.messages, interactions.handoffs
    messages, handoffs, failed = (Counter[tuple[str, str]]() for _ in range(3))
    for sender, receivers, success in zip(said.senders, said.receivers, said.successes, strict=True):
        for receiver in receivers:
            messages[sender, receiver] += 1
            failed[sender, receiver] += success is False
    for giver, taker, success in zip(handed.givers, handed.takers, handed.successes, strict=True):
        if giver != taker:
            handoffs[giver, taker] += 1
            failed[giver, taker] += success is False
    links = [
        Link(sender, receiver, messages[sender, receiver], handoffs[sender, receiver], failed[sender, receiver])
        for sender, receiver in {**messages, **handoffs}
    ]
    acting = [step.agent for step in steps_of(trace) if step.agent is not None and not step.by_human]
    seen = dict.fromkeys([*acting, *said.senders])
    agents = [*seen, *sorted(interactions.agents.difference(seen))]
    return Network(
        agents,
        sorted(links, key=lambda link: (-link.weight, link.sender, link.receiver)),
        articulation_points(Graph(agents, said.edges())),
        dict(Counter(said.senders)),
    )
