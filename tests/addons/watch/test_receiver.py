"""The HTTP side of the receiver, on loopback: what it takes, what it refuses, and how it holds senders off."""

from __future__ import annotations

import contextlib
import gzip
import http.client
import json
import random
import socket
import threading
import time
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from agentunit.addons.watch.collector._http_body import decompress_message
from agentunit.addons.watch.collector.receiver import Receiver
from agentunit.addons.watch.collector.recorder import TraceRecorder
from agentunit.addons.watch.collector.request import grpc_failure
from agentunit.addons.watch.collector.request_limits import (
    MemoryBudget,
    ReceiverLimits,
    RefusedRequest,
    Reservation,
    receiver_limits,
)
from agentunit.addons.watch.collector.spool import Outgoing, SpanSpool
from agentunit.installation import install_command
from agentunit.traces.limits import LimitExceeded
from agentunit.traces.otlp.stored_requests import PACKAGES
from agentunit.traces.spans import Span

JSON = {"Content-Type": "application/json"}
PROTOBUF = {"Content-Type": "application/x-protobuf"}
HEAD = b"POST /v1/traces HTTP/1.1\r\nContent-Type: application/json\r\n"
TRACE = "0af7651916cd43dd8448eb211c80319c"
# No test waits for these to pass; each that is about time sets its own.
LIMITS = ReceiverLimits(request_bytes=1 << 20, under_way_bytes=2 << 20)


class Running:
    def __init__(self, out: Path, limits: ReceiverLimits) -> None:
        self.reported: list[str] = []
        self.spool = SpanSpool(out)
        self.receiver = Receiver(self.spool, port=0, limits=limits, report=self.reported.append)
        self.receiver.start()
        self.port = int(self.receiver.address.rsplit(":", 1)[1])

    def post(
        self, path: str, body: bytes | Iterator[bytes], headers: dict[str, str]
    ) -> tuple[int, dict[str, str], bytes]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
        with contextlib.closing(connection):
            connection.request("POST", path, body, headers)
            response = connection.getresponse()
            return response.status, {name.lower(): value for name, value in response.getheaders()}, response.read()

    def spans(self) -> list[Span]:
        forever = float("inf")
        traces = self.spool.due(rooted_before=forever, rootless_before=forever, most=99)
        return [span for trace_id in traces for span in self.spool.trace(trace_id).spans]


@pytest.fixture
def run(tmp_path: Path) -> Iterator[Callable[..., Running]]:
    with contextlib.ExitStack() as stack:

        def start(limits: ReceiverLimits = LIMITS) -> Running:
            running = Running(tmp_path, limits)
            stack.callback(running.spool.close)
            stack.callback(running.receiver.stop)
            return running

        yield start


def eventually(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.005)


def span(number: int = 1, **fields: object) -> dict[str, object]:
    return {"traceId": TRACE, "spanId": f"{number:016x}", "name": f"step {number}", **fields}


def request(*spans: object) -> bytes:
    return json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": list(spans)}]}]}).encode()


def logs(*records: object) -> bytes:
    return json.dumps({"resourceLogs": [{"scopeLogs": [{"logRecords": list(records)}]}]}).encode()


def message_of(headers: dict[str, str], body: bytes) -> str:
    """The message of a ``google.rpc.Status``."""
    if headers["content-type"] == JSON["Content-Type"]:
        return str(json.loads(body)["message"])
    from google.rpc.status_pb2 import Status

    return str(Status.FromString(body).message)


def exporter_of(running: Running, **options: object):
    http_exporter = pytest.importorskip("opentelemetry.exporter.otlp.proto.http.trace_exporter")
    return http_exporter.OTLPSpanExporter(endpoint=f"{running.receiver.address}/v1/traces", **options)


def sdk_spans(count: int = 3):
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    memory, provider = InMemorySpanExporter(), TracerProvider(resource=Resource({"service.name": "desk"}))
    provider.add_span_processor(SimpleSpanProcessor(memory))
    with provider.get_tracer("tests").start_as_current_span("root"):
        for number in range(count - 1):
            with provider.get_tracer("tests").start_as_current_span(f"step {number}", attributes={"n": number}):
                pass
    return memory.get_finished_spans()


