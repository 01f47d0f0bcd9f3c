from __future__ import annotations

import math
import random
import re

import numpy as np
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

from agentunit.formulas import proportions
from agentunit.formulas.paired import mcnemar_test
from agentunit.formulas.proportions import (
    bounded_mean_test,
    cases_to_show_no_worse,
    paired_proportion_interval,
    paired_proportion_test,
    tango_statistic,
)

COUNTS = st.tuples(st.integers(0, 40), st.integers(0, 40), st.integers(0, 40)).filter(lambda counts: sum(counts) > 0)
DIFFERENCES = st.lists(st.floats(-1.0, 1.0, allow_subnormal=False), min_size=1, max_size=20)


# Tango's statistic and interval


def test_tangos_own_example():
    # Tango (1998), disinfection of contact lenses: 43 of 44 pairs alike, one lens clean only by the old method, and a
    # margin of 0.1: Z = 1.709, one-sided p = 0.044.
    statistic = tango_statistic(0, 1, 44, -0.1)
    assert statistic == pytest.approx(1.709, abs=5e-4)
    assert scipy.stats.norm.sf(statistic) == pytest.approx(0.044, abs=5e-4)


@pytest.mark.parametrize(
    ("b", "c", "n", "confidence", "low", "high"),
    [
        # Fagerland, Lydersen and Laake, "Statistical Analysis of Contingency Tables" (2017), chapter 8: airway
        # hyper-responsiveness before and after stem cell transplantation.
        (1, 7, 21, 0.95, -0.517, -0.026),
        # R package PropCIs 0.3-0: scoreci.mp(25, 28, 618, 0.90) gives −0.0148 to 0.0247 for (c − b) / n.
        (28, 25, 618, 0.90, -0.0148, 0.0247),
    ],
)
def test_published_intervals(b, c, n, confidence, low, high):
    interval = paired_proportion_interval(b, c, n, confidence)
    digits = len(str(low).split(".")[1])
    assert (round(interval.low, digits), round(interval.high, digits)) == (low, high)


def log_likelihood(only_candidate, only_baseline, counts):
    # Each count with its rate; a rate of 0 is fine where the count is 0.
    b, c, rest = counts
    rates = (only_candidate, only_baseline, 1.0 - only_candidate - only_baseline)
    return sum(count * math.log(rate) for count, rate in zip((b, c, rest), rates, strict=True) if count)


@given(COUNTS, st.floats(-0.9, 0.9))
def test_the_statistic_uses_the_most_likely_rates_under_the_supposed_difference(counts, difference):
    b, c, rest = counts
    n = b + c + rest
    low, high = max(0.0, -difference), (1.0 - difference) / 2.0
    grid = [low + (high - low) * (step + 0.5) / 2000 for step in range(2000)]
    lost_rate = max(grid, key=lambda rate: log_likelihood(rate + difference, rate, counts))
    variance = n * (2.0 * lost_rate + difference * (1.0 - difference))
    by_search = (b - c - n * difference) / math.sqrt(variance) if variance > 1e-3 else None
    if by_search is not None and lost_rate - low > 0.01:  # the grid is too coarse at the very edge
        assert tango_statistic(b, c, n, difference) == pytest.approx(by_search, rel=0.02, abs=0.02)


@given(COUNTS)
def test_the_interval_ends_where_the_statistic_is_critical(counts):
    b, c, rest = counts
    n = b + c + rest
    interval = paired_proportion_interval(b, c, n)
    assert -1.0 <= interval.low <= (b - c) / n <= interval.high <= 1.0
    assert interval.low < interval.high
    mirrored = paired_proportion_interval(c, b, n)
    assert (mirrored.low, mirrored.high) == (-interval.high, -interval.low)
    if interval.high < 0.999:
        assert tango_statistic(b, c, n, interval.high) == pytest.approx(-1.959964, abs=1e-4)
    if interval.low > -0.999:
        assert tango_statistic(b, c, n, interval.low) == pytest.approx(1.959964, abs=1e-4)


