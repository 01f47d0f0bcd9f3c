"""OTLP over gRPC with the exporters of the OpenTelemetry SDK: what arrives, what is refused, and what a kill costs."""

from __future__ import annotations

import contextlib
import gc
import gzip
import json
import signal
import socket
import subprocess
import sys
import threading
import time
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.optional
grpc = pytest.importorskip("grpc")
pytest.importorskip("opentelemetry.exporter.otlp.proto.grpc")

from opentelemetry.exporter.otlp.proto.grpc._log_exporter import OTLPLogExporter  # noqa: E402
from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter  # noqa: E402
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (  # noqa: E402
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from opentelemetry.sdk.trace import TracerProvider  # noqa: E402
from opentelemetry.sdk.trace.export import SimpleSpanProcessor  # noqa: E402
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter  # noqa: E402

from agentunit.addons.watch.collector.receiver import Receiver  # noqa: E402
from agentunit.addons.watch.collector.request_limits import ReceiverLimits, Reservation  # noqa: E402
from agentunit.addons.watch.collector.spool import SpanSpool  # noqa: E402
from agentunit.traces.spans import Span  # noqa: E402

LIMITS = ReceiverLimits(request_bytes=1 << 20, under_way_bytes=2 << 20)
SERVICE = "/opentelemetry.proto.collector.{0}.v1.{1}Service/Export"
# How long anything is waited for that must come: far longer than it takes anywhere.
PATIENCE_S = 120


class Running:
    def __init__(self, out: Path, limits: ReceiverLimits, token: str | None = None) -> None:
        self.reported: list[str] = []
        self.spool = SpanSpool(out)
        self.receiver = Receiver(
            self.spool, port=0, grpc_port=0, limits=limits, token=token, report=self.reported.append
        )
        assert self.receiver.grpc_address is not None, self.receiver.grpc_problem
        self.address = self.receiver.grpc_address
        self.receiver.start()

    def call(self, body: bytes, method: str = SERVICE.format("trace", "Trace"), **options: Any) -> Any:
        with grpc.insecure_channel(self.address.removeprefix("http://")) as channel:
            return channel.unary_unary(method)(body, timeout=PATIENCE_S, **options)

    def send(self, body: bytes) -> Any:
        """As exporters do: what is unavailable for the moment is sent again."""
        ends_at = time.monotonic() + PATIENCE_S
        while True:
            try:
                return self.call(body)
            except grpc.RpcError as error:
                if error.code().name != "UNAVAILABLE" or time.monotonic() > ends_at:
                    raise

    def refusal(self, body: bytes, **options: Any) -> Any:
        with pytest.raises(grpc.RpcError) as raised:
            self.call(body, **options)
        return raised.value

    def spans(self) -> list[Span]:
        forever = float("inf")
        traces = self.spool.due(rooted_before=forever, rootless_before=forever, most=999)
        return [span for trace_id in traces for span in self.spool.trace(trace_id).spans]


@pytest.fixture
def run(tmp_path: Path) -> Iterator[Callable[..., Running]]:
    with contextlib.ExitStack() as stack:

        def start(limits: ReceiverLimits = LIMITS, token: str | None = None) -> Running:
            running = Running(tmp_path, limits, token)
            stack.callback(running.spool.close)
            stack.callback(running.receiver.stop)
            return running

        yield start


def sdk_spans(count: int = 3) -> Any:
    memory, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(memory))
    tracer = provider.get_tracer("tests")
    with tracer.start_as_current_span("root"):
        for number in range(count - 1):
            tracer.start_span(f"step {number}", attributes={"n": number}).end()
    return memory.get_finished_spans()


def request(*names: str) -> bytes:
    message = ExportTraceServiceRequest()
    scope = message.resource_spans.add().scope_spans.add()
    for number, name in enumerate(names, 1):
        scope.spans.add(trace_id=bytes(15) + b"\1", span_id=number.to_bytes(8, "big"), name=name)
    return message.SerializeToString()


