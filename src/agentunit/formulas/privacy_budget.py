"""How much of a differential-privacy budget is left."""

from __future__ import annotations

from math import isfinite
from typing import NamedTuple


class BudgetState(NamedTuple):
    """A budget after some spending. ``remaining`` is negative once more was spent than there was."""

    remaining: float
    utilization: float
    exceeded: bool
    warning: bool
    share_left: float


def budget_state(total: float, spent: float, warn_at: float = 0.8) -> BudgetState:
    """``remaining = total − spent``, ``utilization = spent / total``, ``share_left = max(0, remaining) / total``.

    Exceeded means more than all of it; the warning begins at a utilization of ``warn_at``.

    >>> budget_state(4.0, 1.0)
    BudgetState(remaining=3.0, utilization=0.25, exceeded=False, warning=False, share_left=0.75)
    >>> budget_state(2.0, 2.0).exceeded, budget_state(2.0, 3.0).share_left
    (False, 0.0)
    """
    if not (isfinite(total) and total > 0):
        raise ValueError(f"budget_state: total must be a finite number above 0; received {total!r}")
    if not (isfinite(spent) and spent >= 0):
        raise ValueError(f"budget_state: spent must be a finite number of 0 or more; received {spent!r}")
    remaining = total - spent
    utilization = spent / total
    return BudgetState(remaining, utilization, spent > total, utilization >= warn_at, max(0.0, remaining) / total)
