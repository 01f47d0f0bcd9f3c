"""How far to rely on a score where labels are few: weights that are fitted on other labels than those they correct.

A label y is corrected to y − w·u, u being the case's score minus the mean score of all cases. The mean over all cases
is that of the labels, whatever w is, and the spread is smaller where the score tells something. A weight that was
fitted on the label that it corrects would make corrected labels look closer to each other than they are.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from agentunit.formulas.bounded_mean import approximate_bound

# Each weight is fitted on nine tenths of the labels and used for the rest.
N_FOLDS = 10
# Parts of the least-squares slope that are tried. Less than the whole keeps the range of corrected labels small.
_PARTS = tuple(step / 10.0 for step in range(11))
# A score that promises to narrow the bound by less is not used: below it the choice would follow chance.
LEAST_GAIN = 0.02
_LEAST_SPREAD = 1e-9
# Weights suit 95 % intervals. Were they to follow the confidence, a surer interval could lie beside a less sure one.
_CRITICAL = 1.96


@dataclass(frozen=True, slots=True)
class Corrected:
    """Corrected labels, the lowest that any could be, and the mean weight of the score in them."""

    values: list[float]
    lowest: float
    weight: float


def corrected_labels(
    labels: Sequence[float],
    centered_scores: Sequence[float],
    score_range: tuple[float, float],
    sizes: Sequence[float] | None = None,
) -> Corrected:
    """The labels (0 to 1) corrected by the weights that promise the highest lower bound of their mean.

    `centered_scores` and `score_range` are relative to the mean score of all cases. `sizes` says how much each label
    counts. Folds are dealt in the order given.
    """
    n = len(labels)
    if score_range[1] - score_range[0] <= _LEAST_SPREAD:
        return Corrected(list(labels), 0.0, 0.0)
    pseudo_labels, pseudo_scores, stretch = _as_equals(labels, centered_scores, sizes)
    whole = _power_sums(zip(pseudo_labels, pseudo_scores, strict=True))
    weights = []
    for fold in range(min(N_FOLDS, n)):
        held_out = zip(pseudo_labels[fold::N_FOLDS], pseudo_scores[fold::N_FOLDS], strict=True)
        others = [total - part for total, part in zip(whole, _power_sums(held_out), strict=True)]
        weights.append(_best_weight(others, n, score_range, stretch))
    # A score that only some folds would use hangs on a few labels, which would be the ones that stay uncorrected.
    if not all(weights):
        return Corrected(list(labels), 0.0, 0.0)
    values = [
        label - weights[place % N_FOLDS] * score
        for place, (label, score) in enumerate(zip(labels, centered_scores, strict=True))
    ]
    lowest = min(-max(weight * score_range[0], weight * score_range[1]) for weight in weights)
    return Corrected(values, lowest, math.fsum(weights[place % N_FOLDS] for place in range(n)) / n)


def _as_equals(
    labels: Sequence[float], scores: Sequence[float], sizes: Sequence[float] | None
) -> tuple[list[float], list[float], float]:
    """Values of equal size whose mean has the spread of the weighted mean, and the largest size beside the mean one."""
    if sizes is None:
        return list(labels), list(scores), 1.0
    total = math.fsum(sizes)
    mean_size = total / len(sizes)
    columns = []
    for column in (labels, scores):
        mean = math.fsum(size * each for size, each in zip(sizes, column, strict=True)) / total
        columns.append([mean + size / mean_size * (each - mean) for size, each in zip(sizes, column, strict=True)])
    return columns[0], columns[1], max(sizes) / mean_size


def _power_sums(pairs: Iterable[tuple[float, float]]) -> list[float]:
    """The count and the sums of y, u, y², yu, u², y³, y²u, yu² and u³."""
    rows = [(1.0, y, u, y * y, y * u, u * u, y * y * y, y * y * u, y * u * u, u * u * u) for y, u in pairs]
    return [math.fsum(column) for column in zip(*rows, strict=True)] if rows else [0.0] * 10


def _best_weight(sums: Sequence[float], n: int, score_range: tuple[float, float], stretch: float) -> float:
    """The weight with the least distance from the mean down to the bound, by the moments of other labels."""
    if sums[0] < 2.0:
        return 0.0
    y, u, yy, yu, uu, yyy, yyu, yuu, uuu = (each / sums[0] for each in sums[1:])
    spread = uu - u * u
    if spread <= _LEAST_SPREAD:
        return 0.0
    slope = (yu - y * u) / spread
    best, least = 0.0, math.inf
    for part in _PARTS:
        w = part * slope
        mean = y - w * u
        second = yy - 2.0 * w * yu + w * w * uu
        third = yyy - 3.0 * w * yyu + 3.0 * w * w * yuu - w**3 * uuu
        lowest = mean + stretch * (-max(w * score_range[0], w * score_range[1]) - mean)
        moments = (mean, max(0.0, second - mean * mean), third - 3.0 * mean * second + 2.0 * mean**3)
        distance = mean - approximate_bound(*moments, n, lowest, _CRITICAL)
        if part == 0.0:
            least = (1.0 - LEAST_GAIN) * distance
        elif distance < least:
            best, least = w, distance
    return best
