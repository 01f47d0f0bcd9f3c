"""What stands escaped, marked up or encoded in texts: for a URL, HTML, JSON, Markdown or a mail, and as bytes."""

from __future__ import annotations

import base64
import binascii
import re
import sys
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import cache, lru_cache
from html import unescape
from typing import Any, NamedTuple
from urllib.parse import unquote

from agentunit.privacy.detection.readable import INVISIBLE_CHARACTERS, MARKS_ON_DIGITS
from agentunit.privacy.pseudonyms import PLACEHOLDER

_SHORTEST = 6  # bytes: two Chinese letters
_SHORTEST_WORD = 11  # letters of Base64: longer than most words
_READABLE = re.compile(r"[^\x00-\x08\x0e-\x1f\x7f\ufffd]+")
_WHITESPACE = {"n": "\n", "r": "\r", "t": "\t", "b": " ", "f": " "}
_AUTOMATON_BYTES = 64 << 20
_MOST_REMEMBERED = 64  # characters


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


class Reading(NamedTuple):
    """A way to read a text: what a pattern finds in it means something else.

    The pattern should begin with a set of characters, so that a text without them costs almost nothing.
    """

    pattern: re.Pattern[str]
    meaning: Callable[[re.Match[str]], str]

    def read(self, text: str) -> str:
        """The text as it reads."""
        return self.pattern.sub(self.meaning, text)

    def mapped(self, text: str) -> tuple[str, Map]:
        """The text as it reads, and the way back."""
        parts: list[str] = []
        step = Map([], [], [])
        position = length = 0
        for found in self.pattern.finditer(text):
            plain = self.meaning(found)
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
    written, kind = escape.group(), escape.lastgroup
    if kind == "url":
        return unquote(written)
    if kind == "html":
        return unescape(written)
    if kind == "bytes":
        return bytes.fromhex(written.replace("\\x", "")).decode("utf-8", "replace")
    if kind == "octal":
        return bytes(int(code, 8) for code in written.split("\\")[1:]).decode("utf-8", "replace")
    if kind == "code":
        number = int(re.sub(r"[^0-9A-Fa-f]", "", written[1:]) or "0", 16)
        # Half a surrogate pair is no character, and cannot be written.
        return chr(number) if number <= sys.maxunicode and not 0xD800 <= number <= 0xDFFF else written
    if kind == "units":
        units = b"".join(int(code, 16).to_bytes(2, "big") for code in re.split(r"[\\%]u", written)[1:])
        return units.decode("utf-16-be", "replace")
    return _WHITESPACE.get(written[1], written[1])


ESCAPES = Reading(
    re.compile(
        r"[%&\\U](?:"
        r"(?P<url>(?<=%)[0-9A-Fa-f]{2}(?:%[0-9A-Fa-f]{2})*)"
        r"|(?P<units>(?<=[\\%])u[0-9A-Fa-f]{4}(?:[\\%]u[0-9A-Fa-f]{4})*)"
        r"|(?P<html>(?<=&)(?:#[0-9]{1,20}(?![0-9]);?|#[xX][0-9A-Fa-f]{1,16}(?![0-9A-Fa-f]);?|[A-Za-z]{2,24};))"
        r"|(?P<bytes>(?<=\\)x[0-9A-Fa-f]{2}(?:\\x[0-9A-Fa-f]{2})*)"
        # Of JavaScript, Python, CSS (six digits, or two and a space) and of Unicode's own tables.
        r"|(?P<code>(?<=\\)(?:u\{[0-9A-Fa-f]{1,6}\}|U[0-9A-Fa-f]{8}|00[0-9A-Fa-f]{4}(?![0-9A-Fa-f])"
        r"|[2-7][0-9A-Fa-f][ ])"
        r"|(?<=U)(?<![A-Za-z0-9+/]U)\+[0-9A-Fa-f]{4,6}[ ,]{0,2})"
        r"|(?P<octal>(?<=\\)[0-3][0-7]{2}(?:\\[0-3][0-7]{2})*)"
        r"|(?P<sign>(?<=\\)[nrtbf\"/\\'@.*_~`#()\[\]{}<>+!-]))"
    ),
    _meaning,
)
"""One layer of escapes undone: of URLs, HTML, JSON, JavaScript, CSS, C and Markdown."""