@pytest.mark.parametrize("compression", ["NoCompression", "Gzip", "Deflate"])
def test_spans_of_the_real_exporter_arrive(run, compression):
    running = run()
    pytest.importorskip("opentelemetry.exporter.otlp.proto.http")
    from opentelemetry.exporter.otlp.proto.http import Compression

    exporter = exporter_of(running, compression=Compression[compression])
    sent = sdk_spans(3)
    assert exporter.export(sent).name == "SUCCESS"
    assert exporter.export(sent).name == "SUCCESS"  # as after an answer that was lost
    exporter.shutdown()
    found = running.spans()
    assert [each.name for each in found] == ["step 0", "step 1", "root"]
    assert {each.span_id for each in found} == {f"{each.context.span_id:016x}" for each in sent}
    assert [each.parent_id for each in found] == [found[2].span_id, found[2].span_id, None]
    assert [each.attributes for each in found] == [{"n": 0}, {"n": 1}, {}]
    assert found[0].resource["service.name"] == "desk"
    assert (running.receiver.counts.spans, running.receiver.counts.repeated_spans) == (3, 3)


def test_messages_of_the_real_log_exporter_join_their_spans(run):
    logs_exporter = pytest.importorskip("opentelemetry.exporter.otlp.proto.http._log_exporter")
    from opentelemetry._logs import LogRecord
    from opentelemetry.sdk._logs import LoggerProvider
    from opentelemetry.sdk._logs.export import SimpleLogRecordProcessor
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor

    running = run()
    provider, tracing = LoggerProvider(), TracerProvider()
    exporter = logs_exporter.OTLPLogExporter(endpoint=f"{running.receiver.address}/v1/logs")
    provider.add_log_record_processor(SimpleLogRecordProcessor(exporter))
    tracing.add_span_processor(SimpleSpanProcessor(exporter_of(running)))
    with tracing.get_tracer("tests").start_as_current_span("chat"):
        record = LogRecord(event_name="gen_ai.user.message", body={"content": "Where is it?"}, timestamp=10**9)
        provider.get_logger("tests").emit(record)
    provider.shutdown()
    tracing.shutdown()
    (event,) = running.spans()[0].events
    assert (event.name, event.timestamp) == ("gen_ai.user.message", 1.0)
    assert event.attributes["body"] == {"content": "Where is it?"}


def test_json_plain_compressed_and_chunked(run):
    running = run()
    bodies = {
        "plain": (request(span(1)), JSON),
        "charset": (request(span(2)), {"Content-Type": "application/json; charset=utf-8"}),
        "gzip": (gzip.compress(request(span(3))), {**JSON, "Content-Encoding": "gzip"}),
        "two gzips": (
            gzip.compress(request(span(4))[:20]) + gzip.compress(request(span(4))[20:]),
            {**JSON, "Content-Encoding": "gzip"},
        ),
        "chunked": (iter([request(span(5))[:7], request(span(5))[7:]]), JSON),
        "chunked gzip": (iter([gzip.compress(request(span(6)))]), {**JSON, "Content-Encoding": "gzip"}),
        "much, compressed": (
            gzip.compress(request(span(7, attributes=[{"key": "x", "value": {"stringValue": "y" * 500_000}}]))),
            {**JSON, "Content-Encoding": "gzip"},
        ),
        "empty": (b"{}", JSON),
    }
    for name, (body, headers) in bodies.items():
        status, answered, answer = running.post("/v1/traces", body, headers)
        assert (name, status, answer) == (name, 200, b"{}")
        assert answered["content-type"] == "application/json"
    assert [each.span_id[-1] for each in running.spans()] == list("1234567")


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Host": "rebound.example:4318"}, 403),
        ({"Host": "localhost:1"}, 200),
        ({"Host": "[::1]:4318"}, 200),
        ({"Host": "127.0.0.1.example"}, 403),
        ({"Host": "localhost:1", "Origin": "http://localhost:1"}, 200),
        ({"Origin": "http://127.0.0.1:3000"}, 403),
        ({"Origin": "null"}, 403),
    ],
)
def test_a_page_in_a_browser_cannot_send(run, headers, status):
    running = run()
    assert running.post("/v1/traces", request(span()), {**JSON, **headers})[0] == status
    assert len(running.spans()) == (status == 200)


