"""Foreign text made safe for where it goes: a terminal, an XML file, one line of a report."""

from __future__ import annotations

import re

# Whatever a terminal could obey instead of showing: C0 and C1 controls, and the marks that turn the direction of text.
# Half surrogates are no characters at all and cannot be written.
_NOT_SHOWN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufeff]")
_LINE_ENDS = re.compile("\r\n|[\r\u0085\u2028\u2029]")
# XML 1.0 knows no control characters but these three, no half surrogates and no U+FFFE or U+FFFF.
_NOT_XML = re.compile("[^\t\n\r -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_TAB = "    "


def printable(text: str) -> str:
    """Text of several lines as a terminal may show it: what would steer the terminal becomes a dot.

    >>> printable("one\\r\\ntwo\\x1b[2J")
    'one\\ntwo·[2J'
    """
    return _NOT_SHOWN.sub("·", _LINE_ENDS.sub("\n", text).replace("\t", _TAB))


def printable_line(text: str, most: int | None = None) -> str:
    """The same in one line, with the spacing evened out and cut to ``most`` characters.

    >>> printable_line("one\\n  two", 5)
    'one …'
    """
    line = " ".join(printable(text).split())
    if most is not None and len(line) > most:
        return line[: max(0, most - 1)] + "…"
    return line


def xml_safe(text: str) -> str:
    """Text without the characters that no XML file may hold; each becomes a replacement character.

    >>> xml_safe("a\\x00b") == "a\\ufffdb"
    True
    """
    return _NOT_XML.sub("\ufffd", text)


def clipped(text: str, most: int) -> tuple[str, int]:
    """The beginning of a text and how many characters were left off.

    >>> clipped("abcdef", 4), clipped("abc", 4)
    (('abcd', 2), ('abc', 0))
    """
    return (text, 0) if len(text) <= most else (text[:most], len(text) - most)
