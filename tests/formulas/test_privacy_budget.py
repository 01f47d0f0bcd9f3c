"""The state of a budget: the catalog's numbers, the edges, and what must hold of any spending."""

from __future__ import annotations

from math import inf, nan

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentunit.formulas.privacy import BudgetState, budget_state

AMOUNTS = st.floats(min_value=0.0, max_value=1e6)


@pytest.mark.parametrize(
    ("total", "spent", "expected"),
    [
        (10.0, 3.2, BudgetState(6.8, 0.32, exceeded=False, warning=False, share_left=0.68)),  # the catalog's example
        (10.0, 8.0, BudgetState(2.0, 0.8, exceeded=False, warning=True, share_left=0.2)),
        (10.0, 10.0, BudgetState(0.0, 1.0, exceeded=False, warning=True, share_left=0.0)),
        (4.0, 5.0, BudgetState(-1.0, 1.25, exceeded=True, warning=True, share_left=0.0)),
        (1.0, 0.0, BudgetState(1.0, 0.0, exceeded=False, warning=False, share_left=1.0)),
    ],
)
def test_hand_checked(total: float, spent: float, expected: BudgetState) -> None:
    assert budget_state(total, spent) == pytest.approx(expected)


@given(st.floats(min_value=1e-6, max_value=1e6), AMOUNTS, AMOUNTS)
def test_spending_more_never_leaves_more(total: float, spent: float, more: float) -> None:
    before, after = budget_state(total, spent), budget_state(total, spent + more)
    assert 0.0 <= after.share_left <= before.share_left <= 1.0
    assert after.exceeded >= before.exceeded
    assert after.warning >= before.warning


@pytest.mark.parametrize(("total", "spent"), [(0.0, 0.0), (-1.0, 0.0), (nan, 0.0), (inf, 0.0), (1.0, -0.1), (1.0, nan)])
def test_what_cannot_be_a_budget_is_refused(total: float, spent: float) -> None:
    with pytest.raises(ValueError, match=r"budget_state: (total|spent) must be a finite number"):
        budget_state(total, spent)
