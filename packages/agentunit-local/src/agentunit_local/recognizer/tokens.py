"""Cuts a text into tokens and describes each by hashed pieces: the input of the recognizer, in training and in use.

A word is one token in scripts that part their words; where words stand together (Chinese, Japanese, Korean, Thai and
their neighbors) each character is one. So a name ends where its particle begins. A token is described by its letters,
not by a vocabulary, so that a name that no list holds still resembles those that some list holds.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple
from zlib import crc32

BUCKETS = 65536
"""Rows of the table of hashed pieces; row 0 stays empty."""

PIECES = 18
"""Pieces of one token; a shorter token is filled up with row 0."""

LABELS = ("O", "B-person", "I-person", "B-place", "I-place", "B-address", "I-address")
"""What the model says of a token: the beginning or the inside of a kind, or nothing."""

_ALONE = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff"
_MARKS = "\u0300-\u036f\u0591-\u05c7\u0610-\u061a\u064b-\u065f\u0670\u0900-\u0963\u0966-\u0dff\u200c\u200d"
_TOKEN = re.compile(rf"[{_ALONE}]|(?:(?![{_ALONE}])(?:[^\W\d_]|[{_MARKS}]))+|\d+|\n|[^\w\s]|_")
_SCRIPTS = (
    (0x0250, "latin"), (0x0370, "latin"), (0x0400, "greek"), (0x0530, "cyrillic"), (0x0590, "armenian"),
    (0x0600, "hebrew"), (0x0780, "arabic"), (0x0900, "other"), (0x0980, "devanagari"), (0x0E00, "indic"),
    (0x0F00, "thai"), (0x10A0, "other"), (0x1100, "georgian"), (0x1E00, "other"), (0x2000, "latin"),
    (0x3040, "other"), (0x30A0, "hiragana"), (0x3100, "katakana"), (0x3400, "other"), (0xA000, "han"),
    (0xAC00, "other"), (0xD7B0, "hangul"),
)  # fmt: skip


class Token(NamedTuple):
    """A piece of a text, by its position there."""

    start: int
    end: int


def cut(text: str) -> list[Token]:
    """The tokens of a text.

    >>> text = "Dr. Li 李娜さん"
    >>> [text[token.start : token.end] for token in cut(text)]
    ['Dr', '.', 'Li', '李', '娜', 'さ', 'ん']
    """
    return [Token(*match.span()) for match in _TOKEN.finditer(text)]


def described(words: Sequence[str]) -> list[tuple[int, ...]]:
    """For each token its rows in the table of hashed pieces."""
    return [pieces(word) for word in words]


@lru_cache(maxsize=65536)
def pieces(word: str) -> tuple[int, ...]:
    """The rows of one token: the word, how it begins and ends, what stands in it, its shape and its script.

    >>> len(pieces("Grzegorz")), pieces("Grzegorz")[0] == pieces("GRZEGORZ")[0]
    (18, True)
    """
    lowered = _DIGITS.sub("0", word.lower())
    shape = _shape(word)
    found = [f"w{lowered}", f"s{shape}", f"k{_script(word)}{min(len(word), 12)}"]
    if len(lowered) > 1:
        marked = f"<{lowered}>"
        found += [f"p{lowered[:size]}" for size in (2, 3, 4) if size < len(lowered)]
        found += [f"e{lowered[-size:]}" for size in (1, 2, 3, 4) if size < len(lowered)]
        found += [f"g{marked[at : at + 3]}" for at in range(min(len(marked) - 2, PIECES - 10))]
    rows = [1 + crc32(piece.encode()) % (BUCKETS - 1) for piece in found[:PIECES]]
    return (*rows, *(0,) * (PIECES - len(rows)))


_DIGITS = re.compile(r"\d")


def _shape(word: str) -> str:
    """How a word is written, without its letters: ``Xx`` for a capital and small letters, ``0`` for digits."""
    if word.isdigit():
        return f"0{min(len(word), 6)}"
    if word.isupper():
        return "X" if len(word) == 1 else "XX"
    if word.islower():
        return "x"
    if word.istitle():
        return "Xx"
    return "xX" if word.isalpha() and word != word.lower() else "."


def _script(word: str) -> str:
    first = ord(word[0])
    return next((name for end, name in _SCRIPTS if first < end), "other")
