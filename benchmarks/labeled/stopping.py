"""What stopping does to coverage: label until the interval is narrow enough, and count how often it holds then."""

from __future__ import annotations

import numpy as np
from msgspec import Struct

from benchmarks.labeled.draws import stratified_draws
from benchmarks.labeled.populations import Population, simulated
from benchmarks.labeled.vectorized import labeled_rates

FIRST_LOOK, LAST_LOOK, STEP = 30, 200, 10
WIDTHS = (0.25, 0.15)
_POPULATION = "5,000 cases"
_SCORERS = ("useless", "useful", "wrong in 5 %")


class Stopped(Struct, frozen=True):
    """Coverage where labeling stopped at the first look that showed an interval of a width or less."""

    population: str
    scorer: str
    width: float
    n_draws: int
    coverage: float
    median_labels: float


def stopping_cells(n_draws: int, step: int = STEP) -> list[Stopped]:
    """Looks after every ``step`` labels from the 30th to the 200th."""
    return [
        measured
        for population in simulated()
        if population.name.startswith(_POPULATION) and population.scorer in _SCORERS
        for measured in measure_stopping(population, n_draws, step)
    ]


def measure_stopping(population: Population, n_draws: int, step: int) -> list[Stopped]:
    """One figure a width."""
    rng = np.random.default_rng(1)
    centered = population.scores - population.scores.mean()
    reach = (float(centered.min()), float(centered.max()))
    places = stratified_draws(population.scores, LAST_LOOK, n_draws, rng)
    labels, scores = population.labels[places], centered[places]
    running = {width: np.ones(n_draws, dtype=bool) for width in WIDTHS}
    holds = {width: np.zeros(n_draws, dtype=bool) for width in WIDTHS}
    asked = {width: np.full(n_draws, LAST_LOOK) for width in WIDTHS}
    for n in range(FIRST_LOOK, LAST_LOOK + 1, step):
        found = labeled_rates(labels[:, :n], scores[:, :n], reach, len(population.labels))
        covers = (found.low <= population.truth + 1e-9) & (population.truth <= found.high + 1e-9)
        for width in WIDTHS:
            stops = running[width] & ((found.high - found.low <= width) | (n == LAST_LOOK))
            holds[width] |= stops & covers
            asked[width] = np.where(stops, n, asked[width])
            running[width] &= ~stops
    return [
        Stopped(population.name, population.scorer, width, n_draws, float(holds[width].mean()),
                float(np.median(asked[width])))
        for width in WIDTHS
    ]  # fmt: skip
