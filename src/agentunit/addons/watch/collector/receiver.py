"""An OTLP receiver for HTTP and gRPC: what it acknowledges is in the spool, and what it cannot keep it refuses at once.

HTTP has one thread a connection, from the standard library: exporters hold few connections, each waits most of the time
for SQLite or for its sender, and HTTP itself is parsed by code that has been in use for long.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Literal, Protocol

from msgspec import Struct

from agentunit.addons.watch.collector._http_endpoint import OtlpServer
from agentunit.addons.watch.collector._senders import Senders
from agentunit.addons.watch.collector.request import INSTALL_HINT, Decoded, decode_request, grpc_installed, success
from agentunit.addons.watch.collector.request_limits import MemoryBudget, ReceiverLimits, RefusedRequest
from agentunit.addons.watch.collector.spool import Outgoing, SpanSpool, SpoolError
from agentunit.traces.limits import LimitExceeded, check_density
from agentunit.traces.otlp.stored_requests import JSON

Forwarding = Literal["as it came", "masked"]

DEFAULT_HOST = "127.0.0.1"
DEFAULT_PORT = 4318
DEFAULT_GRPC_PORT = 4317

_MOST_LINES = 200


class ReceiverCounts(Struct):
    """What a receiver took in and refused since it was started.

    ``unreadable`` are single spans or log records, ``other_logs`` such that say nothing about an agent's work,
    ``refused`` whole requests, ``busy`` requests that were asked to come again, ``unserved_grpc`` connections of gRPC
    exporters to a port that does not speak it.
    """

    requests: int = 0
    grpc_requests: int = 0
    spans: int = 0
    logs: int = 0
    repeated_spans: int = 0
    replaced_spans: int = 0
    unreadable: int = 0
    other_logs: int = 0
    refused: int = 0
    busy: int = 0
    dropped_metrics: int = 0
    unserved_grpc: int = 0


class _Server(Protocol):
    def start(self) -> None: ...
    def stop(self, patience_s: float) -> None: ...


class Receiver:
    """Listens from construction on; serves between ``start`` and ``stop``. ``report`` gets each message as a line.

    ``port`` 0 takes any free port; ``address`` says which. An ``OSError`` comes from an address that cannot be used.
    With ``forwarding``, requests are also put into the spool's queue of what is forwarded, in this form.
    With a ``token``, only who knows it may send. What senders wrote is reported as ``quoted`` gives it back.
    With a ``grpc_port`` gRPC is served as well, at ``grpc_address``; why it is not is in ``grpc_problem``.
    """

    def __init__(
        self,
        spool: SpanSpool,
        *,
        host: str = DEFAULT_HOST,
        port: int = DEFAULT_PORT,
        grpc_port: int | None = None,
        limits: ReceiverLimits | None = None,
        forwarding: Forwarding | None = None,
        token: str | None = None,
        report: Callable[[str], None] = lambda line: None,
        quoted: Callable[[str], str] = str,
    ) -> None:
        self.spool = spool
        self.limits = limits or ReceiverLimits()
        self.memory = MemoryBudget(self.limits.under_way_bytes)
        self.counts = ReceiverCounts()
        self.stopping = False
        self.forwarding = forwarding
        self.senders = Senders(host, token)
        self.grpc_address: str | None = None
        self.grpc_problem: str | None = None
        self._report, self._quoted = report, quoted
        self._reported: set[str] = set()
        self._lock = threading.Lock()
        server = OtlpServer(self, host, port)
        self.address = server.address
        self._servers: list[_Server] = [server]
        if grpc_port is not None:
            self._listen_for_grpc(host, grpc_port)

    def _listen_for_grpc(self, host: str, port: int) -> None:
        """Serve gRPC; where that is not possible, HTTP goes on alone."""
        try:
            if grpc_installed():
                from agentunit.addons.watch.collector._grpc_endpoint import GrpcServer

                server = GrpcServer(self, host, port)
                self.grpc_address = server.address
                self._servers.append(server)
            else:
                self.grpc_problem = f"gRPC cannot be read here: {INSTALL_HINT} and start the collector again"
                # Only to notice that an exporter tries; the port's usual owner may have it as well.
                self._servers.append(OtlpServer(self, host, port))
        except (OSError, ImportError) as error:
            if self.grpc_problem is None:
                reason = (getattr(error, "strerror", None) or str(error)).lower()
                self.grpc_problem = (
                    f"gRPC is not served: cannot listen on {host}, port {port}: {reason} (--grpc-port chooses another)"
                )

    def start(self) -> None:
        """Serve in threads of its own."""
        for server in self._servers:
            server.start()

    def stop(self, patience_s: float = 5.0) -> None:
        """Take no new requests, let those under way be answered, and close all connections."""
        self.stopping = True
        for server in self._servers:
            server.stop(patience_s)

    def count(self, **changes: int) -> None:
        """Add to the counts."""
        with self._lock:
            for name, change in changes.items():
                setattr(self.counts, name, getattr(self.counts, name) + change)

    def count_refusal(self, refused: RefusedRequest) -> None:
        """Count a request that is answered with an error; one that will not be sent again is also reported."""
        if refused.retry_after_s:
            self.count(busy=1)
        else:
            self.count(refused=1)
            self.report_once(f"a request was refused ({refused.status}): {self._quoted(refused.message)}")

    def report_once(self, line: str, topic: str | None = None) -> None:
        """Report something that would be noise the second time."""
        with self._lock:
            # Lines are made of what strangers send, so their number is limited.
            if (topic or line) in self._reported or len(self._reported) >= _MOST_LINES:
                return
            self._reported.add(topic or line)
        self._report(line)

    def note_grpc_on_http(self) -> str:
        """Count a gRPC exporter that connected to an HTTP port, and say where it should go."""
        self.count(unserved_grpc=1)
        over_http = f"OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf OTEL_EXPORTER_OTLP_ENDPOINT={self.address}"
        if self.grpc_address is not None:
            way_out = f"gRPC is served at {self.grpc_address} (OTEL_EXPORTER_OTLP_ENDPOINT)"
        else:
            way_out = self.grpc_problem or "this port speaks HTTP"
        line = f"a gRPC exporter connected and could not be served: {way_out}, or send over HTTP: {over_http}"
        self.report_once(line, "grpc")
        return line

    def accept(self, signal: str, media_type: str, body: bytes) -> bytes:
        """Keep what a request holds, and give the answer to it. Everything that is not kept is ``RefusedRequest``."""
        forward = None
        if self.forwarding is not None:
            forward = Outgoing(signal, media_type, body, self.forwarding == "masked")
        elif signal == "metrics":
            self.report_once("metrics are answered and dropped (OTEL_METRICS_EXPORTER=none stops them)")
            self.count(dropped_metrics=1)
            return success(media_type, signal)
        try:
            check_density(body, is_json=media_type == JSON)
            decoded = Decoded() if signal == "metrics" else decode_request(media_type, body)
        except LimitExceeded as error:
            raise RefusedRequest(413, str(error)) from None
        if decoded.unreadable and not (decoded.spans or decoded.logs):
            raise RefusedRequest(400, decoded.message())
        try:
            added = self.spool.add(decoded.spans, decoded.logs, forward=forward)
        except SpoolError as error:
            self.report_once(f"not kept, and senders were asked to try again: {error}", "spool")
            raise RefusedRequest(503, f"not kept: {error}", retry_after_s=5) from None
        self.count(
            spans=added.n_new,
            logs=added.n_new_logs,
            repeated_spans=len(decoded.spans) - added.n_new - added.n_replaced,
            replaced_spans=added.n_replaced,
            unreadable=decoded.n_unreadable,
            other_logs=decoded.n_other_logs,
        )
        for reason in (*decoded.unreadable, *decoded.notes.problems):
            self.report_once(f"noticed in {signal}: {self._quoted(reason)}")
        if forward is not None:
            # What is no use here is accepted all the same: it goes on as it came.
            decoded.n_other_logs = 0
        return success(media_type, signal, decoded.n_unreadable + decoded.n_other_logs, decoded.message())
