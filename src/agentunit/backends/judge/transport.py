"""HTTP/1.1 to one address: connections kept open, bodies bounded, no proxy, no redirect.

Written on asyncio's streams: a call costs a fraction of what it costs with the general clients, and the judge needs no
package beyond the base install. Certificates are checked against the system's store.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import select
import socket
import ssl
from typing import NamedTuple

from agentunit.backends.judge.address import Address
from agentunit.backends.judge.resolving import resolved

MOST_BODY_BYTES = 4 << 20
_MOST_HEAD_BYTES = 1 << 16
_READ_BYTES = 1 << 16
# This process has too many files open; the server may be there.
_OWN_LIMITS = (errno.EMFILE, errno.ENFILE)


class Response(NamedTuple):
    """What a server sent. Names of headers are in lower case."""

    status: int
    headers: dict[str, str]
    body: bytes


class ExchangeFailed(Exception):
    """No usable response; ``was_sent`` says whether the server may have seen the whole request.

    ``was_stale``: on a connection kept from before, which was closed without a response. Servers close idle connections
    as they like, so this says nothing about the request. ``is_unreachable``: no connection could be made, which is no
    fault of the request either; ``is_untrusted``: because of the certificate.
    """

    def __init__(
        self,
        message: str,
        *,
        was_sent: bool,
        was_stale: bool = False,
        is_unreachable: bool = False,
        is_untrusted: bool = False,
    ) -> None:
        super().__init__(message)
        self.was_sent = was_sent
        self.was_stale = was_stale
        self.is_unreachable = is_unreachable
        self.is_untrusted = is_untrusted


class _Watch:
    """Tells whether the system holds bytes of a connection that the event loop has not read yet."""

    def __init__(self, fileno: int) -> None:
        self._fileno = fileno
        self._poll = select.poll() if hasattr(select, "poll") else None
        if self._poll is not None:
            self._poll.register(fileno, select.POLLIN)

    def is_readable(self) -> bool:
        if self._poll is None:
            return bool(select.select([self._fileno], [], [], 0)[0])
        return bool(self._poll.poll(0))


class _Connection:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer
        self.is_fresh = True
        self._watch = _Watch(writer.get_extra_info("socket").fileno())

    @property
    def is_usable(self) -> bool:
        """Whether the next bytes that come will be the response to the next request."""
        return not self.writer.transport.is_closing() and not self._has_more()

    def _has_more(self) -> bool:
        """Whether the end, or bytes that nobody asked for, are there to be read: a second response, for example."""
        step = self.reader.read(1)
        try:
            step.send(None)
        except (StopIteration, OSError):
            return True
        # Nothing in the reader, and nothing lost: the step waits for bytes.
        step.close()
        return self._watch.is_readable()

    def cut(self) -> None:
        self.writer.transport.abort()


class Transport:
    """Sends requests to one address, each on a connection of its own; connections are used again."""

    def __init__(self, address: Address) -> None:
        self._address = address
        self._tls = ssl.create_default_context() if address.is_tls else None
        self._idle: list[_Connection] = []
        host = f"[{address.host}]" if ":" in address.host else address.host
        default_port = 443 if address.is_tls else 80
        lines = [
            f"POST {address.target} HTTP/1.1",
            f"Host: {host}" + ("" if address.port == default_port else f":{address.port}"),
            "User-Agent: agentunit",
            "Accept: application/json",
            "Accept-Encoding: identity",
            "Content-Type: application/json",
        ]
        if address.authorization is not None:
            lines.append(f"Authorization: {address.authorization}")
        self._head = "\r\n".join(lines).encode("ascii")

    async def post(self, body: bytes, *, on_new: bool = False, mark: str | None = None) -> Response:
        """One request, sent once, and its response; ``ExchangeFailed`` when there is none.

        ``on_new``: not on a connection kept from before. ``mark``: what a response to this request holds. A connection
        whose response lacks it is not used again, because its responses may no longer belong to its requests.
        """
        connection = await self._connection(on_new)
        try:
            response, may_stay_open = await self._exchange(connection, body)
        except _ClosedBeforeResponse as error:
            connection.cut()
            raise ExchangeFailed(str(error), was_sent=True, was_stale=not connection.is_fresh) from None
        except BaseException:
            connection.cut()
            raise
        if mark is not None and response.status < 300 and mark.encode() not in response.body:
            may_stay_open = False
        if may_stay_open and not connection.writer.transport.is_closing():
            # Whether anything comes after the response is looked at before it is used again.
            connection.is_fresh = False
            self._idle.append(connection)
        else:
            connection.cut()
        return response

    async def reach(self) -> None:
        """Make a connection and keep it for the next request; ``ExchangeFailed`` when that is not possible."""
        self._idle.append(await self._connection(True))

    def close(self) -> None:
        """Close the connections that are not in use."""
        while self._idle:
            self._idle.pop().cut()

    async def _connection(self, on_new: bool) -> _Connection:
        while self._idle and not on_new:
            connection = self._idle.pop()
            if connection.is_usable:
                return connection
            connection.cut()
        try:
            return await self._connected()
        except (OSError, ssl.SSLError) as error:
            raise ExchangeFailed(
                f"cannot connect: {_spoken(error)}",
                was_sent=False,
                is_unreachable=error.errno not in _OWN_LIMITS,
                is_untrusted=isinstance(error, ssl.SSLCertVerificationError),
            ) from None

    async def _connected(self) -> _Connection:
        failure: OSError = OSError("the name has no address")
        for ip in await resolved(self._address.host, self._address.port):
            try:
                reader, writer = await asyncio.open_connection(
                    ip,
                    self._address.port,
                    limit=_MOST_HEAD_BYTES,
                    ssl=self._tls,
                    server_hostname=self._address.host if self._tls else None,
                )
            except OSError as error:
                failure = error
                continue
            with contextlib.suppress(OSError):
                writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            return _Connection(reader, writer)
        raise failure

    async def _exchange(self, connection: _Connection, body: bytes) -> tuple[Response, bool]:
        reader, writer = connection.reader, connection.writer
        try:
            writer.write(b"%s\r\nContent-Length: %d\r\n\r\n%s" % (self._head, len(body), body))
            # A server may answer (413, 401) before it has read all; its answer says more than the broken pipe.
            with contextlib.suppress(ConnectionError):
                await writer.drain()
            status, headers, is_old = await _head(reader)
            content = await _body(reader, headers, status)
        except asyncio.LimitOverrunError:
            raise ExchangeFailed("the head of the response is too long", was_sent=True) from None
        except (ConnectionError, ssl.SSLError, asyncio.IncompleteReadError, OSError) as error:
            raise ExchangeFailed(f"the connection broke: {_spoken(error)}", was_sent=True) from None
        if headers.get("content-encoding", "identity").lower() != "identity":
            raise ExchangeFailed("the response is compressed, which was not asked for", was_sent=True)
        closes = is_old or "close" in headers.get("connection", "").lower()
        # With both, or with neither, where the response ends is a matter of opinion.
        delimited = status in (204, 304) or ("content-length" in headers) != ("transfer-encoding" in headers)
        return Response(status, headers, content), delimited and not closes


class _ClosedBeforeResponse(ExchangeFailed):
    def __init__(self) -> None:
        super().__init__("the server closed the connection without a response", was_sent=True)


async def _head(reader: asyncio.StreamReader) -> tuple[int, dict[str, str], bool]:
    while True:
        try:
            head = await reader.readuntil(b"\r\n\r\n")
        except (asyncio.IncompleteReadError, ConnectionError) as error:
            if not getattr(error, "partial", b""):
                raise _ClosedBeforeResponse from None
            raise
        first, *lines = head.decode("latin-1").split("\r\n")
        version, _, rest = first.partition(" ")
        code = rest[:3]
        if version not in ("HTTP/1.1", "HTTP/1.0") or not (code.isascii() and code.isdigit() and len(code) == 3):
            raise ExchangeFailed("what came back is not HTTP", was_sent=True)
        if code[0] == "1":
            continue
        headers: dict[str, str] = {}
        for line in lines:
            name, colon, value = line.partition(":")
            name, value = name.strip().lower(), value.strip()
            if name in ("content-length", "transfer-encoding") and headers.get(name, value) != value:
                raise ExchangeFailed("the response has two lengths", was_sent=True)
            if colon:
                headers[name] = value
        return int(code), headers, version == "HTTP/1.0"


async def _body(reader: asyncio.StreamReader, headers: dict[str, str], status: int) -> bytes:
    if status in (204, 304):
        return b""
    coding = headers.get("transfer-encoding", "").lower()
    if coding:
        if coding != "chunked":
            raise ExchangeFailed("the response has a transfer encoding other than chunked", was_sent=True)
        return await _chunks(reader)
    length = headers.get("content-length")
    if length is None:
        return await _until_closed(reader)
    if not (length.isascii() and length.isdigit()):
        raise ExchangeFailed("the response has a length that is no number", was_sent=True)
    _check_size(int(length))
    return await reader.readexactly(int(length))


async def _chunks(reader: asyncio.StreamReader) -> bytes:
    parts: list[bytes] = []
    total = 0
    while True:
        digits = (await reader.readuntil(b"\r\n")).split(b";", 1)[0].strip()
        if not digits or digits.strip(b"0123456789abcdefABCDEF"):
            raise ExchangeFailed("a chunk of the response has no size", was_sent=True)
        size = int(digits, 16)
        if size == 0:
            break
        total += size
        _check_size(total)
        parts.append(await reader.readexactly(size))
        if await reader.readexactly(2) != b"\r\n":
            raise ExchangeFailed("a chunk of the response is longer than its size", was_sent=True)
    while await reader.readuntil(b"\r\n") != b"\r\n":
        pass
    return b"".join(parts)


async def _until_closed(reader: asyncio.StreamReader) -> bytes:
    parts: list[bytes] = []
    total = 0
    while part := await reader.read(_READ_BYTES):
        total += len(part)
        _check_size(total)
        parts.append(part)
    return b"".join(parts)


def _check_size(n_bytes: int) -> None:
    if n_bytes > MOST_BODY_BYTES:
        raise ExchangeFailed(f"the response is longer than {MOST_BODY_BYTES >> 20} MiB", was_sent=True)


def _spoken(error: BaseException) -> str:
    if isinstance(error, asyncio.IncompleteReadError):
        return "the response ended in the middle"
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"the certificate is not trusted ({error.verify_message})"
    if isinstance(error, socket.gaierror):
        return "the name is not known"
    text = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return text.lower() or type(error).__name__
