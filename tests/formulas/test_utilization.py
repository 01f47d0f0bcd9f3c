"""The catalog's scoring of resources: the corners of the curve, and its shape everywhere."""

from __future__ import annotations

from math import inf, nan

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentunit.formulas.sustainability import utilization_score


@pytest.mark.parametrize(
    ("used", "expected"),
    [
        (0.0, 0.0),
        (20.0, 0.5),  # r = 0.25: 0.25 / 0.5
        (40.0, 1.0),  # r = 0.5
        (80.0, 1.0),
        (96.0, 1.0),  # r = 1.2
        (136.0, 0.5),  # r = 1.7: 1 − 0.5
        (176.0, 0.0),  # r = 2.2
        (1e9, 0.0),
    ],
)
def test_hand_checked(used: float, expected: float) -> None:
    assert utilization_score(used, 80.0) == pytest.approx(expected)


@given(
    st.floats(min_value=0, max_value=10), st.floats(min_value=0, max_value=10), st.floats(min_value=0.01, max_value=100)
)
def test_better_towards_the_target_from_both_sides(one: float, other: float, target: float) -> None:
    less, more = sorted((one, other))
    scores = utilization_score(less * target, target), utilization_score(more * target, target)
    assert all(0.0 <= score <= 1.0 for score in scores)
    if more <= 1.0:
        assert scores[0] <= scores[1] + 1e-9
    if less >= 1.0:
        assert scores[1] <= scores[0] + 1e-9


@pytest.mark.parametrize(("used", "target"), [(1, 0), (1, -1), (1, nan), (-1, 1), (inf, 1)])
def test_what_cannot_be_is_refused(used: float, target: float) -> None:
    with pytest.raises(ValueError, match=r"utilization_score: (used|target) must be a finite number"):
        utilization_score(used, target)
