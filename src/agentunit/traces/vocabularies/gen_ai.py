"""OpenTelemetry GenAI, in its old and new names, and OpenLLMetry (traceloop), which grew beside it.

Contents stand in one of four places: JSON in ``gen_ai.input.messages`` and ``gen_ai.output.messages`` (new), numbered
attributes ``gen_ai.prompt.0.content`` (OpenLLMetry), span events ``gen_ai.user.message`` and ``gen_ai.choice`` (older
conventions; also as log records), and ``traceloop.entity.input`` of the steps around the calls.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agentunit.traces.spans import Span, SpanEvent
from agentunit.traces.vocabularies.messages import message_in, messages_in
from agentunit.traces.vocabularies.values import (
    Facts,
    Message,
    SpanKind,
    ToolRequest,
    as_amount,
    as_text,
    content_text,
    from_json,
    unquoted,
    usage_of,
)

_OPERATIONS: dict[str, SpanKind] = {
    "vector_db_retrieve": "retrieval",
    "execute_task": "chain",
    "chat": "llm",
    "generate_content": "llm",
    "text_completion": "llm",
    "completion": "llm",
    "embeddings": "embedding",
    "retrieval": "retrieval",
    "execute_tool": "tool",
    "invoke_agent": "agent",
    "invoke_workflow": "chain",
    "create_agent": "chain",
    "handoff": "handoff",
    "transfer_to_agent": "handoff",
    "agent_handoff": "handoff",
}
_TRACELOOP_KINDS: dict[str, SpanKind] = {
    "workflow": "chain",
    "task": "chain",
    "agent": "agent",
    "tool": "tool",
    "handoff": "handoff",
    "graph": "chain",
}
_MESSAGE_EVENTS = {
    "gen_ai.system.message": "system",
    "gen_ai.user.message": "user",
    "gen_ai.assistant.message": "assistant",
    "gen_ai.tool.message": "tool",
}
# One search over all names at once is several times as fast as a look at each.
_MARKS = ("\ngen_ai.", "\ntraceloop.", "\nllm.request.type", "\nioa_observe.")
_SESSION_KEYS = (
    "gen_ai.conversation.id",
    "session.id",
    "traceloop.association.properties.session_id",
    "traceloop.association.properties.thread_id",
    "session_id",
    "langfuse.session.id",
)


def speaks(attributes: Mapping[str, Any]) -> bool:
    """Whether a span's attributes are in one of these vocabularies."""
    names = "\n" + "\n".join(attributes)
    return any(mark in names for mark in _MARKS)


def read(span: Span, facts: Facts) -> None:
    """Take the facts of a span whose attributes are in one of these vocabularies."""
    attributes = span.attributes
    names = "\n".join(attributes)
    facts.kind = _kind(span)
    # Each group of names is looked for once: most spans have few of them.
    if "session" in names or "conversation" in names or "thread_id" in names:
        facts.session_id = next((text for key in _SESSION_KEYS if (text := as_text(attributes.get(key)))), None)
    if "user.id" in names:
        facts.user_id = as_text(attributes.get("user.id") or attributes.get("enduser.id"))
    if "gen_ai.agent." in names:
        facts.agent = as_text(attributes.get("gen_ai.agent.name"))
        facts.agent_description = as_text(attributes.get("gen_ai.agent.description"))
        facts.agent_id = as_text(attributes.get("gen_ai.agent.id"))
    facts.model = _model(attributes)
    facts.provider = as_text(attributes.get("gen_ai.provider.name") or attributes.get("gen_ai.system"))
    if ".usage." in names:
        facts.usage = _usage(attributes)
    if "cost" in names:
        facts.cost = _cost(attributes)
    if ".entity." in names:
        facts.input = _entity(_traceloop(attributes, "entity.input"), "inputs")
        facts.output = _entity(_traceloop(attributes, "entity.output"), "outputs")
    _read_contents(span, names, facts)
    if facts.kind == "tool":
        _read_tool_call(span, facts)
    elif facts.kind == "retrieval":
        _read_retrieval(attributes, facts)
    elif facts.kind == "agent":
        facts.agent = facts.agent or as_text(_traceloop(attributes, "entity.name")) or _after_operation(span.name)
    elif facts.kind == "handoff":
        facts.from_agent = as_text(attributes.get("gen_ai.handoff.from_agent"))
        facts.to_agent = as_text(attributes.get("gen_ai.handoff.to_agent"))


