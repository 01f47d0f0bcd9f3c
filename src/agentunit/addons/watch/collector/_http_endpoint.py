"""OTLP over HTTP: a server with a bound on its connections, and the paths, headers and answers of the specification."""

from __future__ import annotations

import io
import os
import socket
import socketserver
import threading
import time
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

from msgspec import to_builtins

from agentunit.addons.watch.collector._http_body import TimedSocket, read_body
from agentunit.addons.watch.collector._senders import TOKEN_HEADER
from agentunit.addons.watch.collector.request import PROTOBUF_MISSING, failure, protobuf_installed
from agentunit.addons.watch.collector.request_limits import RefusedRequest, Reservation
from agentunit.core.results import encode_json
from agentunit.traces.otlp.stored_requests import JSON, PACKAGES, PROTOBUF

if TYPE_CHECKING:
    from agentunit.addons.watch.collector.receiver import Receiver

_TLS = b"\x16\x03"
_HTTP2 = b"PRI * HTTP/2"
_HTTP_1_1_REQUIRED = 0xD
_FULL = b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"


_SIGNALS = {f"/v1/{signal}": signal for signal in PACKAGES}
_MEDIA_TYPES = (PROTOBUF, JSON)


class OtlpServer(ThreadingHTTPServer):
    """The HTTP server of a receiver. ``address`` is where it listens, as exporters want it.

    A connection beyond the receiver's limit is answered with 503 at once.
    """

    daemon_threads = True
    block_on_close = False
    request_queue_size = 128
    # On Windows it would let two servers share a port, each getting some of the connections.
    allow_reuse_address = os.name == "posix"

    def __init__(self, receiver: Receiver, host: str, port: int) -> None:
        self.receiver = receiver
        self._n_active = 0
        self._lock = threading.Lock()
        self._connections: set[socket.socket] = set()
        (self.address_family, *_, address), *_ = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        super().__init__(address[:2], _Handler)  # type: ignore[arg-type]
        self.address = address_of(*self.socket.getsockname()[:2])
        self._thread = threading.Thread(target=self.serve_forever, args=(0.05,), daemon=True)

    def server_bind(self) -> None:
        """Without the search for the host's name, which may take seconds."""
        socketserver.TCPServer.server_bind(self)
        self.server_name, self.server_port = self.socket.getsockname()[:2]

    def process_request(self, request: Any, client_address: Any) -> None:
        """Start a thread for a connection, unless there are too many."""
        with self._lock:
            full = len(self._connections) >= self.receiver.limits.calls
            if not full:
                self._connections.add(request)
        if full:
            self.receiver.count(busy=1)
            with suppress(OSError):
                request.send(_FULL, socket.MSG_DONTWAIT if hasattr(socket, "MSG_DONTWAIT") else 0)
            self.shutdown_request(request)
            return
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        """Close a connection."""
        with self._lock:
            self._connections.discard(request)
        super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A connection that breaks is its sender's affair, and counted where it happens."""

    def active(self, change: int) -> None:
        """Count requests that are being worked on."""
        with self._lock:
            self._n_active += change

    def start(self) -> None:
        """Serve in threads of its own."""
        self._thread.start()

    def stop(self, patience_s: float) -> None:
        """Take no new connections, let requests under way be answered, and close."""
        if self._thread.is_alive():
            self.shutdown()
            self._thread.join()
        deadline = time.monotonic() + patience_s
        while self._n_active and time.monotonic() < deadline:
            time.sleep(0.01)
        with self._lock:
            connections = list(self._connections)
        for connection in connections:
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
        while self._connections and time.monotonic() < deadline + 1:
            time.sleep(0.01)
        self.server_close()


def address_of(host: str, port: int) -> str:
    """The address of a port.

    >>> address_of("::1", 4318)
    'http://[::1]:4318'
    """
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def _settings_and_goaway(reason: bytes) -> bytes:
    """What HTTP/2 has to say to a client that must use HTTP/1.1; gRPC clients show the reason."""
    content = bytes(4) + _HTTP_1_1_REQUIRED.to_bytes(4, "big") + reason
    return bytes((0, 0, 0, 4, 0)) + bytes(4) + len(content).to_bytes(3, "big") + bytes((7, 0)) + bytes(4) + content


