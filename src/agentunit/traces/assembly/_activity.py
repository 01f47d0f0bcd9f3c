"""Who did what in a trace: the agent of each span, how tasks passed between agents, the calls in AutoGen's messages."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from agentunit.core.trace import AgentInteraction, AgentRole, HandoffEvent
from agentunit.traces.assembly._tool_calls import plain_name
from agentunit.traces.assembly._tree import Node, nearest_above, top_down
from agentunit.traces.spans import Span
from agentunit.traces.vocabularies.values import (
    Facts,
    Message,
    ToolRequest,
    answer_in,
    as_text,
    from_json,
    question_in,
    usage_of,
)

_WORK = ("llm", "tool")


class Activity(NamedTuple):
    """The agents of a trace and what passed between them."""

    interactions: list[AgentInteraction]
    handoffs: list[HandoffEvent]
    roles: dict[str, AgentRole]


class _Signal(NamedTuple):
    """A span that says that a task is passed on."""

    node: Node
    from_agent: str | None
    to_agent: str | None
    reason: str | None


def attribute_agents(nodes: Sequence[Node]) -> None:
    """Give every node its agent: its own word, else its parent's, else whoever was at work when it began."""
    for node in top_down(nodes):
        node.agent = node.facts.agent or _inherited(node)
    at_work: str | None = None
    for node in nodes:
        if node.agent is not None:
            at_work = node.agent
        elif at_work is not None and node.facts.kind in ("llm", "tool", "retrieval", "handoff"):
            node.agent = at_work


def _inherited(node: Node) -> str | None:
    parent = node.parent
    if parent is None:
        return None
    return parent.facts.to_agent if parent.facts.delegates else parent.agent


def activity_of(nodes: Sequence[Node]) -> Activity:
    """The handoffs, delegations and agents of a trace whose nodes have their agents."""
    agents = _working_agents(nodes)
    signals = _signals(nodes, agents)
    roles = _roles(nodes, agents)
    interactions: list[AgentInteraction] = []
    handoffs: list[HandoffEvent] = []
    previous: Node | None = None
    for scope in _scopes(nodes, agents):
        outer = scope.parent.agent if scope.parent is not None else None
        agent = str(scope.agent)
        if outer in agents and outer is not None:
            signal = _take(signals, outer, agent, scope)
            handoffs.append(_handoff(outer, agent, scope, signal, delegated=True))
            interactions += _delegation(outer, agent, scope)
        else:
            if previous is not None and previous.agent != agent:
                signal = _take(signals, previous.agent, agent, scope)
                handoffs.append(_handoff(str(previous.agent), agent, scope, signal, delegated=False))
            previous = scope
    handoffs += _unanswered(signals, handoffs, nodes)
    handoffs.sort(key=lambda handoff: handoff.timestamp or 0.0)
    return Activity(interactions, handoffs, roles if len(roles) > 1 or handoffs else {})


def _working_agents(nodes: Sequence[Node]) -> set[str]:
    """Agents that did something themselves; a workflow around agents is not one of them."""
    agents = {node.agent for node in nodes if node.facts.kind in _WORK and not node.within_evaluation}
    around = nearest_above(nodes, lambda node: node.facts.kind == "agent")
    holders = {around[node] for node in nodes if node.facts.kind in (*_WORK, "agent")}
    agents |= {node.agent for node in nodes if node.facts.kind == "agent" and node not in holders}
    return {agent for agent in agents if agent is not None}


def _scopes(nodes: Sequence[Node], agents: set[str]) -> list[Node]:
    """The outermost span of each stretch of work by one agent, in order."""
    outermost: dict[Node, Node] = {}
    for node in top_down(nodes):
        same = node.parent is not None and node.parent.agent == node.agent
        outermost[node] = outermost[node.parent] if same and node.parent is not None else node
    working = {outermost[node] for node in nodes if node.facts.kind in (*_WORK, "agent") and not node.within_evaluation}
    found: list[Node] = []
    for node in nodes:
        if node not in working or node.agent not in agents:
            continue
        # Work that stands side by side without a span of its agent around it is one stretch.
        goes_on = found and found[-1].agent == node.agent and found[-1].parent is node.parent
        if not goes_on or node.facts.kind == "agent":
            found.append(node)
    return found


