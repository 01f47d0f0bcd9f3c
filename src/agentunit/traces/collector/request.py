"""An OTLP/HTTP request: its body read within limits, its spans and log records, and the answer in its encoding.

Answers are so small that they are encoded here: they need no protobuf package.
"""

from __future__ import annotations

import io
import threading
import time
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from email.message import Message
from importlib.util import find_spec
from socket import socket

from msgspec import Struct, field

from agentunit.core.results import InputError, encode_json
from agentunit.traces.formats_base import Source, TraceFormat
from agentunit.traces.otlp.json_requests import OTLP_JSON
from agentunit.traces.otlp.values import NOT_OF_GENAI
from agentunit.traces.spans import LogEvent, PackedSpan, ReadingNotes, Span

PROTOBUF = "application/x-protobuf"
JSON = "application/json"

_REJECTED = {"traces": "rejectedSpans", "logs": "rejectedLogRecords", "metrics": "rejectedDataPoints"}


def success(media_type: str, signal: str, n_rejected: int = 0, message: str = "") -> bytes:
    """The answer to an accepted request; what was not accepted of it is counted, and ``message`` says why.

    >>> success(JSON, "traces", 2, "two spans have no trace id")
    b'{"partialSuccess":{"rejectedSpans":"2","errorMessage":"two spans have no trace id"}}'
    >>> success(PROTOBUF, "traces", 2, "no id")
    b'\\n\\t\\x08\\x02\\x12\\x05no id'
    """
    partial = bool(n_rejected or message)
    if media_type == PROTOBUF:
        rejected = b"\x08" + _varint(n_rejected) if n_rejected else b""
        return _bytes_field(1, rejected + _bytes_field(2, message.encode())) if partial else b""
    # Whole numbers of 64 bits are texts in the JSON form of protobuf.
    details = {_REJECTED[signal]: str(n_rejected), "errorMessage": message}
    return encode_json({"partialSuccess": details} if partial else {})


def failure(media_type: str, message: str) -> bytes:
    """The answer to a request that was not accepted: a ``google.rpc.Status`` with a message.

    >>> failure(JSON, "no"), failure(PROTOBUF, "no")
    (b'{"message":"no"}', b'\\x12\\x02no')
    """
    return _bytes_field(2, message.encode()) if media_type == PROTOBUF else encode_json({"message": message})


def _bytes_field(number: int, data: bytes) -> bytes:
    return bytes([number << 3 | 2]) + _varint(len(data)) + data


def _varint(number: int) -> bytes:
    data = bytearray()
    while number > 0x7F:
        data.append(number & 0x7F | 0x80)
        number >>= 7
    data.append(number)
    return bytes(data)


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


PROTOBUF_MISSING = (
    'protobuf cannot be read here: pip install "agentunit-eval[otel]", or send JSON '
    "(OTEL_EXPORTER_OTLP_PROTOCOL=http/json)"
)

_LONGEST_MESSAGE = 500


class Decoded(Struct):
    """What a request holds. ``unreadable`` counts, by reason, the spans or log records that could not be read.

    ``n_other_logs`` are log records that say nothing about an agent's work.
    """

    spans: list[Span] = field(default_factory=list)
    logs: list[LogEvent] = field(default_factory=list)
    n_other_logs: int = 0
    unreadable: Counter[str] = field(default_factory=Counter)
    notes: ReadingNotes = field(default_factory=ReadingNotes)

    @property
    def n_unreadable(self) -> int:
        """How many spans or log records could not be read."""
        return sum(self.unreadable.values())

    def message(self) -> str:
        """Why something is not kept, for the sender; empty when all is."""
        reasons = [f"{count} × {reason}" for reason, count in self.unreadable.most_common()]
        if self.n_other_logs:
            reasons.append(f"{self.n_other_logs} × {NOT_OF_GENAI}")
        message = "; ".join(reasons)
        return message if len(message) <= _LONGEST_MESSAGE else f"{message[: _LONGEST_MESSAGE - 1]}…"


def protobuf_installed() -> bool:
    """Whether requests in protobuf can be read (extra ``otel``)."""
    try:
        return find_spec("opentelemetry.proto") is not None
    except ModuleNotFoundError:  # the package above it is missing
        return False


def decode_request(media_type: str, body: bytes) -> Decoded:
    """Read a body; parts that cannot be read are counted, and the rest is there."""
    decoded = Decoded()
    # What spans share may stand behind them, so they are unpacked when all is read.
    for each in list(_reader(media_type).read(Source("the request", io.BytesIO(body)), decoded.notes)):
        part = each.unpack(each.data, decoded.notes) if isinstance(each, PackedSpan) else each
        if isinstance(part, LogEvent):
            decoded.logs.append(part)
        elif isinstance(part, Span) and part.trace_id and part.span_id:
            decoded.spans.append(part)
        elif isinstance(part, Span):
            decoded.unreadable["a span without a trace id or a span id"] += 1
        elif isinstance(part, InputError):
            decoded.unreadable[part.reason] += 1
    decoded.n_other_logs = decoded.notes.problems.pop(NOT_OF_GENAI, 0)
    return decoded


def _reader(media_type: str) -> TraceFormat:
    if media_type == PROTOBUF:
        from agentunit.traces.otlp.protobuf_requests import OTLP_PROTOBUF

        return OTLP_PROTOBUF
    return OTLP_JSON
