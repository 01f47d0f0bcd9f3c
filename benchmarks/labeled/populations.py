"""Populations of known truth: scorers from useless to perfect, rare errors, any base rate, grades and clusters."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from benchmarks.labeled.scored_sets import ScoredSet

Array = NDArray[np.float64]
N_LABELS = (30, 60, 120)
BASE_RATES = (0.02, 0.1, 0.5, 0.9, 0.98)
SIZES = (60, 300, 5000)


@dataclass(frozen=True)
class Population:
    """All cases: what people say of each, its score, and how many cases it stands for where cases are clusters."""

    name: str
    scorer: str
    labels: Array
    scores: Array
    sizes: Array | None = None

    @property
    def truth(self) -> float:
        """The rate that an interval has to hold."""
        return float(np.average(self.labels, weights=self.sizes))


def _graded_by(spread: float) -> Callable[[Array, np.random.Generator], Array]:
    def scores(labels: Array, rng: np.random.Generator) -> Array:
        found: Array = 1.0 / (1.0 + np.exp(-1.5 * (rng.normal(size=len(labels)) + spread * (labels - 0.5))))
        return found

    return scores


def _flipped(share: float) -> Callable[[Array, np.random.Generator], Array]:
    return lambda labels, rng: np.where(rng.random(len(labels)) < share, 1.0 - labels, labels)


def _too_kind(share: float) -> Callable[[Array, np.random.Generator], Array]:
    return lambda labels, rng: np.where(rng.random(len(labels)) < share, 1.0, labels)


SCORERS: dict[str, Callable[[Array, np.random.Generator], Array]] = {
    "useless": lambda labels, rng: rng.random(len(labels)),
    "weak": _graded_by(0.8),
    "useful": _graded_by(1.6),
    "strong": _graded_by(4.0),
    "upside down": lambda labels, rng: 1.0 - _graded_by(1.6)(labels, rng),
    "wrong in 20 %": _flipped(0.2),
    "wrong in 5 %": _flipped(0.05),
    "passes 3 % of the bad": _too_kind(0.03),
    "perfect": lambda labels, rng: labels.copy(),
}


def simulated() -> Iterator[Population]:
    """Pass/fail cases of every base rate, size and scorer; then grades, and clusters of unequal size."""
    for n_cases in SIZES:
        for rate in BASE_RATES:
            labels = np.zeros(n_cases)
            labels[: max(1, min(n_cases - 1, round(rate * n_cases)))] = 1.0
            for scorer, score in SCORERS.items():
                rng = np.random.default_rng([n_cases, round(100 * rate), len(scorer)])
                yield Population(f"{n_cases:,} cases, rate {rate:g}", scorer, labels, score(labels, rng))
    yield from _grades()
    yield from _clusters()


def _grades() -> Iterator[Population]:
    for n_cases in (1000,):
        for shape in ((8.0, 1.0), (1.0, 1.0), (0.2, 0.2), (0.3, 3.0)):
            rng = np.random.default_rng([n_cases, round(10 * shape[0]), round(10 * shape[1])])
            labels = rng.beta(*shape, n_cases)
            for scorer, noise in (("close", 0.1), ("loose", 0.5)):
                scores = np.clip(labels + noise * rng.normal(size=n_cases), 0.0, 1.0)
                yield Population(f"{n_cases:,} grades, Beta {shape[0]:g} {shape[1]:g}", scorer, labels, scores)
        labels = np.where(np.arange(n_cases) < 0.03 * n_cases, 0.0, 0.95)
        scores = np.where(rng.random(n_cases) < 0.5, 0.95, labels)
        yield Population(f"{n_cases:,} grades, 3 % of them 0", "finds half", labels, scores)


def _clusters() -> Iterator[Population]:
    """Cases that come in clusters, all of a cluster labeled together: each cluster is one row with its mean."""
    for n_clusters in (250,):
        for rate in (0.5, 0.9):
            rng = np.random.default_rng([n_clusters, round(100 * rate), 5])
            # What the cases of a cluster share; sizes from 1 to 5.
            own_rate = rng.beta(3.0 * rate, 3.0 * (1.0 - rate), n_clusters)
            sizes = rng.integers(1, 6, n_clusters)
            labels = rng.binomial(sizes, own_rate) / sizes
            scores = np.clip(0.5 * labels + 0.5 * rng.random(n_clusters), 0.0, 1.0)
            yield Population(f"{n_clusters:,} clusters, rate {rate:g}", "useful", labels, scores, sizes.astype(float))


def of_set(scored: ScoredSet) -> Population:
    """A labeled set as a population: its rows are all cases there are."""
    labels, scores = (np.array([getattr(row, field) for row in scored.rows]) for field in ("label", "score"))
    return Population(scored.name, scored.scorer, labels, scores)
