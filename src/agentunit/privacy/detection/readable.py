"""Texts as people read them: without invisible characters, and with plain digits, letters, hyphens and spaces.

A number with an invisible character between its digits looks the same as one without, and no pattern matches it. What
has such characters is searched twice: as it is written, and as it reads.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Callable, Sequence
from typing import NamedTuple

from agentunit.privacy.detection.engine import without_overlaps
from agentunit.privacy.findings import Finding

_CONTROLS = bytes(
    code for code in range(128) if (code < 32 and code not in b"\t\n\r\x0b\x0c\x1c\x1d\x1e\x1f") or code == 127
)
# Format characters, fillers, joiners, variation selectors and tags: Unicode's "default ignorable" and its controls.
INVISIBLE_CHARACTERS = (
    "\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f\u00ad\u034f\u061c\u070f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f"
    "\u202a-\u202e\u2060-\u206f\u2800\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\U0001bca0-\U0001bca3"
    "\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
"""The characters that nobody sees, as ranges of a character class."""

MARKS_ON_DIGITS = "\u0300-\u036f\u20d0-\u20ff\ufe0f"
# Marks may follow what is invisible, as in the digits of keys: 5, U+FE0F, U+20E3.
INVISIBLE = re.compile(f"(?<=[0-9])[{INVISIBLE_CHARACTERS}{MARKS_ON_DIGITS}]+|[{INVISIBLE_CHARACTERS}]+")
"""Characters that nobody sees, and marks over, under and around digits."""

# The zeros of all scripts whose digits are written one after another; nine more digits follow each.
_ZEROS = (
    "\u0660\u06f0\u07c0\u0966\u09e6\u0a66\u0ae6\u0b66\u0be6\u0c66\u0ce6\u0d66\u0de6\u0e50\u0ed0\u0f20\u1040\u1090\u17e0"
    "\u1810\u1946\u19d0\u1a80\u1a90\u1b50\u1bb0\u1c40\u1c50\ua620\ua8d0\ua900\ua9d0\ua9f0\uaa50\uabf0\uff10\U000104a0"
    "\U00011066\U0001d7ce\U0001d7d8\U0001d7e2\U0001d7ec\U0001d7f6\U0001e950\U0001fbf0"
)
_SPACES = "\u00a0\u1680\u2000-\u200a\u202f\u205f\u3000"
_DASHES = "\u058a\u2010-\u2015\u2043\u207b\u2212\u2e3a\u2e3b\ufe58\ufe63\uff0d"
_DIGITS = "".join(f"{zero}-{chr(ord(zero) + 9)}" for zero in _ZEROS)
_WIDE = "\uff20-\uff3a\uff41-\uff5a"
# A space or hyphen of another kind counts between digits; elsewhere every typeset text has some.
_UNREADABLE = re.compile(
    f"[{INVISIBLE_CHARACTERS}{_DIGITS}{_WIDE}]|[0-9][{MARKS_ON_DIGITS}]|[0-9)][{_SPACES}{_DASHES}][0-9(]"
)
_READ_AS = {
    **{ord(zero) + value: str(value) for zero in _ZEROS for value in range(10)},
    **{code: chr(code - 0xFEE0) for code in range(0xFF01, 0xFF5F)},
    **dict.fromkeys((0xA0, 0x1680, *range(0x2000, 0x200B), 0x202F, 0x205F, 0x3000), " "),
    **dict.fromkeys((0x58A, *range(0x2010, 0x2016), 0x2043, 0x207B, 0x2212, 0x2E3A, 0x2E3B, 0xFE58, 0xFE63), "-"),
}


class Readable(NamedTuple):
    """A text as it reads, and the place of each of its characters in the text as written."""

    text: str
    places: Sequence[int]


def readable(text: str) -> Readable | None:
    """A text as it reads, ``None`` where that is how it is written.

    >>> readable("5\\u200b5\\u200b5-\uff11\uff12").text, readable("555-12")
    ('555-12', None)
    """
    if text.isascii():
        if len(text.encode().translate(None, _CONTROLS)) == len(text):
            return None
    elif _UNREADABLE.search(text) is None:
        return None
    hidden = [span for found in INVISIBLE.finditer(text) for span in range(*found.span())]
    left_out = frozenset(hidden)
    places = array("q", (place for place in range(len(text)) if place not in left_out))
    plain = INVISIBLE.sub("", text).translate(_READ_AS)
    return None if plain == text else Readable(plain, places)


def find_as_read(find: Callable[[list[str]], list[list[Finding]]], texts: list[str]) -> list[list[Finding]]:
    """What a detector finds in each text as it is written and as it reads, in order, none overlapping."""
    read = {number: as_read for number, text in enumerate(texts) if (as_read := readable(text)) is not None}
    if not read:
        return find(texts)
    found = find([*texts, *(each.text for each in read.values())])
    for (number, (_, places)), more in zip(read.items(), found[len(texts) :], strict=True):
        back = (each._replace(start=places[each.start], end=places[each.end - 1] + 1) for each in more)
        found[number] = without_overlaps([*found[number], *back])
    return found[: len(texts)]
