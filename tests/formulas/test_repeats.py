from __future__ import annotations

import math
import random
import re
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
import scipy.stats
from hypothesis import example, given
from hypothesis import strategies as st

from agentunit.formulas.repeats import (
    between_within_variance,
    cluster_bootstrap_mean_interval,
    pass_at_k,
    pass_hat_k,
)
from agentunit.formulas.statistics import Interval, bootstrap_mean_interval

TRIES = st.integers(1, 60).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n), st.integers(1, n)))
VALUES = st.floats(min_value=-1e6, max_value=1e6, allow_subnormal=False)
GROUPS = st.lists(st.lists(VALUES, max_size=6), max_size=8)


# Success within k tries


@pytest.mark.parametrize(
    ("successes", "n", "k", "at_least_one", "all_of_them"),
    [
        (0, 5, 1, 0.0, 0.0),
        (5, 5, 5, 1.0, 1.0),
        (2, 5, 1, 2 / 5, 2 / 5),
        (2, 5, 2, 7 / 10, 1 / 10),  # of 10 pairs 3 hold failures only, 1 successes only
        (2, 5, 3, 9 / 10, 0.0),  # of 10 triples 1 holds failures only
        (2, 5, 4, 1.0, 0.0),  # only 3 failures
        (4, 5, 5, 1.0, 0.0),
        (2, 5, 6, None, None),
        (0, 0, 1, None, None),
    ],
)
def test_pass_by_hand(successes, n, k, at_least_one, all_of_them):
    assert pass_at_k(successes, n, k) == at_least_one
    assert pass_hat_k(successes, n, k) == all_of_them


@pytest.mark.parametrize("n", range(1, 8))
def test_pass_counts_subsets(n):
    for successes in range(n + 1):
        tries = [True] * successes + [False] * (n - successes)
        for k in range(1, n + 1):
            subsets = list(combinations(tries, k))
            assert pass_at_k(successes, n, k) == float(Fraction(sum(map(any, subsets)), len(subsets)))
            assert pass_hat_k(successes, n, k) == float(Fraction(sum(map(all, subsets)), len(subsets)))


@given(TRIES)
@example((3, 3000, 1000))  # C(3000, 1000) is beyond any float
def test_pass_equals_the_hypergeometric_distribution(tries):
    successes, n, k = tries
    drawn = scipy.stats.hypergeom(n, successes, k)
    assert pass_at_k(successes, n, k) == pytest.approx(drawn.sf(0), rel=1e-8, abs=1e-12)
    assert pass_hat_k(successes, n, k) == pytest.approx(drawn.pmf(k), rel=1e-8, abs=1e-12)


@given(TRIES)
def test_pass_brackets_the_rate_and_rises_with_successes(tries):
    successes, n, k = tries
    assert 0.0 <= pass_hat_k(successes, n, k) <= successes / n <= pass_at_k(successes, n, k) <= 1.0
    # Some try fails where not all succeed.
    assert pass_at_k(successes, n, k) == pytest.approx(1.0 - pass_hat_k(n - successes, n, k), abs=1e-12)
    if successes < n:
        assert pass_at_k(successes, n, k) <= pass_at_k(successes + 1, n, k)
        assert pass_hat_k(successes, n, k) <= pass_hat_k(successes + 1, n, k)
    if k < n:
        assert pass_at_k(successes, n, k) <= pass_at_k(successes, n, k + 1)
        assert pass_hat_k(successes, n, k) >= pass_hat_k(successes, n, k + 1)


@pytest.mark.parametrize("k", [1, 2, 3])
def test_pass_is_unbiased(k):
    # The mean over all outcomes of n = 6 tries with chance p, weighted by their probability.
    n, p = 6, 0.3
    weights = [math.comb(n, c) * p**c * (1 - p) ** (n - c) for c in range(n + 1)]
    at_least_one = sum(weight * pass_at_k(c, n, k) for c, weight in enumerate(weights))
    all_of_them = sum(weight * pass_hat_k(c, n, k) for c, weight in enumerate(weights))
    assert at_least_one == pytest.approx(1 - (1 - p) ** k)
    assert all_of_them == pytest.approx(p**k)


# Intervals over cases


def test_cluster_bootstrap_by_enumeration():
    # "a" holds 0, 12, 12 and "b" holds 4, so the four draws of two have the means (4 + 4) / 2 = 4, twice
    # (24 + 4) / 4 = 7, and (24 + 24) / 6 = 8. Either end comes a quarter of the time; the tails of a 40 % interval,
    # 30 % each, reach into the 7.
    values, clusters = [0.0, 4.0, 12.0, 12.0], ["a", "b", "a", "a"]
    assert cluster_bootstrap_mean_interval(values, clusters) == Interval(4.0, 8.0, "bootstrap")
    assert cluster_bootstrap_mean_interval(values, clusters, confidence=0.4) == Interval(7.0, 7.0, "bootstrap")


@given(st.lists(VALUES, max_size=12), st.integers(0, 5))
@example([0.1, 0.1, 0.1], 0)
def test_clusters_of_one_are_the_plain_bootstrap(values, seed):
    settings = {"resamples": 40, "seed": seed}
    plain = bootstrap_mean_interval(values, **settings)
    assert cluster_bootstrap_mean_interval(values, range(len(values)), **settings) == plain


def test_copies_of_a_case_add_no_certainty():
    cases = [math.sin(index) for index in range(30)]
    # Four copies each, the clusters' rows scattered over the sample.
    copied = cluster_bootstrap_mean_interval(cases * 4, [*range(30)] * 4)
    once = bootstrap_mean_interval(cases)
    assert copied.low == pytest.approx(once.low, abs=1e-12)
    assert copied.high == pytest.approx(once.high, abs=1e-12)
    drawn_singly = bootstrap_mean_interval(cases * 4)
    assert drawn_singly.high - drawn_singly.low < 0.7 * (once.high - once.low)


