"""What stands escaped or encoded in texts: for a URL, HTML or JSON, as bytes, Base64 or hexadecimal digits."""

from __future__ import annotations

import base64
import binascii
import re
import sys
from bisect import bisect_right
from collections.abc import Callable, Iterator
from html import unescape
from typing import NamedTuple
from urllib.parse import unquote

_SHORTEST = 6  # bytes: two Chinese letters
_ESCAPES = re.compile(
    r"(?P<url>(?:%[0-9A-Fa-f]{2})+)|(?P<html>&(?:#[0-9]{1,7}|#[xX][0-9A-Fa-f]{1,6}|[A-Za-z]{2,24});)"
    r"|(?P<bytes>(?:\\x[0-9A-Fa-f]{2})+)|(?P<code>\\u\{[0-9A-Fa-f]{1,6}\}|\\U[0-9A-Fa-f]{8})|(?P<json>(?:\\u[0-9A-Fa-f]{4})+|\\[nrtbf\"/\\'])"
)
_ENCODED = re.compile(r"(?<![A-Za-z0-9+/_=-])[A-Za-z0-9+/_-]{11,}={0,2}")
_HEXADECIMAL = re.compile(r"(?:[0-9A-Fa-f]{2}){6,}")
_READABLE = re.compile(r"[^\x00-\x08\x0e-\x1f\x7f\ufffd]+")
_WHITESPACE = {"n": "\n", "r": "\r", "t": "\t", "b": " ", "f": " "}


class Map(NamedTuple):
    """Where escapes stood: for each, its place in the new text, and its start and end in the old one."""

    at: list[int]
    lengths: list[int]
    old: list[tuple[int, int]]

    def back(self, start: int, end: int) -> tuple[int, int]:
        """A span of the new text as a span of the old one."""
        return self._old(start, is_end=False), self._old(end, is_end=True)

    def _old(self, place: int, is_end: bool) -> int:
        index = bisect_right(self.at, place - is_end) - 1
        if index < 0:
            return place
        inside = place - self.at[index]
        old_start, old_end = self.old[index]
        if inside < self.lengths[index] or (is_end and inside == self.lengths[index]):
            return old_end if is_end else old_start
        return old_end + inside - self.lengths[index]


def unescaped(text: str) -> tuple[str, Map]:
    """A text with one layer of escapes undone, and the way back."""
    return read_as(text, _ESCAPES, _meaning)


def read_as(text: str, pattern: re.Pattern[str], meaning: Callable[[re.Match[str]], str]) -> tuple[str, Map]:
    """A text with what a pattern finds read as something else, and the way back."""
    parts: list[str] = []
    step = Map([], [], [])
    position = length = 0
    for found in pattern.finditer(text):
        plain = meaning(found)
        before = text[position : found.start()]
        length += len(before)
        step.at.append(length)
        step.lengths.append(len(plain))
        step.old.append(found.span())
        parts += (before, plain)
        length += len(plain)
        position = found.end()
    return "".join(parts) + text[position:], step


def _meaning(escape: re.Match[str]) -> str:
    written = escape.group()
    if escape.lastgroup == "url":
        return unquote(written)
    if escape.lastgroup == "html":
        return unescape(written)
    if escape.lastgroup == "bytes":
        return bytes.fromhex(written.replace("\\x", "")).decode("utf-8", "replace")
    if escape.lastgroup == "code":
        number = int(written[2:].strip("{}"), 16)
        return chr(number) if number <= sys.maxunicode else written
    if written[1] != "u":
        return _WHITESPACE.get(written[1], written[1])
    units = b"".join(int(code, 16).to_bytes(2, "big") for code in written.split("\\u")[1:])
    return units.decode("utf-16-be", "replace")


def encoded_texts(text: str) -> Iterator[tuple[int, int, str]]:
    """The readable texts that stand in a text as Base64 or as hexadecimal digits, with their places."""
    if len(text) < 2 * _SHORTEST:
        return
    for found in _ENCODED.finditer(text):
        written = found.group()
        for decode in (_from_hexadecimal, _from_base64):
            decoded = decode(written)
            if decoded is not None and len(decoded.encode()) >= _SHORTEST and _READABLE.fullmatch(decoded):
                yield found.start(), found.end(), decoded
                break


def _from_hexadecimal(written: str) -> str | None:
    digits = written[2:] if written[:2] in ("0x", "0X") else written
    if not _HEXADECIMAL.fullmatch(digits):
        return None
    try:
        return bytes.fromhex(digits).decode()
    except (ValueError, UnicodeDecodeError):
        return None


def _from_base64(written: str) -> str | None:
    plain = written.rstrip("=").replace("-", "+").replace("_", "/")
    if len(plain) % 4 == 1:
        return None
    try:
        return base64.b64decode(plain + "=" * (-len(plain) % 4)).decode()
    except (ValueError, binascii.Error, UnicodeDecodeError):
        return None
