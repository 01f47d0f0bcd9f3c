"""The spans of one trace become one record: the border behind which nothing knows of spans."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import Any

from agentunit.core.case import DatasetCase
from agentunit.core.records import Outcome, Record, outcome_text
from agentunit.core.trace import TraceEvent, TraceLog
from agentunit.traces.assembly._activity import activity_of, attribute_agents, calls_in_messages, question_in_messages
from agentunit.traces.assembly._tool_calls import ToolCalls, failure_of, model_calls, model_event, retrieval_events
from agentunit.traces.assembly._tree import Node, grow, nearest_above, top_down
from agentunit.traces.spans import ReadingNotes, Span
from agentunit.traces.vocabularies.values import Message, answer_in, as_amount, question_in, text_or_json

_AMOUNTS = frozenset(
    (
        "gen_ai.usage.input_tokens", "gen_ai.usage.output_tokens", "gen_ai.usage.prompt_tokens",
        "gen_ai.usage.completion_tokens", "llm.token_count.prompt", "llm.token_count.completion",
        "llm.cost.total", "gen_ai.usage.cost", "operation.cost",
    )
)  # fmt: skip
_CONTENT = ("llm_call", "tool_call", "retrieval", "message", "artifact")
_AGENT_WORK = ("llm", "tool", "retrieval", "agent", "message")
# These instrumentations state on an agent's span the tokens of its own steps, without those of agents below it.
_OWN_STEPS_ONLY = ("openinference.instrumentation.smolagents",)


def assemble(spans: Sequence[Span], notes: ReadingNotes, session_id: str | None = None) -> Record | None:
    """One record of the spans of one trace; ``None`` when no agent was at work in it, which is counted.

    With a ``session_id`` the spans are those of all its traces: the first question, the last answer, and all between.

    >>> asked = {"openinference.span.kind": "AGENT", "input.value": "Why?", "output.value": "Because."}
    >>> record = assemble([Span("t1", "s1", name="helper", attributes=asked)], ReadingNotes())
    >>> record.case.id, record.case.query, record.outcome.output
    ('t1', 'Why?', 'Because.')
    """
    nodes = grow(spans, notes)
    _count(nodes, notes)
    tops = _tops(nodes)
    if not any(node.facts.kind in _AGENT_WORK or _speaks(node) for node in nodes):
        notes.problems["traces without any work of an agent make no case"] += 1
        return None
    if any(node.facts.kind == "message" for node in nodes) and not any(node.facts.kind == "llm" for node in nodes):
        nodes = sorted([*nodes, *calls_in_messages(nodes)], key=lambda node: node.start_s)
    attribute_agents(nodes)
    calls = model_calls(nodes)
    activity = activity_of(nodes)
    events = [model_event(node) for node in calls]
    events += ToolCalls(nodes, calls).events()
    events += retrieval_events(nodes)
    tells = any(node.facts.input_messages for node in calls)
    agents = () if tells else [node for node in nodes if node.facts.kind == "agent" and node.facts.input_messages]
    events += message_events([*agents, *calls])
    events += _other_events(nodes)
    if session_id is not None:
        events += _turns(tops, nodes, calls, {each.payload.get("content") for each in events if each.type == "message"})
    events.sort(key=_when)
    trace = TraceLog(
        events, _metadata(nodes, calls, spans), activity.interactions, activity.handoffs, agent_roles=activity.roles
    )
    question = question_in_messages(nodes) or question_of(tops, nodes, calls)
    expected = next((node.facts.expected for node in nodes if node.facts.expected is not None), None)
    case = DatasetCase(session_id or spans[0].trace_id, question, expected_output=expected)
    failed = next((error for node in tops if (error := failure_of(node)) is not None), None)
    outcome = Outcome(success=None if failed is None else False, output=answer_of(tops, nodes, calls), error=failed)
    record = Record(case, trace, outcome)
    return None if left_out(record, notes) else record


def left_out(record: Record, notes: ReadingNotes) -> bool:
    """Whether a record holds nothing that could be scored, and so makes no case; each is counted."""
    outcome = record.outcome
    told = record.case.query or outcome_text(outcome) is not None or getattr(outcome, "error", None)
    if told or any(event.type in _CONTENT for event in record.trace.events):
        return False
    notes.problems["traces without question, answer, tool call and model call make no case"] += 1
    return True


def _turns(tops: Sequence[Node], nodes: Sequence[Node], calls: Sequence[Node], said: set[Any]) -> list[TraceEvent]:
    """What was asked and answered in each trace of a session, where no message of a model call holds it."""
    events = []
    by_trace = [_by_trace(some) for some in (tops, nodes, calls)]
    for trace_id in by_trace[0]:
        own_tops, own_nodes, own_calls = (some.get(trace_id, []) for some in by_trace)
        ends = [node.span.end_s for node in own_tops if node.span.end_s is not None]
        for role, text, at in (
            ("user", question_of(own_tops, own_nodes, own_calls), own_tops[0].span.start_s),
            ("assistant", answer_of(own_tops, own_nodes, own_calls), max(ends, default=own_tops[0].span.start_s)),
        ):
            if text and text not in said:
                events.append(TraceEvent("message", {"role": role, "content": text}, at))
    return events


def _by_trace(nodes: Sequence[Node]) -> dict[str, list[Node]]:
    found: dict[str, list[Node]] = {}
    for node in nodes:
        found.setdefault(node.span.trace_id, []).append(node)
    return found


def _count(nodes: Sequence[Node], notes: ReadingNotes) -> None:
    notes.n_traces += len({node.span.trace_id for node in nodes})
    notes.n_spans += len(nodes)
    for node in nodes:
        kind = node.facts.kind
        notes.scopes[node.span.scope] += 1
        notes.kinds[kind or "other"] += 1
        if kind is None:
            notes.unplaced[node.span.name] += 1
        elif kind == "llm":
            _note_wrong_amounts(node, notes)
        if node.facts.disagreements:
            notes.problems.update(node.facts.disagreements)
        if node.facts.not_understood:
            notes.count_fields(node.facts.not_understood)
    if notes.kinds["evaluation"]:
        for node in top_down(nodes):
            around = node.parent is not None and node.parent.within_evaluation
            node.within_evaluation = around or node.facts.kind == "evaluation"


def _note_wrong_amounts(node: Node, notes: ReadingNotes) -> None:
    """Tokens and costs that are written down but are no amounts are unknown, and not unknown in silence."""
    usage = node.facts.usage or {}
    if node.facts.cost is not None and "prompt_tokens" in usage and "completion_tokens" in usage:
        return
    for name in _AMOUNTS.intersection(node.span.attributes):
        value = node.span.attributes[name]
        if value is not None and as_amount(value) is None:
            notes.problems["token counts or costs that are not amounts were left out"] += 1


def _tops(nodes: Sequence[Node]) -> list[Node]:
    """The outermost spans that mean something here: a web server's span around an agent does not."""
    around = nearest_above(nodes, lambda node: node.facts.kind is not None)
    tops = [node for node in nodes if around[node] is None and not node.within_evaluation]
    return [node for node in tops if node.facts.kind in ("agent", "chain", "llm")]


