"""A part of a file of lines, cut by bytes: each line belongs to the part in which it begins."""

from __future__ import annotations

import io
from typing import Any, BinaryIO

from msgspec import Struct

_CHUNK_BYTES = 1 << 18
# What is read at once: a block of lines as they are cut, with the rest of its last line.
_AT_ONCE_BYTES = 8 << 20


class LineRange(Struct, frozen=True):
    """The lines that begin at or after byte ``start`` and before byte ``end`` of a file.

    >>> data = io.BytesIO(b"one\\ntwo\\nthree\\n")
    >>> [LineRange(*ends).stream(data).read() for ends in ((0, 4), (4, 5), (5, 14))]
    [b'one\\n', b'two\\n', b'three\\n']
    """

    start: int
    end: int

    def stream(self, raw: BinaryIO) -> io.BufferedIOBase:
        """The bytes of these lines."""
        start = _next_line(raw, self.start)
        if isinstance(raw, io.BufferedReader) and not isinstance(raw.raw, io.FileIO):
            # Going back and forth in a file by URL would fetch it twice.
            return io.BufferedReader(_ToLineEnd(raw, start, self.end), _CHUNK_BYTES)
        end = max(start, _next_line(raw, self.end))
        if end - start <= _AT_ONCE_BYTES:
            raw.seek(start)
            return io.BytesIO(raw.read(end - start))
        return io.BufferedReader(_Limited(raw, start, end), _CHUNK_BYTES)

    def n_begun(self, raw: io.RawIOBase) -> int:
        """How many lines begin in it, blank ones too: next to nothing to count.

        >>> LineRange(1, 9).n_begun(io.BytesIO(b"one\\ntwo\\nthree\\n"))
        2
        """
        # A line begins behind the end of another, or at the start of the file.
        at = max(0, self.start - 1)
        n_begun, left = int(self.start == 0), self.end - 1 - at
        raw.seek(at)
        while left > 0 and (n := raw.readinto(memoryview(_buffer)[: min(left, _CHUNK_BYTES)])):
            # Found one by one: counting looks at every byte by itself, which takes longer where lines are long.
            found = _buffer.find(b"\n", 0, n)
            while found >= 0:
                n_begun += 1
                found = _buffer.find(b"\n", found + 1, n)
            left -= n
        return n_begun

    def n_lines(self, raw: BinaryIO) -> int:
        """How many lines they are: those that end."""
        stream, n_lines = self.stream(raw), 0
        while chunk := stream.read(_CHUNK_BYTES):
            n_lines += chunk.count(b"\n")
        return n_lines


_buffer = bytearray(_CHUNK_BYTES)


def _next_line(raw: BinaryIO, place: int) -> int:
    """Where the first line begins that begins at a place or behind it; the end of the file where none does."""
    if place == 0:
        return 0
    at = raw.seek(place - 1)
    while chunk := raw.read(1 << 16):
        found = chunk.find(b"\n")
        if found >= 0:
            return at + found + 1
        at += len(chunk)
    return at


class _ToLineEnd(io.RawIOBase):
    """The bytes from a place to the end of the line in which another lies, found as they are read."""

    def __init__(self, raw: BinaryIO, start: int, end: int) -> None:
        self._raw = raw
        self._at, self._end = start, end
        self._is_done = start >= end
        raw.seek(start)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any, /) -> int:
        data = b"" if self._is_done else self._raw.read(len(buffer))
        last = self._end - 1 - self._at
        if last < len(data) and (found := data.find(b"\n", max(0, last))) >= 0:
            data = data[: found + 1]
            self._is_done = True
        self._at += len(data)
        buffer[: len(data)] = data
        return len(data)


class _Limited(io.RawIOBase):
    def __init__(self, raw: BinaryIO, start: int, end: int) -> None:
        self._raw = raw
        self._left = end - start
        raw.seek(start)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any, /) -> int:
        data = self._raw.read(min(len(buffer), self._left))
        buffer[: len(data)] = data
        self._left -= len(data)
        return len(data)
