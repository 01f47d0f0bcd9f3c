"""Protocol buffers as they lie in a file, walked field by field without a schema and without holding the file."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from agentunit.traces.compressed import BROKEN_STREAM, describe_damage
from agentunit.traces.formats_base import Source

VARINT, FIXED64, DELIMITED, FIXED32 = 0, 1, 2, 5

_CHUNK_BYTES = 1 << 20
_FIXED_BYTES = {FIXED64: 8, FIXED32: 4}
_LONGEST_VARINT = 10


class BadWire(Exception):
    """The bytes are no protocol buffers here."""


class WireEnds(BadWire):
    """The file ends too early, or cannot be read any further."""


class WireField(NamedTuple):
    """A field by its number and kind. ``length`` are the bytes of its content, which come next in the stream."""

    number: int
    kind: int
    length: int


class WireStream:
    """A place in a stream of protocol buffers."""

    def __init__(self, source: Source) -> None:
        self._stream = source.stream
        self._buffer = b""
        self._at = 0
        self._dropped = 0
        self._broken: str | None = None
        self._at_end = False

    @property
    def offset(self) -> int:
        """The place in bytes from the beginning."""
        return self._dropped + self._at

    def look(self, n_bytes: int) -> bytes:
        """The next bytes, without taking them; fewer at the end."""
        while (missing := n_bytes - (len(self._buffer) - self._at)) > 0 and self._read_more(missing):
            pass
        return self._buffer[self._at : self._at + n_bytes]

    def ended(self) -> bool:
        """Whether nothing follows. Raises ``WireEnds`` where a compressed file broke off."""
        if self._at < len(self._buffer) or self._read_more():
            return False
        if self._broken is not None:
            raise WireEnds(self._broken)
        return True

    def take(self, n_bytes: int) -> bytes:
        """The next bytes."""
        data = self.look(n_bytes)
        if len(data) < n_bytes:
            raise WireEnds(self._broken or "the file ends in the middle of a message")
        self._at += n_bytes
        return data

    def skip(self, n_bytes: int) -> None:
        """Move on, however far."""
        while n_bytes > 0:
            n_bytes -= len(self.take(min(n_bytes, _CHUNK_BYTES)))

    def varint(self) -> int:
        """A number of variable length."""
        number = 0
        for place in range(_LONGEST_VARINT):
            byte = self.take(1)[0]
            number |= (byte & 0x7F) << (7 * place)
            if byte < 0x80:
                return number
        raise BadWire("no protocol buffers: a number has no end")

    def fields(self, end: int | None) -> Iterator[WireField]:
        """The fields up to an offset, or to the end. Take or walk a field's content, or it is skipped."""
        while self.offset < end if end is not None else not self.ended():
            tag = self.varint()
            number, kind = tag >> 3, tag & 7
            if number == 0 or (kind not in _FIXED_BYTES and kind not in (VARINT, DELIMITED)):
                raise BadWire(f"no protocol buffers: a field of number {number} and kind {kind}")
            if kind == VARINT:
                self.varint()
                yield WireField(number, kind, 0)
                continue
            length = self.varint() if kind == DELIMITED else _FIXED_BYTES[kind]
            field_end = self.offset + length
            if end is not None and field_end > end:
                raise BadWire("no protocol buffers: a field is longer than what holds it")
            yield WireField(number, kind, length)
            self.skip(field_end - self.offset)
        if end is not None and self.offset != end:
            raise BadWire("no protocol buffers: a field is longer than what holds it")

    def _read_more(self, n_bytes: int = 0) -> bool:
        """Another chunk, and at least so many bytes if there are so many; false at the end."""
        if self._at_end:
            return False
        pieces, wanted = [self._buffer[self._at :]], max(n_bytes, _CHUNK_BYTES)
        try:
            # Piece by piece: what was read before a compressed stream breaks is still good.
            while wanted > 0:
                piece = self._stream.read1(wanted)
                if not piece:
                    self._at_end = True
                    break
                pieces.append(piece)
                wanted -= len(piece)
        except BROKEN_STREAM as error:
            self._broken = describe_damage(error)
        except OSError as error:
            self._broken = (error.strerror or str(error)).lower()
        self._at_end = self._at_end or self._broken is not None
        self._dropped += self._at
        self._buffer = b"".join(pieces)
        self._at = 0
        return len(self._buffer) > len(pieces[0])
