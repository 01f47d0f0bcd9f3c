"""Components of variance: what part of the noise in judged scores is the judge's."""

from __future__ import annotations

import math
import random
from statistics import fmean, variance

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentunit.formulas.repeats import JudgeVariance, Spread

VALUES = st.floats(0, 1, allow_nan=False)
ANSWER = st.lists(VALUES, min_size=1, max_size=4)
CASE = st.lists(ANSWER, min_size=1, max_size=3)


def spread_of(cases: list[list[list[float]]]) -> Spread:
    noise = JudgeVariance()
    for answers in cases:
        noise.add(answers)
    return noise.spread()


# By hand: w is the judge's variance, S² that of the cases' values.
TABLE = {
    "nothing": ([], (None, None, None, None)),
    "one case, judged once": ([[[0.5]]], (None, None, None, None)),
    "one case, judged twice": ([[[0.0, 1.0]]], (math.sqrt(0.5), None, None, None)),
    "nothing repeated": ([[[0.0]], [[1.0]]], (None, None, math.sqrt(0.5), None)),
    # Values 0.25 and 0.75: S² = 0.125; w = 0.125 a case, half of it in a mean of two.
    "judged twice": ([[[0.0, 0.5]], [[0.5, 1.0]]], (math.sqrt(0.125), None, 0.25, 0.5)),
    "a steady judge": ([[[0.0, 0.0]], [[1.0, 1.0]]], (0.0, None, math.sqrt(0.5), 0.0)),
    "all alike": ([[[0.5, 0.5]], [[0.5, 0.5]]], (0.0, None, 0.0, None)),
    # An agent whose two answers score 0 and 1 in each case, by a steady judge: within 0.5, and the cases are equal.
    "the agent alone": (
        [[[0.0, 0.0], [1.0, 1.0]], [[1.0, 1.0], [0.0, 0.0]]],
        (0.0, math.sqrt(0.5), 0.0, None),
    ),
    # Scores 0.5 and 0.5 in each case: the agent shows nothing beyond the judge, whose noise is all there is.
    "the judge alone": ([[[0.0, 1.0], [0.0, 1.0]], [[0.0, 1.0], [1.0, 0.0]]], (math.sqrt(0.5), 0.0, 0.0, None)),
}


@pytest.mark.parametrize(("cases", "expected"), TABLE.values(), ids=TABLE.keys())
def test_by_hand(cases: list[list[list[float]]], expected: tuple[float | None, ...]) -> None:
    for found, wanted in zip(spread_of(cases), expected, strict=True):
        assert found == (None if wanted is None else pytest.approx(wanted))


@given(st.lists(st.lists(VALUES, min_size=3, max_size=3), min_size=2, max_size=8))
def test_equals_the_analysis_of_variance_of_a_balanced_table(cases: list[list[float]]) -> None:
    found = spread_of([[values] for values in cases])
    within = fmean(variance(values) for values in cases)
    between = variance([fmean(values) for values in cases])
    assert found.judge_sd == pytest.approx(math.sqrt(within), abs=1e-9)
    assert found.case_sd == pytest.approx(math.sqrt(max(0.0, between - within / 3)), abs=1e-6)


@given(st.lists(CASE, max_size=8))
def test_parts_are_never_negative_and_the_share_is_a_share(cases: list[list[list[float]]]) -> None:
    found = spread_of(cases)
    assert all(part is None or part >= 0 for part in found)
    assert found.judge_share is None or found.judge_share <= 1
    assert (found.case_sd is None) == (len(cases) < 2)


@given(st.lists(CASE, min_size=2, max_size=6), st.integers(0, 2**32))
def test_the_order_of_cases_does_not_matter(cases: list[list[list[float]]], seed: int) -> None:
    shuffled = list(cases)
    random.Random(seed).shuffle(shuffled)
    for one, other in zip(spread_of(cases), spread_of(shuffled), strict=True):
        assert one == (None if other is None else pytest.approx(other, abs=1e-6))


def test_finds_what_went_into_a_simulation() -> None:
    draw = random.Random(7)
    noise = JudgeVariance()
    for _ in range(4000):
        case = draw.gauss(0.5, 0.2)
        answers = [draw.gauss(case, 0.1) for _ in range(2)]
        noise.add([[draw.gauss(answer, 0.15) for _ in range(3)] for answer in answers])
    found = noise.spread()
    assert found.judge_sd == pytest.approx(0.15, rel=0.03)
    assert found.agent_sd == pytest.approx(0.1, rel=0.08)
    assert found.case_sd == pytest.approx(0.2, rel=0.05)
    # A case's value is the mean of six judgments of two answers.
    whole = 0.2**2 + 0.1**2 / 2 + 0.15**2 / 6
    assert found.judge_share == pytest.approx(0.15**2 / 6 / whole, rel=0.08)
    assert noise.most_repeats == 3


def test_what_is_no_number_is_refused() -> None:
    with pytest.raises(ValueError, match=r"JudgeVariance: answers\[0\]"):
        JudgeVariance().add([[math.nan]])
