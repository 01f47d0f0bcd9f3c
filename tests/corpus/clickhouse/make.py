"""Write the scenario's spans (``../scenario.py``, ``../spans.py``) as rows of ClickHouse's ``otel_traces``.

This follows the table that the collector's ClickHouse exporter creates (exporter/clickhouseexporter/internal/
sqltemplates/traces_table.sql in opentelemetry-collector-contrib: attributes are maps of texts, events are arrays side
by side) and what ``SELECT * FROM otel_traces FORMAT JSONEachRow`` prints of it (64-bit integers as texts, where
``output_format_json_quote_64bit_integers`` is on).
"""

from __future__ import annotations

import json
import sys
from datetime import datetime, timezone
from pathlib import Path
from typing import Any


def texts(attributes: Any) -> dict[str, str]:
    return {key: value if isinstance(value, str) else json.dumps(value) for key, value in attributes.items()}


def moment(nanoseconds: int) -> str:
    whole = datetime.fromtimestamp(nanoseconds // 10**9, timezone.utc)
    return f"{whole:%Y-%m-%d %H:%M:%S}.{nanoseconds % 10**9:09d}"


def row(span: Any) -> dict[str, Any]:
    return {
        "Timestamp": moment(span.start_time),
        "TraceId": f"{span.context.trace_id:032x}",
        "SpanId": f"{span.context.span_id:016x}",
        "ParentSpanId": f"{span.parent.span_id:016x}" if span.parent else "",
        "TraceState": "",
        "SpanName": span.name,
        "SpanKind": span.kind.name.capitalize(),
        "ServiceName": span.resource.attributes["service.name"],
        "ResourceAttributes": texts(span.resource.attributes),
        "ScopeName": span.instrumentation_scope.name,
        "ScopeVersion": span.instrumentation_scope.version or "",
        "SpanAttributes": texts(span.attributes),
        "Duration": str(span.end_time - span.start_time),
        "StatusCode": span.status.status_code.name.capitalize(),
        "StatusMessage": span.status.description or "",
        "Events.Timestamp": [moment(event.timestamp) for event in span.events],
        "Events.Name": [event.name for event in span.events],
        "Events.Attributes": [texts(event.attributes) for event in span.events],
        "Links.TraceId": [],
        "Links.SpanId": [],
        "Links.TraceState": [],
        "Links.Attributes": [],
    }


def main() -> None:
    sys.path.append(str(Path(__file__).resolve().parents[1]))
    from spans import recorded_spans, without_paths

    lines = "".join(json.dumps(row(span)) + "\n" for span in recorded_spans())
    Path(__file__).with_name("support.jsonl").write_text(without_paths(lines), encoding="utf-8")


if __name__ == "__main__":
    main()
