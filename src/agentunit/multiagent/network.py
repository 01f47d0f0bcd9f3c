"""Who writes to whom in a run, how often, and what of it failed: the facts behind the picture of a team."""

from __future__ import annotations

from collections import Counter
from typing import Any

from msgspec import Struct, field

from agentunit.formulas.graph import Graph, articulation_points
from agentunit.multiagent.inputs import dealings_of
from agentunit.multiagent.steps import steps_of, trace_of


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
    dealings = dealings_of(trace)
    said, handed = dealings.messages, dealings.handoffs
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
    agents = [*seen, *sorted(dealings.agents.difference(seen))]
    return Network(
        agents,
        sorted(links, key=lambda link: (-link.weight, link.sender, link.receiver)),
        articulation_points(Graph(agents, said.edges())),
        dict(Counter(said.senders)),
    )
