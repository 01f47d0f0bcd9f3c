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


def suspicion(difference: float, task_difference: float) -> float:
    """How likely a run went wrong: half by how far it differs from its peers, half by how far runs of its task differ.

    Runs that all do something else are mostly all wrong, for one thing is right. One that stands alone against peers
    who agree may be the only one that is right.

    >>> suspicion(1.0, 1.0), suspicion(1.0, 0.5), suspicion(0.0, 0.0)
    (1.0, 0.75, 0.0)
    """
    return (difference + task_difference) / 2


def percentile_rank(ordered: Sequence[float], value: float) -> float:
    """The share of values, given in ascending order, that lie below one; those equal to it count half.

    >>> percentile_rank([1, 2, 2, 9], 2), percentile_rank([1, 2, 2, 9], 9), percentile_rank([], 3)
    (0.5, 0.875, 0.5)
    """
    if not ordered:
        return 0.5
    return (bisect_left(ordered, value) + bisect_right(ordered, value)) / 2 / len(ordered)
