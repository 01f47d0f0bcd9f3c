"""Does a case agree with the rest of its test? The item-rest statistic, with exact tests for few runs."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from math import comb, erfc, sqrt

_MOST_EXACT_RUNS = 20
_MOST_ENUMERATED = 50_000


def reversed_p_value(passed: Sequence[bool], rest: Sequence[float]) -> float:
    """How likely runs that pass a case are as bad on the rest as these, if passing had nothing to do with the rest.

    ``passed[i]`` says whether run ``i`` passed the case, ``rest[i]`` its rate on the other cases. The statistic is the
    sum of the ranks (by ``rest``, ties share theirs) of the runs that pass; the p-value is one-sided: small where good
    runs fail and bad runs pass. Exact up to 20 runs and wherever few pass or fail, by the normal approximation with
    ties and continuity else. 1.0 where all pass or all fail: such a case tells nothing.

    >>> round(reversed_p_value([True, True, False, False], [0.1, 0.2, 0.8, 0.9]), 4)   # 1 of 6 ways to choose two
    0.1667
    >>> reversed_p_value([False, False, True, True], [0.1, 0.2, 0.8, 0.9])
    1.0
    """
    n, k = len(passed), sum(passed)
    if len(rest) != n:
        raise ValueError(f"reversed_p_value: passed and rest must be of one length; received {n} and {len(rest)}")
    if k in (0, n):
        return 1.0
    ranks = _doubled_ranks(rest)
    if 2 * k > n:
        # That few fail, and are the best, is the same question.
        ranks = [2 * n + 2 - rank for rank in ranks]
        passed, k = [not each for each in passed], n - k
    observed = sum(rank for rank, each in zip(ranks, passed, strict=True) if each)
    if n <= _MOST_EXACT_RUNS:
        return _exact(ranks, k, observed)
    if comb(n, k) <= _MOST_ENUMERATED:
        return sum(sum(chosen) <= observed for chosen in combinations(ranks, k)) / comb(n, k)
    mean = sum(ranks) / n
    variance = sum((rank - mean) ** 2 for rank in ranks) / n
    spread = sqrt(variance * k * (n - k) / (n - 1))
    return 1.0 if spread == 0 else 0.5 * erfc(-(observed + 0.5 - k * mean) / spread / sqrt(2))


def smallest_p_value(n: int, k: int) -> float:
    """The smallest p-value that ``k`` passes of ``n`` runs can have.

    >>> smallest_p_value(4, 2) == 1 / 6
    True
    """
    return 1.0 if k in (0, n) else 1 / comb(n, k)


def false_discoveries_controlled(p_values: Sequence[float], rate: float) -> list[int]:
    """The indices of the tests to believe so that at most ``rate`` of them are expected to be chance.

    Benjamini and Hochberg's rule.

    >>> false_discoveries_controlled([0.9, 0.001, 0.04, 0.02], 0.1)
    [1, 2, 3]
    """
    ordered = sorted(range(len(p_values)), key=lambda each: p_values[each])
    last = max(
        (place for place, each in enumerate(ordered, 1) if p_values[each] <= rate * place / len(p_values)), default=0
    )
    return sorted(ordered[:last])


def _doubled_ranks(values: Sequence[float]) -> list[int]:
    """Twice the mean rank of each value, so that ties are whole numbers."""
    ordered = sorted(values)
    first = {value: place for place, value in reversed(list(enumerate(ordered, 1)))}
    last = {value: place for place, value in enumerate(ordered, 1)}
    return [first[value] + last[value] for value in values]


def _exact(ranks: Sequence[int], k: int, observed: int) -> float:
    """The share of all ways to choose ``k`` ranks whose sum is at most the observed one."""
    ways: list[dict[int, int]] = [{0: 1}, *({} for _ in range(k))]
    for rank in ranks:
        for chosen in range(k - 1, -1, -1):
            larger = ways[chosen + 1]
            for total, count in ways[chosen].items():
                larger[total + rank] = larger.get(total + rank, 0) + count
    return sum(count for total, count in ways[k].items() if total <= observed) / comb(len(ranks), k)
