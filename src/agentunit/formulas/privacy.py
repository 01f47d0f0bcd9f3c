"""Privacy as numbers: how much leaked, and how much of a budget is left."""

from __future__ import annotations

from collections.abc import Iterable
from math import isfinite, prod
from typing import NamedTuple


def kept_private(findings: Iterable[tuple[float, float]]) -> float:
    """What remains of 1 after each finding took its share: the product of ``1 − weight · confidence``.

    Each finding is ``(weight, confidence)``, both from 0 to 1. The result is from 0 to 1: 1 without findings, 0 as soon
    as one is certain and weighs all. One more finding never raises it, and their order does not matter.

    >>> kept_private([(0.5, 0.5), (1.0, 0.5)])   # 0.75 · 0.5
    0.375
    >>> kept_private([])
    1.0
    """
    pairs = list(findings)
    for weight, confidence in pairs:
        if not (0.0 <= weight <= 1.0 and 0.0 <= confidence <= 1.0):
            raise ValueError(
                f"kept_private: weight and confidence must be from 0 to 1; received {weight!r} and {confidence!r}"
            )
    # Sorted, so that rounding is the same whatever the order was.
    return prod(sorted(1.0 - weight * confidence for weight, confidence in pairs)) if pairs else 1.0


def share_held_back(n_leaked: int, n_available: int) -> float | None:
    """``1 − leaked / available``, from 0 to 1; ``None`` when there was nothing to hold back.

    >>> share_held_back(1, 4), share_held_back(0, 0)
    (0.75, None)
    """
    if not 0 <= n_leaked <= n_available:
        raise ValueError(f"share_held_back: leaked must be from 0 to available; received {n_leaked} of {n_available}")
    return 1.0 - n_leaked / n_available if n_available else None


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