def test_with_a_token_only_who_knows_it_may_send(run):
    running = run(LIMITS, token="s3cret")
    for metadata in ((), (("authorization", "Bearer s3cre"),)):
        assert running.refusal(request("a"), metadata=metadata).code().name == "UNAUTHENTICATED"
    running.call(request("a"), metadata=(("authorization", "Bearer s3cret"),))
    assert len(running.spans()) == 1


@pytest.mark.parametrize("compression", ["NoCompression", "Gzip", "Deflate"])
def test_spans_of_the_real_exporter_arrive(run, compression):
    running = run()
    exporter = OTLPSpanExporter(running.address, insecure=True, compression=grpc.Compression[compression])
    sent = sdk_spans()
    for _ in range(2):  # the second time as after an answer that was lost
        assert exporter.export(sent).name == "SUCCESS"
    exporter.shutdown()
    assert {each.span_id for each in running.spans()} == {f"{each.context.span_id:016x}" for each in sent}
    counts = running.receiver.counts
    assert (counts.spans, counts.repeated_spans, counts.grpc_requests) == (3, 3, 2)


def test_messages_of_the_real_log_exporter_join_their_spans(run):
    from opentelemetry._logs import LogRecord
    from opentelemetry.sdk._logs import LoggerProvider
    from opentelemetry.sdk._logs.export import SimpleLogRecordProcessor

    running = run()
    logs, tracing = LoggerProvider(), TracerProvider()
    logs.add_log_record_processor(SimpleLogRecordProcessor(OTLPLogExporter(running.address, insecure=True)))
    tracing.add_span_processor(SimpleSpanProcessor(OTLPSpanExporter(running.address, insecure=True)))
    with tracing.get_tracer("tests").start_as_current_span("chat"):
        logs.get_logger("tests").emit(LogRecord(event_name="gen_ai.user.message", body="Where?", timestamp=10**9))
    logs.shutdown()
    tracing.shutdown()
    (span,) = running.spans()
    assert [event.name for event in span.events] == ["gen_ai.user.message"]


def test_metrics_are_answered_and_dropped_and_other_services_are_unknown(run):
    running = run()
    assert running.call(b"anything", SERVICE.format("metrics", "Metrics")) == b""
    assert running.receiver.counts.dropped_metrics == 1
    assert running.refusal(b"", method="/a.B/Export").code().name == "UNIMPLEMENTED"


def test_a_part_that_cannot_be_read_is_counted_in_the_answer(run):
    running = run()
    message = ExportTraceServiceRequest.FromString(request("kept", "without id"))
    message.resource_spans[0].scope_spans[0].spans[1].span_id = b""
    answer = ExportTraceServiceResponse.FromString(running.call(message.SerializeToString()))
    assert answer.partial_success.rejected_spans == 1
    assert [span.name for span in running.spans()] == ["kept"]


@pytest.mark.parametrize(
    ("body", "options", "code"),
    [
        (b"\x0a\xff", {}, "INVALID_ARGUMENT"),
        (bytes(2 << 20), {"compression": grpc.Compression.Gzip}, "INVALID_ARGUMENT"),
        (b"\x1f\x8b" + gzip.compress(b"x")[2:-4], {}, "INVALID_ARGUMENT"),
        (bytes(2 << 20), {}, "RESOURCE_EXHAUSTED"),
    ],
    ids=["no protobuf", "a bomb", "broken gzip", "too large"],
)
def test_what_is_refused_is_not_to_be_sent_again(run, body, options, code):
    running = run()
    refusal = running.refusal(body, **options)
    assert refusal.code().name == code
    assert not any(key.startswith(("grpc-status", "google")) for key, _ in refusal.trailing_metadata())
    assert running.call(request("after it")) == b""
    assert (running.receiver.counts.refused, len(running.spans())) == (1, 1)