def test_no_difference_is_mcnemars_statistic():
    assert tango_statistic(9, 4, 50, 0.0) == pytest.approx((9 - 4) / math.sqrt(13))
    assert tango_statistic(0, 0, 50, 0.0) == 0.0


# Non-inferiority of pass/fail


@pytest.mark.parametrize(
    ("b", "c", "n", "margin", "expected"),
    [
        (0, 0, 10, 0.5, 0.5**10),  # ten cases without a loss, had half of them been lost
        (0, 0, 59, 0.05, 0.95**59),
        (0, 10, 10, 0.5, 1.0),  # everything lost
        (0, 1, 44, 0.1, 0.9**44 + 44 * 0.1 * 0.9**43),  # at most one loss in 44
    ],
)
def test_exact_where_every_change_is_a_loss(b, c, n, margin, expected):
    assert paired_proportion_test(b, c, n, margin=margin) == pytest.approx(expected, rel=1e-9)


def test_elsewhere_the_score_test():
    statistic = tango_statistic(15, 15, 300, -0.05)
    assert paired_proportion_test(15, 15, 300, margin=0.05) == pytest.approx(scipy.stats.norm.sf(statistic), rel=1e-12)


@pytest.mark.parametrize("margin", [0.02, 0.05, 0.1, 0.2])
@pytest.mark.parametrize("n", [20, 30, 45, 52, 55, 58, 60, 90, 130])
def test_wrong_in_about_one_of_twenty_samples_at_most_by_enumeration(n, margin):
    b, c = (counts.ravel() for counts in np.meshgrid(np.arange(n + 1), np.arange(n + 1)))
    possible = b + c <= n
    b, c = b[possible], c[possible]
    # Only what the normal law rejects can be rejected: a third of the table or less has to be asked.
    rejected = np.array(
        [
            tango_statistic(int(gained), int(lost), n, -margin) > 1.6
            and paired_proportion_test(int(gained), int(lost), n, margin=margin) < 0.05
            for gained, lost in zip(b, c, strict=True)
        ]
    )
    b, c = b[rejected], c[rejected]
    for gain_rate in (0.0, 0.01, 0.05, 0.1, 0.2, 0.4):
        rates = (gain_rate, gain_rate + margin, 1.0 - 2 * gain_rate - margin)
        if rates[2] >= 0.0:
            outcomes = np.stack([b, c, n - b - c], axis=1)
            wrong = scipy.stats.multinomial.pmf(outcomes, n, rates).sum() if len(b) else 0.0
            assert wrong <= 0.065, (n, margin, gain_rate)
            if gain_rate == 0.0:
                assert wrong <= 0.05 + 1e-9


@given(COUNTS, st.floats(0.01, 0.5))
def test_fewer_losses_and_more_gains_are_easier_to_show(counts, margin):
    b, c, rest = counts
    n = b + c + rest
    p = paired_proportion_test(b, c, n, margin=margin)
    assert 0.0 <= p <= 1.0
    if c:
        assert paired_proportion_test(b, c - 1, n, margin=margin) <= p + 1e-9
    if rest:
        assert paired_proportion_test(b + 1, c, n, margin=margin) <= p + 1e-9


# Non-inferiority of any other score


@pytest.mark.parametrize(
    ("differences", "margin", "worst", "expected"),
    [
        ([], 0.1, 1.0, None),
        ([0.0], 0.25, 1.0, 0.75),  # gain 0.25 against the unseen loss 0.75: 0.75 / (0.25 + 0.75)
        ([1.0], 0.5, 2.0, 0.5),  # 1.5 against 1.5
        ([0.0] * 20, 0.05, 1.0, 0.95**20),
        ([-0.05] * 9, 0.05, 1.0, 1.0),  # just at the margin: nothing stands against the unseen loss
        ([-1.0, -1.0], 0.05, 1.0, 1.0),
        # Losses 1.5 (unseen) and 0.5, gain 1.5. The first duel, 1.5 against 1.5: half of the time the gain is used up
        # and losses are left; else it meets 0.5 and is used up with chance 0.5 / 2: 0.5 + 0.5 · 0.25.
        ([1.0, -1.0], 0.5, 2.0, 0.625),
    ],
)
def test_bounded_mean_by_hand(differences, margin, worst, expected):
    p = bounded_mean_test(differences, margin=margin, worst=worst)
    assert p == (None if expected is None else pytest.approx(expected, rel=1e-12))


