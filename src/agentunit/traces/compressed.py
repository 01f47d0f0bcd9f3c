"""Opening record files: plain, gzip or Zstandard, told apart by their first bytes, not by their names."""

from __future__ import annotations

import gzip
import io
import zlib
from collections.abc import Iterator
from math import inf
from typing import Any, BinaryIO

from agentunit.installation import install_command
from agentunit.traces.limits import Expansion, LimitExceeded, file_too_long, item_too_long, read_limits

_GZIP_MAGIC = b"\x1f\x8b"
_ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
_CHUNK_BYTES = 1 << 18
_PIECE_BYTES = 1 << 7

BROKEN_STREAM = (EOFError, gzip.BadGzipFile, zlib.error, LimitExceeded)


class ZstandardMissing(RuntimeError):
    """A .zst file was given and the optional package that reads it is not installed."""


def describe_damage(error: Exception, where: str = " here") -> str:
    """Why a stream that raised one of ``BROKEN_STREAM`` cannot be read on."""
    if isinstance(error, LimitExceeded):
        return f"{error}; the rest is left out" if where else str(error)
    return f"the compressed file is cut off or damaged{where} ({error})"


def read_pieces(stream: io.BufferedIOBase, wanted: int) -> tuple[list[bytes], bool, str | None]:
    """So many bytes of a stream in pieces, whether it has no more, and why it broke, if it did.

    What was read before a compressed stream breaks is still good.
    """
    pieces: list[bytes] = []
    try:
        while wanted > 0:
            piece = stream.read1(wanted)
            if not piece:
                return pieces, True, None
            pieces.append(piece)
            wanted -= len(piece)
    except BROKEN_STREAM as error:
        return pieces, True, describe_damage(error)
    except OSError as error:
        return pieces, True, (error.strerror or str(error)).lower()
    return pieces, False, None


def decompressed(raw: BinaryIO) -> io.BufferedIOBase:
    """A buffered stream of the decompressed bytes of a file.

    A stream that ends early, is damaged, or expands beyond its limit raises one of ``BROKEN_STREAM`` after what could
    be read.
    """
    start = raw.read(len(_ZSTD_MAGIC))
    source: io.BufferedIOBase
    if raw.seekable():
        raw.seek(-len(start), io.SEEK_CUR)
        source = raw if isinstance(raw, io.BufferedReader) else io.BufferedReader(_Replayed(b"", raw), _CHUNK_BYTES)
    else:
        source = io.BufferedReader(_Replayed(start, raw), _CHUNK_BYTES)
    counted = _Counted(source)
    if start.startswith(_GZIP_MAGIC):
        return io.BufferedReader(_Metered(gzip.GzipFile(fileobj=counted), counted), _CHUNK_BYTES)
    if start == _ZSTD_MAGIC:
        return io.BufferedReader(_Metered(_ZstandardStream(counted), counted), _CHUNK_BYTES)
    return source


def read_whole(stream: io.BufferedIOBase) -> bytes:
    """All bytes of a file that can only be read as a whole, within the limit on its size."""
    limit = read_limits().file_bytes
    pieces, n_bytes = [], 0
    while piece := stream.read1(_CHUNK_BYTES):
        pieces.append(piece)
        n_bytes += len(piece)
        if n_bytes > limit:
            raise file_too_long()
    return b"".join(pieces)


def bounded_lines(stream: io.BufferedIOBase) -> Iterator[tuple[int, bytes | str]]:
    """The lines of a file with their numbers, without those that are blank; a text is the reason for a missing line.

    After a line that is too long, reading goes on; where a compressed file is damaged, it ends.
    """
    longest = read_limits().item_bytes
    at_once = -1 if longest == inf else int(longest) + 1
    number = 0
    try:
        while line := stream.readline(at_once):
            number += 1
            if len(line) > longest:
                while line and not line.endswith(b"\n"):
                    line = stream.readline(_CHUNK_BYTES)
                yield number, item_too_long("the line")
                continue
            if number == 1:
                line = line.removeprefix(b"\xef\xbb\xbf")
            if line and not line.isspace():
                yield number, line
            elif isinstance(stream, io.BufferedReader):
                number += _skip_blank_lines(stream)
    except BROKEN_STREAM as error:
        yield number + 1, describe_damage(error)


def _skip_blank_lines(stream: io.BufferedReader) -> int:
    """Move over the blank lines in the buffer at once: a small compressed file may hold a billion of them."""
    ahead = stream.peek()
    end = ahead.rfind(b"\n", 0, len(ahead) - len(ahead.lstrip())) + 1
    stream.read(end)
    return ahead.count(b"\n", 0, end)