def test_without_memory_senders_wait_and_are_asked_to_retry(run):
    from google.rpc.error_details_pb2 import RetryInfo
    from google.rpc.status_pb2 import Status

    running = run(ReceiverLimits(request_bytes=1 << 20, under_way_bytes=1 << 20, stall_s=0.1))
    with Reservation(running.receiver.memory) as reservation:
        reservation.grow_to(1000)
        refusal = running.refusal(request("a"))
        assert refusal.code().name == "UNAVAILABLE"
        details = dict(refusal.trailing_metadata())
        retry = RetryInfo()
        assert Status.FromString(details["grpc-status-details-bin"]).details[0].Unpack(retry)
        assert retry.retry_delay.seconds == 1
        assert RetryInfo.FromString(details["google.rpc.retryinfo-bin"]) == retry
    assert running.receiver.counts.busy == 1
    assert running.call(request("a")) == b""


def test_a_full_spool_is_unavailable_and_nothing_is_acknowledged(run):
    running = run()
    running.spool.max_bytes = 1
    refusal = running.refusal(request("a"))
    assert refusal.code().name == "UNAVAILABLE"
    assert "AGENTUNIT_MAX_SPOOL_MB" in refusal.details()
    assert dict(refusal.trailing_metadata())["google.rpc.retryinfo-bin"] == b"\x0a\x02\x08\x05"


def test_a_call_without_a_message_does_not_hold_memory_for_ever(run):
    running = run(ReceiverLimits(request_bytes=1 << 20, under_way_bytes=1 << 20, request_s=0.2))
    released = threading.Event()

    def nothing() -> Iterator[bytes]:
        released.wait(PATIENCE_S)
        yield b""

    with grpc.insecure_channel(running.address.removeprefix("http://")) as channel:
        silent = channel.stream_unary(SERVICE.format("trace", "Trace")).future(nothing(), timeout=PATIENCE_S)
        assert running.send(request("a")) == b""
        assert silent.exception(timeout=PATIENCE_S).code().name == "UNAVAILABLE"
        released.set()


def test_calls_without_a_message_give_way_to_those_that_wait_for_memory(run):
    running = run(ReceiverLimits(request_bytes=1 << 20, under_way_bytes=2 << 20, stall_s=0.5, request_s=2 * PATIENCE_S))
    released = threading.Event()

    def nothing() -> Iterator[bytes]:
        released.wait(PATIENCE_S)
        yield b""

    with grpc.insecure_channel(running.address.removeprefix("http://")) as channel:
        method = channel.stream_unary(SERVICE.format("trace", "Trace"))
        silent = [method.future(nothing(), timeout=PATIENCE_S) for _ in range(2)]
        gave_way = threading.Event()
        for each in silent:
            each.add_done_callback(lambda _: gave_way.set())
        deadline = time.monotonic() + PATIENCE_S
        while running.receiver.memory.change(1):
            running.receiver.memory.change(-1)
            assert time.monotonic() < deadline
            time.sleep(0.005)
        assert running.send(request("a")) == b""
        # Its own time is not up yet, so it is the other's need that ended it.
        assert gave_way.wait(PATIENCE_S)
        assert {each.exception().code().name for each in silent if each.done()} == {"UNAVAILABLE"}
        released.set()


