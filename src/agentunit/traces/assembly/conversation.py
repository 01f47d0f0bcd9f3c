"""What was asked and answered in a trace, and the messages between."""

from __future__ import annotations

import re
from collections.abc import Sequence

from agentunit.core.trace import TraceEvent
from agentunit.traces.assembly.tree import Node, nearest_above
from agentunit.traces.vocabularies.values import Message, answer_in, question_in, spoken

# A Python object's representation is no text that anybody asked or answered.
_REPRESENTATION = re.compile(r"^<[\w.]+ object at 0x|^[A-Z]\w*\(\w+=")
# What Google's ADK tells the next agent of the work of the one before, in the user's name.
_RETOLD = "For context:"


def question_of(tops: Sequence[Node], nodes: Sequence[Node], calls: Sequence[Node]) -> str | None:
    """What the user asked: the input of the outermost span, else of an agent, else of the first model call."""
    for node in tops:
        asked = _plausible(question_in(node.facts.input)) or _last_user(node.facts.input_messages)
        if asked:
            return asked
    for node in nodes:
        if node.facts.kind == "agent" and not node.within_evaluation:
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
    return next((text for node in tops if (text := _plausible(spoken(node.facts.input)))), None)


def answer_of(tops: Sequence[Node], nodes: Sequence[Node], calls: Sequence[Node]) -> str | None:
    """What was answered: the output of the outermost span, else of the last agent, else of the last model call."""
    for node in reversed(tops):
        answered = _last_answer(node)
        if answered:
            return answered
    agents = [node for node in nodes if node.facts.kind == "agent" and not node.within_evaluation]
    around = nearest_above(nodes, lambda node: node.facts.kind == "agent") if agents else {}
    outermost = [node for node in agents if around[node] is None]
    for node in sorted(outermost, key=lambda each: each.span.end_s or 0.0, reverse=True):
        answered = _last_answer(node)
        if answered:
            return answered
    for node in sorted(calls, key=lambda each: each.span.end_s or 0.0, reverse=True):
        texts = [
            message.content for message in node.facts.output_messages if message.content and not message.tool_calls
        ]
        texts = [text for text in texts if text.strip()]
        if texts:
            return texts[-1]
        if not node.facts.output_messages:
            answered = _plausible(answer_in(node.facts.output))
            if answered:
                return answered
    return None


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