@pytest.mark.parametrize(("passes", "n"), [(20, 20), (45, 50), (30, 50), (0, 5)])
def test_for_pass_and_fail_alone_it_is_the_exact_binomial_test(passes, n):
    # A difference of 0 or −1, worst −1: the losses are binomial; H0 says that their rate is the margin.
    differences = [0.0] * passes + [-1.0] * (n - passes)
    exact = scipy.stats.binomtest(n - passes, n, 0.3, alternative="less").pvalue
    assert bounded_mean_test(differences, margin=0.3, worst=1.0) == pytest.approx(exact, rel=1e-9)


def test_equals_its_definition_by_simulation():
    source = np.random.default_rng(7)
    differences = source.normal(0.0, 0.2, 40).clip(-1.0, 1.0)
    weights = source.exponential(size=(200_000, 41))
    by_simulation = (weights @ np.append(differences + 0.05, -0.95) <= 0.0).mean()
    p = bounded_mean_test(list(differences), margin=0.05, worst=1.0)
    assert p == pytest.approx(by_simulation, abs=4 * math.sqrt(0.25 / 200_000))


def test_the_normal_law_continues_where_the_exact_sum_ends(monkeypatch):
    source = random.Random(3)
    differences = [source.gauss(-0.045, 0.3) for _ in range(1500)]
    differences = [min(1.0, max(-1.0, difference)) for difference in differences]
    exact = bounded_mean_test(differences, margin=0.05, worst=1.0)
    monkeypatch.setattr(proportions, "LARGEST_EXACT_SUM", 100)
    assert bounded_mean_test(differences, margin=0.05, worst=1.0) == pytest.approx(exact, abs=0.01)


@pytest.mark.parametrize("difference", [0.0, 0.001, 0.5])
def test_p_does_not_jump_where_the_exact_sum_ends(difference):
    # The normal law alone says 0.0014 for 2001 zeros: one unseen loss in 500 cases is still more likely than that.
    before, after = (bounded_mean_test([difference] * n, margin=0.002, worst=1.0) for n in (2000, 2001))
    assert after == pytest.approx(before, rel=0.01 if difference < 0.5 else 0.5)
    if difference == 0.0:
        assert after == pytest.approx(0.998**2001, rel=1e-9)


@given(DIFFERENCES, st.floats(0.01, 0.9), st.floats(0.001, 0.5), st.randoms())
def test_bounded_mean_properties(differences, margin, gain, source):
    p = bounded_mean_test(differences, margin=margin, worst=1.0)
    assert 0.0 <= p <= 1.0 + 1e-12
    shuffled = source.sample(differences, len(differences))
    assert bounded_mean_test(shuffled, margin=margin, worst=1.0) == pytest.approx(p, rel=1e-9)
    scaled = [1000.0 * difference for difference in differences]
    assert bounded_mean_test(scaled, margin=1000.0 * margin, worst=1000.0) == pytest.approx(p, rel=1e-6, abs=1e-9)
    better = [difference + gain for difference in differences]
    assert bounded_mean_test(better, margin=margin, worst=1.0) <= p + 1e-9
    assert bounded_mean_test(differences, margin=margin, worst=2.0) >= p - 1e-9


@pytest.mark.parametrize("loss_rate", [0.05, 0.1, 0.25])
def test_rare_losses_are_not_missed(loss_rate):
    # The mean loss is the margin, in few cases: where a symmetric test is wrong in up to a third of the samples.
    source = random.Random(11)
    n, size = 50, 0.05 / loss_rate
    wrong = 0
    for _ in range(400):
        differences = [-size if source.random() < loss_rate else source.uniform(-0.01, 0.01) for _ in range(n)]
        wrong += bounded_mean_test(differences, margin=0.05, worst=1.0) < 0.05
    assert wrong / 400 <= 0.05