def many_messages(kind: str, count: int) -> tuple[dict[str, str], bytes]:
    def field(number: int, data: bytes) -> bytes:
        length = len(data)
        size = bytearray()
        while length > 127:
            size.append(length & 127 | 128)
            length >>= 7
        return bytes([number << 3 | 2, *size, length]) + data

    ids = field(1, b"\1" * 16) + field(2, b"\2" * 8)
    bodies = {
        "resources": b"\x0a\0" * count,
        "spans": field(1, field(2, field(2, ids) * count)),
        "attributes": field(1, field(2, field(2, ids + b"\x4a\0" * count))),
        "unknown fields": b"\x08\1" * count,
        "objects": b'{"resourceSpans":[' + b"{}," * count + b"{}]}",
        "nulls": b'{"resourceSpans":[' + b"null," * count + b"null]}",
        "names": b"{" + b'"long name":1,' * count + b'"a":1}',
        "documents": b"{}\n" * count,
    }
    return JSON if bodies[kind].startswith(b"{") else PROTOBUF, bodies[kind]


@pytest.mark.parametrize(
    "kind", ["resources", "spans", "attributes", "unknown fields", "objects", "nulls", "names", "documents"]
)
def test_a_small_request_of_very_many_messages_is_refused_before_they_are_read(run, kind):
    pytest.importorskip("opentelemetry.proto")
    running = run(ReceiverLimits())
    headers, body = many_messages(kind, 1_100_000)
    started_s = time.process_time()
    status, answer_headers, answer = running.post(
        "/v1/traces", gzip.compress(body, 1), {**headers, "Content-Encoding": "gzip"}
    )
    assert (status, time.process_time() - started_s < 5) == (413, True)
    assert "messages" in message_of(answer_headers, answer)
    assert running.spans() == []


def test_a_long_text_that_holds_json_is_taken(run):
    running = run(ReceiverLimits())
    text = json.dumps({"order": 17, "state": "on its way"}) * 300_000
    attributes = [{"key": "input.value", "value": {"stringValue": text}}]
    assert running.post("/v1/traces", request(span(attributes=attributes)), JSON)[0] == 200


def test_one_connection_serves_many_requests(run):
    running = run()
    with contextlib.closing(http.client.HTTPConnection("127.0.0.1", running.port, timeout=10)) as connection:
        for number in range(1, 4):
            connection.request("POST", "/v1/traces", request(span(number)), JSON)
            assert connection.getresponse().read() == b"{}"
        connection.request("GET", "/health")
        health = json.loads(connection.getresponse().read())
    assert (health["status"], health["spans"], health["requests"]) == ("ok", 3, 3)


REFUSED = {
    "no JSON": ("/v1/traces", b"{", JSON, 400),
    "JSON of another kind": ("/v1/traces", b"[1, 2]", JSON, 400),
    "half a request": ("/v1/traces", request(span())[:-20], JSON, 400),
    "no protobuf": ("/v1/traces", b"\x0a\xff\xff\xff\xff", PROTOBUF, 400),
    "not gzip": ("/v1/traces", b"{}", {**JSON, "Content-Encoding": "gzip"}, 400),
    "half a gzip": ("/v1/traces", gzip.compress(request(span()))[:-9], {**JSON, "Content-Encoding": "gzip"}, 400),
    "another compression": ("/v1/traces", b"{}", {**JSON, "Content-Encoding": "br"}, 415),
    "another type": ("/v1/traces", b"{}", {"Content-Type": "text/plain"}, 415),
    "no type": ("/v1/traces", b"{}", {}, 415),
    "another place": ("/v1/profiles", b"{}", JSON, 404),
    "protobuf at another place": ("/", b"", PROTOBUF, 404),
    "too large": ("/v1/traces", b" " * (LIMITS.request_bytes + 1), JSON, 413),
    "a bomb": ("/v1/traces", gzip.compress(b" " * (50 << 20)), {**JSON, "Content-Encoding": "gzip"}, 413),
    "another bomb": ("/v1/logs", zlib.compress(bytes(9 << 20)), {**PROTOBUF, "Content-Encoding": "deflate"}, 413),
    "a length that is none": ("/v1/traces", b"", {**JSON, "Content-Length": "-5"}, 400),
    "two lengths": ("/v1/traces", b"", {**JSON, "Content-Length": "5", "Transfer-Encoding": "chunked"}, 400),
    "many tiny gzips": ("/v1/traces", gzip.compress(b"") * 1001, {**JSON, "Content-Encoding": "gzip"}, 400),
    "another coding": ("/v1/traces", b"", {**JSON, "Transfer-Encoding": "gzip"}, 400),
    "a chunk without size": ("/v1/traces", b"zz\r\n", {**JSON, "Transfer-Encoding": "chunked"}, 400),
    "a chunk too large": ("/v1/traces", b"ffffffff\r\n", {**JSON, "Transfer-Encoding": "chunked"}, 413),
    "a chunk too long": ("/v1/traces", b"1\r\n{}\r\n0\r\n\r\n", {**JSON, "Transfer-Encoding": "chunked"}, 400),
}  # fmt: skip


