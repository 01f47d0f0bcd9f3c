"""Arguments and results of tool calls, out of the wrappings that frameworks put around them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from agentunit.traces.vocabularies.values import content_text, from_json

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
    if not isinstance(data, dict):
        return ToolResult(value if data is None or isinstance(value, str) else data)
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
    """LangChain's message with a tool's result, in either of its two serialisations."""
    inner = data.get("data")
    if data.get("type") == "tool" and isinstance(inner, dict):
        return inner
    inner = data.get("kwargs")
    if data.get("lc") is not None and isinstance(inner, dict) and "content" in inner:
        return inner
    return data if data.get("type") == "tool" and "content" in data else None


def _is_object(value: Any) -> bool:
    return (isinstance(value, str) and value.startswith("<")) or (isinstance(value, (dict, list, tuple)) and not value)


def _flag(value: Any) -> bool | None:
    return value if isinstance(value, bool) else None
