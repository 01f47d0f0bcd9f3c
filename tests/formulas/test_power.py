from __future__ import annotations

import math
import re

import numpy as np
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

from agentunit.formulas.paired import paired_permutation_test
from agentunit.formulas.proportions import cases_needed, smallest_detectable_effect

SETTINGS = st.fixed_dictionaries(
    {"alpha": st.floats(0.001, 0.2), "power": st.floats(0.5, 0.99), "sides": st.sampled_from([1, 2])}
)


def exact_power(effect, sd, n, alpha, sides):
    """The chance that the t test finds the effect: scipy's noncentral t distribution, in the effect's direction."""
    critical = scipy.stats.t.isf(alpha / sides, n - 1)
    return scipy.stats.nct.sf(critical, n - 1, effect * math.sqrt(n) / sd)


@pytest.mark.parametrize(
    ("n", "settings", "normal_quantiles"),
    [
        (10**8, {}, 1.644854 + 0.841621),
        (10**8, {"sides": 2}, 1.959964 + 0.841621),
        (10**8, {"alpha": 0.01, "power": 0.9}, 2.326348 + 1.281552),
        (10**8, {"power": 0.5}, 1.644854),
    ],
)
def test_many_cases_give_the_textbook_formula(n, settings, normal_quantiles):
    # (z_alpha + z_power) · sd / √n with sd = 10 and √n = 10,000
    assert smallest_detectable_effect(10.0, n, **settings) == pytest.approx(normal_quantiles / 1000, rel=1e-6)


def test_few_cases_by_hand():
    # n = 10, ν = 9: t = 1.833113, so 1.833113 · (1 − 1/36) + 0.841621 · √(1 + 3.360303/18) = 1.782193 + 0.916820,
    # over √10.
    assert smallest_detectable_effect(1.0, 10) == pytest.approx(2.699013 / math.sqrt(10), rel=1e-6)
    assert smallest_detectable_effect(0.0, 10) == 0.0


@pytest.mark.parametrize("sides", [1, 2])
@pytest.mark.parametrize(("n", "tolerance"), [(3, 0.02), (5, 0.01), (10, 0.002), (30, 0.001), (300, 0.0001)])
def test_detectable_effect_has_the_power_of_the_noncentral_t(n, tolerance, sides):
    effect = smallest_detectable_effect(2.0, n, sides=sides)
    assert exact_power(effect * (1 - tolerance), 2.0, n, 0.05, sides) < 0.8
    assert exact_power(effect * (1 + tolerance), 2.0, n, 0.05, sides) > 0.8


@pytest.mark.parametrize(
    ("effect", "sd", "sides", "expected"),
    [
        # The published tables of the paired t test for an alpha of 0.05 and a power of 0.8.
        (0.2, 1.0, 2, 199),
        (0.5, 1.0, 2, 34),
        (0.8, 1.0, 2, 15),
        (0.2, 1.0, 1, 156),
        (0.5, 1.0, 1, 27),
        (-0.5, 1.0, 1, 27),  # the direction does not matter
        (5.0, 10.0, 1, 27),  # nor does the unit
        (1.0, 0.0, 1, 2),  # no spread at all: the fewest that have one
        (100.0, 1.0, 1, 2),
        (0.0, 1.0, 1, None),
        (0.0, 0.0, 1, None),
        (1e-9, 1.0, 1, None),  # 6 · 10¹⁸ cases
        (5e-324, 1e139, 1, None),
    ],
)
def test_cases_needed_by_table(effect, sd, sides, expected):
    assert cases_needed(effect, sd, sides=sides) == expected


@given(st.integers(2, 3000), st.floats(1e-3, 1e3), SETTINGS)
def test_cases_needed_inverts_the_detectable_effect(n, sd, settings):
    effect = smallest_detectable_effect(sd, n, **settings)
    assert cases_needed(effect, sd, **settings) == n
    if n > 2:
        assert cases_needed(effect * (1 + 1e-6), sd, **settings) in (n - 1, n)


@given(st.floats(0.01, 5.0), SETTINGS)
def test_cases_needed_have_the_power_and_one_fewer_has_not(ratio, settings):
    n = cases_needed(ratio, 1.0, **settings)
    assert smallest_detectable_effect(1.0, n, **settings) <= ratio
    assert n == 2 or smallest_detectable_effect(1.0, n - 1, **settings) > ratio


@given(st.integers(2, 500), SETTINGS)
def test_more_cases_see_smaller_effects(n, settings):
    assert 0.0 < smallest_detectable_effect(1.0, n + 1, **settings) < smallest_detectable_effect(1.0, n, **settings)


def test_the_sign_flip_test_finds_what_is_promised():
    n, simulations = 30, 400
    effect = smallest_detectable_effect(1.0, n)
    generator = np.random.default_rng(5)
    found = 0
    for seed in range(simulations):
        differences = generator.normal(effect, 1.0, n).tolist()
        found += paired_permutation_test(differences, alternative="greater", resamples=399, seed=seed) <= 0.05
    # 80 % ± three standard errors of 400 tosses: √(0.8 · 0.2 / 400) = 2 %.
    assert found / simulations == pytest.approx(0.8, abs=0.06)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: smallest_detectable_effect(1.0, 1),
            "smallest_detectable_effect: n must be at least 2; received 1",
        ),
        (
            lambda: smallest_detectable_effect(-1.0, 5),
            "smallest_detectable_effect: sd must be at least 0 and below 1e+140; received -1.0",
        ),
        (
            lambda: smallest_detectable_effect(math.nan, 5),
            "smallest_detectable_effect: sd must be at least 0 and below 1e+140; received nan",
        ),
        (
            lambda: smallest_detectable_effect(1.0, 5, alpha=0.5),
            "smallest_detectable_effect: alpha must be at least 1e-09 and below 0.5; received 0.5",
        ),
        (
            lambda: smallest_detectable_effect(1.0, 5, power=0.2),
            "smallest_detectable_effect: power must be at least 0.5 and below 1; received 0.2",
        ),
        (
            lambda: smallest_detectable_effect(1.0, 5, sides=3),
            "smallest_detectable_effect: sides must be 1 or 2; received 3",
        ),
        (lambda: cases_needed(math.inf, 1.0), "cases_needed: effect must be finite; received inf"),
        (
            lambda: cases_needed(1.0, 1.0, power=1.0),
            "cases_needed: power must be at least 0.5 and below 1; received 1.0",
        ),
    ],
)
def test_refusals_say_what_is_wrong(call, message):
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        call()
