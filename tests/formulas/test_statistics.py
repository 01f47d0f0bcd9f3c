from __future__ import annotations

import math
import random
from fractions import Fraction
from statistics import variance as exact_variance

import numpy as np
import pytest
import scipy.stats
from hypothesis import example, given
from hypothesis import strategies as st

from agentunit.formulas import running as running_module
from agentunit.formulas.running import RunningStatistics
from agentunit.formulas.statistics import (
    Interval,
    bootstrap_mean_interval,
    mean_interval,
    normal_interval,
    percentile_interval,
    quantile,
    t_critical_value,
    wilson_interval,
)

FINITE = st.floats(min_value=-1e12, max_value=1e12, allow_subnormal=False)
SAMPLES = st.lists(FINITE, min_size=1, max_size=40)
SHARES = st.floats(min_value=0.0, max_value=1.0)
CONFIDENCES = st.floats(min_value=0.01, max_value=0.999)


def collected(values, **settings):
    running = RunningStatistics(**settings)
    for value in values:
        running.add(value)
    return running


# Quantiles


@pytest.mark.parametrize(
    ("values", "q", "expected"),
    [
        ([7.0], 0.3, 7.0),
        ([1.0, 3.0], 0.25, 1.5),  # h = 0.25: 1 + 0.25 · 2
        ([0.0, 10.0, 20.0, 30.0], 0.5, 15.0),  # h = 1.5
        ([0.0, 10.0, 20.0, 30.0], 0.95, 28.5),  # h = 2.85: 20 + 0.85 · 10
        ([0.0, 10.0, 20.0, 30.0], 0.0, 0.0),
        ([0.0, 10.0, 20.0, 30.0], 1.0, 30.0),
    ],
)
def test_quantile_by_hand(values, q, expected):
    assert quantile(values, q) == pytest.approx(expected, abs=1e-12)


@given(SAMPLES, SHARES)
def test_quantile_equals_numpy(values, q):
    assert quantile(sorted(values), q) == pytest.approx(np.quantile(values, q), rel=1e-12, abs=1e-300)


@given(SAMPLES, SHARES, SHARES)
@example([0.1, 0.1, 0.1], 0.3, 0.7)
def test_quantile_rises_with_q_and_stays_in_range(values, q, other):
    values.sort()
    low, high = quantile(values, min(q, other)), quantile(values, max(q, other))
    assert values[0] <= low <= high <= values[-1]


# Wilson


@pytest.mark.parametrize(
    ("successes", "n", "low", "high"),
    [
        (20, 20, 1 / (1 + 3.841459 / 20), 1.0),  # p = 1: the margin equals z²/2n, so low = 1 / (1 + z²/n)
        (0, 20, 0.0, 3.841459 / (20 + 3.841459)),  # the mirror image
        (1, 2, 0.094531, 0.905469),  # (0.5 + 0.960365 ∓ √(3.841459 · (0.125 + 0.240091))) / 2.920729
    ],
)
def test_wilson_by_hand(successes, n, low, high):
    interval = wilson_interval(successes, n)
    assert (interval.low, interval.high) == (pytest.approx(low, abs=1e-6), pytest.approx(high, abs=1e-6))
    assert interval.method == "wilson"


@given(st.integers(1, 5000).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))), CONFIDENCES)
def test_wilson_equals_scipy_and_always_leaves_doubt(counts, confidence):
    successes, n = counts
    interval = wilson_interval(successes, n, confidence)
    reference = scipy.stats.binomtest(successes, n).proportion_ci(confidence, method="wilson")
    assert interval.low == pytest.approx(reference.low, abs=1e-9)
    assert interval.high == pytest.approx(reference.high, abs=1e-9)
    assert 0.0 <= interval.low <= successes / n <= interval.high <= 1.0
    assert interval.low < interval.high


# Student's t


@pytest.mark.parametrize("degrees", [1, 2, 3, 4, 5, 10, 29, 30, 198, 199, 200, 201, 1999, 10**6, 10**12])
@pytest.mark.parametrize("confidence", [0.01, 0.5, 0.8, 0.9, 0.95, 0.99, 0.999, 0.9999])
def test_t_critical_value_equals_scipy(degrees, confidence):
    reference = scipy.stats.t.ppf((1 + confidence) / 2, degrees)
    assert t_critical_value(confidence, degrees) == pytest.approx(reference, rel=1e-9, abs=1e-9)


@given(st.integers(1, 400), CONFIDENCES)
def test_t_critical_value_inverts_the_distribution(degrees, confidence):
    t = t_critical_value(confidence, degrees)
    assert 1 - 2 * scipy.stats.t.sf(t, degrees) == pytest.approx(confidence, abs=1e-9)


