"""Spans of the OpenTelemetry SDK as all readers know them, and how those of one capture are written into a trace."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from msgspec import Struct, field

from agentunit.core.trace import TraceEvent, TraceLog
from agentunit.traces.spans import LONGEST_ATTRIBUTE, ReadingNotes, Span, SpanEvent, SpanStatus

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import ReadableSpan

_STATUSES: dict[str, SpanStatus] = {"OK": "ok", "ERROR": "error"}
_NOT_RECORDED = (
    "the TracerProvider records nothing: its sampler leaves this trace out, or OTEL_SDK_DISABLED is set to true"
)


class Captured(Struct):
    """The spans of one capture and what was noticed about them."""

    spans: list[Span] = field(default_factory=list)
    notes: ReadingNotes = field(default_factory=ReadingNotes)
    n_unattributed: int = 0
    is_recording: bool = True


def plain_span(span: ReadableSpan, case_ids: Collection[int], notes: ReadingNotes) -> Span:
    """A span of the SDK, ended or not. Spans right under the span of the case are roots: that one is our own."""
    context, parent = span.context, span.parent
    if context is None:
        raise ValueError("plain_span: span must have a context; received one without")
    is_root = parent is None or parent.span_id in case_ids
    service = span.resource.attributes.get("service.name") if span.resource is not None else None
    return Span(
        trace_id=f"{context.trace_id:032x}",
        span_id=f"{context.span_id:016x}",
        parent_id=None if is_root or parent is None else f"{parent.span_id:016x}",
        name=span.name,
        start_s=_seconds(span.start_time),
        end_s=_seconds(span.end_time),
        status=_STATUSES.get(span.status.status_code.name, "unset"),
        status_message=span.status.description or "",
        attributes=_plain_attributes(span.attributes, notes),
        events=[
            SpanEvent(event.name, _seconds(event.timestamp), _plain_attributes(event.attributes, notes))
            for event in span.events
        ],
        scope=span.instrumentation_scope.name if span.instrumentation_scope is not None else "",
        # What the SDK says when nobody named the service.
        resource={} if not service or str(service).startswith("unknown_service") else {"service.name": str(service)},
    )


def _seconds(nanoseconds: int | None) -> float | None:
    return None if nanoseconds is None else nanoseconds / 1e9


def _plain_attributes(attributes: Mapping[str, Any] | None, notes: ReadingNotes) -> dict[str, Any]:
    plain: dict[str, Any] = {}
    for name, value in (attributes or {}).items():
        if isinstance(value, str) and len(value) > LONGEST_ATTRIBUTE:
            notes.problems[f"attributes over {LONGEST_ATTRIBUTE >> 20} MiB were left out"] += 1
        else:
            plain[name] = _plain_value(value)
    return plain


def _plain_value(value: Any) -> Any:
    if value is None or isinstance(value, (str, bool, int, float)):
        return value
    if isinstance(value, Mapping):
        return {str(name): _plain_value(each) for name, each in value.items()}
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    return [_plain_value(each) for each in value] if isinstance(value, Iterable) else str(value)


def write_into(trace: TraceLog, captured: Captured) -> None:
    """Put spans into a trace as the events they stand for, in order of time with those that are there.

    What the trace says already, such as a total in its metadata, is not changed. ``trace.metadata["spans"]`` says how
    many were captured, which had not ended, and what else was noticed.
    """
    from agentunit.traces.assembly.record import assemble

    notes, spans = captured.notes, captured.spans
    try:
        record = assemble(spans, notes) if spans else None
        found = TraceLog() if record is None else record.trace
    except Exception as error:  # noqa: BLE001 - odd spans must not cost the case
        notes.problems[f"the spans cannot be put together ({type(error).__name__}: {error})"] += 1
        found = TraceLog()
    not_ended = {span.span_id: span.name for span in spans if span.end_s is None}
    for event in found.events:
        if event.payload.get("span_id") in not_ended:
            _mark_not_ended(event)
    # The run and the block measure their own time, which also holds what stands around the spans.
    found.metadata.pop("duration_s", None)
    trace.events = _in_order(trace.events, found.events)
    trace.metadata = {**found.metadata, **trace.metadata, "spans": _span_summary(captured, list(not_ended.values()))}
    trace.interactions = [*trace.interactions, *found.interactions]
    trace.handoffs = [*trace.handoffs, *found.handoffs]
    trace.agent_roles = {**found.agent_roles, **trace.agent_roles}


def _mark_not_ended(event: TraceEvent) -> None:
    event.payload["not_ended"] = True
    if event.payload.get("status") == "success":
        # Nothing failed, but nothing says that it came to a good end either.
        del event.payload["status"]


def _in_order(own: Iterable[TraceEvent], found: Iterable[TraceEvent]) -> list[TraceEvent]:
    """Both in order of time; an event without one stays behind the one that it was recorded after."""
    timed: list[tuple[float, TraceEvent]] = []
    for events in (own, found):
        latest = float("-inf")
        for event in events:
            # An agent may have put something else among its events; it is sorted out where they are written.
            at = getattr(event, "timestamp", None)
            latest = at if isinstance(at, float) else latest
            timed.append((latest, event))
    return [event for _, event in sorted(timed, key=lambda pair: pair[0])]


def _span_summary(captured: Captured, not_ended: list[str]) -> dict[str, Any]:
    problems = dict(captured.notes.problems)
    if not captured.is_recording:
        problems[_NOT_RECORDED] = 1
    said = {
        "captured": len(captured.spans),
        "not_ended": not_ended,
        "unattributed": captured.n_unattributed,
        "unplaced": dict(captured.notes.unplaced),
        "problems": problems,
    }
    return {name: value for name, value in said.items() if value or name == "captured"}