def test_fifty_exporters_at_once_lose_nothing(run):
    running = run(ReceiverLimits(request_bytes=1 << 20, under_way_bytes=1 << 20))
    exporters = [OTLPSpanExporter(running.address, insecure=True, timeout=PATIENCE_S) for _ in range(50)]
    sent = [sdk_spans(20) for _ in exporters]
    results: list[str] = []
    threads = [
        threading.Thread(target=lambda pair: results.append(pair[0].export(pair[1]).name), args=(pair,))
        for pair in zip(exporters, sent, strict=True)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == ["SUCCESS"] * 50
    assert len({span.span_id for span in running.spans()}) == 1000


@pytest.mark.parametrize("body", [b"\x0a" + b"\xff" * 900_000, request("x" * 900_000)], ids=["refused", "accepted"])
def test_no_message_stays_in_memory(run, body):
    running = run()
    gc.disable()
    tracemalloc.start()
    try:
        for _ in range(5):
            with contextlib.suppress(grpc.RpcError):
                running.call(body)
        n_bytes, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
        gc.enable()
    assert n_bytes < 2_700_000


def test_a_taken_port_is_named_and_http_goes_on(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as taken, SpanSpool(tmp_path) as spool:
        port = taken.getsockname()[1]
        receiver = Receiver(spool, port=0, grpc_port=port)
        assert receiver.grpc_address is None
        assert f"gRPC is not served: cannot listen on 127.0.0.1, port {port}: address already in use" in str(
            receiver.grpc_problem
        )
        receiver.start()
        with socket.create_connection(
            ("127.0.0.1", int(receiver.address.rsplit(":", 1)[1])), timeout=PATIENCE_S
        ) as sender:
            sender.sendall(b"GET /health HTTP/1.1\r\n\r\n")
            assert sender.recv(100).startswith(b"HTTP/1.1 200 ")
        receiver.stop()


def test_two_collectors_do_not_share_a_port(run, tmp_path):
    running = run()
    with SpanSpool(tmp_path / "second") as spool:
        second = Receiver(spool, port=0, grpc_port=int(running.address.rsplit(":", 1)[1]))
        assert second.grpc_address is None
        second.stop()


def _start(folder: Path, port: int) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "agentunit", "collect", "--out", "traces", "--quiet-s", "0"]
    process = subprocess.Popen(
        [*command, "--port", "0", "--grpc-port", str(port)], cwd=folder, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    lines = [process.stdout.readline() for _ in range(4)]
    assert lines[3] == f"or OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:{port} OTEL_EXPORTER_OTLP_PROTOCOL=grpc\n"
    return process


def test_killed_under_load_every_acknowledged_span_is_there(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    acknowledged: list[str] = []
    stop = threading.Event()

    def send() -> None:
        while not stop.is_set():
            exporter = OTLPSpanExporter(f"http://127.0.0.1:{port}", insecure=True, timeout=1)
            spans = sdk_spans(5)
            while exporter.export(spans).name == "SUCCESS" and not stop.is_set():
                acknowledged.extend(f"{span.context.span_id:016x}" for span in spans)
                spans = sdk_spans(5)
            exporter.shutdown()

    collector = _start(tmp_path, port)
    sender = threading.Thread(target=send)
    sender.start()
    try:
        for _ in range(3):
            n_before, ends_at = len(acknowledged), time.monotonic() + PATIENCE_S
            while len(acknowledged) < n_before + 50 and time.monotonic() < ends_at:
                time.sleep(0.01)
            collector.send_signal(signal.SIGKILL)
            collector.communicate()
            collector = _start(tmp_path, port)
    finally:
        stop.set()
        sender.join()
        collector.send_signal(signal.SIGINT)
        collector.communicate(timeout=PATIENCE_S)
    assert len(acknowledged) >= 150
    with SpanSpool(tmp_path / "traces") as spool:
        rows = spool._connection.execute("SELECT span_id FROM spans").fetchall()
    assert set(acknowledged) <= {span_id for (span_id,) in rows}


def test_health_counts_grpc(run):
    running = run()
    running.call(request("a"))
    with socket.create_connection(
        ("127.0.0.1", int(running.receiver.address.rsplit(":", 1)[1])), timeout=PATIENCE_S
    ) as sender:
        sender.sendall(b"GET /health HTTP/1.1\r\nConnection: close\r\n\r\n")
        answer = b"".join(iter(lambda: sender.recv(65536), b""))
    assert json.loads(answer.partition(b"\r\n\r\n")[2])["grpc_requests"] == 1
