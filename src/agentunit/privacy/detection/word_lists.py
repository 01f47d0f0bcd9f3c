"""Lists of words, written as running text."""

from __future__ import annotations


def words(text: str) -> tuple[str, ...]:
    """The words of a text, in order.

    >>> words("one two\\n three")
    ('one', 'two', 'three')
    """
    return tuple(text.split())


def phrases(text: str) -> tuple[str, ...]:
    """The phrases of a text, between bars.

    >>> phrases("name is | on behalf\\n of")
    ('name is', 'on behalf of')
    """
    return tuple(" ".join(phrase.split()) for phrase in text.split("|"))
