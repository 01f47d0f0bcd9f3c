"""Write the scenario's spans (``../scenario.py``, ``../spans.py``) as the JSON that Jaeger's UI downloads.

There is no SDK that writes it: this follows the model of Jaeger's query service (internal/uimodel/model.go in its
source) and its translation of OpenTelemetry spans (kind, status and scope become tags, events become logs).
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any


def tag(key: str, value: Any) -> dict[str, Any]:
    kinds = {bool: "bool", int: "int64", float: "float64"}
    kind = kinds.get(type(value), "string")
    return {
        "key": key,
        "type": kind,
        "value": value if kind != "string" or isinstance(value, str) else json.dumps(value),
    }


def jaeger_span(span: Any) -> dict[str, Any]:
    trace_id = f"{span.context.trace_id:032x}"
    tags = [
        tag("otel.scope.name", span.instrumentation_scope.name),
        *map(tag, *zip(*span.attributes.items(), strict=True)),
    ]
    tags.append(tag("span.kind", span.kind.name.lower()))
    if span.status.status_code.name != "UNSET":
        tags.append(tag("otel.status_code", span.status.status_code.name))
    if span.status.status_code.name == "ERROR":
        tags += [tag("error", True), tag("otel.status_description", span.status.description)]
    parent = span.parent and {"refType": "CHILD_OF", "traceID": trace_id, "spanID": f"{span.parent.span_id:016x}"}
    return {
        "traceID": trace_id,
        "spanID": f"{span.context.span_id:016x}",
        "operationName": span.name,
        "references": [parent] if parent else [],
        "startTime": span.start_time // 1000,
        "duration": (span.end_time - span.start_time) // 1000,
        "tags": tags,
        "logs": [
            {
                "timestamp": event.timestamp // 1000,
                "fields": [tag("event", event.name), *(tag(key, value) for key, value in event.attributes.items())],
            }
            for event in span.events
        ],
        "processID": "p1",
        "warnings": None,
    }


def main() -> None:
    sys.path.append(str(Path(__file__).resolve().parents[1]))
    from spans import recorded_spans, without_paths

    spans = [jaeger_span(span) for span in recorded_spans()]
    trace = {
        "traceID": spans[0]["traceID"],
        "spans": spans,
        "processes": {"p1": {"serviceName": "support-desk", "tags": []}},
        "warnings": None,
    }
    text = json.dumps({"data": [trace], "total": 0, "limit": 0, "offset": 0, "errors": None}, indent=1)
    Path(__file__).with_name("support.json").write_text(without_paths(text) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
