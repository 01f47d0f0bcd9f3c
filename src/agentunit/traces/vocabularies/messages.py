"""Messages of a conversation with a model, in the shapes that providers and instrumentations write them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Struct

from agentunit.traces.vocabularies.values import Message, ToolRequest, content_text, from_json, spoken

_ROLES = {"human": "user", "ai": "assistant", "model": "assistant", "developer": "system", "function": "tool"}
_CALL_PARTS = ("tool_call", "tool_use", "tool-call", "function_call", "functionCall")
_RESULT_PARTS = ("tool_call_response", "tool_result", "tool-result", "function_response", "functionResponse")


def messages_in(value: Any, default_role: str = "user") -> list[Message]:
    """The messages of a list of them, as JSON text or data: OpenAI, Anthropic, Gemini or OpenTelemetry shapes.

    >>> messages_in('[{"role": "user", "parts": [{"type": "text", "content": "Hi"}]}]')
    [Message(role='user', content='Hi', name=None, tool_calls=[], tool_call_id=None, failed=None)]
    """
    if value.__class__ is str and value[:1] == "[":
        conventional = _conventional_messages(value)
        if conventional is not None:
            return conventional
    value = from_json(value)
    if isinstance(value, dict):
        value = value.get("messages", [value])
    if isinstance(value, str):
        return [Message(default_role, value)] if value.strip() else []
    if not isinstance(value, (list, tuple)):
        return []
    messages: list[Message] = []
    for each in value:
        each = from_json(each)
        if isinstance(each, dict):
            messages += message_in(each, default_role)
        elif isinstance(each, (list, tuple)):
            messages += messages_in(each, default_role)
        elif isinstance(each, str) and each.strip():
            messages.append(Message(default_role, each))
    return messages


class _Part(Struct):
    """A part of a message as OpenTelemetry's conventions write it."""

    type: str
    content: str | None = None
    id: str | None = None
    name: str | None = None
    arguments: Any = None
    response: Any = None
    result: Any = None
    is_error: bool | None = None
    isError: None = None  # noqa: N815  # what says the same in other words is read slowly, too
    status: None = None


class _Row(Struct):
    """A message as OpenTelemetry's conventions write it; messages of any other shape do not fit and are read slowly."""

    role: str
    parts: list[_Part]
    name: str | None = None
    content: None = None
    tool_calls: None = None
    tool_call_id: None = None
    message: None = None


_rows_decoder = msgspec.json.Decoder(list[_Row])


def _conventional_messages(text: str) -> list[Message] | None:
    """The messages of a JSON array in the shape of the conventions, decoded at once; ``None`` for any other."""
    try:
        rows = _rows_decoder.decode(text)
    except (msgspec.MsgspecError, RecursionError, UnicodeError):
        return None
    messages: list[Message] = []
    for row in rows:
        texts: list[str] = []
        requests: list[ToolRequest] = []
        n_before = len(messages)
        for part in row.parts:
            if part.type == "text" and part.content is not None:
                texts.append(part.content)
            elif part.type == "tool_call" and part.name is not None:
                requests.append(ToolRequest(part.name, from_json(part.arguments), part.id))
            elif part.type == "tool_call_response" and part.content is None:
                value = part.response if part.response is not None else part.result
                told = value if value.__class__ is str else content_text(value) if isinstance(value, list) else None
                content = told if told is not None else spoken(value)
                messages.append(Message("tool", content, part.name, [], part.id or None, part.is_error))
            else:
                return None
        said = "\n".join(texts) if texts else None
        if said or requests or len(messages) == n_before:
            role = row.role.lower()
            messages.append(Message(_ROLES.get(role, role), said, row.name, requests))
    return messages


