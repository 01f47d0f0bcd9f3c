"""Evidence that may be looked at after every value."""

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentunit.formulas.bounded_mean import MeanEvidence


def capital(values, threshold, side="above", **bounds):
    evidence = MeanEvidence(threshold, side, **bounds)
    for value in values:
        evidence.add(value)
    return evidence


def grown(*values, **bounds):
    """The capital after some values."""
    return math.exp(capital(*values, **bounds).log_capital())


@pytest.mark.parametrize(
    ("values", "threshold", "expected"),
    [
        ([], 0.5, 1.0),
        # Values at the threshold change nothing.
        ([0.5, 0.5], 0.5, 1.0),
        # One win at even odds multiplies each share of the capital by 1 + its bet: the mean bet is 0.2635.
        ([1.0], 0.5, 1.2635),
        ([0.0], 0.5, 0.7365),
        # No mean lies above 1, and any value above 0 refutes a mean of at most 0.
        ([1.0, 1.0], 1.0, 1.0),
        ([0.0, 0.0], 0.0, 1.0),
    ],
)
def test_capital_by_hand(values, threshold, expected):
    assert grown(values, threshold) == pytest.approx(expected, abs=1e-4)


def test_a_value_above_a_threshold_of_zero_settles_it():
    assert capital([0.0, 0.01], 0.0).shows(1e-6)


@given(st.lists(st.floats(0, 1), max_size=30), st.floats(0.05, 0.95))
def test_below_is_above_of_the_mirrored_values(values, threshold):
    mirrored = grown([1 - value for value in values], 1 - threshold)
    assert grown(values, threshold, "below") == pytest.approx(mirrored, rel=1e-6)


@given(st.lists(st.floats(-2, 2), max_size=30), st.floats(-1.5, 1.5))
def test_the_unit_does_not_matter(values, threshold):
    scaled = grown([(value + 2) / 4 for value in values], (threshold + 2) / 4)
    assert grown(values, threshold, low=-2.0, high=2.0) == pytest.approx(scaled, rel=1e-6)


@given(st.floats(0.05, 0.95))
def test_capital_is_not_expected_to_grow_at_the_threshold(threshold):
    # Of a 1 with the chance of the threshold, and a 0 else.
    expected = threshold * grown([1.0], threshold) + (1 - threshold) * grown([0.0], threshold)
    assert expected == pytest.approx(1.0)


def test_looking_after_every_value_raises_no_more_false_alarms_than_allowed():
    source = random.Random(5)
    alarms = 0
    for _ in range(400):
        evidence = MeanEvidence(0.8, "below")
        for _ in range(200):
            evidence.add(float(source.random() < 0.8))
        alarms += evidence.shows(0.05)
    # 20 are allowed; with a fixed seed the count is always the same.
    assert alarms <= 20


def test_a_plain_loss_is_shown_soon():
    assert capital([0.0] * 9 + [0.5] * 57, 0.5, "below").shows(0.05)
    assert not capital([0.0] * 3 + [0.5] * 63, 0.5, "below").shows(0.05)


def test_how_many_more_are_needed():
    assert capital([0.5] * 40, 0.5).values_needed(0.05) is None
    some = capital([1.0, 1.0, 0.0] * 10, 0.5)
    needed = some.values_needed(0.05)
    assert needed is not None
    assert capital([1.0, 1.0, 0.0] * (10 + needed // 2), 0.5).shows(0.05)


@pytest.mark.parametrize("value", [1.5, -0.1, float("nan")])
def test_a_value_out_of_range_is_refused(value):
    with pytest.raises(ValueError, match="value must be from 0 to 1"):
        capital([value], 0.5)