def _kind(span: Span) -> SpanKind | None:
    attributes = span.attributes
    operation = attributes.get("gen_ai.operation.name")
    if isinstance(operation, str) and operation in _OPERATIONS:
        return _OPERATIONS[operation]
    traceloop = _traceloop(attributes, "span.kind")
    if isinstance(traceloop, str) and traceloop in _TRACELOOP_KINDS:
        return _TRACELOOP_KINDS[traceloop]
    request_type = attributes.get("llm.request.type")
    if request_type in ("chat", "completion"):
        return "llm"
    if request_type in ("embedding", "rerank"):
        return "embedding"
    if "gen_ai.tool.name" in attributes and "gen_ai.request.model" not in attributes:
        return "tool"
    if "gen_ai.request.model" in attributes or "gen_ai.response.model" in attributes:
        return "llm"
    return "agent" if "gen_ai.agent.name" in attributes and span.name.startswith(("invoke_agent", "agent")) else "chain"


def _traceloop(attributes: Mapping[str, Any], name: str) -> Any:
    """An attribute of OpenLLMetry, or of the observability SDK of AGNTCY, which copies it under its own prefix."""
    value = attributes.get(f"traceloop.{name}")
    return attributes.get(f"ioa_observe.{name}") if value is None else value


def _model(attributes: Mapping[str, Any]) -> str | None:
    for key in ("gen_ai.response.model", "gen_ai.request.model"):
        model = as_text(attributes.get(key))
        if model and model != "unknown":
            return model
    return None


def _usage(attributes: Mapping[str, Any]) -> dict[str, Any] | None:
    get = attributes.get
    return usage_of(
        _first(attributes, "gen_ai.usage.input_tokens", "gen_ai.usage.prompt_tokens", "llm.usage.prompt_tokens"),
        _first(
            attributes, "gen_ai.usage.output_tokens", "gen_ai.usage.completion_tokens", "llm.usage.completion_tokens"
        ),
        _first(attributes, "gen_ai.usage.total_tokens", "llm.usage.total_tokens"),
        _first(
            attributes,
            "gen_ai.usage.cache_read.input_tokens",
            "gen_ai.usage.cache_read_input_tokens",
            "gen_ai.usage.details.cache_read_tokens",
            "gen_ai.usage.details.cached_tokens",
        ),
        _first(
            attributes,
            "gen_ai.usage.cache_creation.input_tokens",
            "gen_ai.usage.cache_creation_input_tokens",
            "gen_ai.usage.details.cache_write_tokens",
        ),
        get("gen_ai.usage.reasoning.output_tokens", get("gen_ai.usage.reasoning_tokens")),
    )


def _cost(attributes: Mapping[str, Any]) -> float | None:
    for key in ("gen_ai.usage.cost", "operation.cost", "gen_ai.usage.total_cost"):
        cost = as_amount(attributes.get(key))
        if cost is not None:
            return cost
    return None


def _first(attributes: Mapping[str, Any], *keys: str) -> Any:
    return next((attributes[key] for key in keys if attributes.get(key) is not None), None)


def _entity(value: Any, holder: str) -> Any:
    """What a step was given or gave back: OpenLLMetry wraps it as ``{"inputs": …}`` with tags beside it."""
    value = unquoted(value)
    if isinstance(value, dict) and holder in value:
        return unquoted(value[holder])
    return value


def _read_contents(span: Span, names: str, facts: Facts) -> None:
    attributes = span.attributes
    instructions = attributes.get("gen_ai.system_instructions")
    if instructions is not None:
        text = content_text(from_json(instructions))
        facts.input_messages += [Message("system", text)] if text else []
    if "messages" in names:
        facts.input_messages += messages_in(_first(attributes, "gen_ai.input.messages", "input_messages"), "user")
        answered = _first(attributes, "gen_ai.output.messages", "output_messages")
        facts.output_messages += messages_in(answered, "assistant")
        history = attributes.get("pydantic_ai.all_messages", attributes.get("all_messages_events"))
        if history is not None and not facts.input_messages:
            _split_history(_history(from_json(history)), facts)
    numbered = "gen_ai.prompt." in names or "gen_ai.completion." in names
    if numbered and not facts.input_messages and not facts.output_messages:
        facts.input_messages = _numbered(attributes, "gen_ai.prompt.", "user")
        facts.output_messages = _numbered(attributes, "gen_ai.completion.", "assistant")
    noted = from_json(attributes.get("events"))
    if isinstance(noted, list) and not facts.input_messages:
        for each in noted:
            if isinstance(each, dict) and isinstance(each.get("event.name"), str):
                _read_event(SpanEvent(each["event.name"], attributes=dict(each)), facts)
    for event in span.events:
        if event.name.startswith("gen_ai."):
            _read_event(event, facts)
    final = attributes.get("final_result")
    if final is not None and facts.output is None:
        facts.output = final


def _history(history: Any) -> list[Message]:
    """A whole conversation, as messages or as the events that older versions of PydanticAI write."""
    if not isinstance(history, list):
        return []
    return messages_in(history, "user")


