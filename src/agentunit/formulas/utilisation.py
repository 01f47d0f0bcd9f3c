"""How well a resource is used, against what it is meant to be used."""

from __future__ import annotations

from math import isfinite

LEAST_OF_TARGET = 0.5
MOST_OF_TARGET = 1.2


def utilisation_score(used: float, target: float) -> float:
    """With ``r = used / target``: ``r / 0.5`` below 0.5, 1.0 from 0.5 to 1.2, ``max(0, 1 − (r − 1.2))`` above.

    Nothing used scores 0.0, and so does 2.2 times the target and more.

    >>> [utilisation_score(used, 80.0) for used in (20.0, 40.0, 96.0)]
    [0.5, 1.0, 1.0]
    """
    if not (isfinite(target) and target > 0):
        raise ValueError(f"utilisation_score: target must be a finite number above 0; received {target!r}")
    if not (isfinite(used) and used >= 0):
        raise ValueError(f"utilisation_score: used must be a finite number of 0 or more; received {used!r}")
    ratio = used / target
    if ratio < LEAST_OF_TARGET:
        return ratio / LEAST_OF_TARGET
    return 1.0 if ratio <= MOST_OF_TARGET else max(0.0, 1.0 - (ratio - MOST_OF_TARGET))
