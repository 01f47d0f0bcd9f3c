"""How far one of several runs of a task differs from the others. Nothing is fitted; 0 is full agreement."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence, Set
from math import fsum


def set_difference(own: Set[object], other: Set[object]) -> float:
    """How far two sets differ, from 0 (equal) to 1 (nothing shared).

    Half of it is whether they are equal at all, half the Jaccard distance: one wrong booking among five right ones is
    a wrong result, and less wrong than five.

    >>> set_difference({"a", "b"}, {"a", "b"}), set_difference({"a"}, {"a", "b"}), set_difference({"a"}, {"b"})
    (0.0, 0.75, 1.0)
    >>> set_difference(set(), set()), set_difference(set(), {"a"})
    (0.0, 1.0)
    """
    if own == other:
        return 0.0
    return 0.5 + 0.5 * (1.0 - len(own & other) / len(own | other))


def mean_difference(differences: Sequence[float]) -> float | None:
    """The mean over the peers of a run; ``None`` without peers.

    >>> mean_difference([0.0, 1.0, 1.0, 1.0]), mean_difference([])
    (0.75, None)
    """
    # Exactly rounded: runs that differ alike must tie, in whatever order their peers come.
    return fsum(differences) / len(differences) if differences else None


def percentile_rank(ordered: Sequence[float], value: float) -> float:
    """The share of values, given in ascending order, that lie below one; those equal to it count half.

    >>> percentile_rank([1, 2, 2, 9], 2), percentile_rank([1, 2, 2, 9], 9), percentile_rank([], 3)
    (0.5, 0.875, 0.5)
    """
    if not ordered:
        return 0.5
    return (bisect_left(ordered, value) + bisect_right(ordered, value)) / 2 / len(ordered)
