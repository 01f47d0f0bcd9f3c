"""OpenInference: the vocabulary of Arize's instrumentations and of Phoenix."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agentunit.traces.spans import Span
from agentunit.traces.vocabularies.values import (
    Facts,
    Message,
    SpanKind,
    ToolRequest,
    as_amount,
    as_text,
    from_json,
    usage_of,
)

_KINDS: dict[str, SpanKind] = {
    "LLM": "llm",
    "TOOL": "tool",
    "RETRIEVER": "retrieval",
    "AGENT": "agent",
    "CHAIN": "chain",
    "EMBEDDING": "embedding",
    "EVALUATOR": "evaluation",
    "RERANKER": "retrieval",
    "GUARDRAIL": "chain",
    "PROMPT": "chain",
    "UNKNOWN": "chain",
    "DECISION": "chain",
}
# What the instrumentations write in place of a content they were told to hide.
REDACTED = "__REDACTED__"
_METHODS = (".run", ".on_messages_stream", ".on_messages", ".run_stream", ".invoke", ".kickoff", "._execute_core")


def speaks(attributes: Mapping[str, Any]) -> bool:
    """Whether a span's attributes are in this vocabulary."""
    return "openinference.span.kind" in attributes


def read(span: Span, facts: Facts) -> None:
    """Take the facts of a span whose attributes are in this vocabulary."""
    attributes = span.attributes
    kind = attributes.get("openinference.span.kind")
    facts.kind = _KINDS.get(kind.upper(), "chain") if isinstance(kind, str) else "chain"
    facts.input = _shown(attributes.get("input.value"))
    facts.output = _shown(attributes.get("output.value"))
    facts.session_id = as_text(attributes.get("session.id"))
    facts.user_id = as_text(attributes.get("user.id"))
    facts.agent = as_text(attributes.get("agent.name") or attributes.get("gen_ai.agent.name"))
    if "llm.token_count.prompt" in attributes or "llm.token_count.total" in attributes:
        facts.usage = _usage(attributes)
    facts.cost = as_amount(attributes.get("llm.cost.total"))
    if facts.kind == "llm":
        _read_model_call(attributes, facts)
    elif facts.kind == "tool":
        _read_tool_call(span, facts)
    elif facts.kind == "retrieval":
        facts.documents = _documents(attributes, "retrieval.documents.") or _documents(
            attributes, "reranker.output_documents."
        )
    elif facts.kind == "agent" and facts.agent is None:
        facts.agent = as_text(attributes.get("graph.node.id")) or _without_method(span.name)


def _usage(attributes: Mapping[str, Any]) -> dict[str, Any] | None:
    return usage_of(
        attributes.get("llm.token_count.prompt"),
        attributes.get("llm.token_count.completion"),
        attributes.get("llm.token_count.total"),
        attributes.get(
            "llm.token_count.prompt_details.cache_read", attributes.get("gen_ai.usage.cache_read.input_tokens")
        ),
        attributes.get("llm.token_count.prompt_details.cache_write"),
        attributes.get("llm.token_count.completion_details.reasoning"),
    )


def _read_model_call(attributes: Mapping[str, Any], facts: Facts) -> None:
    facts.model = as_text(
        attributes.get("llm.model_name")
        or attributes.get("llm.response.model_name")
        or attributes.get("llm.request.model_name")
    )
    facts.provider = as_text(attributes.get("llm.provider") or attributes.get("llm.system"))
    indexed = _indexed(attributes, ("llm.input_messages.", "llm.output_messages."))
    facts.input_messages = _messages(indexed[0], "user")
    facts.output_messages = _messages(indexed[1], "assistant")


def _read_tool_call(span: Span, facts: Facts) -> None:
    attributes = span.attributes
    facts.tool = as_text(attributes.get("tool.name")) or span.name or None
    facts.tool_call_id = as_text(attributes.get("tool_call.id") or attributes.get("tool.id"))
    schema_or_arguments = from_json(attributes.get("tool.parameters"))
    given = from_json(attributes.get("tool_call.function.arguments"))
    if given is None:
        given = from_json(facts.input)
    if given is None and isinstance(schema_or_arguments, dict) and not _is_schema(schema_or_arguments):
        given = schema_or_arguments
    facts.input = _call_arguments(given, schema_or_arguments)


