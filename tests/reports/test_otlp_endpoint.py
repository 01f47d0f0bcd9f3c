from __future__ import annotations

import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
from click.testing import CliRunner
from kept_records import add_record

import agentunit
from agentunit.cli.main import cli
from agentunit.datasets.demo import demo_records
from agentunit.store.sqlite import Store

pytest.importorskip("opentelemetry.exporter.otlp.proto.http")


@pytest.fixture
def store_path(tmp_path: Path) -> str:
    path = str(tmp_path / "runs.db")
    with Store(path) as store:
        run = store.create_run("desk", agentunit_version="1", settings={"metrics": ["cost"]})
        records = list(demo_records())[:5]
        for position, (record, case) in enumerate(zip(records, agentunit.score(records, ["cost"]), strict=True)):
            add_record(store, run.id, position, 0, record, failed=False, elapsed_s=0.1)
            store.add_scores(run.id, position, 0, case.scores)
    return path


def test_scores_reach_the_collector_that_was_named(store_path: str) -> None:
    from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest

    bodies: list[tuple[str, bytes]] = []

    class Collector(BaseHTTPRequestHandler):
        def do_POST(self) -> None:  # the standard library's name
            bodies.append((self.path, self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *arguments: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Collector) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        endpoint = f"http://127.0.0.1:{server.server_port}/v1/logs"
        result = CliRunner().invoke(cli, ["export", "last", "--to", endpoint, "--store", store_path])
        server.shutdown()
    assert result.exit_code == 0, result.output
    assert "6 events" in result.output
    events = []
    for path, body in bodies:
        assert path == "/v1/logs"
        request = ExportLogsServiceRequest.FromString(body)
        for resource in request.resource_logs:
            for scope in resource.scope_logs:
                events += list(scope.log_records)
    assert [event.event_name for event in events] == ["gen_ai.evaluation.result"] * 5 + ["agentunit.run.decision"]
    names = {each.key: each.value.string_value for each in events[0].attributes}
    assert names["gen_ai.evaluation.name"] == "cost"
    assert names["agentunit.case.id"] == "desk-001"


def test_a_collector_that_is_not_there_is_one_line(store_path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from opentelemetry.exporter.otlp.proto.http import _log_exporter

    # The exporter tries again for as long as its time-out allows; one try is enough to see the message.
    monkeypatch.setattr(_log_exporter.OTLPLogExporter, "export", lambda self, batch: _Failed)
    result = CliRunner().invoke(cli, ["export", "last", "--to", "http://127.0.0.1:9/v1/logs", "--store", store_path])
    assert result.exit_code == 3
    assert "is a collector listening there?" in result.stderr


class _Failed:
    name = "FAILURE"