@pytest.mark.parametrize(("path", "body", "headers", "status"), REFUSED.values(), ids=REFUSED.keys())
def test_what_is_refused_is_not_to_be_sent_again(run, path, body, headers, status):
    running = run()
    found, answered, answer = running.post(path, body, headers)
    assert found == status
    expected_type = headers.get("Content-Type", "") if headers in (JSON, PROTOBUF) else answered["content-type"]
    assert answered["content-type"] == expected_type
    assert message_of(answered, answer)
    assert "retry-after" not in answered
    assert running.receiver.counts.refused == 1
    assert [line.startswith(f"a request was refused ({status}): ") for line in running.reported] == [True]
    assert running.spans() == []
    assert running.post("/v1/traces", request(span()), JSON)[0] == 200


def test_a_part_that_cannot_be_read_does_not_cost_the_rest(run):
    running = run()
    bodies = [request(span(1), {"name": "no ids"}, span(2)), request({"name": "no ids"}, span(3))]
    for body in bodies:
        status, _, answer = running.post("/v1/traces", body, JSON)
        partial = json.loads(answer)["partialSuccess"]
        assert (status, partial["rejectedSpans"]) == (200, "1")
        assert partial["errorMessage"]
    assert [each.name for each in running.spans()] == ["step 1", "step 2", "step 3"]
    assert running.receiver.counts.unreadable == 2
    assert len(running.reported) == 1


def test_log_records_outside_of_any_trace_are_rejected_by_number(run):
    running = run()
    other, kept = {"body": {"stringValue": "started"}}, {**span(1), "eventName": "gen_ai.choice"}
    for body in (logs(other, kept), logs(other)):
        status, _, answer = running.post("/v1/logs", body, JSON)
        assert (status, json.loads(answer)["partialSuccess"]["rejectedLogRecords"]) == (200, "1")
    assert (running.receiver.counts.other_logs, running.receiver.counts.unreadable) == (2, 0)
    running.post("/v1/traces", request(span(1)), JSON)
    assert len(running.spans()[0].events) == 1


def test_metrics_are_answered_and_dropped_which_is_reported_once(run):
    running = run()
    for _ in range(2):
        assert running.post("/v1/metrics", b"anything", PROTOBUF)[::2] == (200, b"")
    assert running.post("/v1/metrics", b"{}", JSON)[::2] == (200, b"{}")
    assert running.reported == ["metrics are answered and dropped (OTEL_METRICS_EXPORTER=none stops them)"]
    assert running.receiver.counts.dropped_metrics == 3


def test_protobuf_without_its_package(run, monkeypatch):
    running = run()
    monkeypatch.setattr("agentunit.addons.watch.collector._http_endpoint.protobuf_installed", lambda: False)
    status, answered, answer = running.post("/v1/traces", b"", PROTOBUF)
    assert status == 415
    assert install_command("collect") in message_of(answered, answer)
    assert running.post("/v1/traces", request(span()), JSON)[0] == 200


def test_without_room_senders_are_held_off_before_their_body_is_read(run):
    running = run()
    with Reservation(running.receiver.memory) as reservation:
        reservation.grow_to(LIMITS.under_way_bytes - 10)
        with socket.create_connection(("127.0.0.1", running.port), timeout=10) as sender:
            sender.sendall(HEAD + b"Content-Length: 99\r\n\r\n")
            answer = sender.recv(65536)
        assert answer.startswith(b"HTTP/1.1 503 ")
        assert b"\r\nRetry-After: 1\r\n" in answer
        assert running.post("/v1/traces", iter([request(span())]), JSON)[0] == 503
    assert running.receiver.counts.busy == 2
    assert running.post("/v1/traces", request(span()), JSON)[0] == 200