def _call_arguments(given: Any, parameters: Any) -> Any:
    """The arguments of a call; ``{"args": […], "kwargs": {…}}`` is put back under the names of the parameters."""
    if not isinstance(given, dict) or "kwargs" not in given or not isinstance(given["kwargs"], dict):
        return given
    positional = given.get("args")
    if not isinstance(positional, (list, tuple)) or not positional:
        return dict(given["kwargs"])
    names = list(parameters) if isinstance(parameters, dict) else []
    if len(names) < len(positional):
        return {"args": positional, **given["kwargs"]}
    return {**dict(zip(names, positional, strict=False)), **given["kwargs"]}


def _is_schema(parameters: Mapping[str, Any]) -> bool:
    if "properties" in parameters or parameters.get("type") == "object":
        return True
    return bool(parameters) and all(isinstance(each, dict) and "type" in each for each in parameters.values())


def _shown(value: Any) -> Any:
    return None if value == REDACTED else value


def _without_method(name: str) -> str | None:
    for method in _METHODS:
        if name.endswith(method):
            return name.removesuffix(method) or None
    return name or None


def _indexed(attributes: Mapping[str, Any], prefixes: tuple[str, ...]) -> list[dict[int, dict[str, Any]]]:
    """Attributes such as ``llm.input_messages.0.message.role`` by their first number, for each prefix."""
    found: list[dict[int, dict[str, Any]]] = [{} for _ in prefixes]
    for key, value in attributes.items():
        for place, prefix in enumerate(prefixes):
            if key.startswith(prefix):
                number, _, rest = key[len(prefix) :].partition(".")
                if number.isdigit():
                    found[place].setdefault(int(number), {})[rest] = value
                break
    return found


def _messages(indexed: dict[int, dict[str, Any]], default_role: str) -> list[Message]:
    messages: list[Message] = []
    for _, fields in sorted(indexed.items()):
        role = as_text(fields.get("message.role")) or default_role
        content = fields.get("message.content")
        calls: dict[int, dict[str, Any]] = {}
        parts: list[str] = []
        for key, value in fields.items():
            if key.startswith("message.contents.") and key.endswith("message_content.text") and isinstance(value, str):
                parts.append(value)
            elif key.startswith("message.tool_calls."):
                number, _, rest = key[len("message.tool_calls.") :].partition(".")
                if number.isdigit():
                    calls.setdefault(int(number), {})[rest.removeprefix("tool_call.")] = value
            elif key.startswith("function."):
                messages += _autogen_result(value)
        text = content if isinstance(content, str) and content != REDACTED else None
        if text is None and parts:
            text = "\n".join(part for part in parts if part != REDACTED) or None
        requests = [
            ToolRequest(str(call["function.name"]), from_json(call.get("function.arguments")), as_text(call.get("id")))
            for _, call in sorted(calls.items())
            if call.get("function.name")
        ]
        if text is not None or requests:
            own_name, call_id = as_text(fields.get("message.name")), as_text(fields.get("message.tool_call_id"))
            messages.append(Message(role, text, own_name, requests, call_id))
    return messages


def _autogen_result(value: Any) -> list[Message]:
    """AutoGen's results of tool calls stand beside the message, as JSON of their own."""
    result = from_json(value)
    if not isinstance(result, dict):
        return []
    failed = result.get("is_error")
    return [
        Message(
            "tool",
            as_text(result.get("content")),
            as_text(result.get("name")),
            tool_call_id=as_text(result.get("call_id")),
            failed=failed if isinstance(failed, bool) else None,
        )
    ]


def _documents(attributes: Mapping[str, Any], prefix: str) -> list[Any] | None:
    documents = []
    for _, fields in sorted(_indexed(attributes, (prefix,))[0].items()):
        document = {
            name: fields[key]
            for name, key in (("text", "document.content"), ("id", "document.id"), ("score", "document.score"))
            if fields.get(key) is not None and fields[key] != REDACTED
        }
        metadata = from_json(fields.get("document.metadata"))
        if isinstance(metadata, dict) and metadata:
            document["metadata"] = dict(metadata)
        documents.append(document)
    return documents or None
