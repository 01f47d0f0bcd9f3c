"""A followed source in OpenTelemetry: events and metrics reach the endpoint that was named, and scoring never waits."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from click.testing import CliRunner
from followed_traces import record_line, span_line

from agentunit.cli.main import cli

pytest.importorskip("opentelemetry.exporter.otlp.proto.http")


@pytest.fixture
def endpoint() -> Iterator[tuple[str, list[tuple[str, bytes]]]]:
    bodies: list[tuple[str, bytes]] = []

    class Collector(BaseHTTPRequestHandler):
        def do_POST(self) -> None:  # the standard library's name
            bodies.append((self.path, self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *arguments: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Collector)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}", bodies
    server.shutdown()
    thread.join()
    server.server_close()


def write(folder: Path, name: str, *lines: str) -> None:
    path = folder / name
    path.write_text("".join(lines), encoding="utf-8")
    os.utime(path, (1_700_000_000.0, 1_700_000_000.0))


def test_events_and_metrics_reach_the_endpoint(endpoint, tmp_path, monkeypatch):
    from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
    from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest

    url, bodies = endpoint
    monkeypatch.chdir(tmp_path)
    (tmp_path / "in").mkdir()
    write(tmp_path / "in", "spans.jsonl", span_line(7, "agent", "search"))
    lines = (record_line(number, passed=number < 1_400, at=1.7e9 + number * 600) for number in range(1_500))
    write(tmp_path / "in", "records.jsonl", *lines)
    found = CliRunner().invoke(cli, ["score", "in", "--once", "--metrics", "tool_success", "--otlp", url])
    assert found.exit_code == 1, found.output
    events = [
        event
        for path, body in bodies
        if path == "/v1/logs"
        for resource in ExportLogsServiceRequest.FromString(body).resource_logs
        for scope in resource.scope_logs
        for event in scope.log_records
    ]
    names = [event.event_name for event in events]
    assert names.count("gen_ai.evaluation.result") == 1_501
    assert names.count("agentunit.drift") == 1
    of_span = [event for event in events if event.trace_id]
    assert [event.trace_id.hex() for event in of_span] == [f"{7:032x}"]
    attributes = {each.key: each.value for each in events[0].attributes}
    assert attributes["gen_ai.evaluation.name"].string_value == "tool_success"
    assert attributes["agentunit.score.status"].string_value == "ok"
    last = [body for path, body in bodies if path == "/v1/metrics"][-1]
    metrics = {
        metric.name: metric
        for resource in ExportMetricsServiceRequest.FromString(last).resource_metrics
        for scope in resource.scope_metrics
        for metric in scope.metrics
    }
    assert {"agentunit.traces", "agentunit.scores", "agentunit.score", "agentunit.drift.alerts"} <= set(metrics)
    (point,) = metrics["agentunit.scores"].sum.data_points
    assert point.as_int == 1_501
    assert sum(point.count for point in metrics["agentunit.score"].histogram.data_points) == 1_501
    assert "c1499" not in str(metrics)


def test_an_endpoint_that_is_not_there_loses_no_score(tmp_path, monkeypatch):
    # The exporters try again for some seconds; one failed try is what is tested.
    from opentelemetry.exporter.otlp.proto.http import _log_exporter, metric_exporter

    def refuse(self, *batch, **options):
        raise ConnectionError("nobody there")

    monkeypatch.setattr(_log_exporter.OTLPLogExporter, "export", refuse)
    monkeypatch.setattr(metric_exporter.OTLPMetricExporter, "export", refuse)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "in").mkdir()
    write(tmp_path / "in", "records.jsonl", *(record_line(number) for number in range(20)))
    arguments = ["score", "in", "--once", "--metrics", "tool_success", "--json", "--otlp", "http://127.0.0.1:9"]
    assert json.loads(CliRunner().invoke(cli, arguments).stdout)["counts"]["scored"] == 20


def test_nothing_is_sent_where_nobody_named_a_place(endpoint, tmp_path, monkeypatch):
    """Neither where an answer leads, nor by a proxy of the environment."""
    url, bodies = endpoint

    class Elsewhere(BaseHTTPRequestHandler):
        def do_POST(self) -> None:  # the standard library's name
            self.rfile.read(int(self.headers["Content-Length"]))
            self.send_response(307)
            self.send_header("Location", url + self.path)
            self.send_header("Content-Length", "0")
            self.end_headers()
            asked.append(self.path)

        def log_message(self, *arguments: object) -> None:
            pass

    asked: list[str] = []
    server = ThreadingHTTPServer(("127.0.0.1", 0), Elsewhere)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HTTP_PROXY", url)
    (tmp_path / "in").mkdir()
    write(tmp_path / "in", "records.jsonl", record_line(1))
    named = f"http://127.0.0.1:{server.server_port}"
    CliRunner().invoke(cli, ["score", "in", "--once", "--metrics", "tool_success", "--otlp", named])
    server.shutdown()
    thread.join()
    server.server_close()
    assert asked
    assert bodies == []
