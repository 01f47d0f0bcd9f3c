"""The HTTP client for agents and the judge: HTTP/1.1 to one host, with open connections reused and sizes limited.

No redirect is followed, and no proxy is used unless one is passed in. Certificates are checked against the system's
store. Written on asyncio's streams: a call costs a fraction of what it costs with the general clients, and needs no
package beyond the base install. Timeouts belong to the caller: a canceled request closes its connection.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import errno
import ipaddress
import os
import select
import socket
import ssl
import threading
from collections.abc import Mapping
from typing import Any
from urllib.parse import SplitResult, unquote

from agentunit.backends._http_response import (
    FRAMING_HEADERS,
    MAX_HEAD_BYTES,
    ClosedBeforeResponse,
    HttpFailure,
    Response,
    decompressed,
    read_body,
    read_head,
)

__all__ = ["PORTS", "HttpClient", "HttpFailure", "Response", "ascii_host", "basic_authorization", "resolve"]

# This process has too many files open; the server may be there.
_OWN_LIMITS = (errno.EMFILE, errno.ENFILE)
PORTS = {"http": 80, "https": 443}


class HttpClient:
    """Sends requests to one host, each on a connection of its own; connections are reused.

    ``headers`` go with every request. A response of more than ``max_bytes`` (compressed or not) is refused. ``proxy``
    is the address of an HTTP proxy; https goes through it in a tunnel. ``ca_file`` holds the certificates to trust in
    place of the system's; ``OSError`` when it cannot be read.
    """

    def __init__(
        self,
        host: str,
        port: int,
        *,
        is_tls: bool,
        headers: Mapping[str, str],
        max_bytes: int,
        proxy: SplitResult | None = None,
        ca_file: str | None = None,
    ) -> None:
        self._host, self._port = host, port
        self._tls = ssl.create_default_context(cafile=ca_file) if is_tls else None
        self._max_bytes = max_bytes
        self._proxy = proxy
        self._authority = _authority(host, None if port == PORTS["https" if is_tls else "http"] else port)
        self._idle: list[_Connection] = []
        self._loop: asyncio.AbstractEventLoop | None = None
        sent = {name: value for name, value in headers.items() if name.lower() not in FRAMING_HEADERS}
        if "host" not in map(str.lower, sent):
            sent = {"Host": self._authority, **sent}
        if proxy is not None and not is_tls:
            sent |= _proxy_login(proxy)
        self._headers = _header_lines(sent)

    async def send(
        self,
        target: str,
        body: bytes,
        *,
        method: str = "POST",
        on_new: bool = False,
        mark: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Response:
        """One request, sent once, and its response; ``HttpFailure`` when there is none.

        ``target`` is path and query. ``on_new``: not on a kept connection. ``mark``: what a response to this request
        contains. A connection whose response lacks it is closed, because its responses may no longer belong to its
        requests. ``headers`` go with this request alone.
        """
        connection = await self._connection(on_new)
        sent = self._headers if not headers else self._headers + _header_lines(headers)
        try:
            response, may_stay_open = await self._exchange(connection, method, target, sent, body)
        except ClosedBeforeResponse as error:
            connection.abort()
            raise HttpFailure(str(error), was_stale=not connection.is_fresh) from None
        except BaseException:
            connection.abort()
            raise
        if mark is not None and response.status < 300 and mark.encode() not in response.body:
            may_stay_open = False
        if may_stay_open and not connection.writer.transport.is_closing():
            # Whether anything comes after the response is checked before the connection is used again.
            connection.is_fresh = False
            self._idle.append(connection)
        else:
            connection.abort()
        return response

    async def connect(self) -> None:
        """Make a connection and keep it for the next request; ``HttpFailure`` when that is not possible."""
        self._idle.append(await self._connection(True))

    def close(self) -> None:
        """Close the connections that are not in use."""
        while self._idle:
            self._idle.pop().abort()

    async def _connection(self, on_new: bool) -> _Connection:
        loop = asyncio.get_running_loop()
        if self._loop is not loop:
            # Connections belong to the event loop that made them.
            self.close()
            self._loop = loop
        while self._idle and not on_new:
            connection = self._idle.pop()
            # Usable when the next bytes that come will be the response to the next request.
            if not connection.writer.transport.is_closing() and not connection.has_more():
                return connection
            connection.abort()
        try:
            return await self._connected()
        except (OSError, ssl.SSLError) as error:
            raise HttpFailure(
                f"cannot connect: {_reason(error)}",
                was_sent=False,
                is_unreachable=error.errno not in _OWN_LIMITS,
                is_untrusted=isinstance(error, ssl.SSLCertVerificationError),
            ) from None

    async def _connected(self) -> _Connection:
        host, port = self._host, self._port
        if self._proxy is not None:
            host, port = self._proxy.hostname or "", self._proxy.port or PORTS["http"]
        failure: OSError = OSError("the name has no address")
        for ip in await resolve(host, port):
            try:
                place: dict[str, Any] = {"host": ip, "port": port}
                if self._proxy is not None and self._tls is not None:
                    place = {"sock": await self._tunnel(self._proxy, ip, port)}
                reader, writer = await asyncio.open_connection(
                    **place,
                    limit=MAX_HEAD_BYTES,
                    ssl=self._tls,
                    server_hostname=self._host if self._tls else None,
                )
            except OSError as error:
                failure = error
                continue
            with contextlib.suppress(OSError):
                writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            return _Connection(reader, writer)
        raise failure

    async def _tunnel(self, proxy: SplitResult, ip: str, port: int) -> socket.socket:
        """A socket that is connected to the host through a proxy."""
        loop = asyncio.get_running_loop()
        tunnel = socket.socket(socket.AF_INET6 if ":" in ip else socket.AF_INET, socket.SOCK_STREAM)
        place = _authority(self._host, self._port)
        login = "".join(f"{name}: {value}\r\n" for name, value in _proxy_login(proxy).items())
        try:
            tunnel.setblocking(False)
            await loop.sock_connect(tunnel, (ip, port))
            await loop.sock_sendall(tunnel, f"CONNECT {place} HTTP/1.1\r\nHost: {place}\r\n{login}\r\n".encode())
            head = b""
            while not head.endswith(b"\r\n\r\n"):
                # Byte by byte: what follows the head is already TLS.
                byte = await loop.sock_recv(tunnel, 1)
                if not byte or len(head) > MAX_HEAD_BYTES:
                    raise ConnectionAbortedError("the proxy gave no response")
                head += byte
            words = head.decode("latin-1").split("\r\n", 1)[0].split(" ", 1)
            if not words[-1].startswith("2"):
                raise ConnectionAbortedError(f"the proxy refuses the tunnel: {words[-1]}")
        except BaseException:
            tunnel.close()
            raise
        return tunnel

    async def _exchange(
        self, connection: _Connection, method: str, target: str, headers: bytes, body: bytes
    ) -> tuple[Response, bool]:
        reader, writer = connection.reader, connection.writer
        if self._proxy is not None and self._tls is None:
            target = f"http://{self._authority}{target}"
        opening = f"{method} {target} HTTP/1.1".encode("ascii")
        try:
            writer.write(b"%s%s\r\nContent-Length: %d\r\n\r\n%s" % (opening, headers, len(body), body))
            # A server may answer (413, 401) before it has read all; its answer says more than the broken pipe.
            with contextlib.suppress(ConnectionError):
                await writer.drain()
            head = await read_head(reader)
            content = await read_body(reader, head, self._max_bytes)
        except asyncio.LimitOverrunError:
            raise HttpFailure("the head of the response is too long") from None
        except (OSError, asyncio.IncompleteReadError) as error:
            raise HttpFailure(f"the connection broke: {_reason(error)}") from None
        content = decompressed(content, head.headers.get("content-encoding", ""), self._max_bytes)
        closes = head.is_old or "close" in head.headers.get("connection", "").lower()
        # With both, or with neither, where the response ends is a matter of opinion.
        has_length, has_chunks = "content-length" in head.headers, "transfer-encoding" in head.headers
        is_delimited = head.status in (204, 304) or has_length != has_chunks
        return Response(head.status, head.reason, head.headers, content), is_delimited and not closes


def basic_authorization(address: SplitResult) -> str | None:
    """The ``Authorization`` header for a user and password in an address."""
    if address.username is None and address.password is None:
        return None
    login = f"{unquote(address.username or '')}:{unquote(address.password or '')}"
    return "Basic " + base64.b64encode(login.encode()).decode()


def ascii_host(host: str) -> str:
    """A host name as the name system writes it; ``UnicodeError`` when it has no such form."""
    return host if host.isascii() else host.encode("idna").decode()


async def resolve(host: str, port: int) -> list[str]:
    """The addresses of a host, in the system's order; ``OSError`` when it has none.

    Looked up in a thread that nobody waits for: a resolver that hangs must not delay the end of a run.
    """
    try:
        return [str(ipaddress.ip_address(host))]
    except ValueError:
        pass
    loop = asyncio.get_running_loop()
    found: asyncio.Future[list[str]] = loop.create_future()

    def look_up() -> None:
        answer: Any
        try:
            entries = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
            answer = list(dict.fromkeys(str(entry[4][0]) for entry in entries))
        except (OSError, UnicodeError) as error:
            answer = error if isinstance(error, OSError) else OSError("the name cannot be looked up")
        # The loop may be closed by the time the resolver is done.
        with contextlib.suppress(RuntimeError):
            loop.call_soon_threadsafe(settle, answer)

    def settle(answer: list[str] | OSError) -> None:
        if found.done():
            return
        if isinstance(answer, OSError):
            found.set_exception(answer)
        else:
            found.set_result(answer)

    threading.Thread(target=look_up, name="agentunit-resolver", daemon=True).start()
    return await found


class _Connection:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer
        self.is_fresh = True
        self._fileno = writer.get_extra_info("socket").fileno()
        self._poll = select.poll() if hasattr(select, "poll") else None
        if self._poll is not None:
            self._poll.register(self._fileno, select.POLLIN)

    def has_more(self) -> bool:
        """Whether the end, or bytes that nobody asked for, are there to be read: a second response, for example."""
        step = self.reader.read(1)
        try:
            step.send(None)
        except (StopIteration, OSError):
            return True
        # Nothing in the reader, and nothing lost: the step waits for bytes. The system may hold some.
        step.close()
        if self._poll is None:
            return bool(select.select([self._fileno], [], [], 0)[0])
        return bool(self._poll.poll(0))

    def abort(self) -> None:
        # A connection of a closed event loop cannot be aborted; its socket closes when it is collected.
        with contextlib.suppress(RuntimeError):
            self.writer.transport.abort()


def _header_lines(headers: Mapping[str, str]) -> bytes:
    return "".join(f"\r\n{name}: {value}" for name, value in headers.items()).encode("latin-1")


def _authority(host: str, port: int | None) -> str:
    return (f"[{host}]" if ":" in host else host) + ("" if port is None else f":{port}")


def _proxy_login(proxy: SplitResult) -> dict[str, str]:
    login = basic_authorization(proxy)
    return {} if login is None else {"Proxy-Authorization": login}


def _reason(error: BaseException) -> str:
    if isinstance(error, asyncio.IncompleteReadError):
        return "the response ended in the middle"
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"the certificate is not trusted ({error.verify_message})"
    if isinstance(error, socket.gaierror):
        return "the name is not known"
    if isinstance(error, ssl.SSLError):
        return f"TLS failed ({(error.reason or str(error)).lower().replace('_', ' ')})"
    if isinstance(error, OSError) and error.errno:
        return os.strerror(error.errno).lower()
    return str(error).lower() or type(error).__name__
