"""An OTLP request: its spans and log records, and the answer in its encoding.

Answers are so small that they are encoded here: they need no protobuf package.
"""

from __future__ import annotations

import io
from collections import Counter
from importlib.util import find_spec

from msgspec import Struct, field

from agentunit.core.results import InputError, encode_json
from agentunit.installation import install_command
from agentunit.traces.formats_base import Source, TraceFormat
from agentunit.traces.limits import Parts, most_request_parts
from agentunit.traces.otlp.json_requests import OTLP_JSON
from agentunit.traces.otlp.otlp_values import NOT_OF_GENAI
from agentunit.traces.otlp.stored_requests import PROTOBUF
from agentunit.traces.spans import LogEvent, PackedSpan, ReadingNotes, Span

_REJECTED = {"traces": "rejectedSpans", "logs": "rejectedLogRecords", "metrics": "rejectedDataPoints"}


def success(media_type: str, signal: str, n_rejected: int = 0, message: str = "") -> bytes:
    """The answer to an accepted request; what was not accepted of it is counted, and ``message`` says why.

    >>> success("application/json", "traces", 2, "two spans have no trace id")
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

    >>> failure("application/json", "no"), failure(PROTOBUF, "no")
    (b'{"message":"no"}', b'\\x12\\x02no')
    """
    return _bytes_field(2, message.encode()) if media_type == PROTOBUF else encode_json({"message": message})


def grpc_failure(code: int, message: str, retry_after_s: int | None) -> tuple[tuple[str, bytes], ...]:
    """The details of a failed call, as metadata after it: when to try again, where all exporters look for that."""
    if retry_after_s is None:
        return ()
    retry_info = _bytes_field(1, b"\x08" + _varint(retry_after_s))
    detail = _bytes_field(1, b"type.googleapis.com/google.rpc.RetryInfo") + _bytes_field(2, retry_info)
    status = b"\x08" + _varint(code) + _bytes_field(2, message.encode()) + _bytes_field(3, detail)
    # The exporter of the OpenTelemetry SDK for Python reads the second one.
    return (("grpc-status-details-bin", status), ("google.rpc.retryinfo-bin", retry_info))


def _bytes_field(number: int, data: bytes) -> bytes:
    return bytes([number << 3 | 2]) + _varint(len(data)) + data


def _varint(number: int) -> bytes:
    data = bytearray()
    while number > 0x7F:
        data.append(number & 0x7F | 0x80)
        number >>= 7
    data.append(number)
    return bytes(data)


INSTALL_HINT = install_command("collect")
PROTOBUF_MISSING = f"protobuf cannot be read here: {INSTALL_HINT}, or send JSON (OTEL_EXPORTER_OTLP_PROTOCOL=http/json)"

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
    """Whether requests in protobuf can be read (extra ``collect`` or ``otel``)."""
    return _is_installed("opentelemetry.proto")


def grpc_installed() -> bool:
    """Whether gRPC can be served (extra ``collect``)."""
    return _is_installed("grpc") and protobuf_installed()


def _is_installed(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:  # the package above it is missing
        return False


def decode_request(media_type: str, body: bytes) -> Decoded:
    """Read a body; parts that cannot be read are counted, and the rest is there.

    A body of too many messages is refused with ``LimitExceeded``.
    """
    decoded = Decoded()
    most = most_request_parts()
    items, found = Parts(most), []
    for each in _reader(media_type).read(Source("the request", io.BytesIO(body), most), decoded.notes):
        items.count()
        found.append(each)
    # What spans share may stand behind them, so they are unpacked when all is read.
    for each in found:
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
