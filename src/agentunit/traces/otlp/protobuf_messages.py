"""OTLP's protocol buffers: walked field by field without holding the file, and made into spans and log records.

Decoding a message needs the extra ``otel``; walking the file does not.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator
from math import isfinite
from typing import Any, NamedTuple

from agentunit.installation import install_command
from agentunit.traces.compressed import read_pieces
from agentunit.traces.formats_base import Source
from agentunit.traces.limits import Parts
from agentunit.traces.otlp.otlp_values import GENAI_EVENTS, TOO_LONG, Encoding
from agentunit.traces.spans import LONGEST_ATTRIBUTE, LogEvent, ReadingNotes, Span, SpanEvent, SpanStatus

VARINT, FIXED64, DELIMITED, FIXED32 = 0, 1, 2, 5

_CHUNK_BYTES = 1 << 20
_FIXED_BYTES = {FIXED64: 8, FIXED32: 4}
_LONGEST_VARINT = 10


class BadWire(Exception):
    """The bytes are no protocol buffers here."""


class WireEnds(BadWire):
    """The file ends too early, or cannot be read any further."""


class WireField(NamedTuple):
    """A field by its number and kind. ``length`` are the bytes of its content, which come next in the stream."""

    number: int
    kind: int
    length: int


class WireStream:
    """A place in a stream of protocol buffers."""

    def __init__(self, source: Source) -> None:
        self._stream = source.stream
        self._parts = Parts(source.most_parts)
        self._buffer = b""
        self._at = 0
        self._dropped = 0
        self._broken: str | None = None
        self._at_end = False

    @property
    def offset(self) -> int:
        """The place in bytes from the beginning."""
        return self._dropped + self._at

    def look(self, n_bytes: int) -> bytes:
        """The next bytes, without taking them; fewer at the end."""
        while (missing := n_bytes - (len(self._buffer) - self._at)) > 0 and self._read_more(missing):
            pass
        return self._buffer[self._at : self._at + n_bytes]

    def ended(self) -> bool:
        """Whether nothing follows. Raises ``WireEnds`` where a compressed file broke off."""
        if self._at < len(self._buffer) or self._read_more():
            return False
        if self._broken is not None:
            raise WireEnds(self._broken)
        return True

    def take(self, n_bytes: int) -> bytes:
        """The next bytes."""
        data = self.look(n_bytes)
        if len(data) < n_bytes:
            raise WireEnds(self._broken or "the file ends in the middle of a message")
        self._at += n_bytes
        return data

    def skip(self, n_bytes: int) -> None:
        """Move on, however far."""
        while n_bytes > 0:
            n_bytes -= len(self.take(min(n_bytes, _CHUNK_BYTES)))

    def varint(self) -> int:
        """A number of variable length."""
        number = 0
        for place in range(_LONGEST_VARINT):
            byte = self.take(1)[0]
            number |= (byte & 0x7F) << (7 * place)
            if byte < 0x80:
                return number
        raise BadWire("no protocol buffers: a number has no end")

    def fields(self, end: int | None) -> Iterator[WireField]:
        """The fields up to an offset, or to the end. Take or walk a field's content, or it is skipped."""
        while self.offset < end if end is not None else not self.ended():
            self._parts.count()
            tag = self.varint()
            number, kind = tag >> 3, tag & 7
            if number == 0 or (kind not in _FIXED_BYTES and kind not in (VARINT, DELIMITED)):
                raise BadWire(f"no protocol buffers: a field of number {number} and kind {kind}")
            if kind == VARINT:
                self.varint()
                yield WireField(number, kind, 0)
                continue
            length = self.varint() if kind == DELIMITED else _FIXED_BYTES[kind]
            field_end = self.offset + length
            if end is not None and field_end > end:
                raise BadWire("no protocol buffers: a field is longer than what holds it")
            yield WireField(number, kind, length)
            self.skip(field_end - self.offset)
        if end is not None and self.offset != end:
            raise BadWire("no protocol buffers: a field is longer than what holds it")

    def _read_more(self, n_bytes: int = 0) -> bool:
        """Another chunk, and at least so many bytes if there are so many; false at the end."""
        if self._at_end:
            return False
        kept = self._buffer[self._at :]
        pieces, self._at_end, self._broken = read_pieces(self._stream, max(n_bytes, _CHUNK_BYTES))
        self._dropped += self._at
        self._buffer = b"".join([kept, *pieces])
        self._at = 0
        return len(self._buffer) > len(kept)


_STATUSES: dict[int, SpanStatus] = {0: "unset", 1: "ok", 2: "error"}
_NANOSECONDS = 10**9


class ProtobufMissing(RuntimeError):
    """A protobuf file was given and the optional package that reads it is not installed."""


