from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import average_precision_score

from agentunit.formulas.text import average_precision

Y, N = True, False


@pytest.mark.parametrize(
    ("relevant", "expected"),
    [
        ([Y], 1.0),
        ([N], 0.0),
        ([Y, Y, Y], 1.0),
        ([N, N], 0.0),
        ([N, Y], 1 / 2),
        ([Y, N, Y], (1 + 2 / 3) / 2),
        ([N, Y, N, Y], (1 / 2 + 2 / 4) / 2),
        ([N, N, Y, Y], (1 / 3 + 2 / 4) / 2),
    ],
)
def test_by_hand(relevant: list[bool], expected: float) -> None:
    assert average_precision(relevant) == pytest.approx(expected)


def test_an_empty_ranking_has_none() -> None:
    assert average_precision([]) is None


@given(st.lists(st.booleans(), min_size=1, max_size=40).filter(any))
def test_as_scikit_learn_has_it_for_scores_that_fall(relevant: list[bool]) -> None:
    scores = [-place for place in range(len(relevant))]
    assert average_precision(relevant) == pytest.approx(average_precision_score(relevant, scores))


@given(st.lists(st.booleans(), min_size=2, max_size=20), st.data())
def test_moving_a_relevant_entry_forward_never_lowers_it(relevant: list[bool], data: st.DataObject) -> None:
    at = data.draw(st.integers(1, len(relevant) - 1))
    before = average_precision(relevant)
    swapped = list(relevant)
    if relevant[at] and not relevant[at - 1]:
        swapped[at - 1], swapped[at] = swapped[at], swapped[at - 1]
    after = average_precision(swapped)
    assert before is not None
    assert after is not None
    assert 0 <= before <= after <= 1
