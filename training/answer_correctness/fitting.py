"""Logistic regression whose signs are fixed: evidence for an answer never lowers its score."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from agentunit_local.answer_matching.aliases import word_set
from agentunit_local.answer_matching.features import NAMES
from scipy.optimize import minimize

AGAINST = word_set(
    """
    only_asked_words negated left_open twisted namesake date_near date_other number_other declines
    declines_but_contained names_in_opening
    """
)
EITHER_WAY = word_set(
    """
    references reference_length answer_length asks_when asks_who asks_where asks_number asks_meaning asks_list
    """
)


@dataclass(frozen=True)
class Fit:
    """A constant and a weight for each feature."""

    constant: float
    weights: dict[str, float]

    def probabilities(self, features: np.ndarray, names: Sequence[str]) -> np.ndarray:
        """The probability of each row of a table whose columns are ``names``."""
        weights = np.array([self.weights[name] for name in names])
        return np.asarray(1 / (1 + np.exp(-(self.constant + features @ weights))))


def table(features: Sequence[Mapping[str, float]], names: Sequence[str] = NAMES) -> np.ndarray:
    """Features as rows and columns."""
    return np.array([[row[name] for name in names] for row in features], dtype=float).reshape(len(features), len(names))


def fit(
    features: np.ndarray,
    labels: np.ndarray,
    row_weights: np.ndarray,
    names: Sequence[str] = NAMES,
    penalty: float = 1e-4,
) -> Fit:
    """The weights of least weighted log loss plus ``penalty`` times the squared weights of standardised features."""
    mean, spread = features.mean(axis=0), features.std(axis=0)
    spread[spread == 0] = 1.0
    scaled = (features - mean) / spread
    share = row_weights / row_weights.sum()
    signs = 2.0 * labels - 1.0

    def loss(parameters: np.ndarray) -> tuple[float, np.ndarray]:
        margin = signs * (parameters[0] + scaled @ parameters[1:])
        value = float(share @ np.logaddexp(0, -margin) + penalty * parameters[1:] @ parameters[1:])
        pull = -share * signs / (1 + np.exp(margin))
        gradient = np.concatenate([[pull.sum()], scaled.T @ pull + 2 * penalty * parameters[1:]])
        return value, gradient

    bounds = [(None, None), *(_bounds(name) for name in names)]
    found = minimize(
        loss, np.zeros(len(names) + 1), jac=True, bounds=bounds, method="L-BFGS-B", options={"maxiter": 2000}
    )
    weights = found.x[1:] / spread
    constant = float(found.x[0] - weights @ mean)
    return Fit(constant, {name: float(weight) for name, weight in zip(names, weights, strict=True)})


def recentred(fitted: Fit, features: np.ndarray, labels: np.ndarray, names: Sequence[str]) -> Fit:
    """The same weights with the constant that makes the mean score equal the share of correct rows."""
    odds = features @ np.array([fitted.weights[name] for name in names])
    low, high = -20.0, 20.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if (1 / (1 + np.exp(-(odds + middle)))).mean() < labels.mean() else (low, middle)
    return Fit((low + high) / 2, fitted.weights)


def _bounds(name: str) -> tuple[float | None, float | None]:
    if name in EITHER_WAY:
        return None, None
    return (None, 0.0) if name in AGAINST else (0.0, None)
