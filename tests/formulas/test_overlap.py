from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import f1_score

from agentunit.formulas.text import factual_overlap

COUNT = st.integers(0, 30)


@pytest.mark.parametrize(
    ("tp", "fp", "fn", "expected"),
    [(3, 0, 0, 1.0), (0, 2, 1, 0.0), (2, 1, 1, 2 / 3), (1, 0, 1, 1 / 1.5), (1, 3, 0, 1 / 2.5)],
)
def test_by_hand(tp: int, fp: int, fn: int, expected: float) -> None:
    assert factual_overlap(tp, fp, fn) == pytest.approx(expected)


def test_no_facts_no_value_and_no_negative_counts() -> None:
    assert factual_overlap(0, 0, 0) is None
    with pytest.raises(ValueError, match="counts must be 0 or more; received 1, -1, 0"):
        factual_overlap(1, -1, 0)


@given(COUNT, COUNT, COUNT)
def test_it_is_the_f1_of_scikit_learn(tp: int, fp: int, fn: int) -> None:
    if tp + fp + fn:
        labels = [1] * tp + [0] * fp + [1] * fn
        said = [1] * tp + [1] * fp + [0] * fn
        assert factual_overlap(tp, fp, fn) == pytest.approx(f1_score(labels, said, zero_division=0.0))
