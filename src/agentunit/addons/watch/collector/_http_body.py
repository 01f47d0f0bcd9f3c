"""The body of an HTTP request: read within limits of time and memory, and decompressed."""

from __future__ import annotations

import io
import time
import zlib
from collections.abc import Callable, Iterable, Iterator
from email.message import Message
from socket import socket

from agentunit.addons.watch.collector.request_limits import RefusedRequest, Reservation, too_large

_PIECE_BYTES = 1 << 16
_LONGEST_LINE_BYTES = 4096
_MOST_TRAILERS = 100
_MOST_MEMBERS = 1000
# Both spellings of zlib, with its own header or gzip's.
_ANY_HEADER = 32 + zlib.MAX_WBITS
_COMPRESSIONS = frozenset({"gzip", "x-gzip", "deflate"})
_GZIP, _ZLIB = b"\x1f\x8b", b"\x78"


class TimedSocket(io.RawIOBase):
    """The reading side of a connection that stops waiting: for the next byte, and for a whole request."""

    def __init__(self, connection: socket, *, idle_s: float, stall_s: float, request_s: float) -> None:
        self._connection = connection
        self._idle_s, self._stall_s, self._request_s = idle_s, stall_s, request_s
        self.await_request()

    def await_request(self) -> None:
        """Wait for the next request; its time starts with its first byte."""
        self._deadline: float | None = None

    def readable(self) -> bool:
        """It is."""
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        """Read what is there; ``TimeoutError`` when the sender is too slow."""
        if self._deadline is None:
            self._connection.settimeout(self._idle_s)
        else:
            left_s = self._deadline - time.monotonic()
            if left_s <= 0:
                raise TimeoutError("the request took too long")
            self._connection.settimeout(min(left_s, self._stall_s))
        n_read = self._connection.recv_into(buffer)
        if self._deadline is None:
            self._deadline = time.monotonic() + self._request_s
        return n_read


def read_body(
    stream: io.BufferedIOBase,
    headers: Message,
    reservation: Reservation,
    request_bytes: float,
    send_continue: Callable[[], None] = lambda: None,
) -> bytes:
    """The body, decompressed. Where its length is known, room is taken first; then ``send_continue`` is called."""
    compression = (headers.get("Content-Encoding") or "identity").strip().lower()
    if compression != "identity" and compression not in _COMPRESSIONS:
        raise RefusedRequest(415, f"Content-Encoding must be gzip, deflate or identity; received {compression!r}")
    pieces = _pieces(stream, headers, request_bytes, reservation, send_continue)
    if compression != "identity":
        pieces = _decompressed(pieces, request_bytes)
    return _joined(pieces, reservation, request_bytes)


def decompress_message(message: bytes, reservation: Reservation, request_bytes: float) -> bytes:
    """A gRPC message, decompressed if it begins as gzip or zlib do; no export request does."""
    if message.startswith(_GZIP) or (message.startswith(_ZLIB) and int.from_bytes(message[:2], "big") % 31 == 0):
        # In pieces, since what is left over of one is copied at the end of each gzip member.
        pieces = (message[start : start + _PIECE_BYTES] for start in range(0, len(message), _PIECE_BYTES))
        return _joined(_decompressed(pieces, request_bytes), reservation, request_bytes)
    return message


def _joined(pieces: Iterable[bytes], reservation: Reservation, request_bytes: float) -> bytes:
    body = bytearray()
    for piece in pieces:
        if len(body) + len(piece) > reservation.n_bytes:
            reservation.grow_to(max(len(body) + len(piece), min(2 * len(body), request_bytes)))
        body += piece
    return bytes(body)


def _pieces(
    stream: io.BufferedIOBase,
    headers: Message,
    request_bytes: float,
    reservation: Reservation,
    send_continue: Callable[[], None],
) -> Iterator[bytes]:
    length, coding = headers.get("Content-Length"), headers.get("Transfer-Encoding")
    if coding is not None:
        if length is not None or coding.strip().lower() != "chunked":
            raise RefusedRequest(400, "a request has either a Content-Length or Transfer-Encoding: chunked")
        send_continue()
        yield from _chunks(stream, request_bytes)
        return
    if length is not None and not (length.isascii() and length.isdigit() and len(length) < 20):
        raise RefusedRequest(400, f"Content-Length must be a number of bytes; received {length[:40]!r}")
    n_left = int(length or 0)
    if n_left > request_bytes:
        raise too_large(request_bytes)
    reservation.grow_to(n_left)
    send_continue()
    while n_left:
        yield (piece := _exactly(stream, min(n_left, _PIECE_BYTES)))
        n_left -= len(piece)


def _chunks(stream: io.BufferedIOBase, request_bytes: float) -> Iterator[bytes]:
    n_read = 0
    while True:
        size = _line(stream).split(b";")[0].strip()
        try:
            n_left = int(size, 16) if size.isalnum() else -1
        except ValueError:
            n_left = -1
        if n_left < 0:
            raise RefusedRequest(400, f"the size of a chunk must be a hexadecimal number; received {size[:40]!r}")
        n_read += n_left
        if n_read > request_bytes:
            raise too_large(request_bytes)
        if n_left == 0:
            break
        while n_left:
            yield (piece := _exactly(stream, min(n_left, _PIECE_BYTES)))
            n_left -= len(piece)
        if _line(stream).strip():
            raise RefusedRequest(400, "a chunk is longer than it says")
    for _ in range(_MOST_TRAILERS):
        if not _line(stream).strip():
            return
    raise RefusedRequest(400, f"more than {_MOST_TRAILERS} trailers")


def _decompressed(pieces: Iterable[bytes], request_bytes: float) -> Iterator[bytes]:
    decompressor, n_out, n_members = None, 0, 0
    for piece in pieces:
        full = True
        while piece or full:
            # A gzip file may be several, one after the other.
            if decompressor is None or decompressor.eof:
                n_members += 1
                if n_members > _MOST_MEMBERS:
                    raise RefusedRequest(400, f"the compressed body has more than {_MOST_MEMBERS:,} parts")
                decompressor = zlib.decompressobj(_ANY_HEADER)
            try:
                out = decompressor.decompress(piece, _PIECE_BYTES)
            except zlib.error as error:
                raise RefusedRequest(400, f"the compressed body is damaged ({error})") from None
            n_out += len(out)
            if n_out > request_bytes:
                raise too_large(request_bytes)
            yield out
            piece = decompressor.unused_data if decompressor.eof else decompressor.unconsumed_tail
            # What was held back for want of space comes without further input.
            full = len(out) == _PIECE_BYTES and not decompressor.eof
    if decompressor is not None and not decompressor.eof:
        raise RefusedRequest(400, "the compressed body ends too early")


def _exactly(stream: io.BufferedIOBase, n_bytes: int) -> bytes:
    data = stream.read(n_bytes)
    if len(data) < n_bytes:
        raise ConnectionResetError("the sender went away in the middle of a request")
    return data


def _line(stream: io.BufferedIOBase) -> bytes:
    line = stream.readline(_LONGEST_LINE_BYTES)
    if not line.endswith(b"\n"):
        if len(line) == _LONGEST_LINE_BYTES:
            raise RefusedRequest(400, f"a line of the chunked body is longer than {_LONGEST_LINE_BYTES} bytes")
        raise ConnectionResetError("the sender went away in the middle of a request")
    return line