def _speaks(node: Node) -> bool:
    return node.facts.kind == "chain" and (node.facts.input is not None or node.facts.output is not None)


def _other_events(nodes: Sequence[Node]) -> list[TraceEvent]:
    """Embeddings, evaluations and spans that nobody knows, so that nothing is lost."""
    events = []
    for node in nodes:
        facts, span = node.facts, node.span
        payload: dict[str, Any] = {}
        if facts.kind == "embedding" and (node.parent is None or node.parent.facts.kind != "embedding"):
            payload = {"model": facts.model, "usage": facts.usage, "cost": facts.cost}
        elif facts.kind == "evaluation":
            payload = {"name": facts.tool or span.name, "score": facts.output}
        elif facts.kind is None:
            payload = {"name": span.name, "error": failure_of(node)}
        else:
            continue
        payload = {name: value for name, value in payload.items() if value is not None}
        payload |= {"duration_s": node.duration_s} if node.duration_s is not None else {}
        payload["span_id"] = span.span_id
        events.append(TraceEvent(facts.kind or "span", payload, span.start_s))
    return events


def _metadata(nodes: Sequence[Node], calls: Sequence[Node], spans: Sequence[Span]) -> dict[str, Any]:
    trace_ids = list(dict.fromkeys(span.trace_id for span in spans))
    metadata: dict[str, Any] = {"trace_id": trace_ids[0] if len(trace_ids) == 1 else trace_ids}
    for name in ("session_id", "user_id"):
        value = next((getattr(node.facts, name) for node in nodes if getattr(node.facts, name)), None)
        if value is not None:
            metadata[name] = value
    starts = [node.span.start_s for node in nodes if node.span.start_s is not None]
    ends = [node.span.end_s for node in nodes if node.span.end_s is not None]
    # A session also holds the time that the user took.
    if starts and ends and max(ends) >= min(starts) and len(trace_ids) == 1:
        metadata["duration_s"] = max(ends) - min(starts)
    service = next((node.span.resource.get("service.name") for node in nodes if node.span.resource), None)
    if service:
        metadata["service"] = service
    not_understood = [name for node in nodes for name in node.facts.not_understood]
    if not_understood:
        metadata["not_understood"] = dict(Counter(not_understood))
    tools = {tool["name"]: tool for node in nodes for tool in node.facts.tools}
    if tools:
        metadata["tools"] = list(tools.values())
    scopes = sorted({node.span.scope for node in nodes if node.span.scope})
    if scopes:
        metadata["instrumentation"] = scopes
    if not any(node.facts.usage for node in calls):
        usage = _carried_usage(nodes)
        if usage is not None:
            metadata["usage"], metadata["usage_from"] = usage, "totals on the spans around the model calls"
    cost = _stated_cost(nodes, calls)
    if cost is not None:
        metadata["cost"] = cost
    return metadata


