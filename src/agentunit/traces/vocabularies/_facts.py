"""The facts of a span: every vocabulary that it speaks contributes, and they are merged field by field."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from agentunit.traces.places import require_known
from agentunit.traces.spans import Span
from agentunit.traces.vocabularies._contents import (
    messages_in_events,
    noted_events,
    numbered_documents,
    split_history,
    tool_definitions,
)
from agentunit.traces.vocabularies._frameworks import read_framework
from agentunit.traces.vocabularies._span_claims import Claims
from agentunit.traces.vocabularies._table import ABOUT_TRACE, PLAIN_DATA, SPAN_NAMES, TOKENS
from agentunit.traces.vocabularies.attribute_rows import FACTS
from agentunit.traces.vocabularies.span_messages import is_tool_message, messages_in
from agentunit.traces.vocabularies.values import (
    Facts,
    Message,
    SpanKind,
    as_text,
    content_text,
    from_json,
    text_or_json,
    unquoted,
    usage_of,
)

# What is taken over as it is, whatever the kind of the span.
_PLAIN = frozenset((
    "agent", "agent_description", "agent_id", "input", "output", "model", "provider", "cost", "expected", "session_id",
    "user_id", "trace_total_cost", "server", "server_version", "tool_version", "is_error",
))  # fmt: skip
require_known("_PLAIN: a fact", _PLAIN, FACTS)
require_known("_PLAIN: a field of Facts", _PLAIN, Facts.__struct_fields__)
_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|\b[0-9a-f]{32}\b", re.IGNORECASE)
# Names of spans that name a step or a method, and no agent: iteration-2, agent.react.start-4.
_STEP = re.compile(r".*[-_.# ]\d+\Z|\w+(\.\w+)+\Z", re.DOTALL)
_NO_NAMES = ("agent", "invoke_agent", "agent_run", "agent run", "run", "team", "workflow")
_METHODS = (
    ".run",
    ".iter",
    ".turn",
    ".on_messages_stream",
    ".on_messages",
    ".run_stream",
    ".invoke",
    ".kickoff",
    "._execute_core",
)
# CrewAI's span of a task whose agent the instrumentation did not see: the name of a class.
_UNNAMED_TASK = "Task._execute_core"
_BRACKETED = re.compile(r"(?:agent_run|invoke_agent|agent run) ?\[(?P<name>[^\]]+)\]\Z")
_OPERATIONS = ("invoke_agent ", "execute_tool ", "agent run ", "running tool: ", "tool: ")
_STEPS = (".agent", ".tool", ".task", ".workflow")


def _says_something(value: Any) -> bool:
    return value not in (None, "", "{}", "[]", "null") and value != [] and value != {}


def facts_of(span: Span) -> Facts:
    """What a span says, in all the vocabularies that it speaks.

    >>> attributes = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "m", "gen_ai.usage.input_tokens": 7}
    >>> facts = facts_of(Span("t", "s", attributes=attributes))
    >>> facts.kind, facts.model, facts.usage, facts.origins["model"].attribute
    ('llm', 'm', {'prompt_tokens': 7}, 'gen_ai.request.model')
    """
    claims = Claims(span)
    by_fact = claims.by_fact
    facts = Facts(_kind(span, claims))
    if facts.kind is None:
        # A web server's or a database's span may use the same words for other things.
        facts.session_id = (
            claims.of("session_id") if ABOUT_TRACE & {row.vocabulary for row in claims.rows("session_id")} else None
        )
    else:
        for name in by_fact:
            if name in _PLAIN:
                setattr(facts, name, claims.of(name))
        if "input_tokens" in by_fact or "output_tokens" in by_fact or "total_tokens" in by_fact:
            facts.usage = usage_of(*(claims.of(name) for name in TOKENS))
        if facts.cost is None and "cost_part" in by_fact:
            parts = [row.read(value) for row, value in by_fact["cost_part"]]
            known = [part for part in parts if part is not None]
            facts.cost = sum(known) if known else None
        if "currency" in by_fact and claims.of("currency") != "USD":
            facts.cost = None
        if facts.input is None and "keywords" in by_fact:
            facts.input = {name: unquoted(each) for name, each in by_fact["keywords"][0][1][0].items()}
        if facts.agent is None and "function" in by_fact:
            facts.agent = claims.of("function")
        _read_messages(span, claims, facts)
        refine = _BY_KIND.get(facts.kind)
        if refine is not None:
            refine(span, claims, facts)
        for _, value in by_fact.get("tools", ()):
            facts.tools = facts.tools or tool_definitions(value)
        facts.origins = claims.kept
        if claims.contested:
            facts.disagreements = claims.disagreements()
        if claims.unknown:
            facts.not_understood = [name for name in claims.unknown if _says_something(span.attributes.get(name, name))]
    read_framework(span, claims, facts)
    return facts


def _kind(span: Span, claims: Claims) -> SpanKind | None:
    """The kind of a span: a word for it, else what it holds. A step that only holds others is the weakest word."""
    step: SpanKind | None = None
    for row, value in claims.by_fact.get("kind", ()):
        kind: SpanKind | None = row.read(value)
        if kind is not None and kind != "chain":
            return kind
        step = step or kind
    step = step or SPAN_NAMES.get(span.name)
    if step is not None:
        return step
    if claims.ours:
        if "tool" in claims and "gen_ai.request.model" not in span.attributes:
            return "tool"
        if "gen_ai.request.model" in span.attributes or "gen_ai.response.model" in span.attributes:
            return "llm"
        if "gen_ai.agent.name" in span.attributes and span.name.startswith(("invoke_agent", "agent")):
            return "agent"
        return "chain"
    if any(row.vocabulary == "whole trace" for row in claims.rows("input") + claims.rows("output")):
        return "chain"
    if "kind" in claims and is_tool_message(claims.of("output")):
        return "tool"  # older versions of Langfuse know no tools
    return "chain" if "kind" in claims else None


def _read_messages(span: Span, claims: Claims, facts: Facts) -> None:
    by_fact = claims.by_fact
    if "input_messages" in by_fact:
        facts.input_messages = claims.messages("input_messages", "user")
    if "output_messages" in by_fact:
        facts.output_messages = claims.messages("output_messages", "assistant")
    if "history" in by_fact and not facts.input_messages:
        facts.input_messages, facts.output_messages = split_history(claims.of("history"))
    events = [*noted_events(claims.of("noted")), *span.events] if "noted" in by_fact else span.events
    if events and not (facts.input_messages and facts.output_messages):
        asked, answered = messages_in_events(events)
        facts.input_messages = facts.input_messages or asked
        facts.output_messages = facts.output_messages or answered
    if not facts.output_messages and claims.vocabulary("output") == "vercel":
        facts.output_messages = [Message("assistant", text_or_json(facts.output))]
    if "system" in by_fact:
        text = content_text(claims.of("system"))
        facts.input_messages = [Message("system", text), *facts.input_messages] if text else facts.input_messages


def _read_model_call(span: Span, claims: Claims, facts: Facts) -> None:
    if "requests" in claims:
        calls = [
            {
                "id": call.get("toolCallId"),
                "name": call.get("toolName"),
                "arguments": call.get("args", call.get("input")),
            }
            for call in _items(claims.of("requests"))
            if isinstance(call, dict)
        ]
        facts.output_messages = messages_in([{"role": "assistant", "content": facts.output, "tool_calls": calls}])
    if not facts.input_messages and claims.vocabulary("input") in PLAIN_DATA:
        facts.input_messages = messages_in(facts.input, "user")
    if not facts.output_messages and claims.vocabulary("output") in PLAIN_DATA:
        choices = facts.output.get("choices") if isinstance(facts.output, dict) else None
        facts.output_messages = messages_in(choices if choices else facts.output, "assistant")
    if facts.model is None and isinstance(facts.input, dict):
        facts.model = as_text(facts.input.get("model"))


def _read_tool_call(span: Span, claims: Claims, facts: Facts) -> None:
    facts.tool = claims.of("tool") or claims.of("entity") or _after_operation(span.name)
    facts.tool_call_id = claims.of("tool_call_id")
    parameters, given = claims.of("parameters"), claims.of("arguments")
    if given is None or (given == parameters and _is_schema(parameters)):
        given = from_json(facts.input)
    if given is None:
        # Strands writes the arguments and the result of a call as messages.
        asked = facts.input_messages[-1] if facts.input_messages else Message("tool")
        given = asked.tool_calls[0].arguments if asked.tool_calls else from_json(asked.content)
    if given is None and isinstance(parameters, dict) and not _is_schema(parameters):
        given = parameters
    facts.input = _call_arguments(given, parameters)
    result = claims.of("result")
    facts.output = result if result is not None else facts.output
    if facts.output is None and facts.output_messages:
        facts.output = facts.output_messages[-1].content
    failure = span.attributes.get("error.type")
    facts.error = claims.of("error") if failure else None
    if facts.is_error is None and failure == "tool_error":
        facts.is_error = True  # MCP's isError, by OpenTelemetry's conventions
    if facts.is_error is None and claims.of("status") == "error":
        facts.error = facts.error or text_or_json(facts.output) or "the tool reported a failure"
    if (
        facts.server is None
        and facts.tool is not None
        and facts.tool.count("__") > 1
        and facts.tool.startswith("mcp__")
    ):
        facts.server = facts.tool.split("__")[1] or None  # Claude's way to name a tool: mcp__server__tool


def _call_arguments(given: Any, parameters: Any) -> Any:
    """The arguments of a call; ``{"args": […], "kwargs": {…}}`` is put back under the names of the parameters."""
    if not isinstance(given, dict) or "inputs" in given or not isinstance(given.get("kwargs"), dict):
        return given
    positional = given.get("args")
    if not isinstance(positional, (list, tuple)) or not positional:
        return dict(given["kwargs"])
    names = list(parameters) if isinstance(parameters, dict) else []
    if len(names) < len(positional):
        return {"args": positional, **given["kwargs"]}
    return {**dict(zip(names, positional, strict=False)), **given["kwargs"]}


def _is_schema(parameters: Any) -> bool:
    if not isinstance(parameters, dict):
        return False
    if "properties" in parameters or parameters.get("type") == "object":
        return True
    return bool(parameters) and all(isinstance(each, dict) and "type" in each for each in parameters.values())


def _read_retrieval(span: Span, claims: Claims, facts: Facts) -> None:
    query = claims.of("query")
    facts.input = facts.input if query is None else query
    for row, value in claims.by_fact.get("documents", ()):
        documents = numbered_documents(value) if row.place else row.read(value)
        facts.documents = facts.documents or (documents if isinstance(documents, list) else None)
    if facts.documents is None and claims.vocabulary("output") != "openinference":
        found = facts.output.get("documents") if isinstance(facts.output, dict) else facts.output
        found = from_json(found)
        facts.documents = found if isinstance(found, list) else None
    if isinstance(facts.input, dict):
        facts.input = facts.input.get("query", facts.input)


def _read_agent(span: Span, claims: Claims, facts: Facts) -> None:
    facts.agent = facts.agent or claims.of("node") or claims.of("entity") or agent_in_name(span.name)


def _read_handoff(span: Span, claims: Claims, facts: Facts) -> None:
    facts.from_agent, facts.to_agent = claims.of("from_agent"), claims.of("to_agent")


def _read_evaluation(span: Span, claims: Claims, facts: Facts) -> None:
    facts.tool = claims.of("metric")
    if "metric" in claims or "score" in claims or claims.vocabulary("kind") == "trulens":
        facts.output = claims.of("score")


_BY_KIND: dict[SpanKind, Callable[[Span, Claims, Facts], None]] = {
    "llm": _read_model_call,
    "tool": _read_tool_call,
    "retrieval": _read_retrieval,
    "agent": _read_agent,
    "handoff": _read_handoff,
    "evaluation": _read_evaluation,
}


def agent_in_name(name: str) -> str | None:
    """The agent that the name of a span names; ``None`` when it names a step, a method or a run.

    >>> [agent_in_name(name) for name in ("invoke_agent billing", "billing.run", "agent_run [billing]", "billing.iter")]
    ['billing', 'billing', 'billing', 'billing']
    >>> [agent_in_name(name) for name in ("agent.react.start-4", "iteration-2", "Agent.run", "pkg.module.call")]
    [None, None, None, None]
    """
    bracketed = _BRACKETED.match(name)
    found = bracketed["name"] if bracketed else _after_operation(name)
    for method in _METHODS:
        found = found.removesuffix(method) if found else None
    if not found or _UUID.search(found) or found.lower() in _NO_NAMES or name == _UNNAMED_TASK:
        return None
    return None if found == name and _STEP.match(name) else found


def _after_operation(name: str) -> str | None:
    """The name in span names such as ``invoke_agent billing`` and ``execute_tool search``, or ``billing.agent``."""
    for operation in _OPERATIONS:
        if name.startswith(operation):
            return name.removeprefix(operation).strip() or None
    for suffix in _STEPS:
        if name.endswith(suffix):
            return name.removesuffix(suffix) or None
    return name or None


def _items(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