def _signals(nodes: Sequence[Node], agents: set[str]) -> list[_Signal]:
    signals: list[_Signal] = []
    # Of several agents whose names differ only in case and marks, the first by name.
    spelled = {plain_name(agent): agent for agent in sorted(agents, reverse=True)}
    for node in nodes:
        facts = node.facts
        if facts.kind != "handoff" and not (facts.kind == "tool" and facts.to_agent):
            continue
        source = _known(facts.from_agent, agents, spelled) or node.agent
        target = _known(facts.to_agent, agents, spelled)
        reason = facts.input.get("reason") if isinstance(facts.input, dict) else None
        repeated = signals and (signals[-1].from_agent, signals[-1].to_agent) == (source, target)
        within = repeated and node.parent is not None and node.parent is signals[-1].node
        if not within and not (repeated and facts.kind == "handoff"):
            signals.append(_Signal(node, source, target, reason if isinstance(reason, str) else None))
    return signals


def _known(name: str | None, agents: set[str], spelled: dict[str, str]) -> str | None:
    """An agent's name as the trace spells it elsewhere."""
    if name is None or name in agents:
        return name
    return spelled.get(plain_name(name), name)


def _take(signals: list[_Signal], source: str | None, target: str, scope: Node) -> _Signal | None:
    for position, signal in enumerate(signals):
        if signal.node.start_s > scope.start_s and signal.node is not scope.parent:
            break
        if signal.to_agent in (target, None) and signal.from_agent in (source, None):
            return signals.pop(position)
    return None


def _handoff(source: str, target: str, scope: Node, signal: _Signal | None, *, delegated: bool) -> HandoffEvent:
    metadata: dict[str, object] = {"span_id": (signal.node if signal else scope).span.span_id}
    if delegated:
        metadata["kind"] = "delegation"
    if signal is None:
        metadata["derived_from"] = "an agent's span within another's" if delegated else "the order of the agents' spans"
    began = (signal.node if signal else scope).span.start_s
    return HandoffEvent(
        source,
        target,
        success=not ((delegated and scope.span.status == "error") or (signal and signal.node.span.status == "error")),
        timestamp=began,
        reason=signal.reason if signal else None,
        metadata=metadata,
    )


def _unanswered(signals: list[_Signal], handoffs: list[HandoffEvent], nodes: Sequence[Node]) -> list[HandoffEvent]:
    """Signals after which the agent that was named did not act; at the very end of a trace nobody can tell."""
    last_work = max((node.start_s for node in nodes if node.facts.kind in _WORK), default=0.0)
    done = {(handoff.from_agent, handoff.to_agent) for handoff in handoffs}
    unanswered = []
    for signal in signals:
        if signal.from_agent is None or signal.to_agent is None or signal.from_agent == signal.to_agent:
            continue
        if (signal.from_agent, signal.to_agent) in done:
            continue
        unanswered.append(
            HandoffEvent(
                signal.from_agent,
                signal.to_agent,
                success=False if last_work > signal.node.start_s else None,
                timestamp=signal.node.span.start_s,
                reason=signal.reason,
                metadata={"span_id": signal.node.span.span_id},
            )
        )
    return unanswered


def _delegation(outer: str, agent: str, scope: Node) -> list[AgentInteraction]:
    """An agent called by another: a request, and the response when it came back."""
    facts, span = scope.facts, scope.span
    metadata = {"derived_from": "an agent's span within another's", "span_id": span.span_id}
    request = AgentInteraction(
        outer,
        agent,
        "delegation",
        content=question_in(facts.input),
        timestamp=span.start_s,
        success=span.status != "error",
        response_time=scope.duration_s,
        interaction_id=span.span_id,
        metadata=metadata,
    )
    response = AgentInteraction(
        agent,
        outer,
        "response",
        content=answer_in(facts.output),
        timestamp=span.end_s,
        success=span.status != "error",
        parent_interaction_id=span.span_id,
        metadata=metadata,
    )
    return [request, response]


