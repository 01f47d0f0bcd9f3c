"""Spans and log records of OTLP/JSON as plain data, made into ours: typed values, ids, times and statuses.

Names are read as the specification writes them (``traceId``) and as protobuf does (``trace_id``). What is of a wrong
type is left out and counted; the rest is kept. What spans share, resource and scope, is packed once for all of them.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import lru_cache
from math import isfinite
from typing import Any, NamedTuple

import msgspec

from agentunit.traces.spans import (
    LONGEST_ATTRIBUTE,
    LogEvent,
    ReadingNotes,
    Span,
    SpanEvent,
    SpanStatus,
    identifier,
    seconds_since_1970,
    span_status,
)

TOO_LONG = f"an attribute longer than {LONGEST_ATTRIBUTE >> 20} MiB was left out"
UNDEFINED = "a part that OTLP does not define was left out"
NOT_OF_GENAI = "a log record without a trace id or not of a GenAI call was left out"

# Message contents travel in log records of these names; other log records say nothing about a span.
GENAI_EVENTS = "gen_ai."

_NO_VALUE = object()
_KINDS = {
    "stringValue": str, "string_value": str, "intValue": int, "int_value": int, "doubleValue": float,
    "double_value": float, "boolValue": bool, "bool_value": bool, "arrayValue": list, "array_value": list,
    "kvlistValue": dict, "kvlist_value": dict, "bytesValue": bytes, "bytes_value": bytes,
}  # fmt: skip
_LONG_NUMBER = 30
_NANOSECONDS = 10**9
_STATUSES: dict[int, SpanStatus] = {0: "unset", 1: "ok", 2: "error"}
_TRUTHS = {"true": True, "false": False}

_decoder = msgspec.json.Decoder()

# The id of a trace, and that of a parent, is in many spans.
_known_identifier = lru_cache(maxsize=1 << 12)(identifier)


def decoded(data: bytes) -> Any:
    """JSON as data, also with NaN, broken UTF-8 or half a surrogate pair in it; ``ValueError`` when it is not JSON."""
    try:
        return _decoder.decode(data)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        pass
    try:
        value = json.loads(data.decode("utf-8", "replace"))
        # Half a surrogate pair is not a character; written out and read again, a question mark stands for it.
        return json.loads(json.dumps(value, ensure_ascii=False).encode("utf-8", "replace"))
    except RecursionError:
        raise ValueError("nested too deeply") from None


def span_of(row: dict[str, Any], resource: dict[str, Any], scope: str, notes: ReadingNotes, long: bool) -> Span:
    """A span as OTLP/JSON writes it. With ``long``, some text in it may be longer than an attribute may be."""
    status = _member(row, "status", "status", dict, notes) or {}
    return Span(
        trace_id=id_of(row, "traceId", "trace_id") or "",
        span_id=id_of(row, "spanId", "span_id") or "",
        parent_id=id_of(row, "parentSpanId", "parent_span_id"),
        name=_member(row, "name", "name", str, notes) or "",
        start_s=_time(row, "startTimeUnixNano", "start_time_unix_nano", notes),
        end_s=_time(row, "endTimeUnixNano", "end_time_unix_nano", notes),
        status=_status(status.get("code"), notes),
        status_message=_member(status, "message", "message", str, notes) or "",
        attributes=attributes_of(row.get("attributes"), notes, long),
        events=_events(row.get("events"), notes, long) if row.get("events") else [],
        scope=scope,
        resource=resource,
    )


def log_event_of(row: dict[str, Any], notes: ReadingNotes, long: bool) -> LogEvent | None:
    """A log record that belongs to a span and carries contents of a GenAI call; ``None`` for any other.

    Its body is the attribute ``body``.
    """
    attributes = attributes_of(row.get("attributes"), notes, long)
    name = row.get("eventName") or row.get("event_name") or attributes.get("event.name")
    trace_id = id_of(row, "traceId", "trace_id")
    if not isinstance(name, str) or not name.startswith(GENAI_EVENTS) or trace_id is None:
        return None
    body = plain_value(row.get("body"), notes)
    if body is not _NO_VALUE:
        if long and _too_long(body):
            notes.problems[TOO_LONG] += 1
        else:
            attributes["body"] = body
    time = _time(row, "timeUnixNano", "time_unix_nano", notes)
    if time is None:
        time = _time(row, "observedTimeUnixNano", "observed_time_unix_nano", notes)
    return LogEvent(trace_id, id_of(row, "spanId", "span_id") or "", SpanEvent(name, time, attributes))


def id_of(row: dict[str, Any], name: str, other_name: str) -> str | None:
    """An id of a span, or ``None``."""
    value = row.get(name) or row.get(other_name)
    return _known_identifier(value) if value.__class__ is str else identifier(value)


def attributes_of(pairs: Any, notes: ReadingNotes, long: bool) -> dict[str, Any]:
    """The attributes of a list of keys and typed values. Lists and mappings in them stay what they are.

    >>> attributes_of([{"key": "n", "value": {"intValue": "3"}}], ReadingNotes(), long=False)
    {'n': 3}
    """
    attributes: dict[str, Any] = {}
    if pairs.__class__ is not list:
        if pairs is not None:
            notes.problems["attributes that are not a list were left out"] += 1
        return attributes
    for pair in pairs:
        try:
            key, typed = pair["key"], pair["value"]
            value = typed.get("stringValue")
            if value.__class__ is not str:
                # Texts and whole numbers, nearly all there is in dense spans, do not go the long way.
                number = typed.get("intValue")
                value = int(number) if number.__class__ is str else plain_value(typed, notes)
        except ValueError:
            notes.problems["an attribute whose intValue is of another type was left out"] += 1
            continue
        except (KeyError, TypeError, AttributeError):
            # A value that was never set is no attribute; anything else here is damage.
            if not (pair.__class__ is dict and pair.get("value") is None and pair.get("key").__class__ is str):
                notes.problems["an attribute without a key or a typed value was left out"] += 1
            continue
        if value is _NO_VALUE:
            continue
        if key.__class__ is not str:
            notes.problems["an attribute without a key or a typed value was left out"] += 1
        elif long and _too_long(value):
            notes.problems[TOO_LONG] += 1
        else:
            attributes[key] = value
    return attributes


def plain_value(typed: Any, notes: ReadingNotes) -> Any:
    """What a typed value holds, as plain data; an object of its own for nothing, or for what had to be left out."""
    try:
        return _plain_value(typed, notes)
    except RecursionError:
        notes.problems["an attribute that is nested too deeply was cut there"] += 1
        return _NO_VALUE


def _plain_value(typed: Any, notes: ReadingNotes) -> Any:
    if typed.__class__ is not dict:
        if typed is not None:
            notes.problems["an attribute without a key or a typed value was left out"] += 1
        return _NO_VALUE
    for name, value in typed.items():
        kind = _KINDS.get(name)
        if kind is not None and value is not None:
            plain = _of_kind(kind, value, notes)
            if plain is _NO_VALUE:
                notes.problems[f"an attribute whose {name} is of another type was left out"] += 1
            return plain
    if any(value is not None for value in typed.values()):
        notes.problems["an attribute of a type that OTLP does not define was left out"] += 1
    return _NO_VALUE


def _of_kind(kind: type, value: Any, notes: ReadingNotes) -> Any:
    received = value.__class__
    if kind is str or kind is bytes:
        return value if received is str else str(value) if received in (int, float) else _NO_VALUE
    if kind is bool:
        return value if received is bool else _TRUTHS.get(value, _NO_VALUE) if received is str else _NO_VALUE
    if kind is int or kind is float:
        return _number(kind, value) if received in (int, float, str) else _NO_VALUE
    inner = value.get("values", []) if received is dict else value
    if inner.__class__ is not list:
        return _NO_VALUE
    if kind is dict:
        return attributes_of(inner, notes, long=False)
    values = (plain_value(each, notes) for each in inner)
    return [None if each is _NO_VALUE else each for each in values]


def _number(kind: type, value: Any) -> Any:
    try:
        number = kind(value)
    except (ValueError, OverflowError):
        return _NO_VALUE
    if kind is float:
        return number if isfinite(number) else _NO_VALUE
    return number if value.__class__ is not float or number == value else _NO_VALUE


def _too_long(value: Any) -> bool:
    if value.__class__ is str:
        return len(value) > LONGEST_ATTRIBUTE
    return value.__class__ in (list, dict) and len(msgspec.json.encode(value)) > LONGEST_ATTRIBUTE


def _events(rows: Any, notes: ReadingNotes, long: bool) -> list[SpanEvent]:
    events = []
    for row in rows if isinstance(rows, list) else [rows]:
        if not isinstance(row, dict):
            notes.problems["an event that is not an object was left out"] += 1
            continue
        name = _member(row, "name", "name", str, notes) or ""
        time = _time(row, "timeUnixNano", "time_unix_nano", notes)
        events.append(SpanEvent(name, time, attributes_of(row.get("attributes"), notes, long)))
    return events


def _status(code: Any, notes: ReadingNotes) -> SpanStatus:
    if code is None:
        return "unset"
    status = _STATUSES.get(code) if code.__class__ is int else span_status(code)
    if status is None:
        notes.problems["a status code that OpenTelemetry does not know was left out"] += 1
    return status or "unset"


def _member(row: dict[str, Any], name: str, other_name: str, kind: type, notes: ReadingNotes) -> Any:
    value = row.get(name)
    if value is None:
        value = row.get(other_name)
    if value is None or value.__class__ is kind:
        return value
    notes.problems[f"a span's {name} that is not {'text' if kind is str else 'an object'} was left out"] += 1
    return None


def _time(row: dict[str, Any], name: str, other_name: str, notes: ReadingNotes) -> float | None:
    value = row.get(name)
    if value is None:
        value = row.get(other_name)
    if value is None or value in (0, "0", ""):
        return None
    if value.__class__ is str and value.isdecimal() and len(value) < _LONG_NUMBER:
        return int(value) / _NANOSECONDS
    seconds = seconds_since_1970(value, 1 / _NANOSECONDS)
    if seconds is None:
        notes.problems[f"a {name} that is not a time was left out"] += 1
    return seconds


_Said = tuple[bytes | None, bytes | None]


class Encoding(NamedTuple):
    """How the parts of an export are decoded: attributes of a resource, name of a scope, and a span with both."""

    name: str
    resource: Callable[[bytes | None, ReadingNotes], dict[str, Any]]
    scope: Callable[[bytes | None, ReadingNotes], str]
    span: Callable[[bytes, dict[str, Any], str, ReadingNotes], Span]


class Level:
    """An object on the way down to the spans, with what it says about all of them, undecoded."""

    __slots__ = ("above", "resource", "scope")

    def __init__(self, above: Level | None = None) -> None:
        self.above = above
        self.resource: bytes | None = None
        self.scope: bytes | None = None

    def said(self) -> _Said:
        """Resource and scope, of this level or one above it, as far as they were met."""
        resource, scope = self.resource, self.scope
        if self.above is not None and (resource is None or scope is None):
            above = self.above.said()
            resource = above[0] if resource is None else resource
            scope = above[1] if scope is None else scope
        return resource, scope


class Unpack:
    """Makes spans out of the bytes of one level. Resource and scope are looked up late: they may follow the spans."""

    __slots__ = ("_encoding", "_level", "_shared", "name")

    def __init__(self, level: Level, encoding: Encoding) -> None:
        self._level = level
        self._encoding = encoding
        self.name = encoding.name
        self._shared: tuple[_Said, dict[str, Any], str] | None = None

    def __call__(self, data: bytes, notes: ReadingNotes) -> Span:
        """The span in some bytes."""
        resource, scope = self.shared(notes)
        return self._encoding.span(data, resource, scope, notes)

    @property
    def said(self) -> _Said:
        """The bytes of the resource and the scope, as far as they were met."""
        return self._level.said()

    def shared(self, notes: ReadingNotes) -> tuple[dict[str, Any], str]:
        """The resource and the scope of all its spans; what is odd about them is noted once."""
        said = self._level.said()
        if self._shared is None or self._shared[0] != said:
            self._shared = (said, self._encoding.resource(said[0], notes), self._encoding.scope(said[1], notes))
        return self._shared[1:]


class Unpacks:
    """The ``Unpack`` objects of a file. Exporters repeat resource and scope all the time; equal ones are kept once."""

    def __init__(self, encoding: Encoding) -> None:
        self._encoding = encoding
        self._known: dict[_Said, Unpack] = {}

    def at(self, level: Level) -> Unpack:
        """What unpacks the spans of a level."""
        said = level.said()
        if said[0] is None or said[1] is None:
            return Unpack(level, self._encoding)
        known = self._known.get(said)
        if known is None:
            known = self._known[said] = Unpack(level, self._encoding)
        return known
