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
    """
    where = plain_words(text)
    position = 0
    parts = [part.strip(_AROUND) for part in _ELLIPSIS.split(" ".join(quote.split()))]
    wanted = [plain_words(part) for part in parts if part]
    for part in wanted:
        found = where.find(part, position)
        if found < 0:
            return False
        position = found + len(part)
    return bool(wanted)
