"""How much an answer keeps to itself: leakage of personal data, and the share of sensitive values held back."""

from __future__ import annotations

from collections.abc import Iterable
from math import prod


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
