from __future__ import annotations

import math
import random
import re

import numpy as np
import pytest
import scipy.stats
from hypothesis import example, given
from hypothesis import strategies as st

from agentunit.formulas import paired
from agentunit.formulas.paired import (
    effect_size,
    holm,
    mcnemar_test,
    paired_bootstrap_interval,
    paired_permutation_test,
)
from agentunit.formulas.repeats import cluster_bootstrap_mean_interval
from agentunit.formulas.statistics import Interval, bootstrap_mean_interval

ALTERNATIVES = st.sampled_from(["two-sided", "greater", "less"])
MIRRORED = {"two-sided": "two-sided", "greater": "less", "less": "greater"}
# Both sides of the border between every sign choice (8 fit 256 resamples) and random ones.
DIFFERENCES = st.lists(st.floats(min_value=-1e6, max_value=1e6, allow_subnormal=False), min_size=1, max_size=20)
P_VALUES = st.lists(st.floats(min_value=0.0, max_value=1.0), max_size=12)


# The sign-flip test


@pytest.mark.parametrize(
    ("differences", "alternative", "expected"),
    [
        ([], "two-sided", None),
        ([0.0, 0.0], "two-sided", 1.0),
        ([0.0, 0.0], "greater", 1.0),
        ([2.0], "greater", 1 / 2),  # the signs + and −
        ([2.0], "less", 1.0),
        ([2.0], "two-sided", 1.0),
        ([1.0, 1.0, 1.0, 1.0], "greater", 1 / 16),
        ([1.0, 1.0, 1.0, 1.0], "two-sided", 2 / 16),
        ([3.0, 0.0, 1.0, 0.0], "greater", 1 / 4),  # sums 4, 2, −2, −4: zeros change nothing
        ([3.0, -1.0], "greater", 2 / 4),  # of 4, 2, −2, −4 two are at least 2
        ([3.0, -1.0], "less", 3 / 4),
        ([3.0, -1.0], "two-sided", 1.0),
        # 0.3 − 0.2 and 0.1 differ in the last bit, yet are one difference: of sums 0.2, 0, 0, −0.2 three are ≥ 0.
        ([0.3 - 0.2, -0.1], "greater", 3 / 4),
        ([0.1, 0.2, -0.3], "greater", 5 / 8),  # sums ±0.6, ±0.4, ±0.2, 0, 0
    ],
)
def test_permutation_by_hand(differences, alternative, expected):
    assert paired_permutation_test(differences, alternative=alternative) == expected


@pytest.mark.parametrize(
    ("differences", "alternative", "expected"),
    [
        ([0.0, 0.0, 0.0], "greater", 1 / 8),  # shifted: 0.5 three times
        ([0.0, 0.0, 0.0], "less", 1 / 8),  # shifted the other way: −0.5 three times
        ([-0.5, -0.5], "greater", 1.0),  # at the margin: shifted to 0
        ([-1.0, 0.0], "greater", 3 / 4),  # shifted: −0.5, 0.5; of sums 1, 0, 0, −1 three are at least 0
    ],
)
def test_permutation_with_a_margin_of_a_half(differences, alternative, expected):
    assert paired_permutation_test(differences, alternative=alternative, margin=0.5) == expected


def test_a_case_at_the_margin_up_to_rounding_counts_for_nothing():
    at_the_margin = 0.8 - 0.85  # −0.04999999999999993, on the passing side by rounding alone
    assert at_the_margin + 0.05 > 0.0
    assert paired_permutation_test([at_the_margin] * 12, alternative="greater", margin=0.05) == 1.0
    assert paired_permutation_test([-at_the_margin] * 12, alternative="less", margin=0.05) == 1.0
    assert paired_permutation_test([at_the_margin] * 12, alternative="less", margin=0.05) == 1 / 2**12


