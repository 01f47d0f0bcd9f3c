"""MLflow: agents and tools traced by ``mlflow.trace``, calls of the model by ``mlflow.openai.autolog``.

MLflow writes to the global provider, as it does when its traces are exported by OTLP.
"""

from __future__ import annotations

import os
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import support_desk as desk

EXPECTED = desk.expected(desk.TWO_AGENTS, ["triage", "billing"])


def instrument(tracer_provider: Any, variant: str = "") -> None:
    """Let MLflow share the global provider instead of having its own."""
    from opentelemetry import trace

    os.environ["MLFLOW_USE_DEFAULT_TRACER_PROVIDER"] = "false"
    sink = f"http://127.0.0.1:{_sink()}"
    os.environ["MLFLOW_TRACKING_URI"] = sink
    os.environ["OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"] = f"{sink}/v1/traces"
    os.environ["OTEL_EXPORTER_OTLP_TRACES_PROTOCOL"] = "http/protobuf"
    os.environ["MLFLOW_DISABLE_TELEMETRY"] = "true"
    trace.set_tracer_provider(tracer_provider)
    import mlflow.openai
    from mlflow.tracing.provider import provider

    mlflow.openai.autolog()
    # Otherwise MLflow does so with the first span, and scatters first runs that start at the same time.
    provider.get_or_init_tracer("mlflow.tracing.provider")


def _sink() -> int:
    """The port of a server that takes everything: without a place for its traces MLflow makes a database."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            return

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return int(server.server_port)


def run(question: str) -> str:
    """Ask the two agents one question and return the final answer."""
    import mlflow
    from scripted_openai import ScriptedOpenAI

    def traced(function: Any) -> Any:
        return mlflow.trace(function, name=function.__name__, span_type="TOOL")

    with ScriptedOpenAI(desk.TWO_AGENTS) as server:

        @mlflow.trace(span_type="AGENT")
        def billing(task: str) -> str:
            tools = [traced(desk.find_invoice), traced(desk.refund_payment)]
            return desk.ask_in_a_loop(server.base_url, "Settle questions about money.", task, tools)

        def transfer_to_billing(task: str) -> str:
            """Let the billing agent settle a task."""
            return str(billing(task))

        @mlflow.trace(span_type="AGENT")
        def triage(question: str) -> str:
            tools = [traced(desk.search_policy), traced(transfer_to_billing)]
            return desk.ask_in_a_loop(server.base_url, "Send the customer to the right desk.", question, tools)

        return str(triage(question))