def test_cluster_interval_covers_the_mean_where_the_plain_one_does_not():
    generator = np.random.default_rng(2)
    simulations, covered, covered_singly = 200, 0, 0
    clusters = [case for case in range(25) for _ in range(5)]
    for seed in range(simulations):
        values = (generator.normal(0, 1, 25).repeat(5) + generator.normal(0, 0.5, 125)).tolist()
        interval = cluster_bootstrap_mean_interval(values, clusters, resamples=200, seed=seed)
        covered += interval.low <= 0.0 <= interval.high
        singly = bootstrap_mean_interval(values, resamples=200, seed=seed)
        covered_singly += singly.low <= 0.0 <= singly.high
    # 25 clusters cost a few points of the nominal 95 %; three standard errors of 200 tosses are 5 %.
    assert covered / simulations >= 0.87
    assert covered_singly / simulations <= 0.75


@given(st.lists(st.tuples(VALUES, st.integers(0, 3)), max_size=15), st.integers(0, 5))
def test_cluster_interval_stays_within_the_sample(rows, seed):
    values, clusters = [value for value, _ in rows], [cluster for _, cluster in rows]
    interval = cluster_bootstrap_mean_interval(values, clusters, resamples=40, seed=seed)
    if len(set(clusters)) < 2:
        assert interval is None
    else:
        assert min(values) <= interval.low <= interval.high <= max(values)


def test_cluster_bootstrap_depends_on_the_seed_alone_and_caps_its_work():
    values = [math.sin(index) for index in range(2000)]
    clusters = [index // 2 for index in range(2000)]
    state = random.getstate()
    interval = cluster_bootstrap_mean_interval(values, clusters, seed=4)
    assert interval == cluster_bootstrap_mean_interval(values, clusters, seed=4, resamples=400)  # 400,000 / 1000
    assert interval != cluster_bootstrap_mean_interval(values, clusters, seed=4, resamples=390)
    assert interval != cluster_bootstrap_mean_interval(values, clusters, seed=5)
    assert random.getstate() == state


# Spread between and within


@pytest.mark.parametrize(
    ("groups", "between", "within"),
    [
        ([], None, None),
        ([[]], None, None),
        ([[1.0]], None, None),
        ([[1.0, 3.0]], None, 2.0),
        ([[1.0], [3.0]], 2.0, None),  # means 1 and 3: (1 + 1) / 1
        ([[1.0], [3.0], []], 2.0, None),
        ([[0.0, 1.0], [1.0], [0.0, 0.0, 1.0, 1.0]], 1 / 12, 5 / 12),  # means ½, 1, ½; variances ½ and ⅓
        ([[0.1, 0.1, 0.1], [0.1, 0.1, 0.1]], 0.0, 0.0),
        ([[1e9, 1e9 + 2.0], [1e9 + 4.0, 1e9 + 6.0]], 8.0, 2.0),
    ],
)
def test_variances_by_hand(groups, between, within):
    assert between_within_variance(groups) == pytest.approx((between, within), abs=1e-12)


def test_equal_repeats_have_no_variance_at_all():
    assert between_within_variance([[0.1] * 3, [0.7] * 7])[1] == 0.0


@given(GROUPS)
def test_variances_equal_numpy(groups):
    between, within = between_within_variance(groups)
    means = [np.mean(group) for group in groups if group]
    variances = [np.var(group, ddof=1) for group in groups if len(group) > 1]
    largest = max((abs(value) for group in groups for value in group), default=0.0)
    tolerance = {"rel": 1e-9, "abs": 1e-12 * largest**2}
    assert between == (pytest.approx(np.var(means, ddof=1), **tolerance) if len(means) > 1 else None)
    assert within == (pytest.approx(np.mean(variances), **tolerance) if variances else None)
    assert between is None or between >= 0.0
    assert within is None or within >= 0.0


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: pass_at_k(3, 2, 1), "pass_at_k: successes must be between 0 and n = 2; received 3"),
        (lambda: pass_hat_k(-1, 2, 1), "pass_hat_k: successes must be between 0 and n = 2; received -1"),
        (lambda: pass_at_k(0, -1, 1), "pass_at_k: n must be at least 0; received -1"),
        (lambda: pass_hat_k(1, 2, 0), "pass_hat_k: k must be at least 1; received 0"),
        (
            lambda: cluster_bootstrap_mean_interval([1.0, 2.0], ["a"]),
            "cluster_bootstrap_mean_interval: clusters must be as long as values, 2; received 1",
        ),
        (
            lambda: cluster_bootstrap_mean_interval([1.0, math.nan], ["a", "b"]),
            "cluster_bootstrap_mean_interval: values must be finite and below 1e+140 in size; "
            "received nan at position 1",
        ),
        (
            lambda: cluster_bootstrap_mean_interval([1.0], ["a"], confidence=1.0),
            "cluster_bootstrap_mean_interval: confidence must be above 0 and below 1; received 1.0",
        ),
        (
            lambda: cluster_bootstrap_mean_interval([1.0], ["a"], resamples=0),
            "cluster_bootstrap_mean_interval: resamples must be at least 1; received 0",
        ),
        (
            lambda: between_within_variance([[1.0], [2.0, -math.inf]]),
            "between_within_variance: groups[1] must be finite and below 1e+140 in size; received -inf at position 1",
        ),
    ],
)
def test_refusals_say_what_is_wrong(call, message):
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        call()