def test_continue_is_sent_only_where_there_is_room(run):
    running = run()
    head = HEAD + b"Expect: 100-continue\r\nContent-Length: "
    with socket.create_connection(("127.0.0.1", running.port), timeout=10) as sender:
        sender.sendall(head + b"%d\r\n\r\n" % len(request(span())))
        assert sender.recv(65536) == b"HTTP/1.1 100 Continue\r\n\r\n"
        sender.sendall(request(span()))
        assert sender.recv(65536).startswith(b"HTTP/1.1 200 ")
    with socket.create_connection(("127.0.0.1", running.port), timeout=10) as sender:
        sender.sendall(head + b"99999999\r\n\r\n")
        assert sender.recv(65536).startswith(b"HTTP/1.1 413 ")


def test_the_real_exporter_tries_again_until_there_is_room(run):
    running = run()
    exporter = exporter_of(running)
    results: list[str] = []
    with Reservation(running.receiver.memory) as reservation:
        reservation.grow_to(LIMITS.under_way_bytes)
        threads = [
            threading.Thread(target=lambda: results.append(exporter.export(sdk_spans(4)).name)) for _ in range(3)
        ]
        for thread in threads:
            thread.start()
        eventually(lambda: running.receiver.counts.busy >= 3)
        assert running.spans() == []
    for thread in threads:
        thread.join()
    exporter.shutdown()
    assert results == ["SUCCESS"] * 3
    assert len(running.spans()) == 12


@pytest.mark.parametrize("pace_s", [None, 0.02], ids=["stalled", "dripping"])
@pytest.mark.parametrize(
    ("part", "connections"),
    [(HEAD[:12], 1), (HEAD + b"Content-Length: 2097152\r\n\r\n{", 9)],
    ids=["the one connection", "all the room"],
)
def test_a_slow_sender_does_not_hold_a_place_for_ever(run, part, connections, pace_s):
    running = run(ReceiverLimits(under_way_bytes=2 << 20, calls=connections, stall_s=0.2, request_s=0.3))
    with contextlib.closing(_sender_in_the_way(running, part)) as slow:
        with contextlib.suppress(OSError):
            while pace_s is not None:
                slow.sendall(b"x")
                time.sleep(pace_s)
        eventually(lambda: _state(running)[0] == 200)
    assert running.spans()


def _sender_in_the_way(running: Running, part: bytes) -> socket.socket:
    """A sender for whose sake another was turned away; on a busy machine one may have been ended before that."""
    for _ in range(60):
        slow = socket.create_connection(("127.0.0.1", running.port), timeout=10)
        slow.sendall(part)
        if _state(running)[0] == 503:
            return slow
        slow.close()
    raise AssertionError("nobody was turned away")


def _state(running: Running) -> tuple[int, bytes]:
    try:
        return running.post("/v1/traces", request(span()), JSON)[::2]
    except (ConnectionError, http.client.HTTPException):
        return 503, b""


def test_a_full_disk_is_reported_and_nothing_is_acknowledged(run):
    running = run()
    running.post("/v1/traces", request(span(1)), JSON)
    running.spool._connection.execute("PRAGMA max_page_count = 1")
    large = request(span(2, attributes=[{"key": "x", "value": {"stringValue": "y" * 99_999}}]))
    for _ in range(2):
        status, answered, answer = running.post("/v1/traces", large, JSON)
        assert (status, answered["retry-after"]) == (503, "5")
        assert "database or disk is full" in message_of(answered, answer)
    assert len(running.reported) == 1
    assert "senders were asked to try again" in running.reported[0]
    running.spool._connection.execute("PRAGMA max_page_count = 1000000")
    assert running.post("/v1/traces", large, JSON)[0] == 200
    assert len(running.spans()) == 2


