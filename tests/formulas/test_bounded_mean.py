"""Bounds of a mean of bounded values: hand-checked, beside scipy, and by their properties."""

from __future__ import annotations

import math
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from agentunit.formulas import bounded_mean
from agentunit.formulas.bounded_mean import pass_fail_bound, positive_part_chance, weighted_mean_bound
from agentunit.formulas.proportions import bounded_mean_test

VALUES = st.lists(st.floats(0.0, 1.0), min_size=1, max_size=12)


def test_all_passes_leave_room_for_one_unseen_failure():
    # The unseen value is the only loss: t of the mean m has the chance m ** n.
    assert weighted_mean_bound([1.0] * 10, lowest=0.0, alpha=0.025) == pytest.approx(0.025**0.1, abs=1e-6)


def test_one_value_shares_its_weight_evenly_with_the_unseen_one():
    # E / (E + E') is uniform, so the quantile of 0.8 · U is 0.8 · alpha.
    assert weighted_mean_bound([0.8], lowest=0.0, alpha=0.1) == pytest.approx(0.08, abs=1e-6)


@pytest.mark.parametrize(("passes", "n"), [(1, 5), (15, 30), (29, 30), (59, 60), (3, 100), (60, 120), (114, 120)])
def test_pass_fail_values_have_clopper_and_pearsons_bound(passes, n):
    values = [1.0] * passes + [0.0] * (n - passes)
    exact = stats.beta.ppf(0.025, passes, n - passes + 1)
    assert weighted_mean_bound(values, lowest=0.0, alpha=0.025) == pytest.approx(exact, abs=2e-5)


@pytest.mark.parametrize(
    ("passes", "n", "n_cases"), [(0, 10, 50), (9, 10, 50), (15, 30, 60), (50, 60, 5000), (2, 4, 4)]
)
def test_a_pass_fail_bound_is_the_first_share_that_the_hypergeometric_law_allows(passes, n, n_cases):
    possible = range(passes, n_cases - (n - passes) + 1)
    tails = stats.hypergeom.sf(passes - 1, n_cases, list(possible), n)
    allowed = [good for good, tail in zip(possible, tails, strict=True) if tail > 0.025]
    assert pass_fail_bound(passes, n, n_cases, 0.025) == allowed[0] / n_cases


def test_the_exact_chance_is_that_of_the_test_of_a_bounded_mean():
    differences = [0.3, -0.2, 0.5, 0.0, -0.6, 0.1]
    p_value = bounded_mean_test(differences, margin=0.1, worst=1.0)
    assert positive_part_chance([-0.1 - each for each in [*differences, -1.0]]) == pytest.approx(p_value)


@pytest.mark.parametrize("n", [40, 90])
def test_the_saddlepoint_agrees_with_the_exact_sum(n, monkeypatch):
    values = [random.Random(n + place).gauss(0.4, 0.2) for place in range(n)]
    values = [min(1.0, max(0.0, value)) for value in values]
    exact = weighted_mean_bound(values, lowest=-0.3, alpha=0.025)
    monkeypatch.setattr(bounded_mean, "LARGEST_EXACT_SUM", 0)
    assert weighted_mean_bound(values, lowest=-0.3, alpha=0.025) == pytest.approx(exact, abs=5e-4)


def test_at_its_mean_the_saddlepoint_is_the_limit_from_both_sides(monkeypatch):
    monkeypatch.setattr(bounded_mean, "LARGEST_EXACT_SUM", 0)
    around = [positive_part_chance([1.0 + shift, 1.0, 1.0, -1.5, -1.5]) for shift in (-1e-3, 0.0, 1e-3)]
    assert around[0] < around[1] < around[2]
    assert around[1] == pytest.approx((around[0] + around[2]) / 2.0, abs=1e-4)


def test_only_gains_or_only_losses_need_no_chance():
    assert positive_part_chance([1.0, 0.0]) == 1.0
    assert positive_part_chance([-1.0, 0.0]) == 0.0
    assert positive_part_chance([]) == 0.0


def test_nothing_seen_and_nothing_but_the_lowest_say_the_lowest():
    assert weighted_mean_bound([], lowest=-1.0, alpha=0.1) == -1.0
    assert weighted_mean_bound([0.0, 0.0], lowest=0.0, alpha=0.1) == 0.0


@settings(max_examples=40, deadline=None)
@given(VALUES, st.floats(0.01, 0.2))
def test_a_bound_lies_between_the_lowest_and_the_mean_and_falls_with_alpha(values, alpha):
    bound = weighted_mean_bound(values, lowest=0.0, alpha=alpha)
    assert 0.0 <= bound <= math.fsum(values) / len(values) + 1e-9
    assert weighted_mean_bound(values, lowest=0.0, alpha=alpha / 2.0) <= bound + 1e-9
    assert weighted_mean_bound(values, lowest=-0.5, alpha=alpha) <= bound + 1e-9


@settings(max_examples=25, deadline=None)
@given(VALUES, st.floats(0.1, 10.0))
def test_equal_weights_are_no_weights(values, weight):
    plain = weighted_mean_bound(values, lowest=0.0, alpha=0.05)
    weighted = weighted_mean_bound(values, lowest=0.0, alpha=0.05, weights=[weight] * len(values))
    assert weighted == pytest.approx(plain, abs=1e-6)
