"""What happened in a trace, in order, each entry in one line with its time since the beginning."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from agentunit.core.records import Outcome, outcome_text
from agentunit.core.trace import AgentInteraction, ConflictEvent, HandoffEvent, TraceEvent, TraceLog, tool_status
from agentunit.metrics.inputs import InputProblem
from agentunit.metrics.usage import read_tokens
from agentunit.reports.printable import printable_line

_LABEL_LENGTH = 300
FAULTS = ("error", "failed", "failure", "timeout")
"""The statuses of an event that went wrong."""


class TimelineEntry(Struct, omit_defaults=True):
    """One thing that happened; ``offset_s`` counts from the first thing whose time is known."""

    kind: str
    label: str
    offset_s: float | None = None
    failed: bool = False


def timeline_of(trace: TraceLog) -> list[TimelineEntry]:
    """The events of a trace and what its agents did with each other, in order of time.

    What has no time stays behind what was recorded before it.

    >>> trace = TraceLog([TraceEvent("tool_call", {"name": "find", "status": "error", "error": "down"}, 12.5)])
    >>> [(entry.kind, entry.label, entry.offset_s, entry.failed) for entry in timeline_of(trace)]
    [('tool_call', 'find() → error: down', 0.0, True)]
    """
    happened = [(event.timestamp, entry_of_event(event)) for event in trace.events]
    happened += [(each.timestamp, _of_interaction(each)) for each in trace.interactions]
    happened += [(each.timestamp, _of_handoff(each)) for each in trace.handoffs]
    happened += [(each.timestamp, _of_conflict(each)) for each in trace.conflicts]
    times = [time for time, _ in happened if time is not None]
    start = min(times, default=0.0)
    latest = start
    keyed = []
    for time, entry in happened:
        # An entry without a time sorts where it stands; the sort is stable.
        latest = latest if time is None else time
        entry.offset_s = None if time is None else time - start
        keyed.append((latest, entry))
    return [entry for _, entry in sorted(keyed, key=lambda pair: pair[0])]


def entry_of_event(event: TraceEvent) -> TimelineEntry:
    """One event in one line, without its time."""
    payload = event.payload
    error = payload.get("error")
    status = tool_status(payload) if event.type == "tool_call" else payload.get("status")
    failed = bool(error) or status in FAULTS
    describe = _LABELS.get(event.type, _describe_any)
    return TimelineEntry(event.type, printable_line(describe(payload), _LABEL_LENGTH), failed=failed)


def _describe_tool_call(payload: dict[str, Any]) -> str:
    arguments = payload.get("arguments")
    if isinstance(arguments, dict):
        inside = ", ".join(f"{key}={short_json(value)}" for key, value in arguments.items())
    else:
        inside = "" if arguments is None else short_json(arguments)
    status = tool_status(payload)
    outcome = ": ".join(str(each) for each in (status, payload.get("error")) if each)
    return f"{payload.get('name') or '(unnamed)'}({inside})" + (f" → {outcome}" if outcome else "")


def _describe_llm_call(payload: dict[str, Any]) -> str:
    usage = payload.get("usage")
    parts = [str(payload[key]) for key in ("agent", "model") if payload.get(key)]
    try:
        tokens = read_tokens("usage", usage if isinstance(usage, dict) else payload)
    except InputProblem:
        tokens = None
    if tokens is not None and tokens.recorded:
        counts = ["?" if each is None else f"{each:,}" for each in (tokens.prompt, tokens.completion)]
        parts.append(f"{counts[0]} → {counts[1]} tokens")
    if payload.get("error"):
        parts.append(str(payload["error"]))
    return ", ".join(parts)


def _describe_message(payload: dict[str, Any]) -> str:
    content = payload.get("content")
    text = content if isinstance(content, str) else short_json(content)
    return f"{payload.get('role') or 'message'}: {text}"


def _describe_retrieval(payload: dict[str, Any]) -> str:
    documents = payload.get("documents")
    count = len(documents) if isinstance(documents, list) else 0 if documents is None else 1
    query = payload.get("query")
    return ("1 document" if count == 1 else f"{count} documents") + (f" for {short_json(query)}" if query else "")


def _describe_any(payload: dict[str, Any]) -> str:
    if len(payload) == 1:
        only = next(iter(payload.values()))
        return only if isinstance(only, str) else short_json(payload)
    return short_json(payload) if payload else ""


_LABELS = {
    "tool_call": _describe_tool_call,
    "llm_call": _describe_llm_call,
    "message": _describe_message,
    "retrieval": _describe_retrieval,
}


def _of_interaction(each: AgentInteraction) -> TimelineEntry:
    to = ", ".join(each.to_agent) if isinstance(each.to_agent, list) else each.to_agent
    content = (
        each.content if isinstance(each.content, str) else "" if each.content is None else short_json(each.content)
    )
    said = f": {content}" if content else ""
    label = f"{each.from_agent} → {to} ({each.message_type}){said}"
    return TimelineEntry(each.interaction_type, printable_line(label, _LABEL_LENGTH), failed=each.success is False)


def _of_handoff(each: HandoffEvent) -> TimelineEntry:
    reason = f": {each.reason}" if each.reason else ""
    label = f"{each.from_agent} → {each.to_agent}{reason}"
    return TimelineEntry("handoff", printable_line(label, _LABEL_LENGTH), failed=each.success is False)


def _of_conflict(each: ConflictEvent) -> TimelineEntry:
    said = f": {each.description}" if each.description else ""
    label = f"{', '.join(each.agents_involved)} ({each.conflict_type}){said}"
    return TimelineEntry("conflict", printable_line(label, _LABEL_LENGTH), failed=each.resolved is False)


def short_json(value: Any) -> str:
    """A value as compact JSON."""
    if isinstance(value, str):
        return f'"{value}"'
    return outcome_text(Outcome(output=value)) or str(value)
