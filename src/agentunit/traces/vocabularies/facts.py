"""What a span says, whichever vocabulary it says it in."""

from __future__ import annotations

from typing import Any, Literal

from msgspec import Struct, field

SpanKind = Literal["llm", "tool", "retrieval", "agent", "chain", "handoff", "message", "embedding", "evaluation"]
"""``chain`` is a step that only holds others together; ``message`` one agent writing to another."""


class ToolRequest(Struct, omit_defaults=True):
    """A tool call that a model asked for."""

    name: str
    arguments: Any = None
    id: str | None = None


class Message(Struct, omit_defaults=True):
    """One message of a conversation with a model; ``tool_call_id`` marks the result of a tool call."""

    role: str
    content: str | None = None
    name: str | None = None
    tool_calls: list[ToolRequest] = field(default_factory=list)
    tool_call_id: str | None = None
    failed: bool | None = None


class Facts(Struct):
    """The facts of one span; ``None`` and empty mean that it does not say.

    ``usage`` has the names of records: prompt tokens include cached ones. ``error`` is set when the span's own
    attributes say that it failed, whatever its status says. A tool call that ``delegates`` holds the work of the agent
    it names.
    """

    kind: SpanKind | None = None
    agent: str | None = None
    agent_description: str | None = None
    agent_id: str | None = None
    to_agent: str | None = None
    delegates: bool = False
    from_agent: str | None = None
    input: Any = None
    output: Any = None
    input_messages: list[Message] = field(default_factory=list)
    output_messages: list[Message] = field(default_factory=list)
    model: str | None = None
    provider: str | None = None
    usage: dict[str, Any] | None = None
    cost: float | None = None
    tool: str | None = None
    tool_call_id: str | None = None
    documents: list[Any] | None = None
    expected: Any = None
    session_id: str | None = None
    user_id: str | None = None
    trace_total_cost: float | None = None
    error: str | None = None
