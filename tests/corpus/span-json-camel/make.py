"""Write the scenario's spans (``../scenario.py``, ``../spans.py``) as Amazon CloudWatch keeps them in ``aws/spans``.

There is no SDK that writes it: this follows the structure of a span in the developer guide of Amazon Bedrock AgentCore
("Understanding input spans"), whose spans are those of that log group. Each event is one span with the names of OTLP,
but attributes are objects, times are numbers, and kind and status are words.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any


def logged(span: Any) -> dict[str, Any]:
    return {
        "resource": {"attributes": dict(span.resource.attributes)},
        "scope": {"name": span.instrumentation_scope.name, "version": span.instrumentation_scope.version or ""},
        "traceId": f"{span.context.trace_id:032x}",
        "spanId": f"{span.context.span_id:016x}",
        **({"parentSpanId": f"{span.parent.span_id:016x}"} if span.parent else {}),
        "flags": 256,
        "name": span.name,
        "kind": span.kind.name,
        "startTimeUnixNano": span.start_time,
        "endTimeUnixNano": span.end_time,
        "durationNano": span.end_time - span.start_time,
        "attributes": dict(span.attributes),
        "events": [
            {"timeUnixNano": event.timestamp, "name": event.name, "attributes": dict(event.attributes)}
            for event in span.events
        ],
        "status": {"code": span.status.status_code.name, "message": span.status.description or ""},
    }


def main() -> None:
    sys.path.append(str(Path(__file__).resolve().parents[1]))
    from spans import recorded_spans, without_paths

    lines = "".join(json.dumps(logged(span)) + "\n" for span in recorded_spans())
    Path(__file__).with_name("cloudwatch.jsonl").write_text(without_paths(lines), encoding="utf-8")


if __name__ == "__main__":
    main()
