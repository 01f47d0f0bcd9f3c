"""Short ways to write spans and OTLP documents down in tests."""

from __future__ import annotations

import json
from typing import Any

from agentunit.core.records import Record
from agentunit.traces.assembly.record import assemble
from agentunit.traces.spans import ReadingNotes, Span

TRACE = "0af7651916cd43dd8448eb211c80319c"


def oi(kind: str, span_id: str, parent: str | None = None, at: float = 0.25, **rest: Any) -> Span:
    """A span in OpenInference; attributes are given with ``__`` for dots."""
    fields = {name: rest.pop(name) for name in ("name", "status", "status_message", "events") if name in rest}
    end = rest.pop("end", at + 1.0)
    attributes = {"openinference.span.kind": kind, **{key.replace("__", "."): value for key, value in rest.items()}}
    return Span(TRACE, span_id, parent, start_s=at, end_s=end, attributes=attributes, **fields)


def record_of(*spans: Span, notes: ReadingNotes | None = None) -> Record:
    record = assemble(spans, notes or ReadingNotes())
    assert record is not None
    return record


def payloads(record: Record, type: str) -> list[dict[str, Any]]:
    return [event.payload for event in record.trace.events if event.type == type]


def otlp(*spans: Span, scope: str = "test", one_line: bool = True) -> bytes:
    """An OTLP/JSON export request with these spans."""

    def value(each: Any) -> dict[str, Any]:
        if isinstance(each, bool):
            return {"boolValue": each}
        if isinstance(each, int):
            return {"intValue": str(each)}
        return {"doubleValue": each} if isinstance(each, float) else {"stringValue": each}

    rows = [
        {
            "traceId": span.trace_id,
            "spanId": span.span_id,
            **({"parentSpanId": span.parent_id} if span.parent_id else {}),
            "name": span.name,
            "startTimeUnixNano": str(int((span.start_s or 0) * 1e9)),
            "endTimeUnixNano": str(int((span.end_s or 0) * 1e9)),
            "attributes": [{"key": key, "value": value(each)} for key, each in span.attributes.items()],
            "status": {"code": 2, "message": span.status_message} if span.status == "error" else {},
        }
        for span in spans
    ]
    request = {"resourceSpans": [{"resource": {}, "scopeSpans": [{"scope": {"name": scope}, "spans": rows}]}]}
    return json.dumps(request, indent=None if one_line else 2).encode() + b"\n"
