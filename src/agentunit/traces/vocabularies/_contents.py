"""Contents that are no plain values: messages in numbered attributes, events and histories; documents; tools."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from agentunit.traces.spans import SpanEvent
from agentunit.traces.vocabularies.span_messages import message_in, messages_in
from agentunit.traces.vocabularies.values import Message, ToolRequest, as_text, from_json, unquoted

Numbered = Mapping[int, Mapping[str, Any]]

# What the instrumentations write in place of a content they were told to hide.
_REDACTED = "__REDACTED__"
_MESSAGE_EVENTS = {
    "gen_ai.system.message": "system",
    "gen_ai.user.message": "user",
    "gen_ai.assistant.message": "assistant",
    "gen_ai.tool.message": "tool",
}


def shown(value: Any) -> Any:
    """A content, unless it was hidden."""
    return None if value == _REDACTED else value


def entity(holder: str) -> Callable[[Any], Any]:
    """A reader of what a step was given or gave back: OpenLLMetry wraps it as ``{"inputs": …}`` with tags beside it."""

    def read(value: Any) -> Any:
        value = unquoted(value)
        return unquoted(value[holder]) if isinstance(value, dict) and holder in value else value

    return read


def numbered_messages(numbered: Numbered, default_role: str, *, plain: bool) -> list[Message]:
    """Messages of attributes such as ``gen_ai.prompt.0.content`` and ``llm.input_messages.0.message.role``.

    With ``plain``, contents are texts as they are; else they may be JSON of a list of parts.
    """
    messages: list[Message] = []
    for _, fields in sorted(numbered.items()):
        calls: dict[int, dict[str, Any]] = {}
        texts: list[str] = []
        for key, value in fields.items():
            if "." not in key:
                continue
            name, number, rest = (*key.split(".", 2), "")[:3]
            if name == "tool_calls" and number.isdigit():
                calls.setdefault(int(number), {})[rest] = value
            elif name == "contents" and rest == "text" and value.__class__ is str and value != _REDACTED:
                texts.append(value)
            elif name == "function":
                messages += _autogen_result(value)
        requests = [
            ToolRequest(str(call["name"]), from_json(call.get("arguments")), as_text(call.get("id")))
            for _, call in sorted(calls.items())
            if call.get("name")
        ]
        role = as_text(fields.get("role")) or default_role
        if not plain:
            whole = {**fields, "content": unquoted(fields.get("content")), "role": role, "tool_calls": None}
            for message in message_in(whole, role):
                message.tool_calls += requests
                if message.content or message.tool_calls:
                    messages.append(message)
            continue
        content = fields.get("content")
        text = content if content.__class__ is str and content != _REDACTED else "\n".join(texts) or None
        if text is not None or requests:
            own_name, call_id = as_text(fields.get("name")), as_text(fields.get("tool_call_id"))
            messages.append(Message(role, text, own_name, requests, call_id))
    return messages


def _autogen_result(value: Any) -> list[Message]:
    """AutoGen's results of tool calls stand beside the message, as JSON of their own."""
    result = from_json(value)
    told = isinstance(result, dict)
    return message_in({**result, "role": "tool", "tool_call_id": result.get("call_id")}, "tool") if told else []


def numbered_documents(numbered: Numbered) -> list[Any] | None:
    """Retrieved documents of attributes such as ``retrieval.documents.0.document.content``."""
    documents = []
    for _, fields in sorted(numbered.items()):
        document = {
            name: fields[key]
            for name, key in (("text", "content"), ("id", "id"), ("score", "score"))
            if fields.get(key) is not None and fields[key] != _REDACTED
        }
        metadata = from_json(fields.get("metadata"))
        if isinstance(metadata, dict) and metadata:
            document["metadata"] = dict(metadata)
        documents.append(document)
    return documents or None