def replayed(start: bytes, rest: io.BufferedIOBase) -> io.BufferedIOBase:
    """A stream whose first bytes were taken already, from the start again."""
    if isinstance(rest, io.BufferedReader) and isinstance(rest.raw, io.FileIO) and rest.seekable():
        rest.seek(-len(start), io.SEEK_CUR)
        return rest
    return io.BufferedReader(_Replayed(start, rest), _CHUNK_BYTES)


class _Replayed(io.RawIOBase):
    """A stream whose first bytes were taken already, from the start again. It does not close what it reads."""

    def __init__(self, start: bytes, rest: BinaryIO | io.BufferedIOBase) -> None:
        self._start = start
        self._rest = rest

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any, /) -> int:
        chunk = self._start or self._read_some(len(buffer))
        n = min(len(buffer), len(chunk))
        buffer[:n] = chunk[:n]
        self._start = chunk[n:]
        return n

    def _read_some(self, size: int) -> bytes:
        # What has arrived is enough: waiting for a full buffer would hold up a live pipe.
        read = getattr(self._rest, "read1", self._rest.read)
        return bytes(read(size))


class _Counted(io.RawIOBase):
    """A stream that knows how many bytes were taken from it."""

    def __init__(self, source: io.BufferedIOBase) -> None:
        self._source = source
        self.n_bytes = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return self._source.seekable()

    def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int:
        return self._source.seek(offset, whence)

    def tell(self) -> int:
        return self._source.tell()

    def read(self, size: int = -1, /) -> bytes:
        data = self._source.read(size)
        self.n_bytes += len(data)
        return data


class _Metered(io.RawIOBase):
    """What a decompressor gives, until it is more than the compressed bytes may become."""

    def __init__(self, source: Any, compressed: _Counted) -> None:
        self._source = source
        self._compressed = compressed
        self._expansion = Expansion()
        self._refused: LimitExceeded | None = None

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any, /) -> int:
        if self._refused is not None:
            raise self._refused
        # What is ready is enough: waiting for a full buffer would hold up a live pipe.
        read = getattr(self._source, "readinto1", self._source.readinto)
        n: int = read(buffer)
        try:
            self._expansion.add(n, self._compressed.n_bytes)
        except LimitExceeded as error:
            # What is here already is still read.
            self._refused = error
        return n


class _ZstandardStream(io.RawIOBase):
    """Frames of a Zstandard file one after the other; unlike the package's own reader it notices a missing end."""

    def __init__(self, source: _Counted) -> None:
        try:
            import zstandard
        except ImportError:
            raise ZstandardMissing(f"reading .zst needs the extra zstd: {install_command('zstd')}") from None
        self._damage = zstandard.ZstdError
        self._new_frame = zstandard.ZstdDecompressor().decompressobj
        self._source = source
        self._frame: Any = None
        self._frame_start = self._position = source.tell() if source.seekable() else 0
        self._compressed = b""
        self._ready = b""
        self._broken: EOFError | None = None

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any, /) -> int:
        while not self._ready:
            if self._broken is not None:
                raise self._broken
            if not self._compressed:
                self._compressed = self._source.read(_CHUNK_BYTES)
            if self._compressed:
                self._decompress_some()
            elif self._frame is None:
                return 0
            else:
                self._broken = EOFError("the Zstandard stream ended before its end marker")
        n = min(len(buffer), len(self._ready))
        buffer[:n] = self._ready[:n]
        self._ready = self._ready[n:]
        return n

    def _decompress_some(self) -> None:
        if self._frame is None:
            self._frame = self._new_frame()
            self._frame_start = self._position
        # A little at a time: a few bytes of well compressed data can be megabytes.
        piece = self._compressed[:_PIECE_BYTES]
        try:
            self._ready = self._frame.decompress(piece)
        except self._damage as error:
            self._ready = self._before_the_damage(piece)
            self._broken = EOFError(f"the Zstandard stream is damaged: {error}")
            return
        used = len(piece)
        if self._frame.eof:
            used -= len(self._frame.unused_data)
            self._frame = None
        self._compressed = self._compressed[used:]
        self._position += used

    def _before_the_damage(self, piece: bytes) -> bytes:
        """What the damaged piece still holds: its frame is read again up to there, then byte by byte."""
        if not self._source.seekable():
            return b""
        frame = self._new_frame()
        self._source.seek(self._frame_start)
        remaining = self._position - self._frame_start
        while remaining:
            part = self._source.read(min(_PIECE_BYTES, remaining))
            frame.decompress(part)
            remaining -= len(part)
        saved = []
        for position in range(len(piece)):
            try:
                saved.append(frame.decompress(piece[position : position + 1]))
            except self._damage:
                break
        return b"".join(saved)
