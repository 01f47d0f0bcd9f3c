"""Records as spans in OTLP's JSON, with the attributes of OpenInference and of OpenTelemetry's GenAI conventions.

What has no attribute in either is left out: reasoning, artifacts, expected answers and metadata.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from hashlib import blake2b
from typing import Any

from agentunit.addons.formats.chats.loose_values import as_dict, as_json, as_name, as_number, text_of
from agentunit.core.codec import as_event, encode_record
from agentunit.core.records import Record, outcome_text
from agentunit.core.results import encode_json
from agentunit.core.trace import TraceEvent
from agentunit.metrics.inputs import InputProblem
from agentunit.metrics.usage import read_tokens

_SCOPE = "agentunit"
_TRACE_ID = re.compile("(?!0{32})[0-9a-f]{32}")
_OK, _ERROR = 1, 2
# Counts in the order of ``Tokens``, and those of reasoning: the attribute of each vocabulary.
_TOKENS = (
    "llm.token_count.prompt gen_ai.usage.input_tokens",
    "llm.token_count.completion gen_ai.usage.output_tokens",
    "llm.token_count.total",
    "llm.token_count.prompt_details.cache_read gen_ai.usage.cache_read.input_tokens",
    "llm.token_count.prompt_details.cache_write gen_ai.usage.cache_creation.input_tokens",
    "llm.token_count.completion_details.reasoning gen_ai.usage.reasoning.output_tokens",
)
_VALUES = ((bool, "boolValue"), (int, "intValue"), (float, "doubleValue"), (str, "stringValue"))


def encode_otlp(record: Record) -> bytes:
    """One export request as one line of JSON: the spans of one trace."""
    service = as_name(record.trace.metadata.get("service")) or "agent"
    spans = {"scope": {"name": _SCOPE}, "spans": _Spans(record).made}
    resource = {"attributes": _listed({"service.name": service})}
    return encode_json({"resourceSpans": [{"resource": resource, "scopeSpans": [spans]}]})


class _ModelCall:
    """A model call while it is put together: its span, what it was asked and said, and whether it was counted."""

    def __init__(self, span: dict[str, Any], asked: list[tuple[str, str]]) -> None:
        self.span = span
        self.is_counted = False
        self.asked = asked
        self.said: list[tuple[str, str]] = []

    def end(self) -> None:
        """Write the messages, in both spellings."""
        for side, messages in (("input", self.asked), ("output", self.said)):
            for place, (role, text) in enumerate(messages):
                where = f"llm.{side}_messages.{place}.message"
                _add(self.span, {f"{where}.role": role, f"{where}.content": text})
            whole = [{"role": role, "parts": [{"type": "text", "content": text}]} for role, text in messages]
            _add(self.span, {f"gen_ai.{side}.messages": as_json(whole) if whole else None})


class _Spans:
    """The spans of one record: one of each agent, and below them its model calls, tool calls and retrievals."""

    def __init__(self, record: Record) -> None:
        digest = blake2b(encode_record(record), digest_size=16).hexdigest()
        self._id = record.case.id if _TRACE_ID.fullmatch(record.case.id) else digest
        self.made: list[dict[str, Any]] = []
        self._events = [as_event(event) for event in record.trace.events]
        self._started = {handoff.to_agent: handoff.from_agent for handoff in record.trace.handoffs}
        # Totals that the model calls do not add up to are on the span of the whole run, and then not on the calls.
        self._usage = as_dict(record.trace.metadata.get("usage"))
        self._cost = as_number(record.trace.metadata.get("cost"))
        times = [event.timestamp for event in self._events if event.timestamp is not None]
        # Where no time is known none is written, so that nobody reads durations that were never measured.
        self._now = min(times, default=None)
        self._begun = 0.0
        self._agents: dict[str, dict[str, Any]] = {}
        self._asked: dict[str, list[tuple[str, str]]] = {}
        self._open: dict[str, _ModelCall] = {}
        self._model_calls: list[_ModelCall] = []
        named = (name for event in self._events if (name := as_name(event.payload.get("agent"))))
        self._main = next((name for name in named if name not in self._started), "")
        self._write(record, max(times, default=None))

    def _write(self, record: Record, end: float | None) -> None:
        outcome = record.outcome
        elapsed_s = as_number(getattr(outcome, "elapsed_s", None))
        error = getattr(outcome, "error", None)
        root = self._agent(self._main)
        if self._now is not None and elapsed_s is not None:
            end = self._now + elapsed_s
        self._end(root, end)
        _add(root, {
            "input.value": as_name(record.case.query),
            "output.value": outcome_text(outcome),
            "session.id": as_name(record.trace.metadata.get("session_id")) or record.case.id,
            "llm.cost.total": as_number(getattr(outcome, "cost", None)) if self._cost is None else self._cost,
            **_counts(self._usage),
        })  # fmt: skip
        success = getattr(outcome, "success", None)
        if error is not None or success is not None:
            _state(root, error is not None or success is False, as_name(error))
        for event in self._events:
            self._now = self._now if event.timestamp is None else event.timestamp
            self._add_event(event)
        for agent, left in self._asked.items():
            # Said to an agent whose model was not called again.
            if left:
                self._model_call(agent)
        for call in self._model_calls:
            call.end()

    def _add_event(self, event: TraceEvent) -> None:
        payload = event.payload
        agent = as_name(payload.get("agent")) or self._main
        if event.type == "llm_call":
            call = self._open.get(agent)
            if call is None or call.is_counted:
                call = self._model_call(agent)
            call.is_counted = True
            _add(call.span, {
                "llm.model_name gen_ai.request.model": as_name(payload.get("model")),
                "llm.cost.total": as_number(payload.get("cost")) if self._cost is None else None,
                **({} if self._usage else _counts(as_dict(payload.get("usage")))),
            })  # fmt: skip
        elif event.type == "message":
            text = text_of(payload.get("content")) or ""
            if payload.get("role") == "assistant":
                (self._open.get(agent) or self._model_call(agent)).said.append(("assistant", text))
            else:
                self._asked.setdefault(agent, []).append((str(payload.get("role")), text))
        elif event.type == "tool_call":
            self._open.pop(agent, None)
            self._tool_call(payload, agent)
        elif event.type == "retrieval":
            span = self._span("RETRIEVER", "retrieval", "retrieve", self._agent(agent)["spanId"])
            found = payload.get("documents")
            documents = {
                f"retrieval.documents.{place}.document.content": text_of(each)
                for place, each in enumerate(found if isinstance(found, list) else [])
            }
            _add(span, {"input.value": as_name(payload.get("query")), **documents})

    def _model_call(self, agent: str) -> _ModelCall:
        span = self._span("LLM", "chat", "chat", self._agent(agent)["spanId"])
        asked, self._asked[agent] = self._asked.get(agent, []), []
        call = self._open[agent] = _ModelCall(span, asked)
        self._model_calls.append(call)
        return call

    def _tool_call(self, payload: Mapping[str, Any], agent: str) -> None:
        name = as_name(payload.get("name")) or "unknown"
        span = self._span("TOOL", "execute_tool", name, self._agent(agent)["spanId"])
        arguments, status = payload.get("arguments"), payload.get("status")
        given = None if arguments is None else arguments if isinstance(arguments, str) else as_json(arguments)
        _add(span, {
            "tool.name gen_ai.tool.name": name,
            "tool_call.id gen_ai.tool.call.id": as_name(payload.get("id")),
            "input.value gen_ai.tool.call.arguments": given,
            "output.value gen_ai.tool.call.result": text_of(payload.get("result")),
            "gen_ai.tool.status": None if status else "unknown",
            "process.exit.code": payload.get("exit_code"),
        })  # fmt: skip
        if status:
            _state(span, status != "success", as_name(payload.get("error")))
        took_s = as_number(payload.get("duration_s"))
        if self._now is not None and took_s is not None:
            self._end(span, self._now + took_s)

    def _agent(self, name: str) -> dict[str, Any]:
        """The span of an agent, below that of the one that handed over to it."""
        if name not in self._agents:
            parent = None if not self._agents else self._agents.get(self._started.get(name, ""), self.made[0])
            span = self._span("AGENT", "invoke_agent", name or "agent", parent["spanId"] if parent else None)
            _add(span, {"agent.name gen_ai.agent.name": name or None})
            self._agents[name] = span
        return self._agents[name]

    def _span(self, kind: str, operation: str, name: str, parent_id: str | None) -> dict[str, Any]:
        span: dict[str, Any] = {
            "traceId": self._id,
            "spanId": f"{(int(self._id[:16], 16) + len(self.made)) % 2**64 or 1:016x}",
            "name": name,
            "kind": 1,
            "attributes": _listed({"openinference.span.kind": kind, "gen_ai.operation.name": operation}),
        }
        if parent_id is not None:
            span["parentSpanId"] = parent_id
        if self._now is not None:
            # Spans that begin together are shown by their depth: a microsecond keeps them in their order.
            self._now = max(self._now, self._begun + 1e-6)
            self._begun = self._now
            span["startTimeUnixNano"] = span["endTimeUnixNano"] = _nanoseconds(self._now)
        self.made.append(span)
        return span

    def _end(self, span: dict[str, Any], moment: float | None) -> None:
        if moment is not None and "startTimeUnixNano" in span:
            span["endTimeUnixNano"] = _nanoseconds(moment)


def _add(span: dict[str, Any], attributes: Mapping[str, Any]) -> None:
    span["attributes"] += _listed(attributes)


def _listed(attributes: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Attributes as OTLP lists them, without those that are unknown; of names side by side each gets the value."""
    found = []
    for names, value in attributes.items():
        field = next((field for kind, field in _VALUES if isinstance(value, kind)), None)
        if field is not None:
            written = {field: str(value) if field == "intValue" else value}
            found += [{"key": name, "value": written} for name in names.split()]
    return found


def _state(span: dict[str, Any], failed: bool, error: str | None) -> None:
    span["status"] = {"code": _ERROR, "message": error or "failed"} if failed else {"code": _OK}


def _counts(usage: Mapping[str, Any]) -> dict[str, Any]:
    try:
        tokens = read_tokens("usage", usage)
    except InputProblem:
        return {}
    reasoning = as_dict(usage.get("completion_tokens_details")).get("reasoning_tokens")
    cached = (tokens.cached or None, tokens.cache_written or None)
    return dict(zip(_TOKENS, [*tokens[:3], *cached, reasoning], strict=True))


def _nanoseconds(seconds: float) -> str:
    return str(round(seconds * 1e9))
