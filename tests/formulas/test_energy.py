"""Energy: hand-checked figures, counters that wrap, and what must hold of any run."""

from __future__ import annotations

from math import inf, nan

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentunit.formulas.sustainability import counter_increase, modeled_cpu_energy, threshold_score, trapezoid

AMOUNTS = st.floats(min_value=0.0, max_value=1e6)


@pytest.mark.parametrize(
    ("used", "threshold", "expected"),
    [
        (0.0, 0.1, 1.0),
        (0.1, 0.1, 1.0),
        (0.2, 0.1, 0.5),  # 0.1 / 0.2
        (1.0, 0.1, 0.1),
        (0.0999, 0.1, 1.0),
    ],
)
def test_score_against_a_threshold(used: float, threshold: float, expected: float) -> None:
    assert threshold_score(used, threshold) == pytest.approx(expected)


@given(AMOUNTS, AMOUNTS, st.floats(min_value=1e-6, max_value=1e6))
def test_using_more_never_scores_better(used: float, more: float, threshold: float) -> None:
    assert 0.0 <= threshold_score(used + more, threshold) <= threshold_score(used, threshold) <= 1.0


@pytest.mark.parametrize(("used", "threshold"), [(-1, 1), (nan, 1), (inf, 1), (1, 0), (1, -1), (1, nan), (1, inf)])
def test_what_cannot_be_scored_is_refused(used: float, threshold: float) -> None:
    with pytest.raises(ValueError, match=r"threshold_score: (used|threshold) must be a finite number"):
        threshold_score(used, threshold)


@pytest.mark.parametrize(
    ("before", "after", "wraps_at", "expected"),
    [(10, 25, 100, 15), (95, 5, 100, 10), (100, 0, 100, 0), (40, 40, 100, 0), (40, 3, None, 3)],
)
def test_counters_that_wrap(before: float, after: float, wraps_at: float | None, expected: float) -> None:
    assert counter_increase(before, after, wraps_at) == expected


@given(st.lists(st.floats(min_value=0, max_value=99.9), min_size=1, max_size=30))
def test_a_wrapping_counter_adds_up_to_what_was_used(steps: list[float]) -> None:
    value, counted = 0.0, 0.0
    for step in steps:
        after = (value + step) % 100
        counted += counter_increase(value, after, 100)
        value = after
    assert counted == pytest.approx(sum(steps), abs=1e-6)


@pytest.mark.parametrize(
    ("before", "after", "elapsed", "expected"),
    [(100, 100, 3.0, 300), (0, 100, 2.0, 100), (50, 150, 0.0, 0), (50, 150, -5.0, 0)],
)
def test_power_over_time(before: float, after: float, elapsed: float, expected: float) -> None:
    assert trapezoid(before, after, elapsed) == expected


@given(AMOUNTS, AMOUNTS)
def test_modelled_energy_is_within_its_range_and_adds_up(one_s: float, other_s: float) -> None:
    one, both = modeled_cpu_energy(one_s), modeled_cpu_energy(one_s + other_s)
    assert one.low_j <= one.value_j <= one.high_j
    assert both.value_j == pytest.approx(one.value_j + modeled_cpu_energy(other_s).value_j)


def test_negative_cpu_time_is_refused() -> None:
    with pytest.raises(ValueError, match="modeled_cpu_energy: busy_cpu_s must be a finite number of 0 or more"):
        modeled_cpu_energy(-0.1)
