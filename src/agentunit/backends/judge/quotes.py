"""Whether the words that a judge quotes stand in the text that it quotes from."""

from __future__ import annotations

import re
import unicodedata

_ELLIPSIS = re.compile(r"\s*(?:\[\s*)?(?:\.{3,}|…)(?:\s*\])?\s*")
_QUOTE_MARKS = re.compile("[\"'“”‘’„«»`´′]")
_DASHES = re.compile("[‐‑‒–—−]")
_AROUND = " .,;:!?\n\t"


def plain_words(text: str) -> str:
    """A text as quotes are compared: letters of one case, one kind of dash, no quotation marks, single spaces."""
    folded = unicodedata.normalize("NFKC", text).casefold()
    return " ".join(_DASHES.sub("-", _QUOTE_MARKS.sub("", folded)).split())


def quote_stands_in(quote: str, text: str) -> bool:
    """Whether a quote stands in a text, whatever its spacing and the punctuation around it.

    An ellipsis in the quote may stand for words left out.

    >>> quote_stands_in("paris … 2 million", "Paris has about 2 million people.")
    True
    >>> quote_stands_in("Paris has 3 million", "Paris has about 2 million people.")
    False
    >>> quote_stands_in("2 million people", "Paris has about 12 million people.")
    False
    """
    where = plain_words(text)
    position = 0
    parts = [part.strip(_AROUND) for part in _ELLIPSIS.split(" ".join(quote.split()))]
    wanted = [plain_words(part) for part in parts if part]
    for part in wanted:
        found = _found(part, where, position)
        if found < 0:
            return False
        position = found + len(part)
    return bool(wanted)


def _found(part: str, where: str, position: int) -> int:
    """Where a part of a quote stands as whole words: "3 million" does not stand in "13 million"."""
    found = where.find(part, position)
    while found >= 0 and (_is_one_word(where, found) or _is_one_word(where, found + len(part))):
        found = where.find(part, found + 1)
    return found


def _is_one_word(text: str, at: int) -> bool:
    """Whether a cut at this place goes through a word. Not every script has spaces, so this is for plain letters."""
    sides = text[at - 1 : at + 1] if at else ""
    return len(sides) == 2 and sides.isascii() and sides.isalnum()
