"""Long texts in pieces and many texts in batches, within budgets of characters; nothing is left out."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

T = TypeVar("T")

# Where a text is best cut: between paragraphs, sentences, words.
_CUTS = (re.compile(r"\n\s*\n"), re.compile(r"\n|(?<=[.!?。！？])\s+"), re.compile(r"\s+"))


def pieces(text: str, budget: int, overlap: int = 0) -> list[str]:
    """A text in pieces of at most ``budget`` characters, cut where it breaks; each repeats the end of the one before.

    >>> pieces("One is here. Two is there.", 15)
    ['One is here. ', 'Two is there.']
    >>> pieces("short", 15)
    ['short']
    """
    if not 0 <= overlap < budget // 2:
        raise ValueError(f"pieces: overlap must be less than half of budget {budget}; received {overlap}")
    made: list[str] = []
    start = 0
    while len(text) - start > budget:
        end = _cut(text, start + budget // 2, start + budget)
        made.append(text[start:end])
        start = end - overlap
    return [*made, text[start:]]


def _cut(text: str, earliest: int, latest: int) -> int:
    for pattern in _CUTS:
        ends = [found.end() for found in pattern.finditer(text, earliest, latest)]
        if ends:
            return ends[-1]
    return latest


def batches(values: Iterable[T], size_of: Callable[[T], int], budget: int, most: int) -> Iterator[list[T]]:
    """Values in batches whose sizes add up to at most ``budget``, ``most`` of them at once, in order.

    A value larger than the budget is a batch of its own.

    >>> list(batches(["aa", "bbb", "c"], len, 4, 10))
    [['aa'], ['bbb', 'c']]
    """
    batch: list[T] = []
    size = 0
    for value in values:
        if batch and (size + size_of(value) > budget or len(batch) == most):
            yield batch
            batch, size = [], 0
        batch.append(value)
        size += size_of(value)
    if batch:
        yield batch
