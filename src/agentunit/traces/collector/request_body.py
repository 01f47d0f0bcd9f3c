"""The body of an HTTP request, read within limits: of size, also when decompressed, and of memory for all together."""

from __future__ import annotations

import io
import threading
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from email.message import Message
from socket import socket

_PIECE_BYTES = 1 << 16
_LONGEST_LINE_BYTES = 4096
_MOST_TRAILERS = 100
# Both spellings of zlib, with its own header or gzip's.
_ANY_HEADER = 32 + zlib.MAX_WBITS
_COMPRESSIONS = frozenset({"gzip", "x-gzip", "deflate"})


class Refused(Exception):
    """A request that is answered with an error. With ``retry_after_s`` the sender is asked to try again."""

    def __init__(self, status: int, message: str, *, retry_after_s: int | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.retry_after_s = retry_after_s


class Room:
    """How many bytes of requests may be in memory at once, counted over all connections."""

    def __init__(self, n_bytes: int) -> None:
        self.n_bytes = n_bytes
        self._n_taken = 0
        self._lock = threading.Lock()

    @contextmanager
    def share(self) -> Iterator[Share]:
        """A request's part of the room, given back at the end."""
        share = Share(self)
        try:
            yield share
        finally:
            self.change(-share.n_bytes)

    def change(self, n_bytes: int) -> bool:
        """Take so many bytes more, or give them back; ``False`` when there is no room."""
        with self._lock:
            if n_bytes > 0 and self._n_taken + n_bytes > self.n_bytes:
                return False
            self._n_taken += n_bytes
            return True


class Share:
    """One request's part of the room."""

    def __init__(self, room: Room) -> None:
        self.n_bytes = 0
        self._room = room

    def grow_to(self, n_bytes: int) -> None:
        """Have room for at least so many bytes, or be refused for the moment."""
        missing = n_bytes - self.n_bytes
        if missing > 0:
            if not self._room.change(missing):
                raise Refused(503, "too much is being taken in at once: try again", retry_after_s=1)
            self.n_bytes = n_bytes


class PatientSocket(io.RawIOBase):
    """The reading side of a connection that does not wait for ever: neither for a byte, nor for a whole request."""

    def __init__(self, connection: socket, *, idle_s: float, stall_s: float, request_s: float) -> None:
        self._connection = connection
        self._idle_s, self._stall_s, self._request_s = idle_s, stall_s, request_s
        self.await_request()

    def await_request(self) -> None:
        """The next bytes may take their time; from the first of them on, the clock of the request runs."""
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
    share: Share,
    longest_bytes: int,
    go_ahead: Callable[[], None] = lambda: None,
) -> bytes:
    """The body, decompressed. Where its length is known, room is taken first; then ``go_ahead`` is called."""
    compression = (headers.get("Content-Encoding") or "identity").strip().lower()
    if compression != "identity" and compression not in _COMPRESSIONS:
        raise Refused(415, f"Content-Encoding must be gzip, deflate or identity; received {compression!r}")
    pieces = _pieces(stream, headers, longest_bytes, share, go_ahead)
    if compression != "identity":
        pieces = _decompressed(pieces, longest_bytes)
    body = bytearray()
    for piece in pieces:
        if len(body) + len(piece) > share.n_bytes:
            share.grow_to(max(len(body) + len(piece), min(2 * len(body), longest_bytes)))
        body += piece
    return bytes(body)


def skip_body(stream: io.BufferedIOBase, headers: Message, longest_bytes: int, go_ahead: Callable[[], None]) -> None:
    """Read the body and keep nothing of it."""
    for _ in _pieces(stream, headers, longest_bytes, None, go_ahead):
        pass


def _pieces(
    stream: io.BufferedIOBase,
    headers: Message,
    longest_bytes: int,
    share: Share | None,
    go_ahead: Callable[[], None],
) -> Iterator[bytes]:
    length, coding = headers.get("Content-Length"), headers.get("Transfer-Encoding")
    if coding is not None:
        if length is not None or coding.strip().lower() != "chunked":
            raise Refused(400, "a request has either a Content-Length or Transfer-Encoding: chunked")
        go_ahead()
        yield from _chunks(stream, longest_bytes)
        return
    if length is not None and not (length.isascii() and length.isdigit() and len(length) < 20):
        raise Refused(400, f"Content-Length must be a number of bytes; received {length[:40]!r}")
    n_left = int(length or 0)
    if n_left > longest_bytes:
        raise _too_large(longest_bytes)
    if share is not None:
        share.grow_to(n_left)
    go_ahead()
    while n_left:
        yield (piece := _exactly(stream, min(n_left, _PIECE_BYTES)))
        n_left -= len(piece)


def _chunks(stream: io.BufferedIOBase, longest_bytes: int) -> Iterator[bytes]:
    n_read = 0
    while True:
        size = _line(stream).split(b";")[0].strip()
        try:
            n_left = int(size, 16) if size.isalnum() else -1
        except ValueError:
            n_left = -1
        if n_left < 0:
            raise Refused(400, f"the size of a chunk must be a hexadecimal number; received {size[:40]!r}")
        n_read += n_left
        if n_read > longest_bytes:
            raise _too_large(longest_bytes)
        if n_left == 0:
            break
        while n_left:
            yield (piece := _exactly(stream, min(n_left, _PIECE_BYTES)))
            n_left -= len(piece)
        if _line(stream).strip():
            raise Refused(400, "a chunk is longer than it says")
    for _ in range(_MOST_TRAILERS):
        if not _line(stream).strip():
            return
    raise Refused(400, f"more than {_MOST_TRAILERS} trailers")


def _decompressed(pieces: Iterator[bytes], longest_bytes: int) -> Iterator[bytes]:
    decompressor, n_out = None, 0
    for piece in pieces:
        full = True
        while piece or full:
            # A gzip file may be several, one after the other.
            if decompressor is None or decompressor.eof:
                decompressor = zlib.decompressobj(_ANY_HEADER)
            try:
                out = decompressor.decompress(piece, _PIECE_BYTES)
            except zlib.error as error:
                raise Refused(400, f"the compressed body is damaged ({error})") from None
            n_out += len(out)
            if n_out > longest_bytes:
                raise _too_large(longest_bytes)
            yield out
            piece = decompressor.unused_data if decompressor.eof else decompressor.unconsumed_tail
            # What was held back for want of space comes without further input.
            full = len(out) == _PIECE_BYTES and not decompressor.eof
    if decompressor is not None and not decompressor.eof:
        raise Refused(400, "the compressed body ends too early")


def _too_large(longest_bytes: int) -> Refused:
    return Refused(
        413,
        f"a request may have {longest_bytes:,} bytes, also when decompressed: send fewer spans at once "
        "(OTEL_BSP_MAX_EXPORT_BATCH_SIZE, OTEL_BLRP_MAX_EXPORT_BATCH_SIZE)",
    )


def _exactly(stream: io.BufferedIOBase, n_bytes: int) -> bytes:
    data = stream.read(n_bytes)
    if len(data) < n_bytes:
        raise ConnectionResetError("the sender went away in the middle of a request")
    return data


def _line(stream: io.BufferedIOBase) -> bytes:
    line = stream.readline(_LONGEST_LINE_BYTES)
    if not line.endswith(b"\n"):
        if len(line) == _LONGEST_LINE_BYTES:
            raise Refused(400, f"a line of the chunked body is longer than {_LONGEST_LINE_BYTES} bytes")
        raise ConnectionResetError("the sender went away in the middle of a request")
    return line