@given(st.lists(st.floats(-1e3, 1e3, allow_subnormal=False), min_size=2, max_size=9), ALTERNATIVES)
@example([0.1, 0.2, -0.3], "greater")
@example([1.0, 1.0, -1.0, 0.0], "two-sided")
def test_every_sign_choice_equals_scipy(differences, alternative):
    reference = scipy.stats.permutation_test(
        (np.array(differences),), np.sum, permutation_type="samples", alternative=alternative, n_resamples=np.inf
    )
    # scipy ties sums by their distance relative to the observed one: sums that cancel out are ours to tie alone.
    sizes = np.abs(reference.null_distribution - reference.statistic)
    doubtful = (sizes > 0) & (sizes < 1e-8 * np.abs(differences).sum())
    if not doubtful.any():
        assert paired_permutation_test(differences, alternative=alternative) == pytest.approx(reference.pvalue)


@pytest.mark.parametrize("alternative", ["two-sided", "greater", "less"])
@pytest.mark.parametrize("n", [14, 100, 515, 1030])
def test_random_signs_agree_with_the_t_test(n, alternative):
    differences = np.random.default_rng(n).normal(0.5 / math.sqrt(n), 1.0, n)
    p = paired_permutation_test(differences.tolist(), alternative=alternative)
    reference = scipy.stats.ttest_1samp(differences, 0.0, alternative=alternative).pvalue
    # Twice the largest standard error of a share of 10,000, and as much for a sample's not being normal.
    assert p == pytest.approx(reference, abs=0.02)
    assert p * 10_001 == pytest.approx(round(p * 10_001), abs=1e-6)  # (as extreme + 1) / (m + 1)


@pytest.mark.parametrize(
    ("n", "settings", "exact"),
    [(13, {}, True), (14, {}, False), (10, {"resamples": 1024}, True), (10, {"resamples": 1023}, False)],
)
def test_every_choice_is_taken_when_resamples_allow(n, settings, exact):
    differences = [1.0 + index for index in range(n)]
    differences[-1] = -differences[-1]
    # Only what is drawn at random can depend on the seed.
    found = {paired_permutation_test(differences, seed=seed, **settings) for seed in range(4)}
    assert (len(found) == 1) == exact


def test_every_difference_gets_its_own_sign():
    # Each of 1030 differences (three blocks, the last one of no whole byte) must be flipped independently:
    # the sums then vary by Σ d², which a shared or missing sign would change by whole multiples of its term.
    parts = [2 ** (index % 7) for index in range(1030)]
    sums = paired._random_signed_sums(parts, 4000, seed=3)
    variance = sum(part * part for part in parts)
    # 4000 squares of a normal variable: a relative standard error of √(2 / 4000), three of which are 7 %.
    assert np.mean(np.square(sums)) == pytest.approx(variance, rel=0.07)
    assert np.mean(sums) == pytest.approx(0.0, abs=3 * math.sqrt(variance / 4000))
    assert all(abs(total) <= sum(parts) and (total - sum(parts)) % 2 == 0 for total in sums)


def test_permutation_depends_on_the_seed_alone():
    differences = [math.sin(index) for index in range(60)]
    state = random.getstate()
    first = paired_permutation_test(differences, seed=1)
    assert first == paired_permutation_test(differences, seed=1)
    assert len({paired_permutation_test(differences, seed=seed) for seed in range(4)}) > 1
    assert random.getstate() == state


@given(DIFFERENCES, ALTERNATIVES, st.integers(0, 3))
def test_permutation_p_is_a_probability_and_mirrors(differences, alternative, seed):
    settings = {"resamples": 256, "seed": seed}
    p = paired_permutation_test(differences, alternative=alternative, **settings)
    mirrored = paired_permutation_test([-d for d in differences], alternative=MIRRORED[alternative], **settings)
    assert 0.0 < p <= 1.0
    assert p == mirrored


