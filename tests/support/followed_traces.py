"""Records and spans as production writes them, for tests of what follows them."""

from __future__ import annotations

import json
from typing import Any


def record_line(
    number: int, *, passed: bool = True, at: float | None = None, failed: bool = False, **metadata: Any
) -> str:
    """A record of one tool call, with its own trace id."""
    call = {"name": "search", "status": "success" if passed else "error"}
    event: dict[str, Any] = {"type": "tool_call", "payload": call}
    if at is not None:
        event["timestamp"] = at
    data = {
        "v": 1,
        "case": {"id": f"c{number}", "query": "Where?", "metadata": metadata},
        "trace": {"events": [event], "metadata": {"trace_id": f"t{number}"}},
        "outcome": {"success": not failed, "output": "Here."},
    }
    return json.dumps(data) + "\n"


def span_line(trace: int, *names: str, root: bool = True, first: int = 1) -> str:
    """A request of OTLP with spans of one trace; the first of a request with a root is the root."""
    trace_id = f"{trace:032x}"
    spans = []
    for number, name in enumerate(names, first):
        operation = "invoke_agent" if name == "agent" else "execute_tool"
        span = {
            "traceId": trace_id,
            "spanId": f"{number:016x}",
            "name": name,
            "startTimeUnixNano": str((1_700_000_000 + number) * 10**9),
            "endTimeUnixNano": str((1_700_000_001 + number) * 10**9),
            "attributes": [{"key": "gen_ai.operation.name", "value": {"stringValue": operation}}],
        }
        if not (root and number == first):
            span["parentSpanId"] = f"{1:016x}"
        spans.append(span)
    return json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]}) + "\n"