def _carried_usage(nodes: Sequence[Node]) -> dict[str, Any] | None:
    """Totals on agents and steps, for traces whose model calls state no tokens or are not there at all."""
    carriers = [
        node
        for node in nodes
        if node.facts.usage and node.facts.kind in ("agent", "chain") and not node.within_evaluation
    ]
    if not carriers:
        return None
    around = nearest_above(nodes, lambda node: bool(node.facts.usage))
    outermost = [node for node in carriers if node.span.scope in _OWN_STEPS_ONLY or around[node] is None]
    total: dict[str, Any] = {}
    for name in ("prompt_tokens", "completion_tokens", "total_tokens"):
        counts = [node.facts.usage.get(name) for node in outermost if node.facts.usage]
        if all(isinstance(count, int) for count in counts):
            total[name] = sum(count for count in counts if count is not None)
    cached = [(node.facts.usage or {}).get("prompt_tokens_details", {}).get("cached_tokens", 0) for node in outermost]
    if any(cached):
        total["prompt_tokens_details"] = {"cached_tokens": sum(cached)}
    return total or None


def _stated_cost(nodes: Sequence[Node], calls: Sequence[Node]) -> float | None:
    """The cost of a whole trace, where the trace states it or where calls of other kinds than models have one."""
    total = next((node.facts.trace_total_cost for node in nodes if node.facts.trace_total_cost is not None), None)
    if total is not None:
        return total
    beside = [
        node.facts.cost
        for node in nodes
        if node.facts.cost is not None and node.facts.kind in ("retrieval", "embedding")
    ]
    if beside and all(node.facts.cost is not None for node in calls):
        return sum(beside) + sum(node.facts.cost for node in calls if node.facts.cost is not None)
    if all(node.facts.cost is None for node in calls):
        # As with tokens: a total on the outermost agent, where no call has a cost of its own.
        around = nearest_above(nodes, lambda node: node.facts.cost is not None)
        carried = [node.facts.cost for node in nodes if node.facts.kind == "agent" and around[node] is None]
        known = [cost for cost in carried if cost is not None]
        return sum(known) if known else None
    return None