def _roles(nodes: Sequence[Node], agents: set[str]) -> dict[str, AgentRole]:
    roles: dict[str, AgentRole] = {}
    for node in nodes:
        if node.agent in agents and node.agent is not None:
            role = roles.setdefault(node.agent, AgentRole(node.agent, metadata={"derived_from": "spans"}))
            if node.facts.agent == node.agent and node.facts.agent_description and not role.description:
                role.description = node.facts.agent_description
    return roles


# Model calls out of the messages between AutoGen's agents, whose runtime has no spans for them.


def calls_in_messages(nodes: Sequence[Node]) -> list[Node]:
    """One node a message that a model wrote, with its tokens; each message is delivered to several agents."""
    found: list[Node] = []
    waiting: dict[str, list[Message]] = {}
    for node, message in _distinct_messages(nodes):
        agent = as_text(message.get("source"))
        kind = message.get("type")
        if kind == "ToolCallExecutionEvent" and agent:
            waiting.setdefault(agent, []).extend(_tool_results(message.get("content")))
        elif kind == "HandoffMessage" and agent:
            found.append(_synthetic(node, Facts("handoff", from_agent=agent, to_agent=as_text(message.get("target")))))
        elif isinstance(message.get("models_usage"), dict):
            usage = message["models_usage"]
            facts = Facts("llm", agent, usage=usage_of(usage.get("prompt_tokens"), usage.get("completion_tokens")))
            facts.input_messages = waiting.pop(agent or "", [])
            facts.output_messages = [_reply(message.get("content"))]
            found.append(_synthetic(node, facts))
    # Results that no later call was told of still belong to their tool calls.
    for left in waiting.values():
        for each in reversed(found):
            if each.facts.kind == "llm":
                each.facts.input_messages += left
                break
    return found


def question_in_messages(nodes: Sequence[Node]) -> str | None:
    """The first message that the user wrote to AutoGen's agents."""
    for _, message in _distinct_messages(nodes):
        if message.get("source") == "user" and isinstance(message.get("content"), str):
            return as_text(message["content"])
    return None


def _distinct_messages(nodes: Sequence[Node]) -> Iterator[tuple[Node, Mapping[str, Any]]]:
    seen: set[str] = set()
    for node in nodes:
        if node.facts.kind != "message":
            continue
        for message in _messages_in(node.facts.input):
            own_id = message.get("id")
            if not isinstance(own_id, str) or own_id not in seen:
                seen.add(str(own_id))
                yield node, message


def _messages_in(value: Any) -> Iterator[Mapping[str, Any]]:
    """The messages of an envelope: one, a list, or a turn with what led to it."""
    if not isinstance(value, dict):
        return
    if "source" in value and "content" in value:
        yield value
        return
    response = value.get("response")
    if isinstance(response, dict):
        yield from _listed(response.get("inner_messages"))
        yield from _listed([response.get("chat_message")])
    yield from _listed([value.get("message")])
    yield from _listed(value.get("messages"))


def _listed(values: Any) -> Iterator[Mapping[str, Any]]:
    if isinstance(values, (list, tuple)):
        for each in values:
            yield from _messages_in(each)


def _tool_results(content: Any) -> list[Message]:
    if not isinstance(content, (list, tuple)):
        return []
    return [
        Message(
            "tool",
            as_text(each.get("content")),
            as_text(each.get("name")),
            tool_call_id=as_text(each.get("call_id")),
            failed=each.get("is_error") if isinstance(each.get("is_error"), bool) else None,
        )
        for each in content
        if isinstance(each, dict)
    ]


def _reply(content: Any) -> Message:
    if isinstance(content, str):
        return Message("assistant", content)
    requests = [
        ToolRequest(each["name"], from_json(each.get("arguments")), as_text(each.get("id")))
        for each in (content if isinstance(content, (list, tuple)) else ())
        if isinstance(each, dict) and isinstance(each.get("name"), str)
    ]
    return Message("assistant", None, tool_calls=requests)


def _synthetic(node: Node, facts: Facts) -> Node:
    span = node.span
    made = Node(Span(span.trace_id, f"{span.span_id}-message", start_s=span.start_s, end_s=span.start_s))
    made.facts = facts
    return made