@given(st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=30), CONFIDENCES)
def test_normal_interval_equals_scipy(values, confidence):
    n, mean, variance = len(values), float(np.mean(values)), float(np.var(values, ddof=1))
    interval = normal_interval(mean, variance, n, confidence)
    # scipy calls the interval of a zero scale undefined; ours has zero width.
    margin = scipy.stats.t.ppf((1 + confidence) / 2, n - 1) * math.sqrt(variance / n)
    # Before 1.17 scipy's quantile is right to ten digits: that is an error of the margin, wherever the ends lie.
    near = 1e-6 + 1e-9 * margin
    assert interval.low == pytest.approx(mean - margin, rel=1e-9, abs=near)
    assert interval.high == pytest.approx(mean + margin, rel=1e-9, abs=near)
    assert interval.method == "t"


# Bootstrap of a mean


def test_bootstrap_by_enumeration():
    # Each of the 27 resamples of three values has a chance of 3.7 %, more than either 2.5 % tail: so the ends
    # are the extremes. At 80 % the tails are 10 %: from below (0, 0, 0) has 3.7 %, and with the three
    # orders of (0, 0, 3), mean 1, it is 14.8 %; from above likewise (9, 9, 9), then (3, 9, 9), mean 7.
    assert bootstrap_mean_interval([0, 3, 9]) == Interval(0.0, 9.0, "bootstrap")
    assert bootstrap_mean_interval([0, 3, 9], confidence=0.8) == Interval(1.0, 7.0, "bootstrap")


def test_bootstrap_agrees_with_scipy_on_a_skewed_sample():
    values = np.random.default_rng(7).exponential(size=300)
    ours = bootstrap_mean_interval(values.tolist())
    theirs = scipy.stats.bootstrap((values,), np.mean, method="percentile", rng=np.random.default_rng(1))
    width = theirs.confidence_interval.high - theirs.confidence_interval.low
    # The resampling error of a 2.5 % quantile of 1000 means is about 4 % of the width.
    assert ours.low == pytest.approx(theirs.confidence_interval.low, abs=0.12 * width)
    assert ours.high == pytest.approx(theirs.confidence_interval.high, abs=0.12 * width)


def test_bootstrap_depends_on_the_seed_alone():
    values = [index / 7 for index in range(50)]
    state = random.getstate()
    assert bootstrap_mean_interval(values, seed=4) == bootstrap_mean_interval(values, seed=4)
    assert bootstrap_mean_interval(values, seed=4) != bootstrap_mean_interval(values, seed=5)
    assert random.getstate() == state


@pytest.mark.parametrize(
    ("n", "asked", "same_as"),
    [
        (1000, 1000, 400),  # 400,000 draws / 1000 values
        (4000, 1000, 200),  # the cap would leave 100; 200 is the least
        (4000, 50, 50),  # fewer than that only when asked for
    ],
)
def test_bootstrap_caps_its_work(n, asked, same_as):
    values = [math.sin(index) for index in range(n)]
    capped = bootstrap_mean_interval(values, resamples=asked)
    assert capped == bootstrap_mean_interval(values, resamples=same_as)
    assert capped != bootstrap_mean_interval(values, resamples=same_as - 10)


@given(st.lists(FINITE, max_size=12), st.integers(0, 5))
@example([0.1, 0.1, 0.1], 0)
def test_bootstrap_stays_within_the_sample(values, seed):
    interval = bootstrap_mean_interval(values, resamples=40, seed=seed)
    if len(values) < 2:
        assert interval is None
    else:
        assert min(values) <= interval.low <= interval.high <= max(values)


# The choice of method


@pytest.mark.parametrize(
    ("values", "method"),
    [
        ([0, 1], "wilson"),
        ([True, True, False], "wilson"),
        ([1.0] * 5000, "wilson"),
        ([0.0, 1.0, 0.5], "t"),
        ([0.25, 0.75] * 14 + [0.5], "t"),  # n = 29
        ([0.25, 0.75] * 15, "bootstrap"),  # n = 30
        ([0.25, 0.75] * 1000, "bootstrap"),  # n = 2000
        ([0.25, 0.75] * 1000 + [0.5], "t"),  # n = 2001
    ],
)
def test_mean_interval_chooses_the_method(values, method):
    assert mean_interval(values).method == method
    assert collected(values).interval().method == method


def test_all_passes_leave_doubt_and_equal_scores_do_not():
    assert mean_interval([1, 1, 1, 1, 1]).low < 0.6
    # 0.1 + 0.1 + 0.1 over 3 is 0.10000000000000002 in floats: no spread may come of it.
    assert mean_interval([0.1] * 3) == collected([0.1] * 3).interval() == Interval(0.1, 0.1, "t")
    assert mean_interval([0.1] * 30) == Interval(0.1, 0.1, "bootstrap")


