"""What the agent did on its way to an answer, step by step, as texts for a judge."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from agentunit.core.trace import tool_status
from agentunit.metrics.evidence import readable_text
from agentunit.metrics.inputs import Item, payload_of

_AGENTS = ("assistant", "agent", "ai", "model")


def step_texts(item: Item) -> list[str]:
    """Messages of the agent, tool calls with what came back, and retrievals, in their order.

    >>> call = {"type": "tool_call", "payload": {"name": "find", "arguments": {"id": 7}, "result": "sent"}}
    >>> step_texts(Item({"id": "q1"}, {"events": [call]}, "It is sent."))
    ['calls the tool find with id: 7\\nresult: sent']
    """
    return list(_steps(item))


def _steps(item: Item) -> Iterator[str]:
    for event in item.events:
        if event.type == "tool_call":
            yield _call(payload_of(event))
        elif event.type == "retrieval":
            payload = payload_of(event)
            documents = payload.get("documents")
            n_documents = len(documents) if isinstance(documents, (list, tuple)) else int(bool(documents))
            yield f"retrieves for {readable_text(payload.get('query'))!r}: {n_documents} documents"
        elif event.type == "message":
            payload = payload_of(event)
            text = readable_text(payload.get("content"))
            if payload.get("role") in _AGENTS and text:
                by = payload.get("agent")
                yield f"{by if isinstance(by, str) and by else 'the agent'} says: {text}"


def _call(payload: dict[str, Any]) -> str:
    lines = [f"calls the tool {payload.get('name') or 'without a name'}"]
    if payload.get("arguments"):
        lines[0] += f" with {readable_text(payload['arguments'])}"
    if payload.get("result") is not None:
        lines.append(f"result: {readable_text(payload['result'])}")
    if payload.get("error"):
        lines.append(f"error: {readable_text(payload['error'])}")
    elif tool_status(payload) == "error":
        lines.append("the call failed")
    return "\n".join(lines)


def tool_texts(item: Item) -> list[str]:
    """The tools that the agent was offered, as they are declared in the trace, else in the case."""
    declared = item.trace_metadata.get("tools") or item.case.tools or ()
    if isinstance(declared, dict):
        declared = [{"name": name, "declaration": each} for name, each in declared.items()]
    return [text for each in declared if (text := readable_text(each))] if isinstance(declared, (list, tuple)) else []
