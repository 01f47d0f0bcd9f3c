"""The item-rest test against enumeration and against scipy."""

from __future__ import annotations

import random
from itertools import combinations
from math import comb

import pytest

from agentunit.addons.review.soundness._outcomes import false_discoveries_controlled, reversed_p_value, smallest_p_value


def _enumerated(passed: list[bool], rest: list[float]) -> float:
    ordered = sorted(rest)
    ranks = [(ordered.index(value) + len(ordered) - 1 - ordered[::-1].index(value)) / 2 for value in rest]
    observed = sum(rank for rank, each in zip(ranks, passed, strict=True) if each)
    sums = [sum(chosen) for chosen in combinations(ranks, sum(passed))]
    return sum(each <= observed + 1e-9 for each in sums) / len(sums)


@pytest.mark.parametrize("seed", range(20))
def test_it_equals_an_enumeration_of_all_ways(seed):
    rng = random.Random(seed)
    n = rng.randint(3, 11)
    passed = [rng.random() < 0.5 for _ in range(n)]
    rest = [rng.choice([0.1, 0.2, 0.3, 0.4, 0.5, 0.6]) for _ in range(n)]
    expected = _enumerated(passed, rest) if 0 < sum(passed) < n else 1.0
    assert reversed_p_value(passed, rest) == pytest.approx(expected)


def test_it_equals_scipy_without_ties():
    stats = pytest.importorskip("scipy.stats")
    rng = random.Random(1)
    for n in (8, 15, 20, 40):
        rest = [rng.random() for _ in range(n)]
        passed = [rng.random() < 0.4 for _ in range(n)]
        ours = reversed_p_value(passed, rest)
        one = [value for value, each in zip(rest, passed, strict=True) if each]
        other = [value for value, each in zip(rest, passed, strict=True) if not each]
        method = "exact" if n <= 20 else "asymptotic"
        theirs = stats.mannwhitneyu(one, other, alternative="less", method=method).pvalue
        assert ours == pytest.approx(theirs, abs=1e-9 if n <= 20 else 0.01)


def test_few_passes_among_many_runs_are_enumerated():
    rest = [number / 100 for number in range(60)]
    assert reversed_p_value([number < 2 for number in range(60)], rest) == pytest.approx(1 / comb(60, 2))
    assert reversed_p_value([number >= 2 for number in range(60)], rest) == pytest.approx(1.0)


def test_what_tells_nothing_is_one():
    assert reversed_p_value([True, True], [0.1, 0.2]) == 1.0
    assert reversed_p_value([False, True, False], [0.5, 0.5, 0.5]) == 1.0
    assert smallest_p_value(5, 0) == 1.0
    with pytest.raises(ValueError, match="of one length; received 1 and 2"):
        reversed_p_value([True], [0.1, 0.2])


def test_cases_of_a_sound_test_are_rarely_called_turned_round():
    """Of noise alone, the share of tests that are believed stays at the rate that was asked for."""
    rng = random.Random(3)
    n_alarms = 0
    for _ in range(200):
        values = []
        for _ in range(30):
            passed = [rng.random() < 0.5 for _ in range(10)]
            values.append(reversed_p_value(passed, [rng.random() for _ in range(10)]))
        n_alarms += bool(false_discoveries_controlled(values, 0.1))
    assert n_alarms <= 0.1 * 200 + 3 * (200 * 0.1 * 0.9) ** 0.5


def test_nothing_is_believed_of_nothing():
    assert false_discoveries_controlled([], 0.1) == []
