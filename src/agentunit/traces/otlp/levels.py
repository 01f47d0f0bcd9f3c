"""What the spans of an OTLP export share, resource and scope, and how packed spans find it again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from agentunit.traces.spans import ReadingNotes, Span

_Said = tuple[bytes | None, bytes | None]


class Encoding(NamedTuple):
    """How the parts of an export are decoded: attributes of a resource, name of a scope, and a span with both."""

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

    __slots__ = ("_encoding", "_level", "_shared")

    def __init__(self, level: Level, encoding: Encoding) -> None:
        self._level = level
        self._encoding = encoding
        self._shared: tuple[_Said, dict[str, Any], str] | None = None

    def __call__(self, data: bytes, notes: ReadingNotes) -> Span:
        """The span in some bytes."""
        said = self._level.said()
        if self._shared is None or self._shared[0] != said:
            self._shared = (said, self._encoding.resource(said[0], notes), self._encoding.scope(said[1], notes))
        return self._encoding.span(data, self._shared[1], self._shared[2], notes)


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
