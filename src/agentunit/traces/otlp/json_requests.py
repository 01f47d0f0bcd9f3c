"""OTLP/JSON: export requests as OpenTelemetry's collectors and exporters write them, one a file or one per line.

The file is walked, not held: down to the spans, whose bytes are handed out undecoded with their trace's id.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Iterator
from typing import Any

import msgspec

from agentunit.core.results import InputError
from agentunit.traces.formats_base import Opening, Source, TraceFormat
from agentunit.traces.json_files.cursor import OPEN_BRACE, OPEN_BRACKET, DamagedJson, JsonCursor, UnfitValue
from agentunit.traces.json_files.stream import read_documents
from agentunit.traces.otlp.otlp_values import (
    NOT_OF_GENAI,
    UNDEFINED,
    Encoding,
    Level,
    Unpack,
    Unpacks,
    attributes_of,
    decoded,
    id_of,
    log_event_of,
    span_of,
)
from agentunit.traces.spans import LONGEST_ATTRIBUTE, LogEvent, PackedSpan, ReadingNotes, Span, identifier

_WRAPPED = frozenset(("trace",))
_LEVELS = frozenset(
    (
        "resourceSpans", "resource_spans", "resourceLogs", "resource_logs", "batches", "scopeSpans", "scope_spans",
        "scopeLogs", "scope_logs", "instrumentationLibrarySpans", "instrumentation_library_spans",
    )
)  # fmt: skip
_SPANS = frozenset(("spans",))
_LOGS = frozenset(("logRecords", "log_records"))
_SCOPE = frozenset(("scope", "instrumentationLibrary", "instrumentation_library"))
_METRICS = frozenset(("resourceMetrics", "resource_metrics"))
_UNUSED = frozenset(("schemaUrl", "schema_url"))

_LEADING_TRACE_ID = re.compile(rb'\{\s*"trace(?:Id|_id)"\s*:\s*"([0-9a-fA-F]{32})"')
_NO_ID = "0" * 32
# A request has three levels; wrappings of the tools that store it add a few.
_DEEPEST_LEVEL = 20


class _Ids(msgspec.Struct):
    traceId: Any = None  # noqa: N815  # as OTLP/JSON writes it
    trace_id: Any = None


class _ScopeSpans(msgspec.Struct, rename="camel", forbid_unknown_fields=True):
    scope: msgspec.Raw = msgspec.Raw()
    spans: list[msgspec.Raw] = []
    schema_url: msgspec.Raw = msgspec.Raw()


class _ResourceSpans(msgspec.Struct, rename="camel", forbid_unknown_fields=True):
    resource: msgspec.Raw = msgspec.Raw()
    scope_spans: list[_ScopeSpans] = []
    schema_url: msgspec.Raw = msgspec.Raw()


class _Request(msgspec.Struct, rename="camel", forbid_unknown_fields=True):
    """An export request as it is mostly written. Any other is walked."""

    resource_spans: list[_ResourceSpans]


_request_decoder = msgspec.json.Decoder(_Request)
_ids_decoder = msgspec.json.Decoder(_Ids)


def _unpack_span(data: bytes, resource: dict[str, Any], scope: str, notes: ReadingNotes) -> Span:
    try:
        row = decoded(data)
    except ValueError:
        notes.problems["a span that is not valid JSON was left out, except for its trace id"] += 1
        found = _LEADING_TRACE_ID.match(data)
        return Span(found[1].decode().lower() if found else "", "", scope=scope, resource=resource)
    return span_of(row, resource, scope, notes, long=len(data) > LONGEST_ATTRIBUTE)


def unpack_log(data: bytes, notes: ReadingNotes) -> LogEvent:
    """The log record in some bytes."""
    event = log_event_of(decoded(data), notes, long=len(data) > LONGEST_ATTRIBUTE)
    if event is None:
        raise ValueError("no log record of a GenAI call")
    return event


class _Reading:
    """One file on its way to packed spans."""

    def __init__(self, source: Source, notes: ReadingNotes) -> None:
        self.cursor = JsonCursor(source)
        self.notes = notes
        self._unpacks = Unpacks(JSON_ENCODING)

    def document(self) -> Iterator[PackedSpan | InputError]:
        """The spans of the value at the cursor: an export request, or an array of them."""
        first = self.cursor.peek()
        request = self.cursor.whole_line(_request_decoder) if self.cursor.one_a_line else None
        if request is not None:
            yield from self._decoded(request)
        elif first == OPEN_BRACKET:
            for _ in self.cursor.elements():
                yield from self._request()
        else:
            yield from self._request()

    def _decoded(self, request: _Request) -> Iterator[PackedSpan | InputError]:
        for resource in request.resource_spans:
            above = Level()
            above.resource = bytes(resource.resource) or None
            for scope in resource.scope_spans:
                level = Level(above)
                level.scope = bytes(scope.scope) or None
                unpack = self._unpacks.at(level)
                for data in scope.spans:
                    yield self._span(bytes(data), unpack)

    def _request(self) -> Iterator[PackedSpan | InputError]:
        line = self.cursor.line
        if self.cursor.peek() != OPEN_BRACE:
            self.cursor.value()
            yield self._error("a value that is not an OTLP export request", line)
            return
        unknown: list[str] = []
        known = yield from self._level(Level(), unknown, 1)
        if known and unknown:
            self.notes.problems[UNDEFINED] += len(unknown)
        elif unknown:
            yield self._error(f"no OTLP export request: it holds {', '.join(map(repr, unknown[:5]))}", line)

    def _level(self, level: Level, unknown: list[str], depth: int) -> Generator[PackedSpan | InputError, None, bool]:
        """The spans of the object at the cursor and of those within it; returns whether any name in it was known."""
        cursor, known = self.cursor, False
        if depth > _DEEPEST_LEVEL:
            raise DamagedJson(f"no OTLP export request: it has more than {_DEEPEST_LEVEL} levels above its spans")
        for name in cursor.members():
            first = cursor.peek()
            if name == "resource":
                level.resource = cursor.value()
            elif name in _SCOPE:
                level.scope = cursor.value()
            elif name in _METRICS:
                self.notes.problems["metrics were left out: they are not traces"] += 1
                known = True
            elif name in _WRAPPED and first == OPEN_BRACE:
                known = (yield from self._level(level, unknown, depth + 1)) or known
            elif name in _SPANS or name in _LOGS or name in _LEVELS:
                known = True
                if first == OPEN_BRACKET:
                    yield from self._each(name, level, unknown, depth + 1)
                elif cursor.value() != b"null":
                    yield self._error(f"{name} is not an array")
            elif name not in _UNUSED:
                unknown.append(name)
        return known

    def _each(self, name: str, level: Level, unknown: list[str], depth: int) -> Iterator[PackedSpan | InputError]:
        cursor = self.cursor
        if name in _LEVELS:
            for _ in cursor.elements():
                if cursor.peek() == OPEN_BRACE:
                    yield from self._level(Level(level), unknown, depth)
                elif cursor.value() != b"null":
                    yield self._error(f"an element of {name} is not an object")
            return
        take = self._span if name in _SPANS else self._log
        unpack = self._unpacks.at(level)
        for data in cursor.values():
            taken = self._error(str(data)) if isinstance(data, UnfitValue) else take(data, unpack)
            if taken is not None:
                yield taken

    def _span(self, data: bytes, unpack: Unpack) -> PackedSpan | InputError:
        found = _LEADING_TRACE_ID.match(data)
        if found is not None and (trace_id := found[1].decode().lower()) != _NO_ID:
            return PackedSpan(trace_id, data, unpack)
        try:
            trace_id = _trace_id(data)
        except ValueError as error:
            return self._error(f"a span that cannot be read ({error})")
        if trace_id is None:
            return self._error("a span without a trace id")
        return PackedSpan(trace_id, data, unpack)

    def _log(self, data: bytes, _: Unpack) -> PackedSpan | InputError | None:
        try:
            row = decoded(data)
        except ValueError as error:
            return self._error(f"a log record that cannot be read ({error})")
        # Its oddities are counted when it is unpacked.
        event = log_event_of(row, ReadingNotes(), long=False) if isinstance(row, dict) else None
        if event is None:
            self.notes.problems[NOT_OF_GENAI] += 1
            return None
        return PackedSpan(event.trace_id, data, unpack_log)

    def _error(self, reason: str, line: int | None = None) -> InputError:
        return InputError(self.cursor.source.name, line or self.cursor.line, reason)


def _trace_id(data: bytes) -> str | None:
    try:
        ids = _ids_decoder.decode(data)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        row = decoded(data)
        if not isinstance(row, dict):
            raise ValueError("it is not an object") from None
        return id_of(row, "traceId", "trace_id")
    return identifier(ids.traceId or ids.trace_id)


def _resource_attributes(data: bytes | None, notes: ReadingNotes) -> dict[str, Any]:
    return attributes_of(_shared(data, "resource", notes).get("attributes"), notes, long=True)


def _scope_name(data: bytes | None, notes: ReadingNotes) -> str:
    name = _shared(data, "scope", notes).get("name")
    return name if isinstance(name, str) else ""


def _shared(data: bytes | None, what: str, notes: ReadingNotes) -> dict[str, Any]:
    if data is None:
        return {}
    try:
        value = decoded(data)
    except ValueError:
        value = None
        data = b""
    if isinstance(value, dict):
        return value
    if data != b"null":
        notes.problems[f"a {what} that is not an object was left out"] += 1
    return {}


JSON_ENCODING = Encoding("otlp-json", _resource_attributes, _scope_name, _unpack_span)


def _matches(opening: Opening) -> bool:
    names = opening.keys
    if names:
        wrapped = (b'"scopeSpans"' in opening.head or b'"instrumentationLibrarySpans"' in opening.head) and (
            "batches" in names or "trace" in names
        )
        return wrapped or not names.isdisjoint((_LEVELS | _METRICS) - {"batches"})
    return re.match(rb'\[?\s*\{\s*"resource(?:Spans|_spans|Logs|_logs)"', opening.head) is not None


def _read(source: Source, notes: ReadingNotes) -> Iterator[PackedSpan | InputError]:
    reading = _Reading(source, notes)
    return read_documents(reading.cursor, reading.document)


OTLP_JSON = TraceFormat(
    "otlp-json",
    "OpenTelemetry export requests as JSON: one document, or one per line as the collector's file exporter writes",
    _matches,
    _read,
)
