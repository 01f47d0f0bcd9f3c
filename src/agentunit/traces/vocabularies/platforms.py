"""Vocabularies of platforms with words of their own: MLflow, Langfuse, TruLens, the Vercel AI SDK."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from agentunit.traces.spans import Span
from agentunit.traces.vocabularies import gen_ai
from agentunit.traces.vocabularies.messages import messages_in
from agentunit.traces.vocabularies.values import (
    Facts,
    SpanKind,
    as_amount,
    as_number,
    as_text,
    from_json,
    unquoted,
    usage_of,
)

_MLFLOW_KINDS: dict[str, SpanKind] = {
    "LLM": "llm",
    "CHAT_MODEL": "llm",
    "TOOL": "tool",
    "RETRIEVER": "retrieval",
    "RERANKER": "retrieval",
    "AGENT": "agent",
    "EMBEDDING": "embedding",
    "EVALUATOR": "evaluation",
}
_LANGFUSE_KINDS: dict[str, SpanKind] = {
    "generation": "llm",
    "tool": "tool",
    "retriever": "retrieval",
    "agent": "agent",
    "embedding": "embedding",
    "evaluator": "evaluation",
}
_TRULENS_KINDS: dict[str, SpanKind] = {
    "generation": "llm",
    "retrieval": "retrieval",
    "reranking": "retrieval",
    "agent": "agent",
    "tool": "tool",
    "mcp": "tool",
    "eval": "evaluation",
    "eval_root": "evaluation",
}


def read(span: Span, facts: Facts) -> bool:
    """Take the facts of a span in one of these vocabularies; false when it speaks none of them."""
    attributes = span.attributes
    for mark, reader in _READERS.items():
        if mark in attributes:
            reader(span, attributes, facts)
            return facts.kind is not None
    return False


def read_trace_facts(attributes: Mapping[str, Any], facts: Facts) -> None:
    """What a platform writes on one span about the whole trace, whatever vocabulary the span itself is in."""
    if "mlflow.traceRequestId" in attributes:
        facts.session_id = facts.session_id or as_text(attributes.get("mlflow.trace.session"))
        facts.user_id = facts.user_id or as_text(attributes.get("mlflow.trace.user"))
        facts.expected = _mlflow_expectation(from_json(attributes.get("mlflow.trace.assessments")))
        facts.usage = facts.usage or _counted(from_json(attributes.get("mlflow.trace.tokenUsage")))
        cost = from_json(attributes.get("mlflow.trace.cost"))
        facts.trace_total_cost = as_amount(cost.get("total_cost") if isinstance(cost, dict) else cost)
    elif "\nlangfuse." in "\n" + "\n".join(attributes):
        facts.session_id = facts.session_id or as_text(attributes.get("langfuse.session.id"))
        facts.user_id = facts.user_id or as_text(attributes.get("langfuse.user.id"))
        facts.expected = unquoted(attributes.get("langfuse.experiment.item.expected_output"))
        facts.trace_total_cost = as_amount(attributes.get("langfuse.trace.total_cost"))
        if facts.input is None and "langfuse.trace.input" in attributes:
            facts.kind, facts.input = facts.kind or "chain", unquoted(attributes["langfuse.trace.input"])
        if facts.output is None and "langfuse.trace.output" in attributes:
            facts.kind, facts.output = facts.kind or "chain", unquoted(attributes["langfuse.trace.output"])


def _mlflow_expectation(assessments: Any) -> Any:
    """The expected answer among a trace's assessments: the one of that name, else the only one."""
    found = {}
    for each in assessments if isinstance(assessments, list) else ():
        if isinstance(each, dict) and isinstance(each.get("expectation"), dict):
            found[each.get("assessment_name")] = each["expectation"].get("value")
    if "expected_response" in found:
        return found["expected_response"]
    return next(iter(found.values())) if len(found) == 1 else None