def test_stopping_answers_what_is_under_way_and_closes_the_rest(run):
    running = run()
    with (
        socket.create_connection(("127.0.0.1", running.port), timeout=10) as idle,
        socket.create_connection(("127.0.0.1", running.port), timeout=10) as sender,
    ):
        body = request(span())
        sender.sendall(HEAD + b"Content-Length: %d\r\n\r\n" % len(body) + body[:5])
        eventually(lambda: running.receiver.counts.requests == 1)
        stopping = threading.Thread(target=running.receiver.stop)
        stopping.start()
        eventually(lambda: running.receiver.stopping)
        sender.sendall(body[5:])
        answer = sender.recv(65536)
        assert answer.startswith(b"HTTP/1.1 200 ")
        assert b"Connection: close" in answer
        assert idle.recv(10) == b""
        stopping.join()
    assert len(running.spans()) == 1


@pytest.mark.parametrize("host", ["127.0.0.1", "::1", "localhost"])
def test_where_it_listens_is_an_address_that_works(tmp_path, host):
    if host == "::1" and not socket.has_ipv6:
        pytest.skip("no IPv6 here")
    with SpanSpool(tmp_path) as spool:
        try:
            receiver = Receiver(spool, host=host, port=0)
        except OSError as error:
            pytest.skip(f"{host} cannot be used here: {error}")
        receiver.start()
        address = receiver.address.removeprefix("http://")
        with contextlib.closing(http.client.HTTPConnection(address, timeout=10)) as connection:
            for path, status in (("/health", 200), ("/", 404)):
                connection.request("GET", path)
                response = connection.getresponse()
                assert (path, response.status, bool(response.read())) == (path, status, True)
        receiver.stop()


PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes((0, 0, 0, 4, 0, 0, 0, 0, 0))


def test_a_grpc_exporter_at_the_http_port_is_told_where_to_go_once(run):
    running = run()
    running.receiver.grpc_problem = "gRPC cannot be read here: install it"
    for _ in range(2):
        with socket.create_connection(("127.0.0.1", running.port), timeout=10) as sender:
            sender.sendall(PREFACE)
            sender.shutdown(socket.SHUT_WR)
            answer = b"".join(iter(lambda: sender.recv(65536), b""))
        settings, goaway = answer[:9], answer[9:]
        assert settings == bytes((0, 0, 0, 4, 0, 0, 0, 0, 0))
        assert (goaway[3], goaway[16]) == (7, 13)  # GOAWAY, HTTP_1_1_REQUIRED
        assert int.from_bytes(goaway[:3], "big") == len(goaway) - 9
        assert b"gRPC cannot be read here: install it" in goaway
    assert len(running.reported) == 1
    assert "OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf" in running.reported[0]
    assert (running.receiver.counts.unserved_grpc, running.receiver.counts.requests) == (2, 0)


def test_a_sender_that_speaks_tls_is_reported(run):
    running = run()
    with socket.create_connection(("127.0.0.1", running.port), timeout=10) as sender:
        sender.sendall(b"\x16\x03\x01\x02\x00\x01")
        with contextlib.suppress(ConnectionError):
            assert sender.recv(10) == b""
    assert "a sender uses TLS" in running.reported[0]
    assert "OTEL_EXPORTER_OTLP_INSECURE=true" in running.reported[0]