MARKUP = Reading(
    re.compile(
        rf"[<\[\]{{\\=\x1b{INVISIBLE_CHARACTERS}{MARKS_ON_DIGITS}](?:"
        rf"(?<=<)(?!{PLACEHOLDER.pattern[1:]})(?:!--[^>]{{0,200}}-->|/?[A-Za-z][^<>]{{0,300}}>)"
        r"|(?<=\x1b)\[[0-9;]{0,12}[A-Za-z]"
        r"|(?<=\[)/?[A-Za-z]{1,5}\]|(?<=\])\([^()\s]{0,200}\)"
        r"|(?<=\\)[A-Za-z]{2,12}\{|(?<=\{)\\[a-z]{1,4}[ ]"
        r"|(?<==)\r?\n"
        rf"|(?<=[0-9][{INVISIBLE_CHARACTERS}{MARKS_ON_DIGITS}])[{INVISIBLE_CHARACTERS}{MARKS_ON_DIGITS}]*"
        rf"|(?<=[{INVISIBLE_CHARACTERS}])[{INVISIBLE_CHARACTERS}]*)"
    ),
    lambda found: "",
)
"""A text as a page shows it: without tags, codes of a terminal, ends of folded lines, and what is invisible."""

_INLINE = "a|abbr|b|bdi|big|code|del|em|font|i|ins|kbd|mark|q|s|samp|small|span|strike|strong|sub|sup|tt|u|var|wbr"
INLINE_MARKUP = Reading(
    re.compile(
        rf"[<*_~`](?:(?<=<)/?(?:{_INLINE})(?:\s[^<>]{{0,300}})?>|(?<=[*_~`])[*_~`]{{0,2}}@[*_~`]{{1,3}})", re.IGNORECASE
    ),
    lambda found: "@" if "@" in found.group()[:4] else "",
)
"""A text without the tags that stand within words, and with every @ plain: what a page shows as one word is one."""

QUOTED_PRINTABLE = Reading(
    re.compile(r"=(?:\r?\n|[0-9A-Fa-f]{2})(?:=(?:\r?\n|[0-9A-Fa-f]{2}))*"),
    lambda found: bytes.fromhex(re.sub("[=\r\n]", "", found.group())).decode("utf-8", "replace"),
)
"""A mail's text with its bytes and folded lines undone. An equals sign has other uses: the text itself is read too."""

_GLUE = r"(?:\r?\n[ \t>]{0,8}|[\"'][ \t\r\n]{0,8}[+.]?[ \t\r\n]{0,8}[\"'])"
_BASE_64 = r"[A-Za-z0-9+/_-]"
_HEXADECIMAL = r"(?:0x|\\x)?[0-9A-Fa-f]{2}"
_ENCODED = "|".join((
    rf"{_BASE_64}{{{_SHORTEST_WORD},}}={{0,2}}(?:{_GLUE}{_BASE_64}+={{0,2}})*",
    rf"(?:{_BASE_64}{{4,10}}{_GLUE})+{_BASE_64}{{2,}}={{0,2}}",
    rf"{_HEXADECIMAL}(?:[ \t\r\n:,;.-]{{0,3}}{_HEXADECIMAL}){{5,}}",
    r"[0-9]{2,3}(?:[ \t\r\n,;]{1,3}[0-9]{2,3}){5,}",
))  # fmt: skip
_PIECES = re.compile(rf"{_GLUE}|/")
_BASE_64_ONLY = re.compile(rf"{_BASE_64}+={{0,2}}")
_NO_HEXADECIMAL = re.compile(r"0x|\\x|[^0-9A-Fa-f]")
_BASE_32 = re.compile(r"(?:[A-Z2-7]{10,}|(?=[a-z]*[2-7])[a-z2-7]{16,})={0,6}")
_HEXADECIMAL_ONLY = re.compile(rf"{_HEXADECIMAL}(?:[ \t\r\n:,;.-]{{0,3}}{_HEXADECIMAL})*")
_NUMBERS = re.compile(r"[0-9]{2,3}(?:[ \t\r\n,;]{1,3}[0-9]{2,3})*")
_TEXT_IN_BYTES = re.compile(rb"(?:(?:[\t\n\r\x20-\x7e]|[\xc2-\xf4][\x80-\xbf]{1,3})\x00{0,3}){6,}")


@cache
def _encoded() -> Any:
    import re2

    options = re2.Options()
    options.encoding = re2.Options.Encoding.LATIN1
    options.max_mem = _AUTOMATON_BYTES
    options.longest_match = True
    options.never_capture = True
    return re2.compile(_ENCODED.encode(), options)