class _Handler(BaseHTTPRequestHandler):
    """One connection."""

    server: OtlpServer
    raw_requestline: bytes
    protocol_version = "HTTP/1.1"
    server_version = "agentunit"
    sys_version = ""
    wbufsize = -1
    disable_nagle_algorithm = True

    def setup(self) -> None:
        """Read through a socket with limits of time."""
        super().setup()
        self.rfile.close()
        limits = self.server.receiver.limits
        self._timed = TimedSocket(
            self.connection, idle_s=limits.idle_s, stall_s=limits.stall_s, request_s=limits.request_s
        )
        self.rfile = self._reader = io.BufferedReader(self._timed, 1 << 16)

    def handle_one_request(self) -> None:
        """Wait for a request and answer it; a sender that went away needs no answer."""
        self._timed.await_request()
        try:
            if self._reader.peek(1).startswith(_TLS):
                self.server.receiver.report_once(
                    f"a sender uses TLS, which is not supported here: its endpoint must begin with http://, as in "
                    f"{self.server.receiver.address} (gRPC: OTEL_EXPORTER_OTLP_INSECURE=true)"
                )
                self.close_connection = True
                return
            super().handle_one_request()
        except (ConnectionError, TimeoutError):
            self.close_connection = True

    def parse_request(self) -> bool:
        """Read the head of a request; a gRPC client, which opens with the preface of HTTP/2, is sent away."""
        if not self.raw_requestline.startswith(_HTTP2):
            return super().parse_request()
        reason = self.server.receiver.note_grpc_on_http().encode()
        self.wfile.write(_settings_and_goaway(reason))
        self.wfile.flush()
        self.close_connection = True
        self._drain()
        return False

    def handle_expect_100(self) -> bool:
        """Agree to nothing yet: 100 Continue is sent when there is room for the body."""
        return True

    def log_message(self, format: str, *args: object) -> None:
        """Nothing: requests are counted, not listed."""

    def do_GET(self) -> None:
        """``/health``, for whoever waits until the receiver is up."""
        if self._path() == "/health":
            self._answer(200, encode_json({"status": "ok", **to_builtins(self.server.receiver.counts)}), JSON)
        else:
            self.close_connection = True
            self._answer(404, failure(JSON, "there is only POST /v1/traces and /v1/logs, and GET /health"), JSON)

    def do_POST(self) -> None:
        """Spans or log records."""
        receiver = self.server.receiver
        self.server.active(1)
        try:
            receiver.count(requests=1)
            receiver.senders.check(self.headers.get("Host"), self.headers.get("Origin"))
            self._accept(receiver)
        except RefusedRequest as refused:
            self._refuse(refused)
        except (ConnectionError, TimeoutError):
            # Without an answer the sender tries again, as it should.
            receiver.count(busy=1)
            self.close_connection = True
        except Exception as error:  # noqa: BLE001  # one request must not end the others
            self._refuse(RefusedRequest(500, f"{type(error).__name__}: {error}"))
        finally:
            self.server.active(-1)

    def _accept(self, receiver: Receiver) -> None:
        limits = receiver.limits
        receiver.senders.check_token(self.headers.get_all(TOKEN_HEADER, ()))
        signal = _SIGNALS.get(self._path())
        if signal is None:
            raise RefusedRequest(404, f"there is only POST /v1/traces and /v1/logs; received {self._path()[:200]}")
        media_type = self._media_type()
        if media_type not in _MEDIA_TYPES:
            raise RefusedRequest(415, f"Content-Type must be {PROTOBUF} or {JSON}; received {media_type[:100]!r}")
        if receiver.stopping:
            raise RefusedRequest(503, "the collector is being stopped", retry_after_s=1)
        # Metrics are not read, so they need no package.
        if signal != "metrics" and media_type == PROTOBUF and not protobuf_installed():
            raise RefusedRequest(415, PROTOBUF_MISSING)
        with Reservation(receiver.memory) as reservation:
            body = read_body(self.rfile, self.headers, reservation, limits.request_bytes, self._send_continue)
            self._answer(200, receiver.accept(signal, media_type, body), media_type)

    def _path(self) -> str:
        return self.path.split("?")[0].rstrip("/")

    def _media_type(self) -> str:
        return (self.headers.get("Content-Type") or "").split(";")[0].strip().lower()

    def _send_continue(self) -> None:
        if self.headers.get("Expect", "").lower() == "100-continue":
            self.send_response_only(100)
            self.end_headers()
            self.wfile.flush()

    def _refuse(self, refused: RefusedRequest) -> None:
        self.server.receiver.count_refusal(refused)
        media_type = self._media_type()
        # What is left of the request would be taken for the next one.
        self.close_connection = True
        answer_type = media_type if media_type in _MEDIA_TYPES else JSON
        self._answer(refused.status, failure(answer_type, refused.message), answer_type, refused.retry_after_s)
        self._drain()

    def _answer(self, status: int, body: bytes, media_type: str, retry_after_s: int | None = None) -> None:
        self.connection.settimeout(self.server.receiver.limits.stall_s)
        self.send_response(status)
        self.send_header("Content-Type", media_type)
        self.send_header("Content-Length", str(len(body)))
        if retry_after_s is not None:
            self.send_header("Retry-After", str(retry_after_s))
        if self.close_connection or self.server.receiver.stopping:
            self.close_connection = True
            self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(body)
        self.wfile.flush()

    def _drain(self) -> None:
        """Let the sender finish: a connection closed over unread bytes loses the answer with them."""
        limits = self.server.receiver.limits
        n_left = limits.request_bytes
        with suppress(OSError):
            self.connection.shutdown(socket.SHUT_WR)
            while n_left > 0 and (piece := self.rfile.read1(1 << 16)):
                n_left -= len(piece)
