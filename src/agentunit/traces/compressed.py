"""Opening record files: plain, gzip or Zstandard, told apart by their first bytes, not by their names."""

from __future__ import annotations

import gzip
import io
import zlib
from typing import Any, BinaryIO

_GZIP_MAGIC = b"\x1f\x8b"
_ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
_CHUNK_BYTES = 1 << 18
_PIECE_BYTES = 1 << 7

BROKEN_STREAM = (EOFError, gzip.BadGzipFile, zlib.error)


class ZstandardMissing(RuntimeError):
    """A .zst file was given and the optional package that reads it is not installed."""


def decompressed(raw: BinaryIO) -> io.BufferedIOBase:
    """A buffered stream of the decompressed bytes of a file.

    A stream that ends early or is damaged raises one of ``BROKEN_STREAM`` after what could be read.
    """
    start = raw.read(len(_ZSTD_MAGIC))
    source: io.BufferedIOBase
    if raw.seekable():
        raw.seek(-len(start), io.SEEK_CUR)
        source = raw if isinstance(raw, io.BufferedReader) else io.BufferedReader(_Replayed(b"", raw), _CHUNK_BYTES)
    else:
        source = io.BufferedReader(_Replayed(start, raw), _CHUNK_BYTES)
    if start.startswith(_GZIP_MAGIC):
        return gzip.GzipFile(fileobj=source)
    if start == _ZSTD_MAGIC:
        return io.BufferedReader(_ZstandardStream(source), _CHUNK_BYTES)
    return source


def replayed(start: bytes, rest: io.BufferedIOBase) -> io.BufferedIOBase:
    """A stream whose first bytes were taken already, from the start again."""
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


class _ZstandardStream(io.RawIOBase):
    """Frames of a Zstandard file one after the other; unlike the package's own reader it notices a missing end."""

    def __init__(self, source: io.BufferedIOBase) -> None:
        try:
            import zstandard
        except ImportError:
            raise ZstandardMissing('reading .zst needs the extra zstd: pip install "agentunit-eval[zstd]"') from None
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