def encoded_texts(text: str) -> Iterator[tuple[int, int, str]]:
    """The readable texts that stand in a text as Base64, Base32, hexadecimal digits or codes, with their places.

    >>> [decoded for _, _, decoded in encoded_texts("YWRhQGV4YW1wbGUub3Jn, 61:64:61:40:62:2e:64:65")]
    ['ada@example.org', 'ada@b.de']
    """
    return ((start, end, decoded) for start, end, decoded, is_whole in _all_encoded(text) if is_whole)


def texts_in_bytes(text: str) -> Iterator[tuple[int, int, str]]:
    """Like ``encoded_texts``, with what is readable among other bytes: enough to find a value that is known."""
    return ((start, end, decoded) for start, end, decoded, _ in _all_encoded(text))


def _all_encoded(text: str) -> Iterator[tuple[int, int, str, bool]]:
    """The texts that stand encoded in a text, with their places, and whether all of their bytes are readable."""
    if len(text) < 2 * _SHORTEST:
        return
    # One byte for each character keeps the places.
    for found in _encoded().finditer(text.encode("ascii", "replace")):
        start, end = found.span()
        written = text[start:end]
        for decoded, is_whole in _decodings(written):
            yield start, end, decoded, is_whole
        if _PIECES.search(written) is None:
            continue
        place = start
        for piece in _PIECES.split(written):
            place = text.index(piece, place)
            for decoded, is_whole in _decodings(piece) if len(piece) >= _SHORTEST_WORD else ():
                yield place, place + len(piece), decoded, is_whole
            place += len(piece)


def _decodings(written: str) -> Sequence[tuple[str, bool]]:
    """The texts that a run of letters and digits can stand for, and whether all bytes of each are readable."""
    # Letters alone in one case are words: "international", "Configuration".
    if written.isalpha() and written[1:].islower():
        return ()
    return _known_decodings(written) if len(written) <= _MOST_REMEMBERED else _new_decodings(written)


def _new_decodings(written: str) -> Sequence[tuple[str, bool]]:
    decodings: list[tuple[str, bool]] = []
    for raw in _readings_of(written):
        decoded = _decoded(raw)
        if decoded is not None and len(decoded.encode()) >= _SHORTEST and _READABLE.fullmatch(decoded):
            decodings.append((decoded, True))
        elif readable := _TEXT_IN_BYTES.findall(raw):
            decodings.append(("\n\n\n\n".join(each.decode("utf-8", "replace") for each in readable), False))
    return decodings


# Names of fields, tools and files come again and again.
_known_decodings = lru_cache(maxsize=4_096)(_new_decodings)


def _readings_of(written: str) -> Iterator[bytes]:
    """The bytes that a run of letters and digits can stand for."""
    if _NUMBERS.fullmatch(written):
        codes = [int(code) for code in re.findall("[0-9]+", written)]
        if len(codes) >= _SHORTEST and max(codes) < 256:
            yield bytes(codes)
    if _HEXADECIMAL_ONLY.fullmatch(written):
        digits = _NO_HEXADECIMAL.sub("", written)
        yield bytes.fromhex(digits[: len(digits) // 2 * 2])
    joined = re.sub(_GLUE, "", written)
    if _BASE_32.fullmatch(joined):
        plain = joined.rstrip("=").upper()
        with suppress(ValueError, binascii.Error):
            yield base64.b32decode(plain + "=" * (-len(plain) % 8))
    if not _BASE_64_ONLY.fullmatch(joined) or (joined[1:].islower() and joined.isalpha()):
        return
    plain = joined.rstrip("=").replace("-", "+").replace("_", "/")
    plain = plain[: len(plain) - (len(plain) % 4 == 1)]
    with suppress(ValueError, binascii.Error):
        yield base64.b64decode(plain + "=" * (-len(plain) % 4))


def _decoded(raw: bytes) -> str | None:
    """Bytes as a text in UTF-8, UTF-16 or UTF-32; ``None`` where they are none."""
    n_zeros = raw.count(0)
    if 3 * n_zeros >= len(raw) or raw[:2] in (b"\xff\xfe", b"\xfe\xff"):
        is_big = raw[:1] == b"\0" or raw[:2] == b"\xfe\xff"
        width = 32 if 2 * n_zeros > len(raw) * 1.2 else 16
        codec = f"utf-{width}-{'be' if is_big else 'le'}"
    else:
        codec = "utf-8"
    try:
        return raw.decode(codec).removeprefix("\ufeff")
    except UnicodeDecodeError:
        return None
