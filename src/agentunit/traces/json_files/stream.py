"""The values of a JSON file of any size, one after the other, without holding the document."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from typing import Any, NamedTuple, TypeVar

import msgspec

from agentunit.core.results import InputError, decode_json
from agentunit.traces.formats_base import Source
from agentunit.traces.json_files.cursor import END, OPEN_BRACE, OPEN_BRACKET, DamagedJson, JsonCursor, UnfitValue

T = TypeVar("T")

_members_decoder = msgspec.json.Decoder(dict[str, msgspec.Raw])
_elements_decoder = msgspec.json.Decoder(list[msgspec.Raw])
_STRAY = frozenset(b",]}")


class RawValue(NamedTuple):
    """One JSON value as bytes, not yet decoded. ``position`` counts values, ``line`` is where it begins, from 1."""

    position: int
    data: bytes
    line: int


def json_values(source: Source, into: Collection[str] = ()) -> Iterator[RawValue | InputError]:
    r"""The values of a file: of one document, one per line (JSONL), or documents one after the other.

    A top-level array gives its elements, except where a file has one array a line: there each array is a value. With
    ``into``, an object that holds an array under one of these names gives the elements of that array instead
    (``{"data": […]}``). What is damaged comes as an ``InputError``, and costs its line or document only; of a file that
    was cut off, everything complete before the cut is there.

    >>> import io
    >>> file = Source("x.jsonl", io.BytesIO(b'{"a": 1}\n{"a"\n{"a": 3}\n'))
    >>> [value.data if isinstance(value, RawValue) else value.line for value in json_values(file)]
    [b'{"a": 1}', 2, b'{"a": 3}']
    """
    cursor = JsonCursor(source)
    names = frozenset(into)
    position = 0
    for found in read_documents(cursor, lambda: _values(cursor, names)):
        if isinstance(found, InputError):
            yield found
        else:
            position += 1
            yield RawValue(position, found[1], found[0])


def read_documents(cursor: JsonCursor, read: Callable[[], Iterator[T]]) -> Iterator[T | InputError]:
    """Call ``read`` at each value at top level, and put an ``InputError`` where it meets damage."""
    damaged = False
    while True:
        try:
            first = cursor.begin()
            if first == END:
                break
            if damaged and first in _STRAY:
                cursor.step()  # what is left of a document whose damage was told already
            else:
                yield from read()
        except UnfitValue as unfit:
            yield InputError(cursor.source.name, cursor.value_line, str(unfit))
        except DamagedJson as damage:
            damaged = True
            yield cursor.recover(damage)
    if cursor.broken_stream:
        yield InputError(cursor.source.name, cursor.line, cursor.broken_stream)


def _values(cursor: JsonCursor, into: frozenset[str]) -> Iterator[tuple[int, bytes] | InputError]:
    first, line = cursor.peek(), cursor.line
    if first == OPEN_BRACKET and not cursor.one_a_line:
        yield from _elements(cursor)
    elif first == OPEN_BRACE and into:
        nearby = cursor.nearby_value()
        if nearby is None:
            yield from _values_within(cursor, into, line)
        else:
            yield from ((line, data) for data in _decoded_within(nearby, into))
    else:
        yield line, cursor.value()


def _elements(cursor: JsonCursor) -> Iterator[tuple[int, bytes] | InputError]:
    for data in cursor.values():
        if isinstance(data, UnfitValue):
            yield InputError(cursor.source.name, cursor.line, str(data))
        else:
            yield cursor.line - data.count(b"\n"), data


def _values_within(cursor: JsonCursor, into: frozenset[str], line: int) -> Iterator[tuple[int, bytes] | InputError]:
    others = []
    walked_in = False
    for name in cursor.members():
        if name in into and cursor.peek() == OPEN_BRACKET:
            walked_in = True
            yield from _elements(cursor)
        elif not walked_in:
            others.append(msgspec.json.encode(name) + b":" + cursor.value())
    if not walked_in:
        yield line, b"{" + b",".join(others) + b"}"


def _decoded_within(data: bytes, into: frozenset[str]) -> Iterator[bytes]:
    """The same for an object that is there as a whole, which is much faster."""
    arrays = []
    if any(b'"%s"' % name.encode() in data for name in into):
        try:
            members = _members_decoder.decode(data)
            arrays = [
                _elements_decoder.decode(raw)
                for name, raw in members.items()
                if name in into and memoryview(raw)[0] == OPEN_BRACKET
            ]
        except msgspec.DecodeError:
            arrays = []
    if not arrays:
        yield data
    for array in arrays:
        yield from map(bytes, array)


class JsonRow(NamedTuple):
    """One JSON value, where it stands (the line it ends on, or a name), and what the object around it said before."""

    data: bytes
    line: int | None
    around: dict[str, Any]
    name: str = ""


def file_rows(source: Source, within: str | None = None) -> Iterator[JsonRow | InputError]:
    """The values of a file; of an object with an array called ``within``, the elements of that array.

    What such an object holds before the array comes with each element. The array is never held whole, and of a file
    that was cut off the elements before the cut are there.
    """
    cursor = JsonCursor(source)
    yield from read_documents(cursor, lambda: _document_rows(cursor, within))


def _document_rows(cursor: JsonCursor, within: str | None) -> Iterator[JsonRow | InputError]:
    first = cursor.peek()
    if first == OPEN_BRACKET and not cursor.one_a_line:
        yield from _element_rows(cursor, {})
    elif first != OPEN_BRACE or within is None:
        yield JsonRow(cursor.value(), cursor.line, {})
    else:
        members: dict[str, bytes] = {}
        walked_in = False
        for name in cursor.members():
            if name == within and cursor.peek() == OPEN_BRACKET:
                walked_in = True
                yield from _element_rows(cursor, {key: _decoded(data) for key, data in members.items()})
            elif not walked_in:
                members[name] = cursor.value()
        if not walked_in:
            joined = b",".join(msgspec.json.encode(name) + b":" + data for name, data in members.items())
            yield JsonRow(b"{" + joined + b"}", cursor.line, {})


def _element_rows(cursor: JsonCursor, around: dict[str, Any]) -> Iterator[JsonRow | InputError]:
    for _ in cursor.elements():
        try:
            yield JsonRow(cursor.value(), cursor.line, around)
        except UnfitValue as unfit:
            yield InputError(cursor.source.name, cursor.line, str(unfit))


def _decoded(data: bytes) -> Any:
    """A value beside the rows; one that is no JSON is as good as absent."""
    try:
        return decode_json(data)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return None
