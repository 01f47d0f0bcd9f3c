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

_SCOPE = "agentunit"
_TRACE_ID = re.compile("(?!0{32})[0-9a-f]{32}")
_OK, _ERROR = 1, 2
# Fact of a usage, by its path: the attribute of each vocabulary.
_TOKENS = {
    "prompt_tokens": ("llm.token_count.prompt", "gen_ai.usage.input_tokens"),
    "completion_tokens": ("llm.token_count.completion", "gen_ai.usage.output_tokens"),
    "total_tokens": ("llm.token_count.total",),
    "cached_tokens": ("llm.token_count.prompt_details.cache_read", "gen_ai.usage.cache_read.input_tokens"),
    "cache_creation_tokens": ("llm.token_count.prompt_details.cache_write", "gen_ai.usage.cache_creation.input_tokens"),
    "reasoning_tokens": ("llm.token_count.completion_details.reasoning", "gen_ai.usage.reasoning.output_tokens"),
}
_DETAILS = ("prompt_tokens_details", "completion_tokens_details", "input_tokens_details", "output_tokens_details")
_SAME = {"input_tokens": "prompt_tokens", "output_tokens": "completion_tokens"}
_CACHES = {"cache_read_input_tokens": "cached_tokens", "cache_creation_input_tokens": "cache_creation_tokens"}


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
        _state(root, error is not None or getattr(outcome, "success", None) is False, as_name(error))
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
            model = as_name(payload.get("model"))
            _add(call.span, {
                "llm.model_name": model,
                "gen_ai.request.model": model,
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
        name, call_id = as_name(payload.get("name")) or "unknown", as_name(payload.get("id"))
        span = self._span("TOOL", "execute_tool", name, self._agent(agent)["spanId"])
        arguments, result, status = payload.get("arguments"), payload.get("result"), payload.get("status")
        given = None if arguments is None else arguments if isinstance(arguments, str) else as_json(arguments)
        _add(span, {
            "tool.name": name,
            "gen_ai.tool.name": name,
            "tool_call.id": call_id,
            "gen_ai.tool.call.id": call_id,
            "input.value": given,
            "gen_ai.tool.call.arguments": given,
            "output.value": text_of(result),
            "gen_ai.tool.call.result": text_of(result),
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
            _add(span, {"gen_ai.agent.name": name or None, "agent.name": name or None})
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
    """Attributes as OTLP lists them, without those that are unknown."""
    found = []
    for name, value in attributes.items():
        if isinstance(value, bool):
            found.append({"key": name, "value": {"boolValue": value}})
        elif isinstance(value, int):
            found.append({"key": name, "value": {"intValue": str(value)}})
        elif isinstance(value, float):
            found.append({"key": name, "value": {"doubleValue": value}})
        elif isinstance(value, str):
            found.append({"key": name, "value": {"stringValue": value}})
    return found


def _state(span: dict[str, Any], failed: bool, error: str | None) -> None:
    span["status"] = {"code": _ERROR, "message": error or "failed"} if failed else {"code": _OK}


def _counts(usage: Mapping[str, Any]) -> dict[str, Any]:
    """Token counts as attributes. Anthropic counts what its caches hold beside the input."""
    flat = {_SAME.get(name, _CACHES.get(name, name)): count for name, count in usage.items()}
    for details in _DETAILS:
        flat.update(as_dict(usage.get(details)))
    if "prompt_tokens" not in usage and isinstance(flat.get("prompt_tokens"), int):
        flat["prompt_tokens"] += sum(usage[name] for name in _CACHES if isinstance(usage.get(name), int))
    return {
        attribute: count
        for name, attributes in _TOKENS.items()
        if isinstance(count := flat.get(name), int)
        for attribute in attributes
    }


def _nanoseconds(seconds: float) -> str:
    return str(round(seconds * 1e9))