def split_history(history: Any) -> tuple[list[Message], list[Message]]:
    """A whole conversation, as messages or as the events that older versions of PydanticAI write: asked, answered."""
    history = from_json(history)
    messages = messages_in(history, "user") if isinstance(history, list) else []
    last = len(messages)
    while last and messages[last - 1].role == "assistant" and not messages[last - 1].tool_calls:
        last -= 1
    return messages[:last], messages[last:]


def messages_in_events(events: Iterable[SpanEvent]) -> tuple[list[Message], list[Message]]:
    """What was asked and answered, by the events of a span in OpenTelemetry's older and newer conventions."""
    asked: list[Message] = []
    answered: list[Message] = []
    for event in events:
        if not event.name.startswith("gen_ai."):
            continue
        attributes = event.attributes
        body = from_json(attributes.get("body"))
        fields = {**attributes, **body} if isinstance(body, dict) else attributes
        if event.name in _MESSAGE_EVENTS:
            role = _MESSAGE_EVENTS[event.name]
            asked += message_in({**_own_names(fields), "role": role}, role)
        elif event.name == "gen_ai.choice":
            answered += message_in({"role": "assistant", **_own_names(fields)}, "assistant")
        elif event.name == "gen_ai.content.prompt":
            asked += messages_in(attributes.get("gen_ai.prompt"), "user")
        elif event.name == "gen_ai.content.completion":
            answered += messages_in(attributes.get("gen_ai.completion"), "assistant")
        else:
            asked += messages_in(fields.get("gen_ai.input.messages"), "user")
            answered += messages_in(fields.get("gen_ai.output.messages"), "assistant")
    return asked, answered


def noted_events(noted: Any) -> list[SpanEvent]:
    """Events that are kept as JSON in an attribute."""
    rows = from_json(noted)
    return [
        SpanEvent(each["event.name"], attributes=dict(each))
        for each in (rows if isinstance(rows, list) else ())
        if isinstance(each, dict) and isinstance(each.get("event.name"), str)
    ]


def _own_names(fields: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of an event without OpenTelemetry's own names among them."""
    return {key: value for key, value in fields.items() if not key.startswith(("gen_ai.", "event."))}


def tool_definitions(value: Any) -> list[dict[str, Any]]:
    """The tools that a model was offered: name, description, the JSON Schema of their parameters, MCP's annotations.

    >>> tool_definitions('[{"type": "function", "function": {"name": "add", "parameters": {"type": "object"}}}]')
    [{'name': 'add', 'parameters': {'type': 'object'}}]
    """
    rows = from_json(value)
    if isinstance(rows, dict):
        # By number (attributes) or by name (Langfuse), each with its definition.
        rows = [{"name": key, **each} if isinstance(each, dict) else each for key, each in rows.items()]
    found = []
    for row in rows if isinstance(rows, list) else ():
        row = from_json(row)
        row = from_json(row.get("json_schema", row)) if isinstance(row, dict) else None
        row = row.get("toolSpec", row) if isinstance(row, dict) else None
        inner = from_json(row.get("function")) if isinstance(row, dict) else None
        fields = inner if isinstance(inner, dict) else row
        name = as_text(fields.get("name")) if isinstance(fields, dict) else None
        if name is None or not isinstance(fields, dict):
            continue
        schema = next((fields[key] for key in _SCHEMAS if fields.get(key)), None)
        schema = from_json(schema)
        schema = schema.get("json", schema) if isinstance(schema, dict) else None
        # MCP's, which say whether a tool only reads.
        stated = [each.get("annotations") for each in (fields, row) if isinstance(each, dict)]
        hints = next((each for each in stated if isinstance(each, dict)), None)
        described = as_text(fields.get("description"))
        tool = {"name": name, "description": described, "parameters": schema, "annotations": hints}
        found.append({key: each for key, each in tool.items() if each is not None})
    return found


_SCHEMAS = ("parameters", "input_schema", "inputSchema", "json_schema", "parameters_json_schema")
