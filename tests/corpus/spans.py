"""The scenario's run as spans of the OpenTelemetry SDK (1.45.2), for the makers of all formats that hold spans.

The model calls are recorded by openinference-instrumentation-openai 0.1.66; the agent's span and its tools' are made
with openinference-instrumentation 0.1.72, whose decorators frameworks use as well.
"""

from __future__ import annotations

import contextlib
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any


def recorded_spans(exporter: Any = None) -> list[Any]:
    """Run the scenario and return its finished spans, oldest first; they also go to the exporter."""
    sys.path.append(str(Path(__file__).resolve().parent))
    import scenario
    from openai import OpenAI
    from openinference.instrumentation import OITracer, TraceConfig
    from openinference.instrumentation.openai import OpenAIInstrumentor
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
    from opentelemetry.trace import StatusCode

    memory = InMemorySpanExporter()
    provider = TracerProvider(resource=Resource({"service.name": "support-desk"}))
    provider.add_span_processor(SimpleSpanProcessor(memory))
    OpenAIInstrumentor().instrument(tracer_provider=provider)
    tracer = OITracer(provider.get_tracer("support_desk", "1.0"), TraceConfig())

    @contextlib.contextmanager
    def tool_span(name: str, arguments: dict[str, Any], call_id: str) -> Iterator[Any]:
        with tracer.start_as_current_span(name, openinference_span_kind="tool") as span:
            span.set_tool(name=name, parameters=json.dumps(arguments))
            span.set_input(arguments)
            span.set_attribute("tool_call.id", call_id)
            yield span.set_output
            span.set_status(StatusCode.OK)

    with scenario.scripted_model() as server:
        client = OpenAI(base_url=server.base_url, api_key="none", max_retries=0)
        with tracer.start_as_current_span("support run", openinference_span_kind="agent") as span:
            span.set_attribute("agent.name", scenario.AGENT)
            span.set_input(scenario.QUESTION)
            answer = scenario.run_agent(client, tool_span)
            span.set_output(answer)
            span.set_status(StatusCode.OK)
    assert answer == scenario.ANSWER
    OpenAIInstrumentor().uninstrument()
    spans = sorted(memory.get_finished_spans(), key=lambda each: each.start_time)
    if exporter is not None:
        exporter.export(spans)
        exporter.shutdown()
    return spans


def without_paths(text: str) -> str:
    """The text without the paths of this machine in stack traces."""
    sys.path.append(str(Path(__file__).resolve().parents[1] / "frameworks"))
    from otlp_dump import MACHINE_PATH

    return MACHINE_PATH.sub("", text)
