"""Known names, places and plain words, what a word can be, and how lists of words are written."""

from __future__ import annotations

import functools
import lzma
import unicodedata
from pathlib import Path

DATA_FILE = Path(__file__).parent / "data" / "gazetteer.xz"


class Kind:
    """What a word can be, as bits of a number; a word is often several of them at once."""

    FIRST = 1
    """A first name somewhere."""
    LAST = 2
    """A surname somewhere."""
    WIDESPREAD = 4
    """A first name in more than one language."""
    WORD = 8
    """A frequent plain English word, or the name of a language or nationality."""
    RARE_WORD = 16
    """A less frequent plain English word."""
    PLACE = 32
    """A city of some size, a state or a country; entries of several words are all of this kind."""
    COUNTRY = 64
    """A country, in one of many languages."""
    FREQUENT_LAST = 128
    """One of the most frequent surnames of the United States."""
    FREQUENT_FIRST = 256
    """One of the most frequent first names of the United States, or one that many languages share."""
    FOREIGN_WORD = 512
    """A frequent plain word of German, Spanish, French, Italian, Dutch or Portuguese."""
    EASTERN_LAST = 1024
    """A surname that stands before the given name: Chinese, Japanese, Korean, Vietnamese."""


_LETTERS = str.maketrans(
    {"ß": "ss", "æ": "ae", "ø": "o", "œ": "oe", "ð": "d", "þ": "th", "ł": "l", "đ": "d", "ı": "i", "’": "'", "ħ": "h"}
)


def fold(word: str) -> str:
    """The form under which a word is looked up: lower case, without accents.

    >>> fold("Szöllösy"), fold("Þórunn"), fold("O’Brien"), fold("Παύλος")
    ('szollosy', 'thorunn', "o'brien", 'παυλος')
    """
    lowered = word.lower()
    if lowered.isascii():
        return lowered
    decomposed = unicodedata.normalize("NFD", lowered.translate(_LETTERS))
    return "".join(letter for letter in decomposed if not unicodedata.combining(letter))


@functools.cache
def entries() -> dict[str, int]:
    """Every entry, folded, with its kinds as a number; read from the data file once."""
    kinds: dict[str, int] = {}
    for line in lzma.decompress(DATA_FILE.read_bytes()).decode().split("\n"):
        kind, _, words = line.partition("\t")
        kinds.update(dict.fromkeys(words.split("\t"), int(kind)))
    return kinds


def kinds_of(word: str) -> int:
    """What a single word can be, 0 where nothing is known. A hyphenated word is what its parts are.

    >>> bool(kinds_of("Krisztián") & Kind.FIRST), kinds_of("Xqzzt")
    (True, 0)
    """
    known = entries()
    folded = fold(word)
    kind = known.get(folded)
    if kind is None and "-" in folded:
        parts = [known.get(part, 0) for part in folded.split("-") if part]
        return functools.reduce(lambda one, other: one & other, parts) if parts else 0
    return kind or 0


def words(text: str) -> tuple[str, ...]:
    """The words of a text, in order.

    >>> words("one two\\n three")
    ('one', 'two', 'three')
    """
    return tuple(text.split())


def word_set(text: str) -> frozenset[str]:
    """The words of a text, in no order."""
    return frozenset(text.split())


def phrases(text: str) -> tuple[str, ...]:
    """The phrases of a text, between bars.

    >>> phrases("name is | on behalf\\n of")
    ('name is', 'on behalf of')
    """
    return tuple(" ".join(phrase.split()) for phrase in text.split("|"))
