"""Text against text: words, overlap and shares."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

_WORD = re.compile(r"\w+", re.UNICODE)


def words(text: str) -> list[str]:
    """The words of a text in lower case: runs of letters, digits and underscores.

    >>> words("It's 4 o'clock, Zoë!")
    ['it', 's', '4', 'o', 'clock', 'zoë']
    """
    return _WORD.findall(text.casefold())


def share_true(flags: Sequence[bool]) -> float | None:
    """The share of flags that hold: ``true / all``, from 0 to 1; ``None`` without flags.

    >>> share_true([True, False, True, True])
    0.75
    """
    return sum(flags) / len(flags) if flags else None


def token_overlap(reference: str, candidate: str) -> tuple[float, float, float] | None:
    """Precision, recall and F1 of the candidate's words against the reference's, counting repetitions.

    With ``shared`` the size of the multiset intersection: precision = shared / words of the candidate, recall =
    shared / words of the reference, F1 = 2PR / (P + R), 0 when nothing is shared. ``None`` when either has no words.

    >>> token_overlap("the cat sat", "the cat ran away")   # shared: the, cat
    (0.5, 0.6666666666666666, 0.5714285714285715)
    """
    reference_words, candidate_words = words(reference), words(candidate)
    if not reference_words or not candidate_words:
        return None
    shared = sum((Counter(reference_words) & Counter(candidate_words)).values())
    precision, recall = shared / len(candidate_words), shared / len(reference_words)
    f1 = 2 * precision * recall / (precision + recall) if shared else 0.0
    return precision, recall, f1