def _split_history(messages: list[Message], facts: Facts) -> None:
    last = len(messages)
    while last and messages[last - 1].role == "assistant" and not messages[last - 1].tool_calls:
        last -= 1
    facts.input_messages += messages[:last]
    facts.output_messages += messages[last:]


def _read_event(event: SpanEvent, facts: Facts) -> None:
    attributes = event.attributes
    body = from_json(attributes.get("body"))
    fields = {**attributes, **body} if isinstance(body, dict) else attributes
    if event.name in _MESSAGE_EVENTS:
        role = _MESSAGE_EVENTS[event.name]
        target = facts.input_messages
        target += message_in({**_own_names(fields), "role": role}, role)
    elif event.name == "gen_ai.choice":
        facts.output_messages += message_in({"role": "assistant", **_own_names(fields)}, "assistant")
    elif event.name in ("gen_ai.content.prompt", "gen_ai.content.completion"):
        asked = event.name.endswith("prompt")
        content = attributes.get("gen_ai.prompt" if asked else "gen_ai.completion")
        messages = messages_in(content, "user" if asked else "assistant")
        (facts.input_messages if asked else facts.output_messages).extend(messages)
    elif "gen_ai.input.messages" in fields or "gen_ai.output.messages" in fields:
        facts.input_messages += messages_in(fields.get("gen_ai.input.messages"), "user")
        facts.output_messages += messages_in(fields.get("gen_ai.output.messages"), "assistant")


def _own_names(fields: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of an event without OpenTelemetry's own names among them."""
    return {key: value for key, value in fields.items() if not key.startswith(("gen_ai.", "event."))}


def _numbered(attributes: Mapping[str, Any], prefix: str, default_role: str) -> list[Message]:
    """Messages of attributes such as ``gen_ai.prompt.0.content`` and ``gen_ai.completion.0.tool_calls.0.name``."""
    numbered: dict[int, dict[str, Any]] = {}
    for key, value in attributes.items():
        if key.startswith(prefix):
            number, _, rest = key[len(prefix) :].partition(".")
            if number.isdigit():
                numbered.setdefault(int(number), {})[rest] = value
    messages: list[Message] = []
    for _, fields in sorted(numbered.items()):
        calls: dict[int, dict[str, Any]] = {}
        for key, value in fields.items():
            if key.startswith("tool_calls."):
                number, _, rest = key[len("tool_calls.") :].partition(".")
                if number.isdigit():
                    calls.setdefault(int(number), {})[rest] = value
        requests = [
            ToolRequest(str(call["name"]), from_json(call.get("arguments")), as_text(call.get("id")))
            for _, call in sorted(calls.items())
            if call.get("name")
        ]
        whole = {"content": unquoted(fields.get("content")), **{key: fields[key] for key in fields if key != "content"}}
        role = as_text(whole.get("role")) or default_role
        for message in message_in({**whole, "role": role, "tool_calls": None}, role):
            message.tool_calls += requests
            if message.content or message.tool_calls:
                messages.append(message)
    return messages


def _read_tool_call(span: Span, facts: Facts) -> None:
    attributes = span.attributes
    facts.tool = as_text(
        attributes.get("gen_ai.tool.name") or _traceloop(attributes, "entity.name")
    ) or _after_operation(span.name)
    facts.tool_call_id = as_text(attributes.get("gen_ai.tool.call.id"))
    given = _first(attributes, "gen_ai.tool.call.arguments", "tool_arguments", "gcp.vertex.agent.tool_call_args")
    if given is not None:
        facts.input = from_json(given)
    elif isinstance(facts.input, dict) and isinstance(facts.input.get("kwargs"), dict):
        facts.input = facts.input["kwargs"]
    result = _first(attributes, "gen_ai.tool.call.result", "tool_response", "gcp.vertex.agent.tool_response")
    facts.output = unquoted(result) if result is not None else facts.output
    facts.error = as_text(attributes.get("error.message")) if attributes.get("error.type") else None


def _read_retrieval(attributes: Mapping[str, Any], facts: Facts) -> None:
    facts.input = attributes.get("gen_ai.retrieval.query.text", facts.input)
    documents = from_json(attributes.get("gen_ai.retrieval.documents"))
    if documents is None and isinstance(facts.output, dict):
        documents = facts.output.get("documents")
    if isinstance(documents, list):
        facts.documents = documents
    if isinstance(facts.input, dict):
        facts.input = facts.input.get("query", facts.input)


def _after_operation(name: str) -> str | None:
    """The name in span names such as ``invoke_agent billing`` and ``execute_tool search``, or ``billing.agent``."""
    for operation in ("invoke_agent ", "execute_tool ", "agent run ", "running tool: ", "tool: "):
        if name.startswith(operation):
            return name.removeprefix(operation).strip() or None
    for suffix in (".agent", ".tool", ".task", ".workflow"):
        if name.endswith(suffix):
            return name.removesuffix(suffix) or None
    return name or None