def test_a_taken_grpc_port_does_not_stop_http(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as taken, SpanSpool(tmp_path) as spool:
        receiver = Receiver(spool, port=0, grpc_port=taken.getsockname()[1])
        receiver.start()
        assert receiver.grpc_address is None
        assert receiver.grpc_problem
        with contextlib.closing(http.client.HTTPConnection(receiver.address[7:], timeout=10)) as connection:
            connection.request("GET", "/health")
            assert connection.getresponse().status == 200
        receiver.stop()


def test_a_full_spool_holds_senders_off_and_names_the_variable(run):
    running = run()
    running.spool.max_bytes = 100_000
    large = {"attributes": [{"key": "x", "value": {"stringValue": "y" * 90_000}}]}
    assert running.post("/v1/traces", request(span(1, **large)), JSON)[0] == 200
    assert running.spool.is_nearly_full()
    status, answered, answer = running.post("/v1/traces", request(span(2)), JSON)
    assert (status, answered["retry-after"]) == (503, "5")
    assert "AGENTUNIT_MAX_SPOOL_MB raises this limit" in message_of(answered, answer)
    recorder = TraceRecorder(running.spool.folder.parent, running.spool, quiet_s=0, report=running.reported.append)
    recorder.write_all()
    recorder.write_due()
    assert "spans of written traces are removed" in running.reported[-1]
    assert running.post("/v1/traces", request(span(2)), JSON)[0] == 200


def test_what_is_forwarded_waits_in_the_spool_as_it_came(run):
    running = run()
    running.receiver.forwarding = "masked"
    spans, other = request(span()), logs({"body": {"stringValue": "started"}})
    assert running.post("/v1/traces", gzip.compress(spans), {**JSON, "Content-Encoding": "gzip"})[0] == 200
    # A log record that is no use here is accepted: it goes on.
    assert running.post("/v1/logs", other, JSON)[::2] == (200, b"{}")
    assert running.post("/v1/metrics", b"anything", PROTOBUF)[::2] == (200, b"")
    assert running.post("/v1/traces", b"{", JSON)[0] == 400
    assert [each for signal in PACKAGES for _, each in running.spool.outgoing(9, signal)] == [
        Outgoing("traces", JSON["Content-Type"], spans, True),
        Outgoing("logs", JSON["Content-Type"], other, True),
        Outgoing("metrics", PROTOBUF["Content-Type"], b"anything", True),
    ]
    assert running.receiver.counts.dropped_metrics == 0


def test_limits_come_from_the_environment(monkeypatch):
    monkeypatch.setenv("AGENTUNIT_MAX_REQUEST_MB", "2")
    monkeypatch.setenv("AGENTUNIT_MAX_UNDER_WAY_MB", "none")
    limits = receiver_limits()
    assert (limits.request_bytes, limits.under_way_bytes, limits.spool_bytes) == (2 << 20, float("inf"), 4 << 30)
    with Reservation(MemoryBudget(limits.under_way_bytes)) as reservation:
        reservation.grow_to(1 << 60)
    monkeypatch.setenv("AGENTUNIT_MAX_SPOOL_MB", "much")
    with pytest.raises(LimitExceeded, match="AGENTUNIT_MAX_SPOOL_MB must be a number above 0, or none"):
        receiver_limits()


def test_memory_that_was_given_back_is_there_again():
    budget = MemoryBudget(100)
    with Reservation(budget) as first, Reservation(budget) as second:
        first.grow_to(80)
        with pytest.raises(RefusedRequest, match="AGENTUNIT_MAX_UNDER_WAY_MB"):
            second.grow_to(30)
        first.shrink_to(50)
        second.grow_to(50)
    with Reservation(budget) as third:
        third.grow_to(100)


@pytest.mark.parametrize("compress", [gzip.compress, zlib.compress, bytes])
def test_a_grpc_message_is_decompressed_within_limits(compress):
    message = b"\x0a\x05" + b"x" * 5000
    with Reservation(MemoryBudget(1 << 20)) as reservation:
        assert decompress_message(compress(message), reservation, 1 << 20) == message
        if compress is not bytes:
            with pytest.raises(RefusedRequest, match="also when decompressed"):
                decompress_message(compress(bytes(2 << 20)), reservation, 1 << 20)


def test_the_details_of_a_failed_call_say_when_to_try_again():
    details = dict(grpc_failure(14, "full", 5))
    # RetryInfo { retry_delay { seconds: 5 } }
    assert details["google.rpc.retryinfo-bin"] == b"\x0a\x02\x08\x05"
    assert details["grpc-status-details-bin"].startswith(b"\x08\x0e\x12\x04full\x1a")
    assert details["grpc-status-details-bin"].endswith(b"google.rpc.RetryInfo\x12\x04\x0a\x02\x08\x05")
    assert grpc_failure(3, "no", None) == ()


def test_a_message_of_many_gzip_members_is_refused_soon():
    member = gzip.compress(b"ab")
    with Reservation(MemoryBudget(1 << 30)) as reservation:
        assert decompress_message(member * 1000, reservation, 1 << 26) == b"ab" * 1000
        with pytest.raises(RefusedRequest, match="more than 1,000 parts"):
            decompress_message(member * 1001, reservation, 1 << 26)


def test_a_long_message_is_decompressed_over_its_pieces():
    message = random.Random(3).randbytes(1 << 18)
    with Reservation(MemoryBudget(1 << 30)) as reservation:
        assert decompress_message(gzip.compress(message) * 2, reservation, 1 << 26) == message * 2