@given(DIFFERENCES, st.floats(0.0, 1e3), st.floats(0.0, 1e3))
def test_a_wider_margin_is_easier_to_keep(differences, margin, other):
    # A sign choice is as extreme when the differences it turns add up to 0 or less: fewer do once all are raised.
    exhaustive = {"alternative": "greater", "resamples": 2 ** len(differences[:8])}
    narrow, wide = sorted([margin, other])
    p_wide = paired_permutation_test(differences[:8], margin=wide, **exhaustive)
    assert p_wide <= paired_permutation_test(differences[:8], margin=narrow, **exhaustive)


@pytest.mark.parametrize("power_of_ten", [-300, -20, 20, 130])
def test_permutation_knows_no_unit(power_of_ten):
    differences = [0.1, 0.2, -0.3, 0.5, 0.05]
    scaled = [difference * 10.0**power_of_ten for difference in differences]
    assert paired_permutation_test(scaled) == paired_permutation_test(differences)


@pytest.mark.parametrize(("n", "spread"), [(10, "normal"), (25, "normal"), (40, "laplace")])
@pytest.mark.parametrize("settings", [{}, {"alternative": "greater"}, {"alternative": "greater", "margin": 0.3}])
def test_false_alarms_stay_at_five_percent(n, spread, settings):
    generator = np.random.default_rng(n)
    # The worst mean that H0 allows: 0, or just at the margin.
    mean = -settings.get("margin", 0.0)
    simulations = 500
    alarms = 0
    for seed in range(simulations):
        differences = getattr(generator, spread)(mean, 1.0, n).tolist()
        alarms += paired_permutation_test(differences, resamples=199, seed=seed, **settings) <= 0.05
    # 5 % ± three standard errors of 500 tosses: √(0.05 · 0.95 / 500) = 0.97 %.
    assert 0.02 <= alarms / simulations <= 0.08


# McNemar


@pytest.mark.parametrize(
    ("b", "c", "alternative", "expected"),
    [
        (0, 0, "two-sided", 1.0),
        (0, 0, "greater", 1.0),
        (5, 0, "two-sided", 2 / 32),
        (5, 0, "greater", 1 / 32),
        (5, 0, "less", 1.0),
        (0, 5, "greater", 1.0),
        (3, 3, "two-sided", 1.0),
        (3, 3, "greater", (20 + 15 + 6 + 1) / 64),
        (2, 6, "two-sided", 2 * (28 + 8 + 1) / 256),
        (2, 6, "greater", 1 - (8 + 1) / 256),  # all but 0 and 1 heads
    ],
)
def test_mcnemar_by_hand(b, c, alternative, expected):
    assert mcnemar_test(b, c, alternative=alternative) == expected


@given(st.integers(0, 400), st.integers(0, 400), ALTERNATIVES)
@example(5100, 4900, "two-sided")
@example(5001, 5000, "greater")  # the first size computed in logarithms
@example(10_300, 9_700, "less")
@example(510_000, 490_000, "two-sided")
def test_mcnemar_equals_scipy(b, c, alternative):
    p = mcnemar_test(b, c, alternative=alternative)
    reference = scipy.stats.binomtest(b, b + c, alternative=alternative).pvalue if b + c else 1.0
    assert p == pytest.approx(reference, rel=1e-11 if b + c <= 10_000 else 1e-7)
    assert 0.0 < p <= 1.0
    assert p == mcnemar_test(c, b, alternative=MIRRORED[alternative])


def test_mcnemar_is_the_sign_flip_test_of_pass_and_fail():
    differences = [1.0] * 7 + [-1.0] * 2 + [0.0] * 30
    for alternative in ("two-sided", "greater", "less"):
        assert mcnemar_test(7, 2, alternative=alternative) == paired_permutation_test(
            differences, alternative=alternative
        )


def test_mcnemar_underflows_to_zero_and_never_below():
    assert mcnemar_test(2000, 0) == 0.0
    assert mcnemar_test(0, 20_000, alternative="greater") == 1.0