@pytest.mark.parametrize(("n", "method"), [(8, "t"), (40, "bootstrap"), (3000, "t")])
def test_amounts_that_happen_to_be_0_or_1_are_no_passes(n, method):
    values = [0.0, 1.0, 1.0, 1.0] * (n // 4)
    for interval in (mean_interval(values, shares=False), collected(values).interval(shares=False)):
        assert interval.method == method
        assert interval != mean_interval(values)
    assert mean_interval([1.0] * n, shares=False) == collected([1.0] * n).interval(shares=False)
    assert collected([1.0] * n).interval(shares=False).low == 1.0


def test_few_values_of_a_skewed_score_are_covered_better_than_by_resampling():
    # The true mean is 5 / 6. Over many samples of five, t covers it in 91 %, resampling in 80 %.
    source = np.random.default_rng(5)
    samples = [source.beta(5, 1, size=5).tolist() for _ in range(400)]

    def covered(intervals):
        return sum(interval.low <= 5 / 6 <= interval.high for interval in intervals) / 400

    assert covered(mean_interval(values) for values in samples) > 0.87
    assert covered(bootstrap_mean_interval(values, resamples=200) for values in samples) < 0.85


@pytest.mark.parametrize("n", [4, 29, 3000])
def test_students_t_equals_scipy(n):
    values = np.random.default_rng(2).beta(5, 2, size=n)
    low, high = scipy.stats.t.interval(0.9, n - 1, values.mean(), scipy.stats.sem(values))
    for interval in (mean_interval(values, confidence=0.9), collected(values).interval(0.9)):
        assert (interval.low, interval.high) == (pytest.approx(low, rel=1e-9), pytest.approx(high, rel=1e-9))


# Streaming


@pytest.mark.parametrize("values", [[], [3.5]])
def test_unknown_is_none(values):
    running = collected(values)
    expected = values[0] if values else None
    known = (running.mean, running.total, running.minimum, running.maximum, running.quantile(0.5))
    assert known == (expected,) * 5
    assert (running.n, running.exact) == (len(values), True)
    assert running.sample_variance is None
    assert running.interval() is None
    assert mean_interval(values) is None


@given(SAMPLES, SHARES, st.integers(1, 50), st.integers(1, 7))
def test_running_equals_numpy_across_folds(values, q, capacity, fold_size):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(running_module, "FOLD_SIZE", fold_size)
        running = collected(values, capacity=capacity)
        assert running.n == len(values)
        assert running.total == math.fsum(values)
        assert running.mean == pytest.approx(math.fsum(values) / len(values), rel=1e-15)
        assert running.minimum == min(values)
        assert running.maximum == max(values)
        assert running.exact == (len(values) <= capacity)
        if len(values) > 1:
            scale = max(1e-280, (max(values) - min(values)) ** 2)
            # Exact arithmetic: numpy's own rounding shows when the values are large beside their spread.
            exact = float(exact_variance([Fraction(value) for value in values]))
            assert running.sample_variance == pytest.approx(exact, rel=1e-9, abs=1e-12 * scale)
        if running.exact:
            assert running.quantile(q) == quantile(sorted(values), q)
            assert running.interval() == mean_interval(values)
        else:
            assert min(values) <= running.quantile(q) <= max(values)


@given(st.lists(st.floats(-10, 10), min_size=1, max_size=60), st.sets(st.integers(0, 59)), st.integers(1, 9))
def test_reading_never_changes_the_answer(values, reads, capacity):
    read_often = RunningStatistics(capacity, seed=1)
    for index, value in enumerate(values):
        read_often.add(value)
        if index in reads:
            read_often.quantile(0.5), read_often.sample_variance, read_often.interval()
    read_once = collected(values, capacity=capacity, seed=1)
    for name in ("n", "total", "mean", "sample_variance", "minimum", "maximum", "exact"):
        assert getattr(read_often, name) == getattr(read_once, name)
    assert [read_often.quantile(q / 8) for q in range(9)] == [read_once.quantile(q / 8) for q in range(9)]
    assert read_often.interval() == read_once.interval()


@pytest.mark.parametrize("first", [1e9, 1e9 + 5000.0, 0.0])
def test_variance_survives_an_offset_and_an_outlying_first_value(first):
    values = [first] + [1e9 + index % 10 / 10 for index in range(5000)]
    reference = np.var(np.array(values, dtype=np.longdouble), ddof=1)
    assert collected(values).sample_variance == pytest.approx(float(reference), rel=1e-9)
    assert collected(values).mean == math.fsum(values) / 5001


def test_a_share_of_passes_reads_exactly():
    assert collected([1, 1, 1, 1, 0] * 5000).mean == 0.8
    assert collected([0.1] * 3).mean == 0.1  # 0.1 + 0.1 + 0.1 over 3 is 0.10000000000000002 in floats


def test_passes_and_failures_use_wilson_at_any_size_until_another_value_comes():
    running = collected([1] * 30_000, capacity=10)
    assert running.interval() == wilson_interval(30_000, 30_000)
    running.add(0)
    assert running.interval() == wilson_interval(30_000, 30_001)
    running.add(0.5)
    assert running.interval().method == "t"


def test_a_partly_kept_sample_is_never_bootstrapped():
    values = [0.0, 0.5, 1.0, 2.0]
    running = collected(values, capacity=3)
    assert running.interval() == normal_interval(0.875, running.sample_variance, 4)


def test_reservoir_is_uniform():
    # The p-th quantile of 50 uniform values lies at (49 p + 1) / 51 of the range on average. 300 reservoirs
    # pool 15,000 values, so the average has a standard error of at most 2000 · √(0.25 / 15,000) ≈ 8; a sample
    # that favors early or late values is hundreds away.
    reservoirs = [collected(range(2000), capacity=50, seed=seed) for seed in range(300)]
    assert not any(reservoir.exact for reservoir in reservoirs)
    for q in (0.1, 0.5, 0.9):
        average = math.fsum(reservoir.quantile(q) for reservoir in reservoirs) / 300
        assert average == pytest.approx(2000 * (49 * q + 1) / 51, abs=32)
    assert {(reservoir.quantile(0), reservoir.quantile(1)) for reservoir in reservoirs} == {(0.0, 1999.0)}
    assert len({reservoir.quantile(0.5) for reservoir in reservoirs}) > 200


def test_reservoir_of_one_keeps_each_value_equally_often():
    kept = [collected(range(5), capacity=1, seed=seed).quantile(0.5) for seed in range(2500)]
    # 500 of each expected, standard deviation √(2500 · 0.2 · 0.8) = 20.
    assert all(420 < kept.count(value) < 580 for value in range(5))


# Refusals


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, 1e140, -1e200])
def test_values_without_a_finite_square_are_refused(value):
    running = collected([1.0, 2.0])
    with pytest.raises(ValueError, match=r"^RunningStatistics: value must be finite .* received "):
        running.add(value)
    assert (running.n, running.mean) == (2, 1.5)
    for function in (mean_interval, bootstrap_mean_interval):
        with pytest.raises(ValueError, match=rf"^{function.__name__}: values must be finite .* at position 1$"):
            function([0.5, value, 0.7])


