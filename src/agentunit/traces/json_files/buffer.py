"""The bytes of a JSON file in a window that moves on, and the patterns that find where a value ends in linear time."""

from __future__ import annotations

from typing import Any

import re2

from agentunit.core.results import InputError
from agentunit.traces.compressed import BROKEN_STREAM, describe_damage
from agentunit.traces.formats_base import Source

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


CONTAINER_OR_CUT = _compiled(_container(r"|\z", r"|\\?\z"))
STRING_OR_CUT = _compiled(rf'"{_IN_STRING}(?:"|\\?\z)')
WHOLE_CONTAINER = _compiled(_container("", ""))
WHOLE_STRING = _compiled(rf'"{_IN_STRING}"')
SCALAR = _compiled(r"-?(?:[0-9]+(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?|Infinity)|true|false|null|NaN")
WORD = _compiled(r"[-+.0-9A-Za-z]+")
REST_OF_STRING = _compiled(_IN_STRING)
TO_BRACKET = _compiled(rf'(?:[^\[\]{{}}"]|"{_IN_STRING}")*')
WHITE_SPACE = _compiled(r"[ \t\r\n]*")
FIRST_NAME = _compiled(r'\{[ \t]*"[^"\\\x00-\x1f]{1,64}"[ \t]*:')
LINE_OF_JSON = _compiled(r"\n[\[{]")


# How far the first line is looked at to tell whether a file holds one value a line.
LOOK_BYTES = 1 << 20

END = -1
OPENING = frozenset(b"{[")

CHUNK_BYTES = 1 << 20
_LARGEST_CHUNK_BYTES = 1 << 28
_WHITE = frozenset(b" \t\r\n")
_NEWLINE = ord("\n")


class DamagedJson(Exception):
    """The text is no JSON at the cursor, or ends too early; ``recover`` moves on to where reading is safe again."""


class JsonBuffer:
    """A place in a stream of JSON values. It is moved by ``JsonCursor``."""

    def __init__(self, source: Source, chunk_bytes: int | None = None) -> None:
        self.source = source
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
                end: int = WHITE_SPACE.match(self._buffer, self._at).end()
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
            match = LINE_OF_JSON.search(self._buffer, self._at)
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

    def _read_more(self) -> bool:
        """Another chunk behind what is not taken yet; false at the end. A longer value doubles the buffer."""
        if self._at_end:
            return False
        _ = self.line
        kept = self._buffer[self._at :]
        pieces, wanted = [kept], max(self._chunk_bytes, min(len(kept), _LARGEST_CHUNK_BYTES))
        try:
            # Piece by piece: what was read before a compressed stream breaks is still good.
            while wanted > 0:
                piece = self.source.stream.read1(wanted)
                if not piece:
                    self._at_end = True
                    break
                pieces.append(piece)
                wanted -= len(piece)
        except BROKEN_STREAM as error:
            self.broken_stream = describe_damage(error)
            self._at_end = True
        except OSError as error:
            self.broken_stream = (error.strerror or str(error)).lower()
            self._at_end = True
        self._dropped += self._at
        self._buffer = b"".join(pieces)
        self._at = self._counted_to = 0
        return len(self._buffer) > len(kept)

    def _begins_one_a_line(self) -> bool:
        if self.peek() not in OPENING:
            return False
        while (newline := self._buffer.find(b"\n", self._at)) < 0 or not self._buffer[newline:].strip():
            if len(self._buffer) - self._at >= LOOK_BYTES or not self._read_more():
                return False
        following: int = WHITE_SPACE.match(self._buffer, newline).end()
        if self._buffer[following] not in OPENING or self._buffer[following - 1] != _NEWLINE:
            return False
        match = CONTAINER_OR_CUT.match(self._buffer, self._at)
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
