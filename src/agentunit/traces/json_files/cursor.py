"""A cursor over a stream of JSON: finds where values begin and end, without holding the document.

It hands out the bytes of a value; whether they are valid JSON is found when they are decoded.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeVar

import msgspec

from agentunit.traces.formats_base import Source
from agentunit.traces.json_files.buffer import (
    CONTAINER_OR_CUT,
    END,
    FIRST_NAME,
    OPENING,
    REST_OF_STRING,
    SCALAR,
    STRING_OR_CUT,
    TO_BRACKET,
    WHOLE_CONTAINER,
    WHOLE_STRING,
    WORD,
    DamagedJson,
    JsonBuffer,
)
from agentunit.traces.limits import LimitExceeded, check_nodes, item_too_long, read_limits

__all__ = [
    "CLOSE_BRACE",
    "CLOSE_BRACKET",
    "DEEPEST_NESTING",
    "END",
    "OPENING",
    "OPEN_BRACE",
    "OPEN_BRACKET",
    "DamagedJson",
    "JsonCursor",
    "UnfitValue",
]

DEEPEST_NESTING = 500

T = TypeVar("T")

OPEN_BRACE, OPEN_BRACKET, CLOSE_BRACE, CLOSE_BRACKET = b"{[}]"

_LONGEST_WORD = 1 << 16
_QUOTE, _COMMA, _COLON, _BACKSLASH = b'",:\\'

_elements_decoder = msgspec.json.Decoder(list[msgspec.Raw])


class UnfitValue(Exception):
    """A value that is too long or too deeply nested to be read. The cursor stands behind it: go on."""


class JsonCursor(JsonBuffer):
    """A place in a stream of JSON values, and the ways to move on from it.

    ``value`` takes a whole value; ``members`` and ``elements`` walk into one. In a file of one value a line (found by
    its first lines, or on the way) a line that is broken off does not reach into the next.
    """

    def __init__(self, source: Source, chunk_bytes: int | None = None) -> None:
        super().__init__(source, chunk_bytes)
        self._no_batch_before = 0
        limits = read_limits()
        self._longest, self._most_nodes = limits.item_bytes, limits.nodes

    def value(self) -> bytes:
        """The value that begins here, as bytes."""
        first = self.peek()
        if first in OPENING:
            pattern, whole = CONTAINER_OR_CUT, WHOLE_CONTAINER
        elif first == _QUOTE:
            pattern, whole = STRING_OR_CUT, WHOLE_STRING
        else:
            pattern, whole = WORD, SCALAR
        while True:
            match = pattern.match(self._buffer, self._at)
            end: int = len(self._buffer) if match is None else match.end()
            if self.one_a_line and self._breaks_off(end):
                raise DamagedJson("the line ends in the middle of a value")
            too_long = end - self._at > self._longest and pattern is not WORD
            if too_long or (match is None and first in OPENING):
                return self._value_by_tokens()
            if match is None or (pattern is WORD and end - self._at > _LONGEST_WORD):
                raise self._damage()
            if end == len(self._buffer):
                if self._read_more():
                    continue
                if not whole.fullmatch(self._buffer, self._at, end) or (whole is SCALAR and self._nesting):
                    raise self._damage(at_end=whole is not SCALAR or self._nesting > 0)
            elif whole is SCALAR and not whole.fullmatch(self._buffer, self._at, end):
                raise self._damage()
            return self._fit(self._taken(end))

    def nearby_value(self) -> bytes | None:
        """The bracketed value that begins here if its end is in the buffer already."""
        match = CONTAINER_OR_CUT.match(self._buffer, self._at)
        if match is None or match.end() == len(self._buffer) or (self.one_a_line and self._breaks_off(match.end())):
            return None
        try:
            check_nodes(self._buffer[self._at : match.end()], self._most_nodes)
        except LimitExceeded:
            return None  # walked into, it may hold many items that are each small
        return self._taken(match.end())

    def skip(self) -> None:
        """Move over the value that begins here, whatever it is."""
        try:
            self.value()
        except UnfitValue:
            return

    def members(self) -> Iterator[str]:
        """The names in the object that begins here. Take each one's value before the next name, or it is skipped."""
        self._take(OPEN_BRACE)
        self._nesting += 1
        if self.peek() != CLOSE_BRACE:
            while True:
                if self.peek() != _QUOTE:
                    raise self._damage()
                name = _decoded_name(self.value())
                self._take(_COLON)
                self.peek()
                before = self.offset
                yield name
                if self.offset == before:
                    self.skip()
                if self.peek() != _COMMA:
                    break
                self._at += 1
        self._take(CLOSE_BRACE)
        self._nesting -= 1

    def elements(self) -> Iterator[None]:
        """Stops at each element of the array that begins here. Take each one before the next, or it is skipped."""
        self._take(OPEN_BRACKET)
        self._nesting += 1
        if self.peek() != CLOSE_BRACKET:
            while True:
                self.peek()
                before = self.offset
                yield
                if self.offset == before:
                    self.skip()
                if self.peek() != _COMMA:
                    break
                self._at += 1
        self._take(CLOSE_BRACKET)
        self._nesting -= 1

    def values(self) -> Iterator[bytes | UnfitValue]:
        """The elements of the array that begins here, as bytes; in the place of one that is unfit, the reason.

        Objects on one line that begin alike, as programs write them, are taken many at a time.
        """
        for _ in self.elements():
            batch = self._batch()
            if batch:
                yield from map(bytes, batch)
                continue
            try:
                yield self.value()
            except UnfitValue as unfit:
                yield unfit

    def whole_line(self, decoder: msgspec.json.Decoder[T]) -> T | None:
        """The rest of the line, decoded and taken; ``None`` where it goes beyond the buffer or cannot be decoded."""
        end = self._buffer.find(b"\n", self._at)
        if end < 0:
            return None
        line = self._buffer[self._at : end]
        try:
            check_nodes(line, self._most_nodes)
            value = decoder.decode(line)
        except (LimitExceeded, msgspec.MsgspecError, UnicodeError, RecursionError):
            return None
        self._at = end
        return value

    def _batch(self) -> list[msgspec.Raw] | None:
        """All elements that are whole in the buffer, or ``None`` where only a closer look can tell them.

        The guess is that the last place where an object begins with the same name is the beginning of an element. It
        was right if everything before it reads as elements of an array, which no other place can satisfy.
        """
        begins = FIRST_NAME.match(self._buffer, self._at) if self.offset >= self._no_batch_before else None
        if begins is None:
            return None
        end = self._buffer.find(b"\n", self._at)
        last = self._buffer.rfind(begins.group(), self._at + 1, len(self._buffer) if end < 0 else end)
        elements = self._buffer[self._at : last].rstrip(b" \t") if last > 0 else b""
        if not elements.endswith(b",") or elements.count(b",") > self._most_nodes:
            return None
        try:
            batch = _elements_decoder.decode(b"[%b]" % elements[:-1])
        except (msgspec.DecodeError, RecursionError):
            # Not again before the buffer's end: a wrong guess is costly.
            self._no_batch_before = self._dropped + len(self._buffer)
            return None
        self._at += len(elements) - 1
        return batch

    def _value_by_tokens(self) -> bytes:
        """The bracketed value or the text here, whatever its nesting and length: the long way round."""
        position, nesting, deepest = self._at, 0, 0
        in_string = too_long = False
        while True:
            skipped = REST_OF_STRING if in_string else TO_BRACKET
            position = skipped.match(self._buffer, position).end()
            rest = len(self._buffer) - position
            if rest == 0 or (rest == 1 and in_string and self._buffer[position] == _BACKSLASH):
                too_long = too_long or position - self._at > self._longest
                if too_long:
                    self._at = position
                length = position - self._at
                if not self._read_more():
                    raise self._damage(at_end=True)
                position = self._at + length
                continue
            byte = self._buffer[position]
            if in_string and byte != _QUOTE:
                raise self._damage()
            position += 1
            if byte == _QUOTE:
                in_string = not in_string
                if nesting == 0 and not in_string:
                    break
            elif byte in OPENING:
                nesting += 1
                deepest = max(deepest, nesting)
            else:
                nesting -= 1
                if nesting == 0:
                    break
        data = self._taken(position)
        if too_long or len(data) > self._longest:
            raise UnfitValue(f"{item_too_long('a value')} and is left out")
        if deepest > DEEPEST_NESTING:
            raise UnfitValue(f"a value is nested {deepest} levels deep, more than {DEEPEST_NESTING}, and is left out")
        return self._fit(data)

    def _fit(self, data: bytes) -> bytes:
        try:
            check_nodes(data, self._most_nodes)
        except LimitExceeded as error:
            raise UnfitValue(f"a value is left out: {error}") from None
        return data


def _decoded_name(data: bytes) -> str:
    try:
        return str(msgspec.json.decode(data, type=str))
    except (msgspec.DecodeError, UnicodeError):
        return data[1:-1].decode("utf-8", "replace")
