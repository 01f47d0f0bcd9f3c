from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentunit.addons.review.labeling.calibrating import fit_isotonic
from agentunit.formulas.statistics import Knot, mapped

UNIT = st.floats(0, 1, allow_nan=False)


@given(pairs=st.lists(st.tuples(UNIT, UNIT), min_size=1, max_size=30), at=st.tuples(UNIT, UNIT))
@settings(max_examples=60)
def test_a_mapping_never_falls_and_stays_between_0_and_1(
    pairs: list[tuple[float, float]], at: tuple[float, float]
) -> None:
    knots = fit_isotonic(*zip(*pairs, strict=True))
    assert all(a.score < b.score and a.value <= b.value + 1e-12 for a, b in pairwise(knots))
    low, high = sorted(at)
    assert 0.0 < mapped(low, knots) <= mapped(high, knots) + 1e-12 < 1.0


def test_many_pairs_pull_less_towards_the_middle() -> None:
    (knot,) = fit_isotonic([0.5] * 9, [1.0] * 9)
    assert knot.value == pytest.approx(0.95)
    assert fit_isotonic([0.5], [1.0]) == [Knot(0.5, 0.75)]
    assert fit_isotonic([], []) == []
    assert mapped(0.3, []) == 0.3


@pytest.mark.parametrize(("scores", "targets"), [([0.1], []), ([0.1], [1.5]), ([float("nan")], [1.0])])
def test_what_is_no_pair_is_refused(scores: list[float], targets: list[float]) -> None:
    with pytest.raises(ValueError, match=r"^fit_isotonic:"):
        fit_isotonic(scores, targets)
