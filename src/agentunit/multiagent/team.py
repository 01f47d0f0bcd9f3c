"""The agents of a run: what each did and spent, one thing after the other, and who writes to whom."""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Iterable, Iterator
from typing import Any

from msgspec import Struct, field

from agentunit.formulas.graph import Graph, articulation_points, degree_centrality
from agentunit.metrics.inputs import Item, payload_of
from agentunit.metrics.usage import llm_calls
from agentunit.multiagent._team_inputs import interactions_of, moment_at
from agentunit.multiagent.derivation import (
    HUMANS,
    Derived,
    TeamStep,
    agent_in,
    derived,
    reading,
    receivers_of,
    sender_of,
    steps_of,
    text_in,
    trace_of,
)
from agentunit.public import publish


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


_LABEL_LENGTH = 120


class Mark(Struct, omit_defaults=True):
    """One thing that an agent did: a ``message``, a tool ``call``, a ``model`` call or a ``handoff``.

    ``to`` names those it reaches. ``at_s`` counts from the first thing whose time is known, and ``step`` counts
    messages and tool calls from 0. ``failed`` is ``None`` when nothing tells.
    """

    agent: str
    kind: str
    label: str
    step: int | None = None
    to: list[str] = field(default_factory=list)
    at_s: float | None = None
    failed: bool | None = None


class Lanes(Struct, omit_defaults=True):
    """The agents in order of appearance and what they did, in order. ``n_nameless`` steps name no agent."""

    agents: list[str]
    marks: list[Mark] = field(default_factory=list)
    n_nameless: int = 0

    @property
    def timed(self) -> bool:
        """Whether the time of everything is known, so that distances can stand for time."""
        times = [mark.at_s for mark in self.marks]
        return None not in times and any(times)


def lanes_of(record: Any) -> Lanes:
    """The lanes of a record or a trace. What has no time stays behind what was recorded before it.

    >>> events = [{"type": "message", "payload": {"role": "assistant", "agent": "lead", "content": "Test it."}},
    ...           {"type": "tool_call", "payload": {"name": "pytest", "agent": "tester", "status": "error"}}]
    >>> [(mark.agent, mark.kind, mark.to, mark.failed) for mark in lanes_of({"events": events}).marks]
    [('lead', 'message', ['tester'], None), ('tester', 'call', [], True)]
    """
    trace = trace_of(record)
    found = derived(trace)
    unmatched = list(found.interactions)
    marks: list[Mark] = []
    sent = _sent_by_step(found, unmatched)
    for event, step in _events_and_steps(trace, found.steps):
        if step is not None and step.agent is not None:
            marks.append(_of_step(step, sent.get(step.number)))
        elif step is None and (agent := agent_in(payload_of(event))) is not None:
            payload = payload_of(event)
            failed = True if payload.get("error") else None
            label = text_in(payload.get("model")) or "model call"
            marks.append(Mark(agent, "model", _short(label), at_s=event.timestamp, failed=failed))
    marks += [_of_interaction(each, "message") for each in unmatched]
    if "handoffs" not in found.derived:
        marks += [_of_interaction(each, "handoff") for each in found.handoffs]
    ordered = _in_order(marks)
    seen = dict.fromkeys(mark.agent for mark in ordered)
    receivers = dict.fromkeys(name for mark in ordered for name in mark.to)
    idle = sorted(name for name in found.roles if name not in seen and name not in receivers)
    n_nameless = sum(step.agent is None for step in found.steps)
    return Lanes(list({**seen, **receivers, **dict.fromkeys(idle)}), ordered, n_nameless)


def _events_and_steps(trace: Any, steps: Iterable[TeamStep]) -> Iterator[tuple[Any, TeamStep | None]]:
    """The events that are steps, and the model calls, in the order of the trace."""
    by_position = {step.position: step for step in steps}
    for position, event in enumerate(Item(None, trace, None).events):
        if position in by_position or event.type == "llm_call":
            yield event, by_position.get(position)


def _sent_by_step(found: Derived, interactions: list[Any]) -> dict[int, Any]:
    """The interaction that each step is; those are taken out of the list.

    Readers of chat logs record the same words as a message and as an interaction: they are one thing that happened.
    """
    waiting: defaultdict[tuple[str, str], deque[int]] = defaultdict(deque)
    for step in found.steps:
        if step.agent is not None and step.kind != "tool_call":
            waiting[step.agent, step.text].append(step.number)
    sent: dict[int, Any] = {}
    left = []
    for each in interactions:
        numbers = waiting.get((sender_of(each), text_in(reading(each, "content"))))
        if numbers:
            sent[numbers.popleft()] = each
        else:
            left.append(each)
    interactions[:] = left
    return sent


def _of_step(step: TeamStep, interaction: Any) -> Mark:
    kind = "call" if step.kind == "tool_call" or step.is_result else "message"
    mark = Mark(str(step.agent), kind, _short(step.text), step.number, at_s=step.timestamp, failed=step.failed)
    if interaction is not None:
        mark.to = [name for name in receivers_of(interaction) if name != step.agent]
        mark.at_s = mark.at_s if mark.at_s is not None else _time_of(interaction)
        if reading(interaction, "success") is False:
            mark.failed = True
    return mark


def _of_interaction(each: Any, kind: str) -> Mark:
    sender = sender_of(each)
    success = reading(each, "success")
    said = reading(each, "content" if kind == "message" else "reason")
    return Mark(
        sender,
        kind,
        _short(text_in(said)),
        to=[name for name in receivers_of(each) if name != sender],
        at_s=_time_of(each),
        failed=None if success is None else success is False,
    )


def _time_of(entry: Any) -> float | None:
    return moment_at("timestamp", reading(entry, "timestamp"))


def _in_order(marks: list[Mark]) -> list[Mark]:
    """The marks by time, counted from the first; the sort is stable, so what has no time stays where it stands."""
    start = min((mark.at_s for mark in marks if mark.at_s is not None), default=0.0)
    latest = start
    keyed = []
    for mark in marks:
        latest = latest if mark.at_s is None else mark.at_s
        mark.at_s = None if mark.at_s is None else mark.at_s - start
        keyed.append((latest, mark))
    return [mark for _, mark in sorted(keyed, key=lambda pair: pair[0])]


def _short(text: str) -> str:
    return " ".join(text[: 4 * _LABEL_LENGTH].split())[:_LABEL_LENGTH]


publish("agentunit.multiagent", AgentRow)