def _read_mlflow(span: Span, attributes: Mapping[str, Any], facts: Facts) -> None:
    kind = unquoted(attributes["mlflow.spanType"])
    facts.kind = _MLFLOW_KINDS.get(kind, "chain") if isinstance(kind, str) else "chain"
    facts.input = unquoted(attributes.get("mlflow.spanInputs"))
    facts.output = unquoted(attributes.get("mlflow.spanOutputs"))
    facts.model = as_text(unquoted(attributes.get("mlflow.llm.model")))
    facts.provider = as_text(unquoted(attributes.get("mlflow.llm.provider")))
    facts.usage = _counted(from_json(attributes.get("mlflow.chat.tokenUsage")))
    cost = from_json(attributes.get("mlflow.llm.cost"))
    facts.cost = as_amount(cost.get("total_cost")) if isinstance(cost, dict) else as_amount(cost)
    _read_parts(span, facts)
    if facts.kind == "llm" and facts.model is None and isinstance(facts.input, dict):
        facts.model = as_text(facts.input.get("model"))


def _read_langfuse(span: Span, attributes: Mapping[str, Any], facts: Facts) -> None:
    kind = attributes["langfuse.observation.type"]
    kind = _LANGFUSE_KINDS.get(kind.lower()) if isinstance(kind, str) else None
    if kind is None and gen_ai.speaks(attributes):
        return  # a plain span in Langfuse, which came in by OpenTelemetry and says more in its own words
    facts.kind = kind or "chain"
    facts.input = unquoted(attributes.get("langfuse.observation.input"))
    facts.output = unquoted(attributes.get("langfuse.observation.output"))
    facts.session_id = as_text(attributes.get("session.id"))
    facts.user_id = as_text(attributes.get("user.id"))
    facts.model = as_text(attributes.get("langfuse.observation.model.name") or attributes.get("gen_ai.response.model"))
    usage = from_json(attributes.get("langfuse.observation.usage_details"))
    facts.usage = _counted(usage)
    cost = from_json(attributes.get("langfuse.observation.cost_details"))
    facts.cost = as_amount(cost.get("total")) if isinstance(cost, dict) else as_amount(cost)
    if facts.cost is None and isinstance(cost, dict):
        parts = [as_number(each) for each in cost.values()]
        facts.cost = (
            sum(part for part in parts if part is not None) if any(part is not None for part in parts) else None
        )
    _read_parts(span, facts)


def _read_trulens(span: Span, attributes: Mapping[str, Any], facts: Facts) -> None:
    kind = attributes["ai.observability.span_type"]
    facts.kind = _TRULENS_KINDS.get(kind, "chain") if isinstance(kind, str) else "chain"
    arguments = {
        key.removeprefix("ai.observability.call.kwargs."): value
        for key, value in attributes.items()
        if key.startswith("ai.observability.call.kwargs.")
    }
    facts.input = attributes.get("ai.observability.record_root.input", arguments or None)
    facts.output = attributes.get("ai.observability.record_root.output", attributes.get("ai.observability.call.return"))
    facts.expected = attributes.get("ai.observability.record_root.ground_truth_output")
    facts.model = as_text(attributes.get("ai.observability.cost.model"))
    facts.usage = usage_of(
        attributes.get("ai.observability.cost.num_prompt_tokens"),
        attributes.get("ai.observability.cost.num_completion_tokens"),
        attributes.get("ai.observability.cost.num_tokens"),
    )
    if attributes.get("ai.observability.cost.cost_currency", "USD") == "USD":
        facts.cost = as_amount(attributes.get("ai.observability.cost.cost"))
    if facts.kind == "retrieval":
        facts.input = attributes.get("ai.observability.retrieval.query_text", facts.input)
        documents = from_json(attributes.get("ai.observability.retrieval.retrieved_contexts", facts.output))
        facts.documents = documents if isinstance(documents, list) else None
    if facts.kind == "evaluation":
        facts.tool = as_text(attributes.get("ai.observability.eval.metric_name"))
        score = attributes.get("ai.observability.eval_root.score", attributes.get("ai.observability.eval.score"))
        facts.output = as_number(score)
    elif facts.kind in ("tool", "agent"):
        _read_parts(span, facts)


