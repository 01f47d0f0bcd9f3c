"""What a comparison of some size could have shown."""

from __future__ import annotations

import random

import pytest

from agentunit.engine.deciding._paired_tests import Sample
from agentunit.formulas.paired import mcnemar_test, paired_permutation_test, smallest_detectable_drop


@pytest.mark.parametrize(("b", "c", "n", "alpha"), [(0, 0, 66, 0.05), (4, 3, 66, 0.05), (10, 12, 200, 0.025)])
def test_the_power_of_the_mcnemar_test_holds_in_simulation(b, c, n, alpha):
    drop = smallest_detectable_drop(b, c, n, alpha=alpha)
    rate, source = (b + c) / (2 * n), random.Random(f"{b} {c} {n}")
    trials, found = 1500, 0
    for _ in range(trials):
        draws = [source.random() for _ in range(n)]
        gains = sum(each < rate for each in draws)
        losses = sum(rate <= each < 2 * rate + drop for each in draws)
        found += mcnemar_test(gains, losses, alternative="less") < alpha
    assert found / trials == pytest.approx(0.8, abs=0.035)


@pytest.mark.parametrize("sd", [0.0, 0.05, 0.2])
def test_the_power_of_the_sign_flip_test_holds_in_simulation(sd):
    source, n = random.Random(7), 66

    def noise():
        return [max(-1.0, min(1.0, source.gauss(0.0, sd))) for _ in range(n)]

    trials, found = 300, 0
    for _ in range(trials):
        gains = noise()
        drop = Sample(gains, 1.0, is_pass_fail=False).smallest_detectable(0.05)
        new = [-1.0 if source.random() < drop else gain for gain in noise()]
        found += paired_permutation_test(new, alternative="less", resamples=400) < 0.05
    assert 0.74 < found / trials < 0.97


def test_so_few_cases_show_nothing():
    assert smallest_detectable_drop(0, 0, 4) is None
    assert Sample([0.1, -0.1, 0.2, 0.0], 1.0, is_pass_fail=False).smallest_detectable(0.05) is None
    for wrong in ({"b": -1}, {"n": 0}, {"alpha": 0.7}, {"power": 1.0}):
        with pytest.raises(ValueError, match="must be"):
            smallest_detectable_drop(**{"b": 0, "c": 0, "n": 9, **wrong})
