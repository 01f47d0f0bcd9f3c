"""Forwarding: what waits in the spool reaches a backend, whatever the backend does meanwhile."""

from __future__ import annotations

import contextlib
import json
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from agentunit.addons.watch.collector import forward
from agentunit.addons.watch.collector.forward import Forwarder, parse_backend
from agentunit.addons.watch.collector.spool import Outgoing, SpanSpool
from agentunit.privacy.detectors import detector_named
from agentunit.privacy.findings import PII_TYPES
from agentunit.privacy.masked_spans import masked_texts
from agentunit.privacy.pseudonyms import Pseudonyms
from agentunit.privacy.redaction import Redactor
from agentunit.traces.otlp.masked_requests import mask_request

JSON, PROTOBUF = "application/json", "application/x-protobuf"


class FakeBackend(ThreadingHTTPServer):
    """Answers with the statuses of ``plan``, then with 200; keeps what it accepted."""

    daemon_threads = True

    def __init__(self, *plan: tuple[int, dict[str, str]]) -> None:
        self.plan = list(plan)
        self.accepted: list[tuple[str, str | None, bytes]] = []
        self.missing: dict[str, int] = {}
        self.headers: list[dict[str, str]] = []
        self.lock = threading.Lock()
        super().__init__(("127.0.0.1", 0), _Handler)
        threading.Thread(target=self.serve_forever, args=(0.01,), daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class _Handler(BaseHTTPRequestHandler):
    server: FakeBackend
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        with self.server.lock:
            status, headers = self.server.plan.pop(0) if self.server.plan else (200, {})
            status = self.server.missing.get(self.path, status)
            self.server.headers.append(dict(self.headers))
            if status == 200:
                self.server.accepted.append((self.path, self.headers["Content-Type"], body))
        self.send_response(status)
        for name, value in {"Content-Length": "2", **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(b"{}")

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def backend() -> Iterator[Callable[..., FakeBackend]]:
    with contextlib.ExitStack() as stack:

        def start(*plan: tuple[int, dict[str, str]]) -> FakeBackend:
            server = FakeBackend(*plan)
            stack.callback(server.server_close)
            stack.callback(server.shutdown)
            return server

        yield start


@pytest.fixture(autouse=True)
def _short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forward, "_FIRST_PAUSE_S", 0.01)
    monkeypatch.setattr(forward, "_LONGEST_PAUSE_S", 0.02)
    monkeypatch.setattr(forward, "_LOOK_EVERY_S", 0.01)


def unmasked(texts):
    return [text for _, text in texts]


class Sending:
    def __init__(self, spool: SpanSpool, url: str, headers: str = "", mask=unmasked, masks_all: bool = False) -> None:
        self.reported: list[str] = []
        self.spool = spool
        backend = parse_backend(url, headers)
        self.forwarder = Forwarder(spool, backend, mask=mask, masks_all=masks_all, report=self.reported.append)
        self.forwarder.start()

    def until_empty(self) -> Sending:
        deadline = time.monotonic() + 20
        while self.spool.n_outgoing():
            assert time.monotonic() < deadline, self.reported
            time.sleep(0.005)
        self.forwarder.stop()
        return self


def put(spool: SpanSpool, *bodies: bytes, **fields: object) -> None:
    for body in bodies:
        spool.add([], forward=Outgoing("traces", JSON, body, **fields))


def test_everything_arrives_as_it_came_each_at_its_path(tmp_path, backend):
    server = backend()
    with SpanSpool(tmp_path) as spool:
        requests = [
            Outgoing("traces", JSON, b"{}"),
            Outgoing("logs", PROTOBUF, b"\x0a\x00"),
            Outgoing("metrics", JSON, b"[]"),
        ]
        for request in requests:
            spool.add([], forward=request)
        sending = Sending(spool, f"{server.url}/otlp/", "api-key=a%20b").until_empty()
    assert sorted(server.accepted) == sorted(
        (f"/otlp/v1/{each.signal}", each.media_type, each.body) for each in requests
    )
    assert {headers["api-key"] for headers in server.headers} == {"a b"}
    assert (sending.forwarder.counts.sent, sending.reported) == (3, [])


def test_a_backend_that_is_down_misses_nothing_also_over_a_restart(tmp_path, backend):
    server = backend()
    server.shutdown()
    server.server_close()
    bodies = [b'{"n": %d}' % number for number in range(9)]
    with SpanSpool(tmp_path) as spool:
        put(spool, *bodies[:5])
        sending = Sending(spool, server.url)
        while sending.forwarder.trouble is None:
            time.sleep(0.005)
        sending.forwarder.stop()
        assert sending.reported == [
            f"forwarding to {server.url} waits, and is tried again: cannot connect: connection refused"
        ]
        assert spool.n_outgoing() == 5
    away = [(503, {"Retry-After": "0"}), (429, {}), (502, {}), (401, {}), (403, {})]
    second = backend(*away)
    with SpanSpool(tmp_path) as spool:
        put(spool, *bodies[5:])
        sending = Sending(spool, second.url).until_empty()
    assert sorted(body for _, _, body in second.accepted) == bodies
    assert sending.forwarder.counts.sent == 9
    assert sending.reported[-1] == f"forwarding to {second.url} continues"


@pytest.mark.parametrize(("status", "n_times"), [(400, 1), (413, 1), (415, 1), (418, 1), (500, forward._MOST_TRIES)])
def test_what_the_backend_will_never_take_does_not_hold_up_the_rest(tmp_path, backend, monkeypatch, status, n_times):
    monkeypatch.setattr(forward, "_AT_ONCE", 1)
    server = backend(*[(status, {})] * n_times)
    with SpanSpool(tmp_path) as spool:
        put(spool, b"bad", b"good")
        sending = Sending(spool, server.url).until_empty()
    assert [body for _, _, body in server.accepted] == [b"good"]
    assert (sending.forwarder.counts.sent, sending.forwarder.counts.refused) == (1, 1)
    assert any(f"is not sent again: it answers {status}" in line for line in sending.reported)


@pytest.mark.parametrize("status", [404, 405, 501])
def test_a_signal_that_the_backend_has_no_place_for_is_dropped_and_counted(tmp_path, backend, status):
    server = backend()
    server.missing["/v1/metrics"] = status
    with SpanSpool(tmp_path) as spool:
        for _ in range(5):
            spool.add([], forward=Outgoing("metrics", JSON, b"{}"))
        put(spool, b"{}")
        sending = Sending(spool, server.url).until_empty()
    assert [path for path, _, _ in server.accepted] == ["/v1/traces"]
    counts = sending.forwarder.counts
    assert (counts.sent, counts.refused, counts.not_served) == (1, 0, {"metrics": 5})
    assert len(sending.reported) == 1
    assert f"takes no metrics, which are dropped and counted: it answers {status}" in sending.reported[0]


def test_trouble_with_one_signal_holds_up_no_other(tmp_path, backend):
    server = backend()
    server.missing["/v1/metrics"] = 503
    with SpanSpool(tmp_path) as spool:
        for _ in range(5):
            spool.add([], forward=Outgoing("metrics", JSON, b"{}"))
        put(spool, b"1", b"2")
        sending = Sending(spool, server.url)
        while len(server.accepted) < 2 or sending.forwarder.trouble is None:
            time.sleep(0.005)
        sending.forwarder.stop()
        assert [request.signal for _, request in spool.outgoing(9, "metrics")] == ["metrics"] * 5
        assert spool.outgoing(9, "traces") == []


def test_a_request_that_cannot_leave_the_spool_is_not_sent_on_and_on(tmp_path, backend, monkeypatch):
    monkeypatch.setattr(forward, "_FIRST_PAUSE_S", 30.0)
    monkeypatch.setattr(forward, "_LONGEST_PAUSE_S", 60.0)
    server = backend()
    with SpanSpool(tmp_path) as spool:
        put(spool, b"{}")
        spool._connection.execute(
            "CREATE TRIGGER full BEFORE DELETE ON outgoing BEGIN SELECT raise(ABORT, 'full'); END"
        )
        sending = Sending(spool, server.url)
        while sending.forwarder.trouble is None and len(server.accepted) < 9:
            time.sleep(0.005)
        sending.forwarder.stop()
        assert (len(server.accepted), sending.forwarder.counts.sent, spool.n_outgoing()) == (1, 0, 1)
    assert len(sending.reported) == 1


def test_a_redirect_is_not_followed(tmp_path, backend):
    other = backend()
    server = backend((307, {"Location": f"{other.url}/v1/traces"}))
    with SpanSpool(tmp_path) as spool:
        put(spool, b"{}")
        sending = Sending(spool, server.url, "authorization=secret").until_empty()
    assert other.headers == []
    assert "a redirect to" in sending.reported[0]
    assert "secret" not in "".join(sending.reported)


def test_only_what_came_to_be_masked_is_masked_and_nothing_else_is_sent_of_it(tmp_path, backend):
    server = backend()
    body = json.dumps({"resourceSpans": [{"key": "email", "value": {"stringValue": "mia"}}]}).encode()
    with SpanSpool(tmp_path) as spool:
        put(spool, body)
        put(spool, body, b"no JSON", is_masked=True)
        sending = Sending(spool, server.url, mask=lambda texts: ["<X>" for _ in texts]).until_empty()
    assert sorted(each for _, _, each in server.accepted) == sorted(
        [body.replace(b": ", b":").replace(b", ", b",").replace(b"mia", b"<X>"), body]
    )
    assert sending.forwarder.counts.refused == 1
    assert "it cannot be masked" in sending.reported[0]


def test_with_masking_what_came_before_to_be_sent_as_it_is_is_masked_too(tmp_path, backend):
    server = backend()
    body = json.dumps({"resourceSpans": [{"key": "email", "value": {"stringValue": "mia"}}]}).encode()
    with SpanSpool(tmp_path) as spool:
        put(spool, body)
        Sending(spool, server.url, mask=lambda texts: ["<X>" for _ in texts], masks_all=True).until_empty()
    ((_, _, sent),) = server.accepted
    assert b"<X>" in sent
    assert b"mia" not in sent


PERSONAL_NUMBERS = {"ssn": 536221234, "customer.phone": 4155552671, "credit_card_number": 4111111111111111}
OTHER_NUMBERS = {"gen_ai.usage.input_tokens": 536, "order": 4111111111111112}


def mask_by_patterns():
    redactor = Redactor(detector_named("patterns", "test"), PII_TYPES, Pseudonyms("salt"))
    return masked_texts(redactor)


@pytest.mark.parametrize("written", [int, str])
def test_whole_numbers_of_json_are_masked_where_their_attribute_is_personal(written):
    numbers = {**PERSONAL_NUMBERS, **OTHER_NUMBERS}
    attributes = [{"key": key, "value": {"intValue": written(value)}} for key, value in numbers.items()]
    attributes.append({"key": "user.phone", "value": {"doubleValue": 4155552671.0}})
    body = json.dumps({"resourceSpans": [{"resource": {"attributes": attributes}}]}).encode()
    masked = json.loads(mask_request("traces", JSON, body, mask_by_patterns()))
    values = {each["key"]: each["value"] for each in masked["resourceSpans"][0]["resource"]["attributes"]}
    for key in (*PERSONAL_NUMBERS, "user.phone"):
        ((kind, text),) = values[key].items()
        assert (kind, text[0]) == ("stringValue", "<"), key
    for key, value in OTHER_NUMBERS.items():
        assert values[key] == {"intValue": written(value)}


def test_whole_numbers_of_protobuf_are_masked_where_their_attribute_is_personal():
    pytest.importorskip("opentelemetry.proto")
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

    sent = ExportTraceServiceRequest()
    resource = sent.resource_spans.add().resource
    for key, value in {**PERSONAL_NUMBERS, **OTHER_NUMBERS}.items():
        resource.attributes.add(key=key).value.int_value = value
    body = mask_request("traces", PROTOBUF, sent.SerializeToString(), mask_by_patterns())
    masked = ExportTraceServiceRequest.FromString(body).resource_spans[0].resource
    kinds = {each.key: each.value.WhichOneof("value") for each in masked.attributes}
    assert kinds == {**dict.fromkeys(PERSONAL_NUMBERS, "string_value"), **dict.fromkeys(OTHER_NUMBERS, "int_value")}


def hide(texts):
    return [text.replace("mia", f"<{field or '-'}>") if isinstance(text, str) else text for field, text in texts]


def test_texts_of_json_are_masked_and_the_rest_stays():
    attributes = [
        {"key": "user", "value": {"stringValue": "mia"}},
        {"key": "all", "value": {"arrayValue": {"values": [{"stringValue": "mia"}, {"intValue": "5"}]}}},
    ]
    span = {"traceId": "mia", "name": "ask mia", "attributes": attributes, "status": {"message": "mia failed"}}
    content = {"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]}
    masked = json.loads(mask_request("traces", JSON, json.dumps(content).encode(), hide))
    (found,) = masked["resourceSpans"][0]["scopeSpans"][0]["spans"]
    assert found["name"] == "ask <->"
    assert found["status"] == {"message": "<-> failed"}
    assert found["attributes"][0] == {"key": "user", "value": {"stringValue": "<user>"}}
    assert found["attributes"][1]["value"]["arrayValue"]["values"] == [{"stringValue": "<all>"}, {"intValue": "5"}]
    assert found["traceId"] == "mia"


def test_texts_of_protobuf_are_masked_and_the_rest_stays():
    pytest.importorskip("opentelemetry.proto")
    from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest

    sent = ExportLogsServiceRequest()
    record = sent.resource_logs.add().scope_logs.add().log_records.add(trace_id=b"mia" * 5, event_name="mia")
    pair = record.body.kvlist_value.values.add(key="mia")
    pair.value.array_value.values.add(string_value="mia")
    masked = mask_request("logs", PROTOBUF, sent.SerializeToString(), hide)
    pair.value.array_value.values[0].string_value = "<mia>"
    record.event_name = "<->"
    assert ExportLogsServiceRequest.FromString(masked) == sent


def test_no_text_of_json_is_left_unmasked_however_it_is_spelled():
    attributes = [
        {"key": "a", "value": {"string_value": "mia", "bytesValue": "bWlh", "bytes_value": "bWlh"}},
        {"key": "b", "value": {"array_value": {"values": [{"stringValue": "mia"}, "mia"]}, "intValue": "mia"}},
    ]
    span = {"trace_id": "ab12", "trace_state": "u=mia", "eventName": "mia", "new": "mia", "kind": "SPAN_KIND_CLIENT"}
    other = {"traceState": "u=1", "startTimeUnixNano": "17", "severityText": "mia", "schema_url": "mia"}
    spans = [{**span, "attributes": attributes}, other]
    content = {"resource_spans": [{"scope_spans": [{"spans": spans}]}]}
    masked = mask_request("traces", JSON, json.dumps(content).encode(), hide)
    assert b"mia" not in masked
    assert b"bWlh" not in masked
    found, second = json.loads(masked)["resource_spans"][0]["scope_spans"][0]["spans"]
    assert (found["trace_id"], found["trace_state"], found["kind"]) == ("ab12", "", "SPAN_KIND_CLIENT")
    assert found["attributes"][0]["value"]["string_value"] == "<a>"
    assert (second["traceState"], second["startTimeUnixNano"]) == ("u=1", "17")


@pytest.mark.parametrize("body", [b'{"resourceSpans": [{"mia@example.com": 1}]}', b'["mia"]', b'"mia"'])
def test_json_whose_texts_cannot_all_be_masked_is_not_sent(tmp_path, backend, body):
    server = backend()
    with SpanSpool(tmp_path) as spool:
        put(spool, body, is_masked=True)
        sending = Sending(spool, server.url, mask=hide).until_empty()
    assert (server.accepted, sending.forwarder.counts.refused) == ([], 1)
    assert "it cannot be masked" in sending.reported[0]
    assert "mia" not in sending.reported[0]


def test_no_text_of_protobuf_is_left_unmasked():
    pytest.importorskip("opentelemetry.proto")
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

    sent = ExportTraceServiceRequest()
    resource = sent.resource_spans.add(schema_url="mia")
    span = resource.scope_spans.add().spans.add(trace_id=b"mia" * 5, trace_state="u=mia")
    span.attributes.add(key="a").value.bytes_value = b"mia"
    unknown = b"\xfa\x3f\x03mia"
    masked = ExportTraceServiceRequest.FromString(
        mask_request("traces", PROTOBUF, sent.SerializeToString() + unknown, hide)
    )
    assert b"mia" not in masked.SerializeToString().replace(b"mia" * 5, b"")
    assert masked.resource_spans[0].scope_spans[0].spans[0].trace_id == span.trace_id


def test_where_to_forward():
    backend = parse_backend("https://mia:pw@example.com/otlp/v1/traces", "a=b, c=d%2Ce")
    assert backend[:5] == ("example.com", 443, True, "/otlp", "https://example.com/otlp/v1/traces")
    assert backend.headers == {"a": "b", "c": "d,e", "Authorization": "Basic bWlhOnB3"}


@pytest.mark.parametrize(
    ("url", "headers", "message"),
    [
        ("grpc://127.0.0.1:4317", "", "name the backend's OTLP/HTTP port"),
        ("127.0.0.1:4318", "", "must be an address such as http://host:4318"),
        ("http://", "", "must be an address such as"),
        ("http://host:99999", "", "must be an address such as"),
        ("http://host/?a=b", "", "without a query"),
        ("http://host", "key", "must be name=value pairs"),
        ("http://host", "a=b%0D%0AHost: x", "must be name=value pairs"),
        ("http://host", "a b=c", "must be name=value pairs"),
    ],
)
def test_what_is_no_place_to_forward_to(url, headers, message):
    with pytest.raises(ValueError, match=message):
        parse_backend(url, headers)


@pytest.mark.parametrize(
    ("url", "headers"),
    [
        ("http://mia:geheim@host:99999", ""),
        ("http://mia:ge/heim@host:1", ""),
        ("ftp://mia:geheim@host", ""),
        ("http://host/?api_key=geheim", ""),
        ("http://host", "Bearer geheim"),
        ("http://host", "geheim%20key=x"),
    ],
)
def test_secrets_are_not_shown_when_a_place_is_refused(url, headers):
    with pytest.raises(ValueError, match="must be") as refused:
        parse_backend(url, headers)
    assert not any(part in str(refused.value) for part in ("mia", "ge/", "heim"))