# Intervals


def test_interval_is_the_bootstrap_of_the_differences():
    differences = [math.sin(index) for index in range(40)]
    clusters = [index // 4 for index in range(40)]
    settings = {"confidence": 0.9, "resamples": 300, "seed": 5}
    alone = paired_bootstrap_interval(differences, **settings)
    together = paired_bootstrap_interval(differences, clusters=clusters, **settings)
    assert alone == bootstrap_mean_interval(differences, **settings)
    assert together == cluster_bootstrap_mean_interval(differences, clusters, **settings)
    assert alone != together


def test_interval_by_hand():
    # Mean 1, sample variance (4 + 4) / 1 = 8, standard error √(8 / 2) = 2, and t = 12.7062 with one degree of freedom.
    interval = paired_bootstrap_interval([-1, 3])
    assert (interval.low, interval.high) == pytest.approx((1 - 2 * 12.7062, 1 + 2 * 12.7062), abs=1e-3)
    assert interval.method == "t"
    assert paired_bootstrap_interval([0, 1] * 14).method == "t"  # differences of 0 and 1 are no shares
    assert paired_bootstrap_interval([0, 1] * 15).method == "bootstrap"
    assert paired_bootstrap_interval([0.1] * 3) == Interval(0.1, 0.1, "t")
    assert paired_bootstrap_interval([0.5]) is None
    assert paired_bootstrap_interval([0.5, 0.7], clusters=["a", "a"]) is None


# Effect size


@pytest.mark.parametrize(
    ("differences", "expected"),
    [
        ([], None),
        ([1.0], None),
        ([0.0, 0.0], None),
        ([2.0, 2.0, 2.0], None),
        ([0.3 - 0.2, 0.2 - 0.1, 0.1], None),  # equal but for rounding
        ([1.0, -1.0], 0.0),
        ([1.0, 3.0], math.sqrt(2.0)),  # mean 2, sd √(1 + 1)
        ([0.0, 0.0, 0.0, 4.0], 0.5),  # mean 1, sd √((1 + 1 + 1 + 9) / 3) = 2
        ([0.0, 0.0, 0.0, -4e-200], -0.5),  # squares of which would vanish
        ([0.0, 0.0, 0.0, 4e139], 0.5),
    ],
)
def test_effect_size_by_hand(differences, expected):
    result = effect_size(differences)
    assert result is None if expected is None else result == pytest.approx(expected, rel=1e-12)


@given(st.lists(st.floats(-1e3, 1e3, allow_subnormal=False), min_size=2, max_size=20))
def test_effect_size_is_student_t_over_root_n(differences):
    result = effect_size(differences)
    spread = max(differences) - min(differences)
    if result is None:
        assert spread <= 1e-9 * max(map(abs, differences))
        return
    assert effect_size([-difference for difference in differences]) == -result
    if spread > 1e-3 * max(map(abs, differences)) and spread > 1e-100:
        reference = scipy.stats.ttest_1samp(differences, 0.0).statistic / math.sqrt(len(differences))
        assert result == pytest.approx(reference, rel=1e-6, abs=1e-9)


# Holm


@pytest.mark.parametrize(
    ("p_values", "expected"),
    [
        ([], []),
        ([0.04], [0.04]),
        ([0.01, 0.04, 0.03], [0.03, 0.06, 0.06]),  # 3 · 0.01; 2 · 0.03; 1 · 0.04, raised to the 0.06 before it
        ([0.5, 0.6, 0.01], [1.0, 1.0, 0.03]),  # 2 · 0.5 is 1, 1 · 0.6 is raised to it
        ([0.9, 0.8], [1.0, 1.0]),
        ([0.02, 0.02], [0.04, 0.04]),
        ([0.0, 1.0], [0.0, 1.0]),
    ],
)
def test_holm_by_hand(p_values, expected):
    assert holm(p_values) == pytest.approx(expected)


@given(P_VALUES)
def test_holm_equals_its_closed_form(p_values):
    # The definition without a running maximum: the largest (m − j + 1) · p over the j-th smallest up to this one.
    m = len(p_values)
    ascending = sorted(p_values)
    expected = [
        max(min(1.0, (m - j) * smaller) for j, smaller in enumerate(ascending) if smaller <= p_value)
        for p_value in p_values
    ]
    assert holm(p_values) == pytest.approx(expected)


@given(P_VALUES, st.randoms(use_true_random=False))
def test_holm_raises_keeps_order_and_follows_a_shuffle(p_values, shuffler):
    adjusted = holm(p_values)
    assert all(raw <= raised <= 1.0 for raw, raised in zip(p_values, adjusted, strict=True))
    assert sorted(adjusted) == [raised for _, raised in sorted(zip(p_values, adjusted, strict=True))]
    if p_values:
        # The smallest is raised as far as Bonferroni would.
        assert min(adjusted) == min(1.0, len(p_values) * min(p_values))
    places = list(range(len(p_values)))
    shuffler.shuffle(places)
    assert holm([p_values[place] for place in places]) == [adjusted[place] for place in places]


# Refusals


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: paired_permutation_test([0.0, math.nan]),
            "paired_permutation_test: differences must be finite and below 1e+140 in size; received nan at position 1",
        ),
        (
            lambda: paired_permutation_test([1.0], alternative="higher"),
            "paired_permutation_test: alternative must be 'two-sided', 'greater' or 'less'; received 'higher'",
        ),
        (
            lambda: paired_permutation_test([1.0], margin=-0.1, alternative="greater"),
            "paired_permutation_test: margin must be at least 0 and below 1e+140; received -0.1",
        ),
        (
            lambda: paired_permutation_test([1.0], margin=0.1),
            "paired_permutation_test: alternative must be 'greater' or 'less' with a margin; received 'two-sided'",
        ),
        (
            lambda: paired_permutation_test([1.0], resamples=0),
            "paired_permutation_test: resamples must be at least 1; received 0",
        ),
        (lambda: mcnemar_test(-1, 2), "mcnemar_test: b must be at least 0; received -1"),
        (lambda: mcnemar_test(1, -2), "mcnemar_test: c must be at least 0; received -2"),
        (
            lambda: mcnemar_test(1, 2, alternative="both"),
            "mcnemar_test: alternative must be 'two-sided', 'greater' or 'less'; received 'both'",
        ),
        (
            lambda: paired_bootstrap_interval([1.0, 2.0], clusters=["a"]),
            "paired_bootstrap_interval: clusters must be as long as differences, 2; received 1",
        ),
        (
            lambda: paired_bootstrap_interval([1.0, math.inf]),
            "paired_bootstrap_interval: differences must be finite and below 1e+140 in size; "
            "received inf at position 1",
        ),
        (
            lambda: effect_size([1.0, math.inf]),
            "effect_size: differences must be finite and below 1e+140 in size; received inf at position 1",
        ),
        (lambda: holm([0.1, 1.5]), "holm: p_values must be between 0 and 1; received 1.5 at position 1"),
        (lambda: holm([math.nan]), "holm: p_values must be between 0 and 1; received nan at position 0"),
    ],
)
def test_refusals_say_what_is_wrong(call, message):
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        call()


def test_numpy_adds_up_the_same_sums(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("numpy")
    differences = [math.sin(position) / 3 for position in range(1237)]
    plain = paired_permutation_test(differences, resamples=500)
    sums = paired._random_signed_sums(range(1, 1238), 500, 3)
    monkeypatch.setattr(paired, "NUMPY_FROM_DIFFERENCES", 1)
    assert paired_permutation_test(differences, resamples=500) == plain
    assert paired._random_signed_sums(range(1, 1238), 500, 3) == sums
