"""Plain values out of attributes, and the facts about a span that vocabularies make of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isfinite
from typing import Any, Literal

import msgspec
from msgspec import Struct, field

from agentunit.traces.python_literals import python_literal

# Where the text of a question or an answer stands in the structures that frameworks pass around, best first.
_QUESTION_KEYS = (
    "input", "query", "question", "task", "prompt", "user_input", "user_message", "user_prompt", "user_msg", "request",
    "message", "text", "content", "str_or_query_bundle", "query_str", "chat_input", "new_message", "inputs",
)  # fmt: skip
_ANSWER_KEYS = (
    "output", "answer", "final_output", "final_answer", "response", "result", "output_text", "text", "content", "raw",
    "generation", "completion", "return", "message", "summary", "outputs",
)  # fmt: skip
_DEEPEST = 6


def from_json(value: Any) -> Any:
    """A text that is a JSON object or array as data; anything else as it is.

    >>> from_json('{"city": "Oslo"}'), from_json("{not json"), from_json(7)
    ({'city': 'Oslo'}, '{not json', 7)
    """
    if value.__class__ is str and value[:1] in "{[" and value[-1:] in "}]" and value:
        try:
            return msgspec.json.decode(value)
        except (msgspec.DecodeError, RecursionError, UnicodeError):
            return value
    return value


def unquoted(value: Any) -> Any:
    """A text written as a JSON string, without its quotes; JSON objects and arrays as data."""
    if value.__class__ is str and len(value) > 1 and value[0] == value[-1] == '"':
        try:
            return msgspec.json.decode(value)
        except (msgspec.DecodeError, UnicodeError):
            return value
    return from_json(value)


def as_number(value: Any) -> float | None:
    """A finite number, also one written as a text."""
    if value.__class__ is bool or value is None:
        return None
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        return None
    return number if isfinite(number) else None


def as_amount(value: Any) -> float | None:
    """A finite number of 0 or more, also one written as a text: what something cost."""
    number = as_number(value)
    return number if number is not None and number >= 0 else None


def as_count(value: Any) -> int | None:
    """A whole number of 0 or more, also one written as a text; anything else is no count.

    >>> as_count(7), as_count("12"), as_count(3.0), as_count("many"), as_count(-1)
    (7, 12, 3, None, None)
    """
    if value.__class__ is int:
        return int(value) if value >= 0 else None
    number = as_number(value)
    return int(number) if number is not None and number >= 0 and number == int(number) else None


def as_text(value: Any) -> str | None:
    """A text that says something; anything else is ``None``."""
    return value if value.__class__ is str and value.strip() else None


def content_text(content: Any) -> str | None:
    """The text of a message's content: a text, or the text parts of a list of parts.

    >>> content_text([{"type": "text", "text": "Hello"}, {"type": "image_url", "image_url": "…"}])
    'Hello'
    """
    if content.__class__ is str:
        return str(content)
    if isinstance(content, dict):
        content = content.get("parts") or [content]
    if not isinstance(content, (list, tuple)):
        return None
    texts = []
    for part in content:
        if isinstance(part, str):
            texts.append(part)
        elif isinstance(part, dict):
            text = part.get("text", part.get("content"))
            if isinstance(text, dict):
                text = text.get("value")
            kind = part.get("type", "text")
            if isinstance(text, str) and kind in ("text", "input_text", "output_text", "refusal"):
                texts.append(text)
    return "\n".join(texts) if texts else None


def question_in(value: Any) -> str | None:
    """What was asked, in whatever a framework was called with; ``None`` when no text can be told from the rest.

    >>> question_in({"messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Why?"}]})
    'Why?'
    >>> question_in('{"task": "Find it.", "stream": false}')
    'Find it.'
    """
    return _text_in(unquoted(value), _QUESTION_KEYS, ("user", "human"), _DEEPEST)


def answer_in(value: Any) -> str | None:
    """What was answered, in whatever a framework returned; ``None`` when no text can be told from the rest."""
    return _text_in(unquoted(value), _ANSWER_KEYS, ("assistant", "ai", "model"), _DEEPEST)


def text_or_json(value: Any) -> str | None:
    """A value as a text: texts as they are, data as JSON, nothing as ``None``."""
    if value is None or value.__class__ is str:
        return value or None
    return msgspec.json.encode(value, enc_hook=str).decode()


# BeeAI states a message as Python prints it.
_PRINTED_MESSAGE = "{'role': '"


def _printed(text: str) -> Any:
    try:
        return python_literal(text)
    except ValueError:
        return None


def _text_in(value: Any, keys: Sequence[str], roles: tuple[str, str] | tuple[str, ...], depth: int) -> str | None:
    if value.__class__ is str:
        if value.startswith(_PRINTED_MESSAGE) and depth:
            return _text_in(_printed(value), keys, roles, depth - 1) or value
        return as_text(value)
    if depth == 0 or value is None:
        return None
    if isinstance(value, dict):
        return _text_in_mapping(value, keys, roles, depth)
    if isinstance(value, (list, tuple)) and value:
        return _text_in_list(value, keys, roles, depth)
    return None


def _text_in_mapping(value: Mapping[Any, Any], keys: Sequence[str], roles: tuple[str, ...], depth: int) -> str | None:
    for name in ("messages", "chat_history"):
        messages = value.get(name)
        if isinstance(messages, (dict, list, tuple)) and messages:
            found = _text_in(messages, keys, roles, depth - 1)
            if found is not None:
                return found
    if "parts" in value and isinstance(value["parts"], (list, tuple)):
        return content_text(value)
    if "generations" in value:
        return _text_in(value["generations"], ("text", "message", *keys), roles, depth - 1)
    for key in keys:
        if value.get(key) is not None:
            found = _text_in(unquoted(value[key]), keys, roles, depth - 1)
            if found is not None:
                return found
    for holder in ("kwargs", "args", "data", "blocks"):
        if value.get(holder):
            found = _text_in(value[holder], keys, roles, depth - 1)
            if found is not None:
                return found
    texts = [each for key, each in value.items() if as_text(each) and not str(key).endswith("id")]
    return texts[0] if len(value) == 1 and texts else None


def _text_in_list(value: Sequence[Any], keys: Sequence[str], roles: tuple[str, ...], depth: int) -> str | None:
    for each in reversed(value):
        if isinstance(each, dict) and _role_of(each) in roles:
            text = content_text(each.get("content", each.get("parts", each.get("blocks", each.get("text")))))
            text = text if text is not None else _text_in(each.get("data"), keys, roles, depth - 1)
            if text and text.strip():
                return text
        elif isinstance(each, (list, tuple)) and len(each) == 2 and each[0] in roles:
            return as_text(each[1])
    text = content_text(value)
    if text and text.strip() and not any(isinstance(each, dict) and _role_of(each) for each in value):
        return text
    if len(value) == 1:
        return _text_in(unquoted(value[0]), keys, roles, depth - 1)
    return None


def _role_of(message: Mapping[Any, Any]) -> str | None:
    for key in ("role", "type"):
        role = message.get(key)
        if isinstance(role, str) and role.lower() in ("user", "human", "assistant", "ai", "model", "system", "tool"):
            return role.lower()
    # LangChain's own serialization names the class: {"id": ["langchain", "schema", "messages", "HumanMessage"], …}.
    name = message.get("id")
    if isinstance(name, (list, tuple)) and name and isinstance(name[-1], str):
        return {"HumanMessage": "human", "AIMessage": "ai", "AIMessageChunk": "ai"}.get(name[-1])
    return None


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
    it names. ``origins`` has the row of the table (vocabulary and attribute) that each fact came from,
    ``disagreements`` one sentence for each fact that two vocabularies state differently, and ``not_understood`` the
    attributes that no vocabulary knows.
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
    tools: Sequence[dict[str, Any]] = ()
    server: str | None = None
    server_version: str | None = None
    tool_version: str | None = None
    is_error: bool | None = None
    origins: Mapping[str, Any] | None = None
    disagreements: Sequence[str] = ()
    not_understood: Sequence[str] = ()


def usage_of(
    prompt: Any,
    completion: Any,
    total: Any = None,
    cached: Any = None,
    cache_written: Any = None,
    reasoning: Any = None,
) -> dict[str, Any] | None:
    """Token counts as a record states them, or ``None`` when nothing was counted.

    Zeros alone count nothing.

    Cached tokens were counted beside the prompt (as Anthropic does), and are added, when there are more of them than
    of the prompt's or when only with them the parts make the total; tokens of reasoning likewise.

    >>> usage_of(100, 5, cached=90)
    {'prompt_tokens': 100, 'completion_tokens': 5, 'prompt_tokens_details': {'cached_tokens': 90}}
    >>> usage_of(10, 5, cached=90)
    {'prompt_tokens': 100, 'completion_tokens': 5, 'prompt_tokens_details': {'cached_tokens': 90}}
    """
    n_prompt, n_completion, n_total = as_count(prompt), as_count(completion), as_count(total)
    n_cached, n_written = as_count(cached), as_count(cache_written)
    if not (n_prompt or n_completion or n_total or n_cached or n_written):
        # No model call takes no tokens at all: clients write 0 for what their provider did not send.
        return None
    n_reasoning = as_count(reasoning)
    beside = (n_cached or 0) + (n_written or 0)
    if n_completion is not None and n_reasoning and n_reasoning != n_completion:
        without = (n_prompt or 0) + n_completion + n_reasoning
        if n_reasoning > n_completion or (n_total is not None and n_total in (without, without + beside)):
            n_completion += n_reasoning
    parts_make_total = n_prompt is not None and n_total == n_prompt + (n_completion or 0) + beside
    if n_prompt is not None and beside and (beside > n_prompt or parts_make_total):
        n_prompt += beside
        n_total = None if n_total is None or n_completion is None else max(n_total, n_prompt + n_completion)
    counts = {"prompt_tokens": n_prompt, "completion_tokens": n_completion, "total_tokens": n_total}
    usage: dict[str, Any] = {name: count for name, count in counts.items() if count is not None}
    details = {}
    if n_cached is not None:
        details["cached_tokens"] = n_cached
    if n_written:
        details["cache_creation_tokens"] = n_written
    if details:
        usage["prompt_tokens_details"] = details
    if n_reasoning:
        usage["completion_tokens_details"] = {"reasoning_tokens": n_reasoning}
    return usage
