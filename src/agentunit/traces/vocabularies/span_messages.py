"""Messages of models in the shapes of their providers, and tool arguments and results out of their wrappings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import msgspec
from msgspec import Struct

from agentunit.traces.content_blocks import MessageBlock, called, read_block, stated_failure
from agentunit.traces.vocabularies.values import Message, ToolRequest, content_text, from_json, text_or_json

_ROLES = {"human": "user", "ai": "assistant", "model": "assistant", "developer": "system", "function": "tool"}


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
            elif part.type == "tool_call" and part.name:
                requests.append(ToolRequest(part.name, from_json(part.arguments), part.id or None))
            elif part.type == "tool_call_response" and part.content is None:
                value = part.response if part.response is not None else part.result
                told = value if value.__class__ is str else content_text(value) if isinstance(value, list) else None
                content = told if told is not None else text_or_json(value)
                messages.append(Message("tool", content, part.name or None, [], part.id or None, part.is_error))
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
    elif isinstance(inner, str) and "content" not in each:
        each = {**each, "content": inner}  # Strands' choice
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
        block = _block(part)
        if block is not None and "result" in block.does:
            results.append(_result_message(block))
        if block is not None and (request := _request(block)) is not None:
            tool_calls.append(request)
    if each.get("tool_calls"):
        # Many frameworks state a call twice: in this list and within the content.
        known = {request.id for request in tool_calls} - {None}
        listed = [_request(block) for block in map(_block, _listed(each["tool_calls"])) if block is not None]
        tool_calls += [request for request in listed if request is not None and request.id not in known]
    text = content_text(content)
    if text is None and content is not None and not (tool_calls or results or isinstance(content, (list, tuple))):
        text = text_or_json(content)
    if text is None and isinstance(each.get("content"), str):
        # A text that merely looks like JSON is the message itself.
        text = None if tool_calls or results else each["content"]
    call_id = each.get("tool_call_id", each.get("id") if role == "tool" else None)
    name = each.get("name") if isinstance(each.get("name"), str) else None
    if results and not text and not tool_calls:
        return results
    failed = stated_failure(each)
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


def _block(part: Any) -> MessageBlock | None:
    """A content part or an entry of ``tool_calls``, which may be a call without a word for it."""
    part = from_json(part)
    if not isinstance(part, dict):
        return None
    block = read_block(part)
    if block is None or block.does == "said":
        is_call = "type" not in part and ("arguments" in part or "args" in part)
        return called(part) if is_call else block
    return block


def _request(block: MessageBlock) -> ToolRequest | None:
    if block.name is None or "call" not in block.does:
        return None
    return ToolRequest(block.name, from_json(block.arguments), block.call_id)


def _result_message(block: MessageBlock) -> Message:
    text = content_text(block.result) if not isinstance(block.result, dict) else None
    content = text if text is not None else text_or_json(block.result)
    return Message("tool", content, block.name, [], block.call_id, block.failed)


_TEXT_BLOCK = {"type", "text", "annotations"}
_MCP_RESULT = {"content", "isError", "is_error", "meta", "_meta", "structuredContent", "structured_content"}
_NOT_ARGUMENTS = ("ctx", "context_variables", "run_context", "tool_context")


class ToolResult(NamedTuple):
    """A result without its wrapping. ``failed`` and ``call_id`` are ``None`` where the wrapping does not say."""

    value: Any
    failed: bool | None = None
    call_id: str | None = None
    to_agent: str | None = None


def unwrapped_result(value: Any) -> ToolResult:
    """The result itself, and what its wrapping says of it.

    >>> unwrapped_result('{"type": "tool", "data": {"content": "no such file", "status": "error"}}')
    ToolResult(value='no such file', failed=True, call_id=None, to_agent=None)
    >>> unwrapped_result("Sunny")
    ToolResult(value='Sunny', failed=None, call_id=None, to_agent=None)
    """
    data = from_json(value)
    if isinstance(data, list) and len(data) == 2 and isinstance(data[0], bool) and isinstance(data[1], dict):
        return ToolResult(data[1].get("content"), not data[0])  # AG2: [it went well, {"role": "function", …}]
    if isinstance(data, list) and data and all(isinstance(each, dict) for each in data):
        return ToolResult(_of_blocks(data, data if not isinstance(value, str) else value))
    if not isinstance(data, dict):
        return ToolResult(value if data is None or isinstance(value, str) else data)
    if isinstance(data.get("content"), list) and set(data) <= _MCP_RESULT:
        return ToolResult(_of_blocks(data["content"], data), _flag(data.get("is_error", data.get("isError"))))
    if "goto" in data and "update" in data:
        target = data["goto"]
        target = target[0] if isinstance(target, list) and len(target) == 1 else target
        return ToolResult(f"goto {target}", None, None, target if isinstance(target, str) else None)
    if "raw_output" in data and "blocks" in data:
        return ToolResult(data["raw_output"], _flag(data.get("is_error")))
    message = _tool_message(data)
    if message is not None:
        failed = None if message.get("status") is None else message["status"] == "error"
        call_id = message.get("tool_call_id")
        content = message.get("content")
        plain = isinstance(content, str) or (
            isinstance(content, list) and all(isinstance(each, str) for each in content)
        )
        value = from_json(content) if plain else content_text(content) or content
        return ToolResult(value, failed, call_id if isinstance(call_id, str) else None)
    if "output" in data and set(data) <= {"output", "kwargs", "tags", "metadata"}:
        return unwrapped_result(data["output"])
    if "response" in data and set(data) <= {"id", "name", "response", "will_continue", "scheduling"}:
        return unwrapped_result(data["response"])  # Gemini's function response
    if set(data) == {"result"}:
        return ToolResult(data["result"])
    return ToolResult(data, _flag(data.get("is_error", data.get("isError"))))


def _of_blocks(blocks: list[Any], whole: Any) -> Any:
    """The text or data of a result in blocks (Strands, MCP): ``[{"text": …}]``; ``whole`` where these are no blocks."""
    if all(isinstance(each, dict) and {"text"} <= set(each) <= _TEXT_BLOCK for each in blocks):
        return content_text(blocks)
    return blocks[0]["json"] if len(blocks) == 1 and set(blocks[0]) == {"json"} else whole


def unwrapped_arguments(value: Any) -> tuple[Any, str | None]:
    """The arguments of a tool call, and the id of the call where it stands beside them.

    >>> unwrapped_arguments({"input_str": "{'q': 'x'}", "inputs": {"q": "x"}, "kwargs": {"tool_call_id": "c1"}})
    ({'q': 'x'}, 'c1')
    """
    data = from_json(value)
    if not isinstance(data, dict):
        return value, None
    call_id = None
    if "inputs" in data and ("input_str" in data or set(data) <= {"inputs", "tags", "metadata", "kwargs"}):
        beside = data.get("kwargs")
        call_id = beside.get("tool_call_id") if isinstance(beside, dict) else None
        data = from_json(data["inputs"])
    elif isinstance(data.get("kwargs"), dict) and set(data) <= {"args", "kwargs", "sanitize_inputs_outputs"}:
        data = data["kwargs"] if not data.get("args") else {"args": data["args"], **data["kwargs"]}
    elif set(data) == {"arguments", "name"}:
        data = from_json(data["arguments"])
    if isinstance(data, dict):
        data = {name: each for name, each in data.items() if not (name in _NOT_ARGUMENTS and _is_object(each))}
    return data, call_id if isinstance(call_id, str) else None


def _tool_message(data: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """LangChain's message with a tool's result, in either of its two serializations."""
    inner = data.get("data")
    if data.get("type") == "tool" and isinstance(inner, dict):
        return inner
    inner = data.get("kwargs")
    if data.get("lc") is not None and isinstance(inner, dict) and "content" in inner:
        return inner
    return data if data.get("type") == "tool" and "content" in data else None


def is_tool_message(value: Any) -> bool:
    """Whether something is LangChain's message with a tool's result, which only a tool gives back."""
    data = from_json(value)
    if not isinstance(data, dict):
        return False
    name = data.get("id")
    constructed = isinstance(name, list) and name[-1:] == ["ToolMessage"] and isinstance(data.get("kwargs"), dict)
    return constructed or (data.get("type") == "tool" and ("content" in data or isinstance(data.get("data"), dict)))


def _is_object(value: Any) -> bool:
    return (isinstance(value, str) and value.startswith("<")) or (isinstance(value, (dict, list, tuple)) and not value)


def _flag(value: Any) -> bool | None:
    return value if isinstance(value, bool) else None
