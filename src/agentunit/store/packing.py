"""Long texts in a store: compressed where that pays."""

from __future__ import annotations

import zlib

_FASTEST = 1
_MARK = b"\x78"
"""What zlib's output begins with, and no JSON."""


def packed(text: bytes, compressed_from_bytes: int) -> bytes:
    """JSON as it is kept: compressed if it has this size.

    >>> packed(b"[1]", 4), packed(b"[" + b"1," * 999 + b"1]", 4)[:1]
    (b'[1]', b'x')
    """
    return zlib.compress(text, _FASTEST) if len(text) >= compressed_from_bytes else text


def unpacked(kept: bytes) -> bytes:
    """The JSON itself."""
    return zlib.decompress(kept) if kept[:1] == _MARK else bytes(kept)