# How many cases it takes


def test_cases_needed_by_hand():
    assert cases_to_show_no_worse(0.05, 0.0) == 59  # ln 0.05 / ln 0.95 = 58.4
    assert cases_to_show_no_worse(0.1, 0.0) == 29  # ln 0.05 / ln 0.9 = 28.4
    assert cases_to_show_no_worse(0.05, 0.5) == 619  # ((1.6449 + 0.8416) · 0.5 / 0.05)² = 618.3
    assert cases_to_show_no_worse(1e-9, 1.0) is None


@pytest.mark.parametrize("sd", [0.1, 0.2])
def test_that_many_cases_do_show_it_four_times_in_five(sd):
    source = random.Random(5)
    n = cases_to_show_no_worse(0.05, sd, worst=1.0)
    shown = sum(
        bounded_mean_test([source.gauss(0.0, sd) for _ in range(n)], margin=0.05, worst=1.0) < 0.05 for _ in range(200)
    )
    assert 0.65 <= shown / 200 <= 0.95


@given(st.floats(0.01, 0.3), st.floats(0.0, 1.0), st.floats(1.0, 3.0))
def test_more_cases_for_a_narrower_margin_or_a_wider_spread(margin, sd, factor):
    for worst in (None, 1.0):
        needed = cases_to_show_no_worse(margin, sd, worst=worst)
        assert cases_to_show_no_worse(margin / factor, sd, worst=worst) >= needed
        assert cases_to_show_no_worse(margin, sd * factor, worst=worst) >= needed


# Bad parameters


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: tango_statistic(0, 0, 0, 0.1), "tango_statistic: n must be at least 1; received 0"),
        (lambda: tango_statistic(-1, 0, 5, 0.1), "tango_statistic: b must be at least 0; received -1"),
        (lambda: tango_statistic(3, 3, 5, 0.1), "tango_statistic: b + c must be at most n = 5; received 6"),
        (lambda: tango_statistic(1, 1, 5, 1.0), "tango_statistic: difference must be above -1 and below 1; received 1"),
        (
            lambda: paired_proportion_test(1, 1, 5, margin=0.0),
            "paired_proportion_test: margin must be above 0 and below 1; received 0.0",
        ),
        (
            lambda: paired_proportion_interval(1, 1, 5, 1.0),
            "paired_proportion_interval: confidence must be above 0 and below 1; received 1.0",
        ),
        (
            lambda: bounded_mean_test([0.0], margin=1.0, worst=1.0),
            "bounded_mean_test: margin must be above 0 and below worst = 1.0; received 1.0",
        ),
        (
            lambda: bounded_mean_test([0.0, -1.5], margin=0.1, worst=1.0),
            "bounded_mean_test: differences must be at least -worst = -1.0; received -1.5",
        ),
        (
            lambda: bounded_mean_test([math.nan], margin=0.1, worst=1.0),
            "bounded_mean_test: differences must be finite",
        ),
        (
            lambda: cases_to_show_no_worse(0.1, -1.0),
            "cases_to_show_no_worse: sd must be at least 0 and below 1e+140; received -1.0",
        ),
        (
            lambda: cases_to_show_no_worse(0.1, 0.1, alpha=0.5),
            "cases_to_show_no_worse: alpha must be above 0 and below 0.5; received 0.5",
        ),
    ],
)
def test_bad_parameters(call, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        call()


def test_a_regression_and_no_regression_are_not_both_shown():
    # 12 of 100 lost: McNemar says worse, and the margin of 0.05 is not kept.
    assert mcnemar_test(0, 12, alternative="less") < 0.001
    assert paired_proportion_test(0, 12, 100, margin=0.05) > 0.9