def _when(event: TraceEvent) -> float:
    return float("inf") if event.timestamp is None else event.timestamp


# A Python object's representation is no text that anybody asked or answered.
_REPRESENTATION = re.compile(r'^<[\w.]+ object at 0x|^[A-Z]\w*\(\w+=|^[\[{].*"[A-Z]\w*\(_\w+=')
# What Google's ADK tells the next agent of the work of the one before, in the user's name.
_RETOLD = "For context:"


def question_of(tops: Sequence[Node], nodes: Sequence[Node], calls: Sequence[Node]) -> str | None:
    """What the user asked: the input of the outermost span, else of an agent, else of the first model call."""
    agents = [node for node in nodes if node.facts.kind == "agent" and not node.within_evaluation]
    for node in (*tops, *agents):
        asked = _plausible(question_in(node.facts.input)) or _last_user(node.facts.input_messages)
        if asked:
            return asked
    for node in calls:
        asked = _last_user(node.facts.input_messages)
        if asked:
            return asked
    for node in nodes:
        if node.facts.kind in ("chain", "retrieval") and not node.within_evaluation:
            asked = _plausible(question_in(node.facts.input))
            if asked:
                return asked
    return next((text for node in tops if (text := _plausible(text_or_json(node.facts.input)))), None)


def answer_of(tops: Sequence[Node], nodes: Sequence[Node], calls: Sequence[Node]) -> str | None:
    """What was answered: the output of the outermost span, else of the last agent, else of the last model call."""
    agents = [node for node in nodes if node.facts.kind == "agent" and not node.within_evaluation]
    around = nearest_above(nodes, lambda node: node.facts.kind == "agent") if agents else {}
    outermost = [node for node in agents if around[node] is None]
    for node in (*reversed(tops), *sorted(outermost, key=_ended, reverse=True)):
        answered = _last_answer(node)
        if answered:
            return answered
    for node in sorted(calls, key=_ended, reverse=True):
        said = [message.content for message in node.facts.output_messages if not message.tool_calls]
        texts = [text for text in said if text and text.strip()]
        if texts:
            return texts[-1]
        if not node.facts.output_messages:
            answered = _plausible(answer_in(node.facts.output))
            if answered:
                return answered
    return None


def _ended(node: Node) -> float:
    return node.span.end_s or 0.0


def message_events(calls: Sequence[Node]) -> list[TraceEvent]:
    """The conversations with the models, each message once, in order; results of tools stand with their calls."""
    events: list[TraceEvent] = []
    seen: set[tuple[str, str | None, str]] = set()
    for node in calls:
        asked_at, answered_at = node.span.start_s, node.span.end_s
        for messages, at, role in (
            (node.facts.input_messages, asked_at, None),
            (node.facts.output_messages, answered_at if answered_at is not None else asked_at, "assistant"),
        ):
            for message in messages:
                if not message.content or message.tool_call_id is not None:
                    continue
                said_as = role or message.role
                key = (said_as, node.agent if said_as == "system" else None, message.content)
                if key in seen:
                    continue
                seen.add(key)
                payload = {"role": said_as, "content": message.content}
                if said_as == "assistant" and (message.name or node.agent):
                    payload["agent"] = message.name or str(node.agent)
                events.append(TraceEvent("message", payload, at))
    return events


def _last_answer(node: Node) -> str | None:
    answered = _plausible(answer_in(node.facts.output))
    if answered:
        return answered
    texts = [each.content for each in node.facts.output_messages if each.role != "tool" and each.content]
    return texts[-1] if texts else None


def _last_user(messages: Sequence[Message]) -> str | None:
    for message in reversed(messages):
        text = message.content
        if message.role != "user" or message.tool_call_id is not None or not text or not text.strip():
            continue
        if not text.startswith(_RETOLD):
            return question_in(text) or text
    return None


def _plausible(text: str | None) -> str | None:
    return None if text is None or _REPRESENTATION.search(text) else text
