"""Model calls out of the messages between AutoGen's agents, whose runtime has no spans for them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from agentunit.traces.assembly.tree import Node
from agentunit.traces.spans import Span
from agentunit.traces.vocabularies.values import Facts, Message, ToolRequest, as_text, from_json, usage_of


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
