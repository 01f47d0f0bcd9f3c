"""Records as messages with tools, one conversation a line, as OpenAI's fine-tuning takes them.

It is the conversation of the main agent: what sub-agents said and did between a call and its result is left out.
"""

from __future__ import annotations

from typing import Any

from agentunit.addons.formats.chats.loose_values import as_dict, as_json, as_list, as_name, text_of
from agentunit.core.codec import as_event
from agentunit.core.records import Record, outcome_text
from agentunit.core.results import encode_json
from agentunit.core.trace import TraceEvent

_ROLES = {"user": "user", "human": "user", "system": "system", "developer": "developer"}


def encode_openai(record: Record) -> bytes:
    """One conversation as one line of JSON."""
    conversation = _Conversation(record)
    tools = [_as_tool(each) for each in map(as_dict, as_list(record.trace.metadata.get("tools")))]
    return encode_json({"messages": conversation.messages, **({"tools": tools} if tools else {})})


class _Conversation:
    """Messages as events come: the calls after an assistant's words are part of its message, each with its result."""

    def __init__(self, record: Record) -> None:
        self.messages: list[dict[str, Any]] = []
        helpers = {handoff.to_agent for handoff in record.trace.handoffs if handoff.task_id is not None}
        # Calls are side by side only where it is known that one model call asked for them.
        self._knows_turns = any(as_event(event).type == "llm_call" for event in record.trace.events)
        self._asking: dict[str, Any] | None = None
        for place, event in enumerate(map(as_event, record.trace.events)):
            if event.payload.get("agent") not in helpers:
                self._add(event, place)
        question, answer = as_name(record.case.query), outcome_text(record.outcome)
        if question and not any(each["role"] == "user" for each in self.messages):
            n_system = sum(each["role"] in ("system", "developer") for each in self.messages[:1])
            self.messages.insert(n_system, {"role": "user", "content": question})
        said = [each["content"] for each in self.messages if each["role"] == "assistant"]
        if answer and answer not in said[-1:]:
            self.messages.append({"role": "assistant", "content": answer})

    def _add(self, event: TraceEvent, place: int) -> None:
        payload = event.payload
        if event.type == "llm_call":
            self._asking = None
        elif event.type == "message":
            role = _ROLES.get(str(payload.get("role")), "assistant")
            message = {"role": role, "content": text_of(payload.get("content")) or ""}
            self.messages.append(message)
            self._asking = message if role == "assistant" else None
        elif event.type == "tool_call":
            self._call(payload, place)

    def _call(self, payload: dict[str, Any], place: int) -> None:
        if self._asking is None:
            self._asking = {"role": "assistant", "content": None}
            self.messages.append(self._asking)
        call_id, arguments = as_name(payload.get("id")) or f"call_{place}", payload.get("arguments")
        # Arguments are the text of an object.
        given = arguments if isinstance(arguments, dict) else {} if arguments is None else {"input": arguments}
        function = {"name": as_name(payload.get("name")) or "unknown", "arguments": as_json(given)}
        call = {"id": call_id, "type": "function", "function": function}
        self._asking.setdefault("tool_calls", []).append(call)
        result = text_of(payload.get("result"))
        content = result if result is not None else as_name(payload.get("error")) or ""
        self.messages.append({"role": "tool", "tool_call_id": call_id, "content": content})
        if not self._knows_turns:
            self._asking = None


def _as_tool(tool: dict[str, Any]) -> dict[str, Any]:
    return tool if "function" in tool else {"type": "function", "function": tool}
