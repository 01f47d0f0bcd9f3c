"""Many draws of cases at once: as ``draw_for_labeling`` draws, and plainly at random."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from agentunit.formulas.labeled import N_STRATA

Positions = NDArray[np.int64]
Draw = Callable[[NDArray[np.float64], int, int, np.random.Generator], Positions]


def simple_draws(scores: NDArray[np.float64], n: int, n_draws: int, rng: np.random.Generator) -> Positions:
    """Rows of n positions, every set of n being as likely."""
    return _subsets(n_draws, len(scores), n, rng)


def stratified_draws(scores: NDArray[np.float64], n: int, n_draws: int, rng: np.random.Generator) -> Positions:
    """Rows of the first n positions, in order, of a draw in rounds of one case a stratum.

    Cases beyond a multiple of the number of strata come last, and are left out while others are left.
    """
    n_cases = len(scores)
    # Equal scores have no order; another one for every part of the draws.
    order = np.lexsort((rng.random(n_cases), scores))
    per_stratum = n_cases // N_STRATA
    n_even = per_stratum * N_STRATA
    n_rounds = min(per_stratum, -(-n // N_STRATA))
    ranks = _subsets(n_draws * N_STRATA, per_stratum, n_rounds, rng).reshape(n_draws, N_STRATA, n_rounds)
    ranks = ranks + per_stratum * np.arange(N_STRATA)[None, :, None]
    # Members of a subset are in no random order, and neither are the strata of a round.
    rounds = rng.permuted(rng.permuted(ranks, axis=2).transpose(0, 2, 1), axis=2)
    places = rounds.reshape(n_draws, -1)[:, :n]
    left_over = rng.permuted(_subsets(n_draws, n_cases, n_cases - n_even, rng), axis=1)
    for column in np.sort(left_over, 1).T:
        places = places + (places >= column[:, None])
    places = np.concatenate([places, left_over[:, : n - places.shape[1]]], 1)
    found: Positions = order[places]
    return found


def _subsets(n_rows: int, n_cases: int, n: int, rng: np.random.Generator) -> Positions:
    """Rows of n different numbers below ``n_cases`` (Floyd's algorithm, all rows at once)."""
    if n * 4 > n_cases:
        return np.argsort(rng.random((n_rows, n_cases)), axis=1)[:, :n]
    rows = np.empty((n_rows, n), dtype=np.int64)
    for column, last in enumerate(range(n_cases - n, n_cases)):
        drawn = rng.integers(0, last + 1, n_rows)
        taken = (rows[:, :column] == drawn[:, None]).any(1)
        rows[:, column] = np.where(taken, last, drawn)
    return rows
