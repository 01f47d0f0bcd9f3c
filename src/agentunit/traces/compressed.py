"""Opening record files: plain, gzip or Zstandard, told apart by their first bytes, not by their names."""

from __future__ import annotations

import gzip
import io
import zlib
from typing import IO, Any, BinaryIO

_GZIP_MAGIC = b"\x1f\x8b"
_ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
_CHUNK_BYTES = 1 << 18

BROKEN_STREAM = (EOFError, gzip.BadGzipFile, zlib.error)


class ZstandardMissing(RuntimeError):
    """A .zst file was given and the optional package that reads it is not installed."""


def decompressed(raw: BinaryIO) -> io.BufferedIOBase:
    """A buffered stream of the decompressed bytes of a file.

    A stream that ends early or is damaged raises one of ``BROKEN_STREAM`` after what could be read.
    """
    buffered = raw if isinstance(raw, io.BufferedReader) else io.BufferedReader(raw, _CHUNK_BYTES)  # type: ignore[type-var]
    start = buffered.peek(4)[:4]
    if start.startswith(_GZIP_MAGIC):
        return gzip.GzipFile(fileobj=buffered)
    if start == _ZSTD_MAGIC:
        return io.BufferedReader(_ZstandardStream(buffered), _CHUNK_BYTES)
    return buffered


class _ZstandardStream(io.RawIOBase):
    """Frames of a Zstandard file one after the other; unlike the package's own reader it notices a missing end."""

    def __init__(self, source: IO[bytes]) -> None:
        try:
            import zstandard
        except ImportError:
            raise ZstandardMissing('reading .zst needs the extra zstd: pip install "agentunit-eval[zstd]"') from None
        self._error = zstandard.ZstdError
        self._new_frame = zstandard.ZstdDecompressor().decompressobj
        self._frame: Any = None
        self._source = source
        self._ready = b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any, /) -> int:
        while not self._ready:
            chunk = self._source.read(_CHUNK_BYTES)
            if not chunk:
                if self._frame is not None:
                    raise EOFError("the Zstandard stream ended before its end marker")
                return 0
            self._decompress(chunk)
        n = min(len(buffer), len(self._ready))
        buffer[:n] = self._ready[:n]
        self._ready = self._ready[n:]
        return n

    def _decompress(self, chunk: bytes) -> None:
        while chunk:
            if self._frame is None:
                self._frame = self._new_frame()
            try:
                self._ready += self._frame.decompress(chunk)
            except self._error as error:
                raise EOFError(f"the Zstandard stream is damaged: {error}") from None
            if not self._frame.eof:
                return
            chunk = self._frame.unused_data
            self._frame = None
