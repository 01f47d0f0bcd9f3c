"""No agent framework: a loop of OpenAI chat completions with tools, traced by the instrumentations of the client.

Without a variant ``opentelemetry-instrumentation-openai-v2`` runs as it comes and keeps no contents;
``openai_v2_events`` has them in log records, ``openai_v2`` in the spans, by the newest conventions. ``genai_openai``
and ``genai_openai_events`` do the same with the package that follows it. ``traceloop`` and ``traceloop_old`` (before
0.50) are OpenLLMetry, ``openinference`` is OpenInference, ``logfire`` and ``logfire_v1`` (its older attributes) are
Logfire.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
from pathlib import Path
from typing import Any

QUESTION = "Why was I charged twice for order A-1042?"
ANSWER = "Order A-1042 was charged twice. The refund needs a supervisor, so I opened one for you."
MODEL = "gpt-4o-mini-2024-07-18"

REPLIES = [
    {
        "calls": [("lookup_order", {"order_id": "A-1042"}), ("list_charges", {"order_id": "A-1042"})],
        "usage": (211, 38, 0),
    },
    {"calls": [("refund", {"charge_id": "ch_2", "amount": 42.5})], "usage": (301, 27, 128)},
    {"text": ANSWER, "usage": (359, 31, 256)},
]

EXPECTED: dict[str, Any] = {
    "question": QUESTION,
    "answer": ANSWER,
    "tool_calls": [
        {
            "name": "lookup_order",
            "arguments": {"order_id": "A-1042"},
            "status": "success",
            "result": "Order A-1042: one desk lamp, 42.50 EUR, paid.",
        },
        {
            "name": "list_charges",
            "arguments": {"order_id": "A-1042"},
            "status": "success",
            "result": "ch_1: 42.50 EUR; ch_2: 42.50 EUR",
        },
        {"name": "refund", "arguments": {"charge_id": "ch_2", "amount": 42.5}, "status": "error"},
    ],
    "agents": [],
    "handoffs": [],
    "usage": {"prompt_tokens": 871, "completion_tokens": 96, "cached_tokens": 384},
    "models": [MODEL],
    "documents": [],
    "handoff_tools": [],
    "not_in_spans": {
        "": ["question", "answer", "tool_calls", "cached_tokens"],
        "openai_v2_events": ["question", "answer", "tool_calls", "cached_tokens"],
        "openai_v2": ["tool_error_status", "cached_tokens"],
        "genai_openai": ["tool_error_status"],
        "genai_openai_events": ["question", "answer", "tool_calls"],
        "traceloop": ["tool_error_status"],
        "traceloop_old": ["tool_error_status"],
        "openinference": ["tool_error_status"],
    },
}

_outer_span: Any = contextlib.nullcontext
_log_exporter: Any = None


def lookup_order(order_id: str) -> str:
    """Look an order up."""
    return f"Order {order_id}: one desk lamp, 42.50 EUR, paid."


def list_charges(order_id: str) -> str:
    """List the charges of an order."""
    return "ch_1: 42.50 EUR; ch_2: 42.50 EUR"


def refund(charge_id: str, amount: float) -> str:
    """Pay a charge back."""
    raise PermissionError(f"charge {charge_id} is locked")


def instrument(tracer_provider: Any, variant: str = "") -> None:
    """Trace the OpenAI client; the span around a whole run is the program's own."""
    global _outer_span
    tracer = tracer_provider.get_tracer("support-desk")
    _outer_span = lambda: tracer.start_as_current_span("answer question")  # noqa: E731
    if variant.startswith("logfire"):
        import logfire

        also = [tracer_provider._active_span_processor]
        logfire.configure(send_to_logfire=False, console=False, scrubbing=False, additional_span_processors=also)
        _outer_span = lambda: logfire.span("answer question")  # noqa: E731
        logfire.instrument_openai(version=1 if variant == "logfire_v1" else 2)
        return
    if variant == "openinference":
        from openinference.instrumentation.openai import OpenAIInstrumentor
    elif variant.startswith("traceloop"):
        from opentelemetry.instrumentation.openai import OpenAIInstrumentor
    elif variant.startswith("genai_openai"):
        from opentelemetry.instrumentation.genai.openai import OpenAIInstrumentor

        place = "event_only" if variant == "genai_openai_events" else "span_only"
        os.environ["OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"] = place
    else:
        from opentelemetry.instrumentation.openai_v2 import OpenAIInstrumentor

        if variant == "openai_v2_events":
            os.environ["OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"] = "true"
        elif variant == "openai_v2":
            os.environ["OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"] = "span_only"
            os.environ["OTEL_SEMCONV_STABILITY_OPT_IN"] = "gen_ai_latest_experimental"
    OpenAIInstrumentor().instrument(tracer_provider=tracer_provider, logger_provider=_logger_provider())


def _logger_provider() -> Any:
    global _log_exporter
    from opentelemetry.sdk._logs import LoggerProvider
    from opentelemetry.sdk._logs.export import InMemoryLogRecordExporter, SimpleLogRecordProcessor

    _log_exporter = InMemoryLogRecordExporter()
    provider = LoggerProvider()
    provider.add_log_record_processor(SimpleLogRecordProcessor(_log_exporter))
    return provider


def run(question: str) -> str:
    """Ask a scripted model on the loopback address, call the tools it wants, and return its final answer."""
    from openai import OpenAI
    from scripted_openai import ScriptedOpenAI

    tools = {function.__name__: function for function in (lookup_order, list_charges, refund)}
    schemas = [{"type": "function", "function": {"name": name, "description": tools[name].__doc__}} for name in tools]
    messages: list[Any] = [{"role": "system", "content": "You answer customers."}]
    messages.append({"role": "user", "content": question})
    with ScriptedOpenAI(REPLIES) as server, _outer_span():
        client = OpenAI(api_key="none", base_url=server.base_url)
        while True:
            message = client.chat.completions.create(model=MODEL, messages=messages, tools=schemas).choices[0].message
            if not message.tool_calls:
                return str(message.content)
            messages.append(message.model_dump(exclude_none=True))
            for call in message.tool_calls:
                try:
                    content = tools[call.function.name](**json.loads(call.function.arguments))
                except PermissionError as error:
                    content = f"Error: {error}"
                messages.append({"role": "tool", "tool_call_id": call.id, "content": content})


def write_logs(path: Path) -> None:
    """Write the log records of the run, if there are any, as one OTLP/JSON document."""
    from otlp_dump import _any_value, _attributes

    records = [
        {
            "timeUnixNano": str(record.timestamp or 0),
            "observedTimeUnixNano": str(record.observed_timestamp),
            "traceId": f"{record.trace_id:032x}",
            "spanId": f"{record.span_id:016x}",
            "eventName": record.event_name or "",
            "body": _any_value(record.body),
            "attributes": _attributes(record.attributes),
        }
        for record in (entry.log_record for entry in _log_exporter.get_finished_logs())
    ]
    if records:
        document = {"resourceLogs": [{"resource": {"attributes": []}, "scopeLogs": [{"logRecords": records}]}]}
        path.write_text(json.dumps(document, separators=(",", ":")) + "\n", encoding="utf-8")


if __name__ == "__main__":
    sys.path[0] = str(Path(__file__).resolve().parents[1])
    from otlp_dump import record_scenario

    record_scenario(sys.modules[__name__])
    if _log_exporter is not None:
        write_logs(Path(sys.argv[1]).with_suffix(".logs.json"))