def _read_vercel(span: Span, attributes: Mapping[str, Any], facts: Facts) -> None:
    operation = attributes["ai.operationId"]
    if operation == "ai.toolCall":
        facts.kind, facts.tool = "tool", as_text(attributes.get("ai.toolCall.name"))
        facts.tool_call_id = as_text(attributes.get("ai.toolCall.id"))
        facts.input = from_json(attributes.get("ai.toolCall.args", attributes.get("ai.toolCall.input")))
        facts.output = unquoted(attributes.get("ai.toolCall.result", attributes.get("ai.toolCall.output")))
        return
    called = isinstance(operation, str) and operation.endswith((".doGenerate", ".doStream", ".doEmbed"))
    facts.kind = "embedding" if "mbed" in str(operation) else "llm" if called else "chain"
    facts.model = as_text(attributes.get("ai.response.model") or attributes.get("ai.model.id"))
    facts.input = from_json(attributes.get("ai.prompt"))
    facts.output = attributes.get("ai.response.text", attributes.get("ai.response.object"))
    facts.input_messages = messages_in(attributes.get("ai.prompt.messages"), "user")
    reply = {
        "role": "assistant",
        "content": attributes.get("ai.response.text"),
        "tool_calls": _vercel_calls(attributes),
    }
    facts.output_messages = messages_in([reply], "assistant") if called else []
    facts.session_id = as_text(attributes.get("ai.telemetry.metadata.sessionId"))
    facts.usage = usage_of(
        attributes.get("ai.usage.promptTokens", attributes.get("ai.usage.inputTokens")),
        attributes.get("ai.usage.completionTokens", attributes.get("ai.usage.outputTokens")),
        attributes.get("ai.usage.totalTokens"),
        attributes.get("ai.usage.cachedInputTokens"),
    )


def _vercel_calls(attributes: Mapping[str, Any]) -> list[dict[str, Any]]:
    calls = from_json(attributes.get("ai.response.toolCalls"))
    if not isinstance(calls, list):
        return []
    return [
        {"id": call.get("toolCallId"), "name": call.get("toolName"), "arguments": call.get("args", call.get("input"))}
        for call in calls
        if isinstance(call, dict)
    ]


def _read_parts(span: Span, facts: Facts) -> None:
    """What the input and output of a span hold, by its kind, where a platform keeps them as plain data."""
    if facts.kind == "tool":
        facts.tool = as_text(unquoted(span.attributes.get("mlflow.spanFunctionName"))) or span.name or None
    elif facts.kind == "agent":
        facts.agent = span.name or None
    elif facts.kind == "llm":
        facts.input_messages = messages_in(facts.input, "user")
        choices = facts.output.get("choices") if isinstance(facts.output, dict) else None
        facts.output_messages = messages_in(choices if choices else facts.output, "assistant")
    elif facts.kind == "retrieval":
        found = facts.output.get("documents", facts.output) if isinstance(facts.output, dict) else facts.output
        facts.documents = found if isinstance(found, list) else None


def _counted(usage: Any) -> dict[str, Any] | None:
    if not isinstance(usage, dict):
        return None

    def first(*names: str) -> Any:
        return next((usage[name] for name in names if usage.get(name) is not None), None)

    return usage_of(
        first("input_tokens", "input", "prompt_tokens", "promptTokens"),
        first("output_tokens", "output", "completion_tokens", "completionTokens"),
        first("total_tokens", "total", "totalTokens"),
        first(
            "cache_read_input_tokens",
            "input_cached_tokens",
            "input_cache_read",
            "cached_input_tokens",
            "prompt_details.cache_read",
            "cache_read",
        ),
        first("cache_creation_input_tokens", "input_cache_creation", "prompt_details.cache_write"),
    )


_READERS: dict[str, Callable[[Span, Mapping[str, Any], Facts], None]] = {
    "mlflow.spanType": _read_mlflow,
    "langfuse.observation.type": _read_langfuse,
    "ai.observability.span_type": _read_trulens,
    "ai.operationId": _read_vercel,
}
