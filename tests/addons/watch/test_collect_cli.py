"""The collector as a process: what it prints, how it ends, and what is left when it is killed."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from agentunit.addons.watch.collect_command import _stop_signals as collect_signals
from agentunit.addons.watch.collector.request import grpc_installed
from agentunit.core.codec import decode_record
from agentunit.engine.recording.end_signals import END_SIGNALS
from agentunit.installation import install_command

pytestmark = pytest.mark.skipif(os.name != "posix", reason="the signals of POSIX")

TRACE = "0af7651916cd43dd8448eb211c80319c"


# Standard input becomes the terminal of its session, so that closing the other end is what closing a window is.
IN_TERMINAL = """
import fcntl, os, sys, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
os.execv(sys.executable, [sys.executable, "-m", "agentunit", *sys.argv[1:]])
"""


class Collector:
    """``agentunit collect`` in a process of its own, listening when this returns."""

    def __init__(self, folder: Path, *arguments: str, stderr: int = subprocess.PIPE) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "agentunit", "collect", "--out", "traces", *arguments],
            cwd=folder,
            stdout=subprocess.PIPE,
            stderr=stderr,
            text=True,
        )
        assert self.process.stdout is not None
        self.head = [self.process.stdout.readline() for _ in range(3)]
        self.address = self.head[1].strip().partition("=")[2]

    def post(self, *names: str, trace_id: str = TRACE, headers: dict[str, str] | None = None) -> int:
        return post(self.address, *names, trace_id=trace_id, headers=headers)

    def end(self, number: int = signal.SIGINT) -> tuple[int, str, str]:
        self.process.send_signal(number)
        stdout, stderr = self.process.communicate(timeout=20)
        return self.process.returncode, stdout, stderr or ""


def post(address: str, *names: str, trace_id: str = TRACE, headers: dict[str, str] | None = None) -> int:
    attributes = [{"key": "gen_ai.operation.name", "value": {"stringValue": "execute_tool"}}]
    spans = [
        {"traceId": trace_id, "spanId": f"{number:016x}", "name": name, "attributes": attributes}
        for number, name in enumerate(names, 1)
    ]
    body = json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]})
    connection = http.client.HTTPConnection(address.removeprefix("http://"), timeout=10)
    with contextlib.closing(connection):
        connection.request("POST", "/v1/traces", body, {"Content-Type": "application/json", **(headers or {})})
        return connection.getresponse().status


@pytest.fixture
def collect(tmp_path: Path) -> Iterator[Callable[..., Collector]]:
    started: list[Collector] = []

    def start(*arguments: str, **options: int) -> Collector:
        chosen = () if "--port" in arguments else ("--port", "0")
        started.append(Collector(tmp_path, *chosen, *arguments, **options))
        return started[-1]

    yield start
    for collector in started:
        collector.process.kill()
        collector.process.communicate()


def records(folder: Path) -> list[object]:
    return [decode_record(path.read_bytes()) for path in sorted(folder.glob("*/*.jsonl"))]


@pytest.mark.parametrize("number", END_SIGNALS)
def test_a_session_from_start_to_end(collect, tmp_path, number):
    collector = collect("--quiet-s", "1000")
    assert collector.head[0].startswith(f"listening on {collector.address}, writing to traces")
    assert collector.head[1].strip() == f"OTEL_EXPORTER_OTLP_ENDPOINT={collector.address}"
    assert collector.head[2].strip() == "OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf"
    assert collector.post("search", "book") == 200
    assert records(tmp_path / "traces") == []  # the trace is still open
    code, stdout, stderr = collector.end(number)
    assert (code, stderr) == (0, "")
    assert "1 trace written to traces; 2 spans received" in stdout
    assert stdout.endswith("next: agentunit score traces\n")
    (record,) = records(tmp_path / "traces")
    assert record.case.id == TRACE


def test_a_quiet_trace_is_written_while_it_runs(collect, tmp_path):
    collector = collect("--quiet-s", "0")
    collector.post("search")
    line = collector.process.stdout.readline()
    if line == "0 traces written · 1 open · 1 span\n":
        # It looked just as the span had arrived.
        line = collector.process.stdout.readline()
    assert line == "1 trace written · 0 open · 1 span\n"
    assert len(records(tmp_path / "traces")) == 1
    assert collector.end()[1] == "1 trace written to traces; 1 span received\nnext: agentunit score traces\n"


def test_a_session_without_spans_says_what_to_look_at(collect):
    code, stdout, _ = collect().end()
    assert code == 0
    assert "nothing arrived: were both variables set before the agent started" in stdout


@pytest.mark.skipif(grpc_installed(), reason="with grpcio, gRPC is served")
def test_without_the_extra_a_grpc_exporter_is_noticed_at_both_ports(collect):
    with socket.create_server(("127.0.0.1", 0)) as probe:
        grpc_port = probe.getsockname()[1]
    collector = collect("--grpc-port", str(grpc_port))
    for port in (grpc_port, int(collector.address.rsplit(":", 1)[1])):
        with socket.create_connection(("127.0.0.1", port), timeout=10) as sender:
            sender.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
            assert install_command("collect").encode() in sender.recv(65536)
    code, stdout, stderr = collector.end()
    assert code == 0
    assert stderr.count(f"gRPC cannot be read here: {install_command('collect')}") == 1
    assert f"OTEL_EXPORTER_OTLP_ENDPOINT={collector.address}" in stderr
    assert "nothing could be read: gRPC exporters connected 2 times (see above what to do)" in stdout
    assert "nothing arrived" not in stdout


def test_forwarded_spans_make_the_same_records_there(collect, tmp_path):
    second = collect("--out", "second", "--quiet-s", "1000")
    first = collect("--forward", second.address)
    assert first.process.stdout.readline() == f"forwarding everything to {second.address} as it came\n"
    assert first.post("search", "book") == 200
    assert first.post("call Mia", trace_id="1" * 32) == 200
    code, stdout, stderr = first.end()
    assert (code, stderr) == (0, "")
    assert f"2 requests forwarded to {second.address}\n" in stdout
    assert "3 spans received" in second.end()[1]
    kept = [records(tmp_path / "traces"), records(tmp_path / "second")]
    assert len(kept[0]) == 2
    assert kept[0] == kept[1]


@pytest.mark.parametrize("masked_at", ["first", "last"])
def test_what_could_not_be_forwarded_is_sent_at_the_next_start_masked_as_promised(collect, tmp_path, masked_at):
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    first = collect("--forward", f"http://127.0.0.1:{port}", *(["--mask"] if masked_at == "first" else []))
    how = "with personal data masked" if masked_at == "first" else "as it came"
    line = f"forwarding everything to http://127.0.0.1:{port} {how}\n"
    assert first.process.stdout.readline() == line
    assert first.post("search", "write to mia.li@example.com") == 200
    code, stdout, stderr = first.end()
    assert code == 0
    assert "1 request waiting to be forwarded; the next start with --forward sends them" in stdout
    assert "cannot connect: connection refused" in stderr
    again = collect()
    line = "1 request waiting in the spool to be forwarded: --forward URL sends them\n"
    assert again.process.stdout.readline() == line
    again.end()
    second = collect("--port", str(port), "--out", "second", "--quiet-s", "1000")
    # A request that came in to be masked is masked without the option, too; with it, whatever waits is.
    first = collect("--forward", second.address, *(["--mask"] if masked_at == "last" else []))
    assert "1 request forwarded" in first.end()[1]
    second.end()
    (mine,), (theirs,) = records(tmp_path / "traces"), records(tmp_path / "second")
    assert "mia.li@example.com" in str(mine)
    assert "mia.li@example.com" not in str(theirs)
    assert "<EMAIL_" in str(theirs)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--mask",), "--mask is for what --forward sends"),
        (("--forward", "grpc://127.0.0.1:4317"), "name the backend's OTLP/HTTP port"),
    ],
)
def test_usage_of_forwarding(invoke, arguments, message):
    result = invoke("collect", "--port", "0", *arguments)
    assert result.exit_code == 2
    assert message in result.stderr


@pytest.mark.parametrize(
    ("host", "name"), [("127.0.0.1", "localhost"), ("127.0.0.1", "0.0.0.0"), ("0.0.0.0", "127.0.0.1")]
)
def test_a_collector_does_not_forward_to_itself(invoke, monkeypatch, host, name):
    if host == "0.0.0.0":
        # As if 127.0.0.1 were this machine's address in a network.
        monkeypatch.setattr("agentunit.addons.watch.collect_command.is_loopback", lambda host: False)
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    result = invoke("collect", "--host", host, "--port", port, "--grpc-port", "0", "--forward", f"http://{name}:{port}")
    assert result.exit_code == 2
    assert "is this collector itself" in result.stderr


def test_a_limit_that_is_none(invoke, monkeypatch):
    monkeypatch.setenv("AGENTUNIT_MAX_SPOOL_MB", "much")
    result = invoke("collect", "--port", "0")
    assert result.exit_code == 2
    assert "AGENTUNIT_MAX_SPOOL_MB must be a number above 0, or none" in result.stderr


def test_a_terminal_gets_one_line_that_is_rewritten(collect):
    ours, theirs = os.openpty()
    collector = collect("--quiet-s", "1000", stderr=theirs)
    os.close(theirs)
    collector.post("search")
    watchdog = threading.Timer(20, collector.process.kill)
    watchdog.start()
    shown = b""
    with contextlib.suppress(OSError):  # the terminal is gone when the process is
        while b"0 traces written \xc2\xb7 1 open \xc2\xb7 1 span" not in shown:
            shown += os.read(ours, 1024)
        collector.process.send_signal(signal.SIGTERM)
        while piece := os.read(ours, 1024):
            shown += piece
    watchdog.cancel()
    os.close(ours)
    assert b"1 open" in shown
    assert b"\n" not in shown
    assert shown.endswith(b"\r\x1b[K")


def test_beyond_this_machine_a_token_is_needed_which_is_the_same_at_every_start(collect):
    tokens = []
    for _ in range(2):
        collector = collect("--host", "0.0.0.0")
        name, _, token = collector.process.stdout.readline().strip().partition("=authorization=Bearer%20")
        assert name == "OTEL_EXPORTER_OTLP_HEADERS"
        assert len(token) >= 24
        tokens.append(token)
        assert collector.post("search") == 401
        assert collector.post("search", headers={"Authorization": f"Bearer {token}"}) == 200
        code, _, stderr = collector.end()
        assert code == 0
        assert "warning: 0.0.0.0 is not loopback: whoever reaches this address and has the token" in stderr
        assert "a request was refused (401): it has no token" in stderr
        assert token not in stderr
    assert tokens[0] == tokens[1]


def test_what_it_prints_of_what_it_received_is_masked(collect):
    collector = collect()
    unknown = {"traceId": TRACE, "spanId": "0" * 15 + "1", "name": "chat mia.li@example.com"}
    for path in ("/v1/traces", "/v1/of/mia.li@example.com"):
        connection = http.client.HTTPConnection(collector.address.removeprefix("http://"), timeout=10)
        with contextlib.closing(connection):
            body = json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": [unknown]}]}]})
            connection.request("POST", path, body, {"Content-Type": "application/json"})
            connection.getresponse().read()
    _, stdout, stderr = collector.end()
    assert "unplaced spans: 1 × chat <EMAIL_" in stdout
    assert "received /v1/of/<EMAIL_" in stderr
    assert "mia" not in stdout + stderr


def test_a_port_in_use(invoke):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        result = invoke("collect", "--port", port)
    assert result.exit_code == 3
    assert f"cannot listen on 127.0.0.1, port {port}: the port is in use" in result.stderr
    assert "--port chooses another" in result.stderr


def test_a_folder_in_use(collect, tmp_path, invoke):
    collect()
    result = invoke("collect", "--port", "0", "--out", tmp_path / "traces")
    assert result.exit_code == 3
    assert "another 'agentunit collect' is writing to" in result.stderr


def test_a_folder_that_is_none(invoke):
    Path("traces").write_text("a file")
    result = invoke("collect", "--port", "0")
    assert result.exit_code == 3
    assert "cannot use traces as a folder: " in result.stderr


@pytest.mark.parametrize(
    "arguments",
    [("--port", "65536"), ("--quiet-s", "nan"), ("--keep-h", "inf"), ("--quiet-s", "-1"), ("elsewhere",)],
)
def test_usage(invoke, arguments):
    result = invoke("collect", *arguments)
    assert result.exit_code == 2
    assert "Error: " in result.stderr


def test_a_host_that_is_none(invoke):
    result = invoke("collect", "--host", "256.0.0.1.invalid", "--port", "0")
    assert result.exit_code == 3
    assert "cannot listen on 256.0.0.1.invalid, port 0" in result.stderr


LOAD = """
import itertools, logging, random, sys, time
from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

