"""Logfire: spans of logfire 5.2.0 (PyPI), as rows under the column names of its query API (``/v1/query``).

The service makes the rows, so they are written here after its published table ``records``; ``rows.json`` is the answer
with ``json_rows``, ``columns.json`` the one without.
"""

import json
from contextlib import suppress
from datetime import datetime, timezone
from pathlib import Path

import logfire
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

exporter = InMemorySpanExporter()
logfire.configure(
    send_to_logfire=False,
    console=False,
    additional_span_processors=[SimpleSpanProcessor(exporter)],
    service_name="shop",
)
ANSWER = "The second charge is refunded by a supervisor."


def said(role, *parts):
    return [{"role": role, "parts": list(parts)}]


def model(n_in, n_out, cached, *parts):
    asked = said("user", {"type": "text", "content": "Why was I charged twice?"})
    counts = {"gen_ai.usage.input_tokens": n_in, "gen_ai.usage.output_tokens": n_out}
    counts["gen_ai.usage.details.cache_read_tokens"] = cached
    fields = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "gpt-4.1-mini", **counts}
    with logfire.span("chat gpt-4.1-mini", **fields) as span:
        span.set_attribute("gen_ai.input.messages", asked)
        span.set_attribute("gen_ai.output.messages", said("assistant", *parts))


def tool(name, call_id, arguments, result):
    fields = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": name, "gen_ai.tool.call.id": call_id}
    fields["gen_ai.tool.call.arguments"] = arguments
    with logfire.span("running tool", **fields) as span:
        if isinstance(result, Exception):
            raise result
        span.set_attribute("gen_ai.tool.call.result", result)


with logfire.span("agent run", **{"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "support"}):
    model(211, 17, 0, {"type": "tool_call", "id": "c1", "name": "lookup", "arguments": {"order": "A-1"}})
    tool("lookup", "c1", '{"order": "A-1"}', "ch_1, ch_2")
    with suppress(ValueError):
        tool("refund", "c2", '{"charge": "ch_2"}', ValueError("refunds need a supervisor"))
    model(352, 31, 256, {"type": "text", "content": ANSWER})


def moment(nanoseconds):
    return datetime.fromtimestamp(nanoseconds / 1e9, timezone.utc).isoformat()


def row(span):
    kept = {k: v for k, v in span.attributes.items() if k.startswith("gen_ai.")}
    attributes = {k: json.loads(v) if isinstance(v, str) and v.startswith("[") else v for k, v in kept.items()}
    events = []
    for each in span.events:
        fields = {key: value for key, value in each.attributes.items() if "stack" not in key}
        events.append({"event_name": each.name, "event_timestamp": moment(each.timestamp), "attributes": fields})
    return {
        "start_timestamp": moment(span.start_time),
        "end_timestamp": moment(span.end_time),
        "duration": (span.end_time - span.start_time) / 1e9,
        "trace_id": f"{span.context.trace_id:032x}",
        "span_id": f"{span.context.span_id:016x}",
        "parent_span_id": f"{span.parent.span_id:016x}" if span.parent else None,
        "kind": "span",
        "level": 9,
        "span_name": span.attributes.get("logfire.msg_template", span.name),
        "message": span.attributes.get("logfire.msg"),
        "is_exception": bool(events),
        "otel_status_code": span.status.status_code.name if span.status.status_code.value else None,
        "otel_status_message": span.status.description,
        "otel_scope_name": span.instrumentation_scope.name,
        "service_name": span.resource.attributes["service.name"],
        "otel_resource_attributes": {"service.name": span.resource.attributes["service.name"]},
        "attributes": attributes,
        "otel_events": events,
    }


rows = [row(span) for span in exporter.get_finished_spans() if span.attributes.get("logfire.span_type") == "span"]
here = Path(__file__).parent
names = [{"name": name, "nullable": True, "datatype": "Utf8"} for name in rows[0]]
(here / "rows.json").write_text(json.dumps({"columns": names, "rows": rows}, indent=1) + "\n")
columns = [{**each, "values": [row[each["name"]] for row in rows]} for each in names]
(here / "columns.json").write_text(json.dumps({"columns": columns}, indent=1) + "\n")
