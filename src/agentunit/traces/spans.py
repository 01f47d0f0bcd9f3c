"""A span as every span format is read into it, and what a reading noticed on its way."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any, Literal, NamedTuple

from msgspec import Struct, field

SpanStatus = Literal["unset", "ok", "error"]

# An attribute beyond this is no text that a metric could use, and would be carried through every step after.
LONGEST_ATTRIBUTE = 16 << 20


class SpanEvent(Struct, omit_defaults=True):
    """Something that happened within a span: an exception, or a message of an older GenAI instrumentation."""

    name: str
    timestamp: float | None = None
    attributes: dict[str, Any] = field(default_factory=dict)


class Span(Struct, omit_defaults=True):
    """One span of OpenTelemetry, or of a tool that thinks like it. Times are seconds since 1970.

    Ids are as the source writes them, in lower case where they are hexadecimal; ``parent_id`` is ``None`` at a root.
    ``attributes`` are flat, with dots in their names; values are plain data, JSON in texts is left as text.
    ``scope`` is the name of the instrumentation that made the span, ``resource`` the attributes of its process.
    """

    trace_id: str
    span_id: str
    parent_id: str | None = None
    name: str = ""
    start_s: float | None = None
    end_s: float | None = None
    status: SpanStatus = "unset"
    status_message: str = ""
    attributes: dict[str, Any] = field(default_factory=dict)
    events: list[SpanEvent] = field(default_factory=list)
    scope: str = ""
    resource: dict[str, Any] = field(default_factory=dict)


class LogEvent(NamedTuple):
    """A log record that belongs to a span: the message contents of some instrumentations travel like this."""

    trace_id: str
    span_id: str
    event: SpanEvent


class PackedSpan(NamedTuple):
    """A span that is not decoded yet: a reader keeps it small until its whole trace is there.

    ``unpack(data, notes)`` gives the span, or a log record of it; it is one shared object for all spans of a resource
    or file. Call it after the file was read: what its spans share may stand behind them.
    """

    trace_id: str
    data: bytes
    unpack: Callable[[bytes, ReadingNotes], Span | LogEvent]


class ReadingNotes(Struct):
    """What was noticed while traces were read, for the user to see: nothing is dropped silently.

    ``unplaced`` counts spans, by name, that no known vocabulary describes; they stay in the trace as plain events.
    ``problems`` counts oddities that were worked around, by one sentence each.
    """

    n_files: int = 0
    n_spans: int = 0
    n_traces: int = 0
    formats: Counter[str] = field(default_factory=Counter)
    scopes: Counter[str] = field(default_factory=Counter)
    kinds: Counter[str] = field(default_factory=Counter)
    unplaced: Counter[str] = field(default_factory=Counter)
    problems: Counter[str] = field(default_factory=Counter)