class MessageTypes:
    """OTLP's message types, loaded when the first of them is needed."""

    def __init__(self) -> None:
        try:
            from google.protobuf.message import DecodeError  # type: ignore[import-untyped,unused-ignore]
            from opentelemetry.proto.common.v1.common_pb2 import InstrumentationScope
            from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord
            from opentelemetry.proto.resource.v1.resource_pb2 import Resource
            from opentelemetry.proto.trace.v1.trace_pb2 import Span as SpanMessage
        except ImportError:
            hint = f"reading OTLP protobuf needs the extra otel: {install_command('otel')}"
            raise ProtobufMissing(hint) from None
        self.damage: type[Exception] = DecodeError
        self._scope: Any = InstrumentationScope
        self._log: Any = LogRecord
        self._resource: Any = Resource
        self._span: Any = SpanMessage
        self.encoding = Encoding("otlp-protobuf", self.resource_attributes, self.scope_name, self.span)

    def resource_attributes(self, data: bytes | None, notes: ReadingNotes) -> dict[str, Any]:
        """The attributes of a resource."""
        message = self._parsed(self._resource, data or b"", "resource", notes)
        return {} if message is None else _attributes(message.attributes, notes)

    def scope_name(self, data: bytes | None, notes: ReadingNotes) -> str:
        """The name of a scope."""
        message = self._parsed(self._scope, data or b"", "scope", notes)
        return "" if message is None else str(message.name)

    def span(self, data: bytes, resource: dict[str, Any], scope: str, notes: ReadingNotes) -> Span:
        """A span. Of one that is damaged only the trace id is left."""
        message = self._parsed(self._span, data, "span", notes)
        if message is None:
            return Span(data[2:18].hex() if data.startswith(b"\x0a\x10") else "", "", scope=scope, resource=resource)
        return Span(
            trace_id=message.trace_id.hex(),
            span_id=message.span_id.hex(),
            parent_id=message.parent_span_id.hex() if any(message.parent_span_id) else None,
            name=message.name,
            start_s=_seconds(message.start_time_unix_nano),
            end_s=_seconds(message.end_time_unix_nano),
            status=_STATUSES.get(message.status.code, "unset"),
            status_message=message.status.message,
            attributes=_attributes(message.attributes, notes),
            events=[
                SpanEvent(event.name, _seconds(event.time_unix_nano), _attributes(event.attributes, notes))
                for event in message.events
            ],
            scope=scope,
            resource=resource,
        )

    def trace_id(self, data: bytes) -> str | None:
        """The trace id of a span, or ``None``."""
        message = self._span.FromString(data)
        return message.trace_id.hex() if any(message.trace_id) else None

    def log_event(self, data: bytes, notes: ReadingNotes) -> LogEvent | None:
        """A log record that belongs to a span and carries contents of a GenAI call; ``None`` for any other."""
        message = self._log.FromString(data)
        attributes = _attributes(message.attributes, notes)
        # Older packages do not know the field and find the name among the attributes only.
        name = getattr(message, "event_name", "") or attributes.get("event.name")
        if not isinstance(name, str) or not name.startswith(GENAI_EVENTS) or not any(message.trace_id):
            return None
        body = _plain(message.body)
        if body is not None:
            attributes["body"] = body
        time = _seconds(message.time_unix_nano) or _seconds(message.observed_time_unix_nano)
        return LogEvent(message.trace_id.hex(), message.span_id.hex(), SpanEvent(name, time, attributes))

    def unpack_log(self, data: bytes, notes: ReadingNotes) -> LogEvent:
        """The log record in some bytes."""
        event = self.log_event(data, notes)
        if event is None:
            raise ValueError("no log record of a GenAI call")
        return event

    def _parsed(self, kind: Any, data: bytes, what: str, notes: ReadingNotes) -> Any:
        try:
            return kind.FromString(data)
        except self.damage:
            notes.problems[f"a {what} that is not valid protobuf was left out"] += 1
            return None


def _attributes(pairs: Any, notes: ReadingNotes) -> dict[str, Any]:
    attributes: dict[str, Any] = {}
    for pair in pairs:
        if pair.value.ByteSize() > LONGEST_ATTRIBUTE:
            notes.problems[TOO_LONG] += 1
            continue
        value = _plain(pair.value)
        if value is not None:
            attributes[pair.key] = value
    return attributes


def _plain(value: Any) -> Any:
    """A typed value as plain data, the same as it is read from JSON: bytes are base64."""
    kind = value.WhichOneof("value")
    if kind == "array_value":
        return [_plain(each) for each in value.array_value.values]
    if kind == "kvlist_value":
        return {pair.key: _plain(pair.value) for pair in value.kvlist_value.values}
    if kind == "bytes_value":
        return b64encode(value.bytes_value).decode()
    plain = getattr(value, kind) if kind is not None else None
    return None if plain.__class__ is float and not isfinite(plain) else plain


def _seconds(nanoseconds: int) -> float | None:
    return nanoseconds / _NANOSECONDS if nanoseconds else None