def test_the_largest_values_still_give_finite_numbers():
    running = collected([9e139, -9e139] * 3000)
    interval = running.interval()
    assert all(map(math.isfinite, (running.sample_variance, interval.low, interval.high, running.quantile(0.5))))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: quantile([1.0], 1.5), "quantile: q must be between 0 and 1; received 1.5"),
        (lambda: quantile([1.0], math.nan), "quantile: q must be between 0 and 1; received nan"),
        (
            lambda: quantile([], 0.5),
            "quantile: sorted_values must hold at least one value; received 0 values",
        ),
        (lambda: wilson_interval(0, 0), "wilson_interval: n must be at least 1; received 0"),
        (lambda: wilson_interval(3, 2), "wilson_interval: successes must be between 0 and n = 2; received 3"),
        (
            lambda: wilson_interval(1, 2, 1.0),
            "wilson_interval: confidence must be above 0 and below 1; received 1.0",
        ),
        (lambda: normal_interval(0.5, 0.1, 1), "normal_interval: n must be at least 2; received 1"),
        (
            lambda: normal_interval(0.5, -0.1, 5),
            "normal_interval: sample_variance must be finite and not negative; received -0.1",
        ),
        (lambda: normal_interval(math.nan, 1, 5), "normal_interval: mean must be finite; received nan"),
        (
            lambda: t_critical_value(0.95, 0),
            "t_critical_value: degrees_of_freedom must be at least 1; received 0",
        ),
        (
            lambda: percentile_interval([1.0], 0.0),
            "percentile_interval: confidence must be above 0 and below 1; received 0.0",
        ),
        (
            lambda: bootstrap_mean_interval([1, 2], resamples=0),
            "bootstrap_mean_interval: resamples must be at least 1; received 0",
        ),
        (
            lambda: mean_interval([1, 0], confidence=95),
            "mean_interval: confidence must be above 0 and below 1; received 95",
        ),
        (lambda: RunningStatistics(0), "RunningStatistics: capacity must be at least 1; received 0"),
        (
            lambda: RunningStatistics().quantile(-0.1),
            "RunningStatistics: q must be between 0 and 1; received -0.1",
        ),
        (
            lambda: RunningStatistics().interval(1.5),
            "RunningStatistics: confidence must be above 0 and below 1; received 1.5",
        ),
    ],
)
def test_bad_parameters_say_who_what_and_why(call, message):
    with pytest.raises(ValueError) as caught:  # noqa: PT011 (the whole message is compared below)
        call()
    assert str(caught.value) == message
