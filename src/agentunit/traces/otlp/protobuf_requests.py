"""OTLP protobuf files: one export request, or many of them with their lengths before them.

The messages are walked down to the spans without being parsed, so that a file of any size is never held whole; a span
is parsed when its trace is put together.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from typing import Literal

from agentunit.core.results import InputError
from agentunit.traces.formats_base import Opening, Source, TraceFormat
from agentunit.traces.limits import LimitExceeded, check_protobuf_nodes, item_too_long, read_limits
from agentunit.traces.otlp.otlp_values import NOT_OF_GENAI, UNDEFINED, Level, Unpack, Unpacks
from agentunit.traces.otlp.protobuf_messages import (
    DELIMITED,
    FIXED32,
    FIXED64,
    VARINT,
    BadWire,
    MessageTypes,
    ProtobufMissing,
    WireEnds,
    WireStream,
)
from agentunit.traces.spans import PackedSpan, ReadingNotes

Framing = Literal["one message", "varint", "four bytes"]

_HEAD_BYTES = 64 << 10
_FRAMINGS: tuple[Framing, ...] = ("one message", "varint", "four bytes")

_REQUEST_RESOURCE = 1
_SHARED = 1
_NESTED = (2, 1000)  # 1000: instrumentation libraries, as scopes were called once
_SPAN_FIELDS = {
    1: DELIMITED, 2: DELIMITED, 3: DELIMITED, 4: DELIMITED, 5: DELIMITED, 6: VARINT, 7: FIXED64, 8: FIXED64,
    9: DELIMITED, 10: VARINT, 11: DELIMITED, 12: VARINT, 13: DELIMITED, 14: VARINT, 15: DELIMITED, 16: FIXED32,
}  # fmt: skip
_LOG_FIELDS = {
    1: FIXED64, 2: VARINT, 3: DELIMITED, 5: DELIMITED, 6: DELIMITED, 7: VARINT, 8: FIXED32, 9: DELIMITED,
    10: DELIMITED, 11: FIXED64, 12: DELIMITED,
}  # fmt: skip
_LEVEL_FIELDS = frozenset((1, 2, 3, 1000))
_TRACE_ID_START = b"\x0a\x10"


class _Reading:
    """One file on its way to packed spans."""

    def __init__(self, source: Source, notes: ReadingNotes) -> None:
        self._source = source
        self._wire = WireStream(source)
        self._notes = notes
        self._longest = read_limits().item_bytes
        self._messages = MessageTypes()
        self._unpacks = Unpacks(self._messages.encoding)
        self._unpack_log = self._messages.unpack_log

    def spans(self) -> Iterator[PackedSpan | InputError]:
        """What the file holds; after damage in a message, the next one is read if it is known where it begins."""
        try:
            framing = framing_of(self._wire.look(_HEAD_BYTES)) or "one message"
            if framing == "one message":
                yield from self._message(None)
                return
            while not self._wire.ended():
                length = self._wire.varint() if framing == "varint" else int.from_bytes(self._wire.take(4), "big")
                end = self._wire.offset + length
                try:
                    yield from self._message(end)
                except WireEnds:
                    raise
                except BadWire as bad:
                    yield self._error(str(bad))
                    if self._wire.offset > end:
                        return
                self._wire.skip(end - self._wire.offset)
        except BadWire as bad:
            yield self._error(str(bad))

    def _message(self, end: int | None) -> Iterator[PackedSpan | InputError]:
        for field in self._wire.fields(end):
            if field.number == _REQUEST_RESOURCE and field.kind == DELIMITED:
                yield from self._level(Level(), self._wire.offset + field.length, self._within_resource)
            else:
                self._notes.problems[UNDEFINED] += 1

    def _level(
        self, level: Level, end: int, nested: Callable[[Level, int], Iterator[PackedSpan | InputError]]
    ) -> Iterator[PackedSpan | InputError]:
        is_resource = level.above is None
        for field in self._wire.fields(end):
            if field.kind != DELIMITED or field.number not in _LEVEL_FIELDS:
                self._notes.problems[UNDEFINED] += 1
            elif field.number == _SHARED and field.length <= self._longest:
                data = self._wire.take(field.length)
                try:
                    check_protobuf_nodes(data)
                except LimitExceeded as error:
                    yield self._error(f"a resource or scope is left out: {error}")
                    continue
                level.resource, level.scope = (data, None) if is_resource else (None, data)
            elif field.number in _NESTED:
                yield from nested(level, field.length)

    def _within_resource(self, level: Level, length: int) -> Iterator[PackedSpan | InputError]:
        yield from self._level(Level(level), self._wire.offset + length, self._item)

    def _item(self, level: Level, length: int) -> Iterator[PackedSpan | InputError]:
        if length > self._longest:
            yield self._error(f"{item_too_long('a span')} and is left out")
            return
        data = self._wire.take(length)
        taken: PackedSpan | InputError | None
        try:
            check_protobuf_nodes(data)
            taken = self._packed(data, self._unpacks.at(level))
        except LimitExceeded as error:
            taken = self._error(f"a span or log record is left out: {error}")
        except self._messages.damage:
            taken = self._error("a span or log record that is not valid protobuf")
        if taken is not None:
            yield taken

    def _packed(self, data: bytes, unpack: Unpack) -> PackedSpan | InputError | None:
        if data.startswith(_TRACE_ID_START) and any(data[2:18]):
            return PackedSpan(data[2:18].hex(), data, unpack)
        if _shape(data) != "log":
            trace_id = self._messages.trace_id(data)
            return self._error("a span without a trace id") if trace_id is None else PackedSpan(trace_id, data, unpack)
        event = self._messages.log_event(data, ReadingNotes())
        if event is None:
            self._notes.problems[NOT_OF_GENAI] += 1
            return None
        return PackedSpan(event.trace_id, data, self._unpack_log)

    def _error(self, reason: str) -> InputError:
        return InputError(self._source.name, None, f"{reason} (at byte {self._wire.offset})")


def framing_of(head: bytes) -> Framing | None:
    """How the messages of a file follow each other, or ``None`` when its start is not an OTLP export request."""
    return next((framing for framing in _FRAMINGS if _holds_a_span(head, framing)), None)


def _holds_a_span(head: bytes, framing: Framing) -> bool:
    """Whether the first span or log record, read strictly, is where a file of this kind has it."""
    wire = WireStream(Source("", io.BytesIO(head)))
    try:
        end = None
        if framing != "one message":
            end = (wire.varint() if framing == "varint" else int.from_bytes(wire.take(4), "big")) + wire.offset
        return any(_strict_item(wire, end))
    except BadWire:
        return False


def _strict_item(wire: WireStream, end: int | None) -> Iterator[bool]:
    for request_field in wire.fields(end):
        if request_field.number != _REQUEST_RESOURCE or request_field.kind != DELIMITED:
            raise BadWire("no export request")
        for resource_field in wire.fields(wire.offset + request_field.length):
            _check_level(resource_field.number, resource_field.kind)
            if resource_field.number in _NESTED:
                for scope_field in wire.fields(wire.offset + resource_field.length):
                    _check_level(scope_field.number, scope_field.kind)
                    if scope_field.number in _NESTED:
                        data = wire.look(scope_field.length)
                        if _shape(data, cut=len(data) < scope_field.length) is None:
                            raise BadWire("no span")
                        yield True


def _check_level(number: int, kind: int) -> None:
    if number not in _LEVEL_FIELDS or kind != DELIMITED:
        raise BadWire("no part of an export request")


def _shape(data: bytes, cut: bool = False) -> Literal["span", "log"] | None:
    """Whether bytes are built as a span or as a log record is. With ``cut``, their end may be missing."""
    kinds: dict[int, int] = {}
    lengths: dict[int, int] = {}
    wire = WireStream(Source("", io.BytesIO(data)))
    try:
        for field in wire.fields(None):
            if kinds.setdefault(field.number, field.kind) != field.kind:
                return None
            lengths[field.number] = field.length
    except BadWire:
        if not cut:
            return None
    if kinds.items() <= _SPAN_FIELDS.items() and lengths.get(1) == 16 and lengths.get(2) == 8:
        return "span"
    has_time = 1 in kinds or 11 in kinds
    if kinds.items() <= _LOG_FIELDS.items() and has_time and lengths.get(9, 16) == 16:
        return "log"
    return None


def _matches(opening: Opening) -> bool:
    # A message begins with a byte that is also a line feed, and an opening has no white space before it.
    return framing_of(opening.head) is not None or _holds_a_span(b"\n" + opening.head, "one message")


def _read(source: Source, notes: ReadingNotes) -> Iterator[PackedSpan | InputError]:
    try:
        reading = _Reading(source, notes)
    except ProtobufMissing as missing:
        yield InputError(source.name, None, str(missing))
        return
    yield from reading.spans()


OTLP_PROTOBUF = TraceFormat(
    "otlp-protobuf",
    "OpenTelemetry export requests as protobuf: one message, or many with their lengths before them",
    _matches,
    _read,
)
