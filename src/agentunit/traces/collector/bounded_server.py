"""An HTTP server with a bound on its connections, one thread for each, that can be stopped in an orderly way."""

from __future__ import annotations

import os
import socket
import socketserver
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

_FULL = b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"


class BoundedServer(ThreadingHTTPServer):
    """Answers a connection beyond ``most_connections`` with 503 at once, and calls ``on_full``."""

    daemon_threads = True
    block_on_close = False
    request_queue_size = 128
    # On Windows it would let two servers share a port, each getting some of the connections.
    allow_reuse_address = os.name == "posix"

    def __init__(
        self,
        host: str,
        port: int,
        handler: type[BaseHTTPRequestHandler],
        *,
        most_connections: int,
        on_full: Callable[[], None],
    ) -> None:
        self._most_connections, self._on_full = most_connections, on_full
        self._n_active = 0
        self._lock = threading.Lock()
        self._connections: set[socket.socket] = set()
        (self.address_family, *_, address), *_ = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        super().__init__(address[:2], handler)  # type: ignore[arg-type]

    def server_bind(self) -> None:
        """Without the search for the host's name, which may take seconds."""
        socketserver.TCPServer.server_bind(self)
        self.server_name, self.server_port = self.socket.getsockname()[:2]

    def process_request(self, request: Any, client_address: Any) -> None:
        """Start a thread for a connection, unless there are too many."""
        with self._lock:
            full = len(self._connections) >= self._most_connections
            if not full:
                self._connections.add(request)
        if full:
            self._on_full()
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

    def close_connections(self, patience_s: float) -> None:
        """Wait for the requests that are being worked on, then end all connections."""
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
