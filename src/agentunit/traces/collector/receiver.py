"""An OTLP/HTTP receiver: what it acknowledges is in the spool, and what it cannot keep it refuses at once.

One thread a connection, from the standard library: exporters hold few connections, each waits most of the time for
SQLite or for its sender, and HTTP itself is parsed by code that has been in use for long.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

from msgspec import Struct

from agentunit.traces.collector.endpoint import OtlpServer
from agentunit.traces.collector.request import Refused, Room, decode_request, success
from agentunit.traces.collector.spool import SpanSpool, SpoolError

DEFAULT_HOST = "127.0.0.1"
DEFAULT_PORT = 4318

_MOST_LINES = 200


class ReceiverLimits(Struct, frozen=True):
    """How much, and how long, a receiver lets itself be occupied by its senders."""

    # The largest request that the OpenTelemetry SDK for Python sends.
    longest_request_bytes: int = 64 << 20
    in_flight_bytes: int = 128 << 20
    connections: int = 200
    idle_s: float = 60.0
    stall_s: float = 5.0
    request_s: float = 30.0


class ReceiverCounts(Struct):
    """What a receiver took in and refused since it was started.

    ``unreadable`` are single spans or log records, ``other_logs`` such that say nothing about an agent's work,
    ``refused`` whole requests, ``busy`` requests that were asked to come again.
    """

    requests: int = 0
    spans: int = 0
    logs: int = 0
    repeated_spans: int = 0
    replaced_spans: int = 0
    unreadable: int = 0
    other_logs: int = 0
    refused: int = 0
    busy: int = 0
    dropped_metrics: int = 0


class Receiver:
    """Listens from construction on; serves between ``start`` and ``stop``. ``tell`` gets one line for each news.

    ``port`` 0 takes any free port; ``address`` says which. An ``OSError`` comes from an address that cannot be used.
    """

    def __init__(
        self,
        spool: SpanSpool,
        *,
        host: str = DEFAULT_HOST,
        port: int = DEFAULT_PORT,
        limits: ReceiverLimits | None = None,
        tell: Callable[[str], None] = lambda line: None,
    ) -> None:
        self.spool = spool
        self.limits = limits or ReceiverLimits()
        self.room = Room(self.limits.in_flight_bytes)
        self.counts = ReceiverCounts()
        self.stopping = False
        self._tell = tell
        self._reported: set[str] = set()
        self._lock = threading.Lock()
        self._server = OtlpServer(self, host, port)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)

    @property
    def address(self) -> str:
        """Where it listens, as exporters want it."""
        host, port = self._server.socket.getsockname()[:2]
        return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"

    def start(self) -> None:
        """Serve in threads of its own."""
        self._thread.start()

    def stop(self, patience_s: float = 5.0) -> None:
        """Take no new requests, let those under way be answered, and close all connections."""
        self.stopping = True
        if self._thread.is_alive():
            self._server.shutdown()
            self._thread.join()
        self._server.close_connections(patience_s)
        self._server.server_close()

    def count(self, **changes: int) -> None:
        """Add to the counts."""
        with self._lock:
            for name, change in changes.items():
                setattr(self.counts, name, getattr(self.counts, name) + change)

    def tell_once(self, line: str, topic: str | None = None) -> None:
        """Say something that would be noise the second time."""
        with self._lock:
            # Lines are made of what strangers send: there must be an end to them.
            if (topic or line) in self._reported or len(self._reported) >= _MOST_LINES:
                return
            self._reported.add(topic or line)
        self._tell(line)

    def take(self, signal: str, media_type: str, body: bytes) -> bytes:
        """Keep what a request holds, and give the answer to it. Everything that is not kept is ``Refused``."""
        decoded = decode_request(media_type, body)
        if decoded.unreadable and not (decoded.spans or decoded.logs):
            raise Refused(400, decoded.message())
        try:
            added = self.spool.add(decoded.spans, decoded.logs)
        except SpoolError as error:
            self.tell_once(f"not kept, and the senders were told to try again: {error}", "spool")
            raise Refused(503, f"not kept: {error}", retry_after_s=5) from None
        self.count(
            spans=added.n_new,
            logs=added.n_new_logs,
            repeated_spans=len(decoded.spans) - added.n_new - added.n_replaced,
            replaced_spans=added.n_replaced,
            unreadable=decoded.n_unreadable,
            other_logs=decoded.n_other_logs,
        )
        for reason in (*decoded.unreadable, *decoded.notes.problems):
            self.tell_once(f"noticed in {signal}: {reason}")
        return success(media_type, signal, decoded.n_unreadable + decoded.n_other_logs, decoded.message())
