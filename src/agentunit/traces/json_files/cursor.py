"""A cursor over a stream of JSON: finds where values begin and end, without holding the document.

It hands out the bytes of a value; whether they are valid JSON is found when they are decoded.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeVar

import msgspec
import re2

from agentunit.core.results import InputError
from agentunit.traces.compressed import read_pieces
from agentunit.traces.formats_base import Source
from agentunit.traces.limits import LimitExceeded, Parts, check_nodes, item_too_long, read_limits

T = TypeVar("T")

# Patterns that find where a value ends in linear time.
_WRITTEN_OUT_NESTING = 40

_IN_STRING = r'(?:[^"\\\x00-\x1f]|\\[^\x00-\x1f])*'


def _compiled(pattern: str) -> Any:
    options = re2.Options()
    options.encoding = re2.Options.Encoding.LATIN1
    options.max_mem = 64 << 20
    return re2.compile(pattern.encode("latin-1"), options)


def _container(or_cut: str, or_cut_string: str) -> str:
    """A bracketed value with its nesting written out, both kinds of brackets alike.

    Written like this, with one copy a level, its end is found in a single linear pass of a compiled automaton.
    """
    pattern = ""
    for _ in range(_WRITTEN_OUT_NESTING):
        inner = f"|{pattern}" if pattern else ""
        pattern = rf'[\[{{](?:[^\[\]{{}}"]|"{_IN_STRING}(?:"{or_cut_string}){inner})*(?:[\]}}]{or_cut})'
    return pattern


_CONTAINER_OR_CUT = _compiled(_container(r"|\z", r"|\\?\z"))
_STRING_OR_CUT = _compiled(rf'"{_IN_STRING}(?:"|\\?\z)')
_WHOLE_CONTAINER = _compiled(_container("", ""))
_WHOLE_STRING = _compiled(rf'"{_IN_STRING}"')
_SCALAR = _compiled(r"-?(?:[0-9]+(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?|Infinity)|true|false|null|NaN")
_WORD = _compiled(r"[-+.0-9A-Za-z]+")
_REST_OF_STRING = _compiled(_IN_STRING)
_TO_BRACKET = _compiled(rf'(?:[^\[\]{{}}"]|"{_IN_STRING}")*')
_WHITE_SPACE = _compiled(r"[ \t\r\n]*")
_FIRST_NAME = _compiled(r'\{[ \t]*"[^"\\\x00-\x1f]{1,64}"[ \t]*:')
_LINE_OF_JSON = _compiled(r"\n[\[{]")


# How far the first line is looked at to tell whether a file holds one value a line.
LOOK_BYTES = 1 << 20

END = -1
OPENING = frozenset(b"{[")

CHUNK_BYTES = 1 << 20
_LARGEST_CHUNK_BYTES = 1 << 28
_WHITE = frozenset(b" \t\r\n")
_NEWLINE = ord("\n")
DEEPEST_NESTING = 500

OPEN_BRACE, OPEN_BRACKET, CLOSE_BRACE, CLOSE_BRACKET = b"{[}]"

_LONGEST_WORD = 1 << 16
# A longer line is not held in memory for the sake of speed.
_LONGEST_LINE = 1 << 23
_QUOTE, _COMMA, _COLON, _BACKSLASH = b'",:\\'

_value_decoder = msgspec.json.Decoder(msgspec.Raw)
_elements_decoder = msgspec.json.Decoder(list[msgspec.Raw])


class DamagedJson(Exception):
    """The text is no JSON at the cursor, or ends too early; ``recover`` moves on to where reading is safe again."""


class UnfitValue(Exception):
    """A value that is too long or too deeply nested to be read. The cursor stands behind it: go on."""


class JsonCursor:
    """A place in a stream of JSON values, and the ways to move on from it.

    ``value`` takes a whole value; ``members`` and ``elements`` walk into one. In a file of one value a line (found by
    its first lines, or on the way) a line that is broken off does not reach into the next.
    """

    def __init__(self, source: Source, chunk_bytes: int | None = None) -> None:
        self.source = source
        self._parts = Parts(source.most_parts)
        self.value_line = 0
        self.broken_stream: str | None = None
        self._chunk_bytes = chunk_bytes or CHUNK_BYTES
        self._buffer = b""
        self._dropped = 0
        self._at = 0
        self._at_end = False
        self._lines = 1
        self._counted_to = 0
        self._nesting = 0
        self._no_batch_before = 0
        limits = read_limits()
        self._longest, self._most_nodes = limits.item_bytes, limits.nodes
        self.one_a_line = False
        while len(self._buffer) < 3 and self._read_more():
            pass
        if self._buffer.startswith(b"\xef\xbb\xbf"):
            self._at = 3
        self.one_a_line = self._begins_one_a_line()

    @property
    def line(self) -> int:
        """The line of the cursor, counted from 1."""
        self._lines += self._buffer.count(b"\n", self._counted_to, self._at)
        self._counted_to = self._at
        return self._lines

    @property
    def offset(self) -> int:
        """The place of the cursor in bytes from the beginning."""
        return self._dropped + self._at

    def begin(self) -> int:
        """The first byte of the next value at top level, or ``END``."""
        self._parts.count()
        ended_on = self.line
        first = self.peek()
        line = self.line
        if ended_on == self.value_line < line and first in OPENING and self._buffer[self._at - 1] == _NEWLINE:
            self.one_a_line = True
        self.value_line = line
        return first

    def peek(self) -> int:
        """The first byte of what comes next, after white space, or ``END``."""
        while True:
            if self._at < len(self._buffer):
                byte = self._buffer[self._at]
                if byte not in _WHITE:
                    return byte
                end: int = _WHITE_SPACE.match(self._buffer, self._at).end()
                if end < len(self._buffer):
                    if self._nesting and self._breaks_off(end + 1):
                        raise DamagedJson("the line ends in the middle of a value")
                    self._at = end
                    return self._buffer[end]
                # The last byte stays: whether a line breaks off is told by what follows the line break.
                self._at = end - 1
            if not self._read_more():
                self._at = len(self._buffer)
                return END

    def step(self) -> None:
        """Move over one byte."""
        self._at += 1

    def recover(self, damage: DamagedJson) -> InputError:
        """Move on to the next line that begins with a bracket, or to the end. Returns what was lost, as an error."""
        line = self.line
        self._nesting = 0
        while True:
            match = _LINE_OF_JSON.search(self._buffer, self._at)
            if match is not None:
                self._at = match.start() + 1
                break
            self._at = max(self._at, len(self._buffer) - 1)
            if not self._read_more():
                self._at = len(self._buffer)
                break
        reason = str(damage)
        if self._at_end and self.broken_stream and self._at == len(self._buffer):
            reason, self.broken_stream = self.broken_stream, None
        elif self.line > line + 1:
            reason += f"; left out up to line {self.line - 1}"
        return InputError(self.source.name, line, reason)

    def value(self) -> bytes:
        """The value that begins here, as bytes."""
        first = self.peek()
        if first in OPENING and self.one_a_line and not self._nesting:
            line = self._line()
            if line is not None:
                return line
        if first in OPENING:
            pattern, whole = _CONTAINER_OR_CUT, _WHOLE_CONTAINER
        elif first == _QUOTE:
            pattern, whole = _STRING_OR_CUT, _WHOLE_STRING
        else:
            pattern, whole = _WORD, _SCALAR
        while True:
            match = pattern.match(self._buffer, self._at)
            end: int = len(self._buffer) if match is None else match.end()
            if self.one_a_line and self._breaks_off(end):
                raise DamagedJson("the line ends in the middle of a value")
            too_long = end - self._at > self._longest and pattern is not _WORD
            if too_long or (match is None and first in OPENING):
                return self._value_by_tokens()
            if match is None or (pattern is _WORD and end - self._at > _LONGEST_WORD):
                raise self._damage()
            if end == len(self._buffer):
                if self._read_more():
                    continue
                if not whole.fullmatch(self._buffer, self._at, end) or (whole is _SCALAR and self._nesting):
                    raise self._damage(at_end=whole is not _SCALAR or self._nesting > 0)
            elif whole is _SCALAR and not whole.fullmatch(self._buffer, self._at, end):
                raise self._damage()
            return self._fit(self._taken(end))

    def nearby_value(self) -> bytes | None:
        """The bracketed value that begins here if its end is in the buffer already, or on its line."""
        line = self._line() if self.one_a_line and not self._nesting else None
        if line is not None:
            return line
        match = _CONTAINER_OR_CUT.match(self._buffer, self._at)
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
                self._parts.count()
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
                self._parts.count()
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
        if end < 0 or end - self._at > self._longest:
            return None
        line = self._buffer[self._at : end]
        try:
            check_nodes(line, self._most_nodes)
            value = decoder.decode(line)
        except (LimitExceeded, msgspec.MsgspecError, UnicodeError, RecursionError):
            return None
        self._at = end
        return value

    def _line(self) -> bytes | None:
        """The rest of the line, taken, where it is one whole value that is fit to be read; ``None`` for any other."""
        while self._buffer.find(b"\n", self._at) < 0:
            if len(self._buffer) - self._at > _LONGEST_LINE or not self._read_more():
                return None
        value = self.whole_line(_value_decoder)
        return None if value is None else bytes(value)

    def _batch(self) -> list[msgspec.Raw] | None:
        """All elements that are whole in the buffer, or ``None`` where only a closer look can tell them.

        The guess is that the last place where an object begins with the same name is the beginning of an element. It
        was right if everything before it reads as elements of an array, which no other place can satisfy.
        """
        begins = _FIRST_NAME.match(self._buffer, self._at) if self.offset >= self._no_batch_before else None
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
            skipped = _REST_OF_STRING if in_string else _TO_BRACKET
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

    def _read_more(self) -> bool:
        """Another chunk behind what is not taken yet; false at the end. A longer value doubles the buffer."""
        if self._at_end:
            return False
        _ = self.line
        kept = self._buffer[self._at :]
        wanted = max(self._chunk_bytes, min(len(kept), _LARGEST_CHUNK_BYTES))
        pieces, self._at_end, self.broken_stream = read_pieces(self.source.stream, wanted)
        self._dropped += self._at
        self._buffer = b"".join([kept, *pieces])
        self._at = self._counted_to = 0
        return len(self._buffer) > len(kept)

    def _begins_one_a_line(self) -> bool:
        if self.peek() not in OPENING:
            return False
        while (newline := self._buffer.find(b"\n", self._at)) < 0 or not self._buffer[newline:].strip():
            if len(self._buffer) - self._at >= LOOK_BYTES or not self._read_more():
                return False
        following: int = _WHITE_SPACE.match(self._buffer, newline).end()
        if self._buffer[following] not in OPENING or self._buffer[following - 1] != _NEWLINE:
            return False
        match = _CONTAINER_OR_CUT.match(self._buffer, self._at)
        # A first line that is broken off where no value can go on on the next line is a line all the same.
        last = self._buffer[self._at : newline].rstrip()[-1]
        return (match is not None and match.end() <= newline) or last not in b",:[{"

    def _breaks_off(self, end: int) -> bool:
        """Whether the value at the cursor runs from its line into another that begins with a bracket."""
        newline = self._buffer.find(b"\n", self._at, end)
        while newline >= 0:
            if newline + 1 < len(self._buffer) and self._buffer[newline + 1] in OPENING and self.one_a_line:
                return True
            newline = self._buffer.find(b"\n", newline + 1, end)
        return False

    def _taken(self, end: int) -> bytes:
        data = self._buffer[self._at : end]
        self._at = end
        return data

    def _take(self, byte: int) -> None:
        if self.peek() != byte:
            raise self._damage()
        self._at += 1

    def _damage(self, at_end: bool = False) -> DamagedJson:
        if at_end or (self._at_end and not self._buffer[self._at :].strip()):
            return DamagedJson("the file ends in the middle of a value: it was cut off, or is still being written")
        start = self._buffer[self._at : self._at + 24].lstrip().split(b"\n")[0].decode("utf-8", "replace")
        return DamagedJson(f"not JSON from here on: {start!r}")


def _decoded_name(data: bytes) -> str:
    try:
        return str(msgspec.json.decode(data, type=str))
    except (msgspec.DecodeError, UnicodeError):
        return data[1:-1].decode("utf-8", "replace")