logging.disable()
memory, provider = InMemorySpanExporter(), TracerProvider()
provider.add_span_processor(SimpleSpanProcessor(memory))
tracer = provider.get_tracer("load")
exporter = OTLPSpanExporter(endpoint=sys.argv[1] + "/v1/traces", timeout=0.5)
for batch in itertools.count():
    about = trace.SpanContext(10**30 + batch % 7, 1, False, trace.TraceFlags(1))
    context = trace.set_span_in_context(trace.NonRecordingSpan(about))
    names = [f"tool-{batch}-{number}" for number in range(random.randint(1, 9))]
    for name in names:
        attributes = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": name}
        tracer.start_span(name, context, attributes=attributes).end()
    if exporter.export(memory.get_finished_spans()).name == "SUCCESS":
        print(*names, flush=True)
    else:
        time.sleep(0.005)
    memory.clear()
"""


def test_killed_under_load_every_acknowledged_span_is_there_once(tmp_path):
    pytest.importorskip("opentelemetry.exporter.otlp.proto.http")
    collector = Collector(tmp_path, "--port", "0", "--quiet-s", "0")
    port = collector.address.rsplit(":", 1)[1]
    load = subprocess.Popen([sys.executable, "-c", LOAD, collector.address], stdout=subprocess.PIPE, text=True)
    assert load.stdout is not None
    watchdog = threading.Timer(40, load.kill)
    watchdog.start()
    acknowledged: list[str] = []
    try:
        for _ in range(3):
            for _ in range(25):
                acknowledged += load.stdout.readline().split()
            collector.end(signal.SIGKILL)
            collector = Collector(tmp_path, "--port", port, "--quiet-s", "0")
        acknowledged += load.stdout.readline().split()
    finally:
        watchdog.cancel()
        load.kill()
        acknowledged += load.communicate()[0].split()
        code, _, stderr = collector.end()
    assert (code, stderr) == (0, "")
    kept = Counter(
        event.payload["name"]
        for record in records(tmp_path / "traces")
        for event in record.trace.events
        if event.type == "tool_call"
    )
    assert len(acknowledged) > 75
    assert {name: kept[name] for name in acknowledged} == dict.fromkeys(acknowledged, 1)
    assert set(kept.values()) == {1}


def test_a_closed_terminal_stops_it_and_what_it_received_is_written(tmp_path, monkeypatch):
    import pty  # not on Windows

    monkeypatch.chdir(tmp_path)
    terminal, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-c", IN_TERMINAL, "collect", "--out", "traces", "--port", "0"],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
    )
    try:
        os.close(theirs)
        shown = b""
        while (found := re.search(rb"ENDPOINT=(http://\S+)\r\n", shown)) is None:
            shown += os.read(terminal, 4096)
        assert post(found[1].decode(), "search", "book") == 200
    finally:
        os.close(terminal)
        process.wait(timeout=300)
    (record,) = records(tmp_path / "traces")
    assert record.case.id == TRACE


def test_a_second_ctrl_c_ends_it_at_once_and_further_ones_do_nothing():
    before = signal.getsignal(signal.SIGINT)
    with collect_signals() as stop:
        signal.raise_signal(signal.SIGINT)
        assert stop.is_asked
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGTERM)
    assert signal.getsignal(signal.SIGINT) is before


def test_a_signal_takes_no_lock_that_the_program_may_hold():
    # Whoever waits for an event holds its lock now and then; a handler that sets it then waits for ever.
    locks = (type(threading.Lock()), type(threading.RLock()), threading.Condition)
    with collect_signals() as stop:
        assert not [each for each in vars(stop).values() if isinstance(each, locks)]
        assert not isinstance(stop, threading.Event)


QUIET_END = """
import atexit, signal
from agentunit.cli import main, streams

def press():
    signal.raise_signal(signal.SIGINT)

def verb():
    try:
        press()
    except KeyboardInterrupt:
        press()  # again, while the first one is being answered

atexit.register(press)
main._run_verb = verb
main.main()
"""


def test_ctrl_c_while_the_command_ends_prints_no_traceback():
    done = subprocess.run([sys.executable, "-c", QUIET_END], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (130, "")
