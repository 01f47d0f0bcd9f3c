"""Reads an HTTP/1.x response from a stream: head, body, chunks and compression, all with limits."""

from __future__ import annotations

import asyncio
import zlib
from typing import NamedTuple

MAX_HEAD_BYTES = 1 << 16
# Empty lines that may stand before a response; some servers end a body with one too many.
_MOST_EMPTY_LINES = 8
FRAMING_HEADERS = ("content-length", "transfer-encoding")
_READ_BYTES = 1 << 16


class Response(NamedTuple):
    """What a server sent. Names of headers are in lower case; the body is decompressed."""

    status: int
    reason: str
    headers: dict[str, str]
    body: bytes


class HttpFailure(Exception):
    """No usable response; ``was_sent`` says whether the server may have seen the whole request.

    ``was_stale``: a kept connection was closed without a response. Servers close idle connections as they like, so this
    says nothing about the request. ``is_unreachable``: no connection could be made, which is no fault of the request
    either; ``is_untrusted``: because of the certificate.
    """

    def __init__(
        self,
        message: str,
        *,
        was_sent: bool = True,
        was_stale: bool = False,
        is_unreachable: bool = False,
        is_untrusted: bool = False,
    ) -> None:
        super().__init__(message)
        self.was_sent = was_sent
        self.was_stale = was_stale
        self.is_unreachable = is_unreachable
        self.is_untrusted = is_untrusted


class ClosedBeforeResponse(HttpFailure):
    """The server closed the connection before the first byte of a response."""

    def __init__(self) -> None:
        super().__init__("the server closed the connection without a response")


class Head(NamedTuple):
    """Status line and headers of a response; ``is_old``: of HTTP/1.0."""

    status: int
    reason: str
    headers: dict[str, str]
    is_old: bool


async def read_head(reader: asyncio.StreamReader) -> Head:
    """The head of the next response that is not an interim one (1xx). Empty lines before it are skipped."""
    n_empty = 0
    while True:
        try:
            head = await reader.readuntil(b"\r\n\r\n")
        except (asyncio.IncompleteReadError, ConnectionError) as error:
            if not getattr(error, "partial", b""):
                raise ClosedBeforeResponse from None
            raise
        stripped = head.lstrip(b"\r\n")
        n_empty += (len(head) - len(stripped)) // 2
        if n_empty > _MOST_EMPTY_LINES:
            raise HttpFailure("what came back is not HTTP")
        if not stripped:
            continue
        first, *lines = stripped.decode("latin-1").split("\r\n")
        version, _, rest = first.partition(" ")
        code = rest[:3]
        if version not in ("HTTP/1.1", "HTTP/1.0") or not (code.isascii() and code.isdigit() and len(code) == 3):
            raise HttpFailure("what came back is not HTTP")
        if code[0] == "1":
            continue
        headers: dict[str, str] = {}
        for line in lines:
            name, colon, value = line.partition(":")
            name, value = name.strip().lower(), value.strip()
            if name in FRAMING_HEADERS and headers.get(name, value) != value:
                raise HttpFailure("the response has two lengths")
            if colon:
                headers[name] = value
        return Head(int(code), rest[4:].strip(), headers, version == "HTTP/1.0")


async def read_body(reader: asyncio.StreamReader, head: Head, max_bytes: int) -> bytes:
    """The body as sent: by length, in chunks (trailers are dropped), or until the connection closes."""
    if head.status in (204, 304):
        return b""
    coding = head.headers.get("transfer-encoding", "").lower()
    if coding:
        if coding != "chunked":
            raise HttpFailure("the response has a transfer encoding other than chunked")
        return await _read_chunks(reader, max_bytes)
    length = head.headers.get("content-length")
    if length is None:
        return await _read_until_closed(reader, max_bytes)
    if not (length.isascii() and length.isdigit()):
        raise HttpFailure("the response has a length that is not a number")
    # Python refuses to read a number of thousands of digits; one of 18 is too long already.
    n_bytes = int(length.lstrip("0")[:18] or "0")
    _check_size(n_bytes, max_bytes)
    return await reader.readexactly(n_bytes)


async def _read_chunks(reader: asyncio.StreamReader, max_bytes: int) -> bytes:
    parts: list[bytes] = []
    total = 0
    while True:
        digits = (await reader.readuntil(b"\r\n")).split(b";", 1)[0].strip()
        if not digits or digits.strip(b"0123456789abcdefABCDEF"):
            raise HttpFailure("a chunk of the response has no size")
        size = int(digits, 16)
        if size == 0:
            break
        total += size
        _check_size(total, max_bytes)
        parts.append(await reader.readexactly(size))
        if await reader.readexactly(2) != b"\r\n":
            raise HttpFailure("a chunk of the response is longer than its size")
    trailer_bytes = 0
    while (line := await reader.readuntil(b"\r\n")) != b"\r\n":
        trailer_bytes += len(line)
        _check_size(trailer_bytes, MAX_HEAD_BYTES)
    return b"".join(parts)


async def _read_until_closed(reader: asyncio.StreamReader, max_bytes: int) -> bytes:
    parts: list[bytes] = []
    total = 0
    while part := await reader.read(_READ_BYTES):
        total += len(part)
        _check_size(total, max_bytes)
        parts.append(part)
    return b"".join(parts)


def decompressed(body: bytes, coding: str, max_bytes: int) -> bytes:
    """A body without its content encoding, which some servers use without being asked."""
    coding = coding.strip().lower()
    if coding in ("", "identity"):
        return body
    if coding not in ("gzip", "x-gzip", "deflate"):
        raise HttpFailure(f"the response is encoded as {coding[:40]!r}, which was not asked for")
    # Some servers send "deflate" without the frame that the standard asks for.
    has_frame = coding != "deflate" or body[:1] == b"\x78"
    stream = zlib.decompressobj(zlib.MAX_WBITS | 32 if has_frame else -zlib.MAX_WBITS)
    try:
        content = stream.decompress(body, max_bytes + 1)
    except zlib.error as error:
        raise HttpFailure(f"the response cannot be decompressed: {error}") from None
    _check_size(len(content), max_bytes)
    if not stream.eof or stream.unused_data:
        raise HttpFailure("the compressed response does not end where its body does")
    return content


def _check_size(n_bytes: int, max_bytes: int) -> None:
    if n_bytes > max_bytes:
        size = f"{max_bytes >> 20} MiB" if max_bytes >= 1 << 20 else f"{max_bytes} bytes"
        raise HttpFailure(f"the response is longer than {size}")
