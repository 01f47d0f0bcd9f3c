"""How well a ranking puts what matters first."""

from __future__ import annotations

from collections.abc import Sequence


def average_precision(relevant: Sequence[bool]) -> float | None:
    """The mean precision at the places of the relevant entries of a ranking.

    With v_k = 1 where the entry at place k is relevant: Σ (precision at k · v_k) / Σ v_k, precision at k being the
    share of relevant entries among the first k. From 0 to 1; 1 when all relevant entries come first, 0 when there is
    none; ``None`` for an empty ranking. This is the context precision at k of RAGAS.

    >>> average_precision([True, False, True])    # (1/1 + 2/3) / 2
    0.8333333333333333

    Source: Manning, Raghavan, Schütze: Introduction to Information Retrieval, 8.4, over what was retrieved.
    """
    if not relevant:
        return None
    places = [place for place, hit in enumerate(relevant, 1) if hit]
    precisions = [hits / place for hits, place in enumerate(places, 1)]
    return sum(precisions) / len(precisions) if precisions else 0.0