def message_in(each: Mapping[str, Any], default_role: str) -> list[Message]:
    """One message; results of several tool calls in it become one message each."""
    plain = _plain_message(each)
    if plain is not None:
        return [plain]
    inner = each.get("message")
    if isinstance(inner, dict):
        each = {**each, **inner}
    role = each.get("role") or each.get("type")
    role = role.lower() if isinstance(role, str) else default_role
    role = _ROLES.get(role, role)
    content = from_json(each["content"]) if "content" in each else each.get("parts", each.get("text"))
    parts = content if isinstance(content, (list, tuple)) else []
    tool_calls: list[ToolRequest] = []
    results: list[Message] = []
    for part in parts:
        if part.__class__ is dict and part.get("type") == "text":
            continue
        request = _requested(part)
        if request is not None:
            tool_calls.append(request)
        elif (result := _tool_result(part)) is not None:
            results.append(result)
    if each.get("tool_calls"):
        listed = [_requested(call) for call in _listed(each["tool_calls"])]
        tool_calls += [request for request in listed if request is not None]
    text = content_text(content)
    if text is None and content is not None and not (tool_calls or results or isinstance(content, (list, tuple))):
        text = spoken(content)
    if text is None and isinstance(each.get("content"), str):
        # A text that merely looks like JSON is the message itself.
        text = None if tool_calls or results else each["content"]
    call_id = each.get("tool_call_id", each.get("id") if role == "tool" else None)
    name = each.get("name") if isinstance(each.get("name"), str) else None
    if results and not text and not tool_calls:
        return results
    failed = _failure(each)
    own = Message(role, text, name, tool_calls, call_id if isinstance(call_id, str) else None, failed)
    return [*results, own] if text is not None or tool_calls or not results else results


def _plain_message(each: Mapping[str, Any]) -> Message | None:
    """The commonest message, a role and one text, without a closer look; ``None`` for all others."""
    role = each.get("role")
    if role not in ("user", "assistant", "system") or len(each) > 3 or "tool_calls" in each or "tool_call_id" in each:
        return None
    content, parts, name = each.get("content"), each.get("parts"), each.get("name")
    if parts.__class__ is list and len(parts) == 1 and parts[0].__class__ is dict and parts[0].get("type") == "text":
        content = parts[0].get("content")
    elif content.__class__ is str and content[:1] in "[{":
        return None
    if content.__class__ is not str or not (name is None or name.__class__ is str):
        return None
    return Message(role, content, name)


def _listed(value: Any) -> Sequence[Any]:
    value = from_json(value)
    return value if isinstance(value, (list, tuple)) else ()


def _requested(part: Any) -> ToolRequest | None:
    """A tool call out of a content part or an entry of ``tool_calls``."""
    part = from_json(part)
    if not isinstance(part, dict):
        return None
    kind = part.get("type")
    if kind == "tool_call" and part.get("arguments").__class__ is dict and part.get("name").__class__ is str:
        call_id = part.get("id")
        return ToolRequest(part["name"], part["arguments"], call_id if isinstance(call_id, str) else None)
    if kind in _RESULT_PARTS:
        return None
    for key in ("function_call", "functionCall", "tool_call"):
        if isinstance(part.get(key), dict):
            part, kind = {"id": part.get("id"), **part[key]}, "tool_call"
    function = part.get("function")
    if isinstance(function, dict):
        part, kind = {"id": part.get("id"), **function}, "tool_call"
    name = part.get("name")
    named_call = kind is None and ("arguments" in part or "args" in part)
    if not isinstance(name, str) or not (kind in _CALL_PARTS or kind == "function" or named_call):
        return None
    arguments = part.get("arguments", part.get("args", part.get("input")))
    call_id = part.get("id", part.get("tool_call_id", part.get("call_id")))
    return ToolRequest(name, from_json(arguments), call_id if isinstance(call_id, str) else None)


def _tool_result(part: Any) -> Message | None:
    part = from_json(part)
    if not isinstance(part, dict):
        return None
    kind = part.get("type")
    for key in ("function_response", "functionResponse"):
        if isinstance(part.get(key), dict):
            part, kind = part[key], key
    if kind not in _RESULT_PARTS:
        return None
    result = next((part[key] for key in ("response", "result", "content", "output") if part.get(key) is not None), None)
    text = content_text(result) if not isinstance(result, dict) else None
    call_id = next((part[key] for key in ("id", "tool_call_id", "tool_use_id", "call_id") if part.get(key)), None)
    name = part.get("name") if isinstance(part.get("name"), str) else None
    own_id = call_id if isinstance(call_id, str) else None
    return Message("tool", text if text is not None else spoken(result), name, [], own_id, _failure(part))


def _failure(part: Mapping[str, Any]) -> bool | None:
    for key in ("is_error", "isError"):
        if isinstance(part.get(key), bool):
            return bool(part[key])
    if part.get("status") in ("success", "error"):
        return bool(part["status"] == "error")
    return None
