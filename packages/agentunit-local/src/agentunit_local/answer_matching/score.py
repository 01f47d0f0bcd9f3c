"""From what speaks for and against an answer to the probability that people would call it correct."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import NamedTuple

COEFFICIENTS_FILE = "coefficients.json"


class Coefficients(NamedTuple):
    """One fitted set: a constant, a weight for each feature, and the names of the signals beyond matching."""

    constant: float
    weights: dict[str, float]
    extra: frozenset[str]


@cache
def coefficient_sets() -> dict[frozenset[str], Coefficients]:
    """The fitted sets by the extra signals that each one takes; the empty set of signals is matching alone."""
    text = files(__package__).joinpath(COEFFICIENTS_FILE).read_text(encoding="utf-8")
    sets = (
        Coefficients(entry["constant"], entry["weights"], frozenset(entry["extra"]))
        for entry in json.loads(text)["sets"].values()
    )
    return {one.extra: one for one in sets}


def correctness(features: Mapping[str, float], extra: Mapping[str, float] | None = None) -> float:
    """The probability, from 0 to 1, that people would call the answer correct; from 0.5 on it counts as correct.

    ``features`` come from :func:`match_features`; ``extra`` are signals of a model, by name. Each combination of
    signals has coefficients of its own: 1 / (1 + e^-z) with z = constant + Σ weight · feature.

    Raises ``ValueError`` for a combination of signals that nothing was fitted for.

    >>> from agentunit_local.answer_matching import match_features
    >>> correctness(match_features("Capital of France?", ["Paris"], "It is Paris.")) > 0.9
    True
    >>> correctness(match_features("Capital of France?", ["Paris"], "It is not Paris.")) < 0.2
    True
    """
    signals = extra or {}
    fitted = coefficient_sets().get(frozenset(signals))
    if fitted is None:
        known = ", ".join(" + ".join(sorted(names)) or "none" for names in coefficient_sets())
        raise ValueError(
            f"correctness: extra must be a combination of signals that was fitted ({known}); received {sorted(signals)}"
        )
    total = fitted.constant
    for name, weight in fitted.weights.items():
        total += weight * (signals[name] if name in signals else features[name])
    return 1 / (1 + math.exp(-total)) if total >= 0 else math.exp(total) / (1 + math.exp(total))
