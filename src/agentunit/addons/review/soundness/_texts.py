"""Texts as checks compare them: words, numbers, and what remains when spelling is set aside."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator
from difflib import get_close_matches
from itertools import islice
from typing import Any

_LONGEST_QUOTED = 300
# Comparing names takes time that grows with the square of their length, and files may hold any number of them.
_LONGEST_NAME = 100
_MOST_NAMES = 1000
_WORD = re.compile(r"\w+(?:[.,]\d+)*", re.UNICODE)
_NUMBER = re.compile(r"(?<![\w.])-?\d+(?:[,.]\d+)*")
_APOSTROPHE = re.compile(r"(?<=[^\W\d])['’](?=[^\W\d])")
_QUOTES = re.compile(r"[\"'“”„«»‘’]")
# Within a word a point or a colon belongs to a name (app.py) or a number (4.5, 10:30); 3! and != reckon.
_PUNCTUATION = re.compile(
    r"[;?¿¡。、—–]|(?<!\d)!(?!=)|(?<!\d),|,(?!\d)|[.:]+(?=[\s?!]|$)|(?<!\S)[.:]+(?!\w)|(?<=[^\W\d])-(?=[^\W\d])"
)
_REFUSAL = re.compile(
    r"\b(?:i(?:'m| am) (?:sorry|unable|not able)|i (?:can(?:no|')t|cannot|won't|will not|do(?:n't| not) know)|"
    r"(?:can(?:no|')t|cannot|unable to) (?:help|answer|assist|be answered)|not enough information|unanswerable|"
    r"n/?a\b|no answer|decline)",
    re.IGNORECASE,
)


def words(text: str) -> list[str]:
    """The words of a text without case and punctuation; decimals stay whole.

    >>> words("The price: 1,000.50 USD!")
    ['the', 'price', '1,000.50', 'usd']
    """
    return _WORD.findall(unicodedata.normalize("NFKC", text).casefold())


def plain(text: str) -> str:
    """A text of which spelling, punctuation and spacing are set aside.

    >>> plain(" Paris,  France. ") == plain("paris france")
    True
    """
    return " ".join(words(text))


def unpunctuated(text: str) -> str:
    """A text without case, spacing and the punctuation of sentences; signs that reckon or name, as in -5 or C++, stay.

    >>> unpunctuated("Balance of  Alice?") == unpunctuated("balance of alice")
    True
    >>> unpunctuated("Is -3 < 4.5?"), unpunctuated("What's C++, in short")
    ('is -3 < 4.5', 'whats c++ in short')
    """
    text = _QUOTES.sub(" ", _APOSTROPHE.sub("", unicodedata.normalize("NFKC", text).casefold()))
    return " ".join(_PUNCTUATION.sub(" ", text).split())


def numbers(text: str) -> list[str]:
    """The numbers of a text, without separators of thousands.

    >>> numbers("From 1,000 to 2.5 in B2B")
    ['1000', '2.5']
    """
    return [re.sub(r",(?=\d{3}(?!\d))", "", each) for each in _NUMBER.findall(text)]


def is_refusal(text: str) -> bool:
    """Whether an expected answer is that there is none."""
    return not text.strip() or _REFUSAL.search(text) is not None


def texts_in(value: Any) -> Iterator[str]:
    """Every text within plain data."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for each in value.values():
            yield from texts_in(each)
    elif isinstance(value, (list, tuple)):
        for each in value:
            yield from texts_in(each)


def nearest(name: str, names: Iterable[str], *, cutoff: float = 0.6) -> str | None:
    """The name that another one was probably meant to be; of names that people could have mistyped.

    >>> nearest("serch", ["search", "book"])
    'search'
    """
    if len(name) > _LONGEST_NAME:
        return None
    known = (each for each in names if isinstance(each, str) and len(each) <= _LONGEST_NAME)
    return next(iter(get_close_matches(name, list(islice(known, _MOST_NAMES)), n=1, cutoff=cutoff)), None)


def shown(value: Any, most: int = _LONGEST_QUOTED) -> str:
    """A value as evidence quotes it, cut only where it is long: personal data is masked later, and must be whole.

    >>> shown("Write to ada@example.org", most=18)
    "'Write to …'"
    """
    text = value if isinstance(value, str) else repr(value)
    text = " ".join(text.split())
    if len(text) <= most:
        return repr(text)
    # Half an address would not be known as one.
    before, space, _ = text[: most - 1].rpartition(" ")
    return repr(f"{before} …" if space else f"{text[: most - 1]}…")
