"""How often an interval holds the truth, and how wide it is, over many draws from one population."""

from __future__ import annotations

import math

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from benchmarks.labeled.draws import Draw
from benchmarks.labeled.populations import Population
from benchmarks.labeled.vectorized import labeled_rates

Array = NDArray[np.float64]
_NORMAL = 1.959963984540054
_BOOTSTRAP_RESAMPLES = 500
_CHUNK = 1000


class Cell(Struct, frozen=True):
    """Coverage and median width for one population and number of labels."""

    population: str
    scorer: str
    n_cases: int
    n_labels: int
    rate: float
    mean_score: float
    correlation: float
    n_draws: int
    coverage: float
    coverage_alone: float
    coverage_ppi: float
    coverage_bootstrap: float
    width: float
    width_alone: float
    too_high: float
    too_low: float

    @property
    def ratio(self) -> float:
        """The width beside that of labels alone."""
        return self.width / self.width_alone if self.width_alone else 1.0

    @property
    def ideal(self) -> float:
        """What that ratio would be if the normal law held: √(1 − ρ²(1 − n/N))."""
        return math.sqrt(1.0 - self.correlation**2 * (1.0 - self.n_labels / self.n_cases))


def measure(population: Population, n: int, n_draws: int, draw: Draw, seed: int = 0) -> Cell:
    """Draw n labels so many times, and count."""
    rng = np.random.default_rng([seed, n, len(population.labels)])
    centered = population.scores - np.average(population.scores, weights=population.sizes)
    reach = (float(centered.min()), float(centered.max()))
    n_cases = len(population.labels)
    tallies: dict[str, list[Array]] = {}

    def tally(name: str, low: Array, high: Array) -> None:
        tallies.setdefault(name, []).append(np.stack([low, high]))

    for done in range(0, n_draws, _CHUNK):
        places = draw(population.scores, n, min(_CHUNK, n_draws - done), rng)
        labels, scores = population.labels[places], centered[places]
        sizes = None if population.sizes is None else population.sizes[places]
        ours = labeled_rates(labels, scores, reach, n_cases, sizes=sizes)
        alone = labeled_rates(labels, 0.0 * scores, (0.0, 0.0), n_cases, sizes=sizes)
        tally("ours", ours.low, ours.high)
        tally("alone", alone.low, alone.high)
        tally("ppi", *_ppi(labels, scores, n_cases))
        tally("bootstrap", *_bootstrap(labels, scores, rng))
    bounds = {name: np.concatenate(parts, 1) for name, parts in tallies.items()}
    truth = population.truth
    low, high = bounds["ours"]
    defined = population.scores.std() > 0.0 and population.labels.std() > 0.0
    return Cell(
        population=population.name,
        scorer=population.scorer,
        n_cases=n_cases,
        n_labels=n,
        rate=tidy(truth),
        mean_score=tidy(float(np.average(population.scores, weights=population.sizes))),
        correlation=tidy(float(np.corrcoef(population.labels, population.scores)[0, 1])) if defined else 0.0,
        n_draws=n_draws,
        coverage=_coverage(bounds["ours"], truth),
        coverage_alone=_coverage(bounds["alone"], truth),
        coverage_ppi=_coverage(bounds["ppi"], truth),
        coverage_bootstrap=_coverage(bounds["bootstrap"], truth),
        width=tidy(float(np.median(high - low))),
        width_alone=tidy(float(np.median(bounds["alone"][1] - bounds["alone"][0]))),
        too_high=tidy(float((low > truth + 1e-9).mean())),
        too_low=tidy(float((high < truth - 1e-9).mean())),
    )


def _coverage(bounds: Array, truth: float) -> float:
    return tidy(float(((bounds[0] <= truth + 1e-9) & (truth <= bounds[1] + 1e-9)).mean()))


def tidy(value: float) -> float:
    """A figure as it is kept."""
    return round(value, 5) + 0.0


def _ppi(labels: Array, scores: Array, n_cases: int) -> tuple[Array, Array]:
    """Textbook PPI++: power tuning on the same labels, the normal law, unlabeled cases as a second sample.

    Source: Angelopoulos, Duchi and Zrnic, arXiv:2311.01453 (2023).
    """
    n, n_unlabeled = labels.shape[1], n_cases - labels.shape[1]
    unlabeled_mean = -scores.sum(1) / max(1, n_unlabeled)
    weight = _slope(labels, scores) / (1.0 + n / max(1, n_unlabeled))
    rectified = labels - weight[:, None] * scores
    rate = weight * unlabeled_mean + rectified.mean(1)
    variance = rectified.var(1, ddof=1) / n + weight**2 * scores.var(1, ddof=1) / max(1, n_unlabeled)
    margin = _NORMAL * np.sqrt(variance)
    return rate - margin, rate + margin


def _bootstrap(labels: Array, scores: Array, rng: np.random.Generator) -> tuple[Array, Array]:
    """The percentile bootstrap of the regression estimate; all draws share the resampled places."""
    n = labels.shape[1]
    counts = rng.multinomial(n, np.full(n, 1.0 / n), _BOOTSTRAP_RESAMPLES).T / n
    y, u = labels @ counts, scores @ counts
    spread = (scores * scores) @ counts - u * u
    slope = np.where(spread > 1e-9, ((labels * scores) @ counts - y * u) / np.maximum(spread, 1e-9), 0.0)
    low, high = np.quantile(y - slope * u, [0.025, 0.975], axis=1)
    return low, high


def _slope(labels: Array, scores: Array) -> Array:
    deviation = scores - scores.mean(1, keepdims=True)
    spread = (deviation**2).sum(1)
    found: Array = np.where(spread > 1e-9, (labels * deviation).sum(1) / np.maximum(spread, 1e-9), 0.0)
    return found
