"""How far two sets of facts overlap, given how many are shared and how many only one of them has."""

from __future__ import annotations


def factual_overlap(tp: int, fp: int, fn: int) -> float | None:
    """The F1 of facts: tp / (tp + (fp + fn) / 2).

    ``tp`` facts of the answer are in the reference, ``fp`` are not, ``fn`` facts of the reference are missing from the
    answer. From 0 to 1; ``None`` without any fact.

    >>> factual_overlap(2, 1, 1)    # 2 / (2 + 1)
    0.6666666666666666

    Source: van Rijsbergen: Information Retrieval, 1979, chapter 7 (the harmonic mean of precision and recall).
    """
    if min(tp, fp, fn) < 0:
        raise ValueError(f"factual_overlap: counts must be 0 or more; received {tp}, {fp}, {fn}")
    return tp / (tp + (fp + fn) / 2) if tp + fp + fn else None
