"""The labeled rate: what people would say about all cases, from the labels of some and the scores of all."""

from __future__ import annotations

import math
import random
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from agentunit.formulas.gaffke import weighted_mean_bound
from agentunit.formulas.statistics import check_confidence


@dataclass(frozen=True, slots=True)
class LabeledRate:
    """The rate people would give over all cases, or a difference of two, with its interval.

    ``method`` is "all labeled", "labels alone" or "labels and scores"; ``weight`` is how far the scores were relied
    on: 0.0 for labels alone.
    """

    rate: float
    low: float
    high: float
    n_labels: int
    n_cases: int
    method: str
    weight: float
    confidence: float = 0.95


def labeled_rate(
    scores: Sequence[float | None],
    labels: Mapping[int, float],
    *,
    probabilities: Mapping[int, float] | None = None,
    strata: Sequence[int] | None = None,
    clusters: Sequence[int] | None = None,
    skipped: Collection[int] = (),
    confidence: float = 0.95,
    seed: int = 0,
) -> LabeledRate | None:
    """The rate people would give over all cases, with an interval that holds whatever the scorer's bias.

    `scores` are those of all cases by position, `labels` (0 to 1) of the drawn positions. No labels: None.
    """
    who = "labeled_rate"
    check_confidence(who, confidence)
    n_cases = len(scores)
    _check_labels(who, labels, n_cases)
    if not labels:
        return None
    n = len(labels)
    weights = [1.0 / probabilities[place] for place in labels] if probabilities else [1.0] * n
    values = [float(label) for label in labels.values()]
    rate = math.fsum(w * v for w, v in zip(weights, values, strict=True)) / math.fsum(weights)
    if n == n_cases:
        exact = math.fsum(values) / n
        return LabeledRate(exact, exact, exact, n, n_cases, "all labeled", 0.0, confidence)
    alpha = (1.0 - confidence) / 2.0
    shrink = math.sqrt(1.0 - n / n_cases)
    low = rate - shrink * (rate - weighted_mean_bound(values, lowest=0.0, alpha=alpha, weights=weights))
    mirrored = [1.0 - value for value in values]
    high = rate + shrink * (1.0 - rate - weighted_mean_bound(mirrored, lowest=0.0, alpha=alpha, weights=weights))
    return LabeledRate(rate, low, high, n, n_cases, "labels alone", 0.0, confidence)


def labeled_difference(
    scores: Sequence[float | None],
    labels: Mapping[int, float],
    baseline_scores: Sequence[float | None],
    baseline_labels: Mapping[int, float],
    *,
    confidence: float = 0.95,
    seed: int = 0,
) -> LabeledRate | None:
    """The rate of a run minus that of a baseline over the same cases; no labels of either: None."""
    half = 1.0 - (1.0 - confidence) / 2.0
    ours = labeled_rate(scores, labels, confidence=half, seed=seed)
    theirs = labeled_rate(baseline_scores, baseline_labels, confidence=half, seed=seed)
    if ours is None or theirs is None:
        return None
    return LabeledRate(
        ours.rate - theirs.rate, ours.low - theirs.high, ours.high - theirs.low,
        len(labels.keys() | baseline_labels.keys()), len(scores), "labels alone", 0.0, confidence,
    )  # fmt: skip


def draw_for_labeling(
    scores: Sequence[float | None], n: int, *, seed: int, already: Sequence[int] = ()
) -> list[tuple[int, int, float]]:
    """Which cases to ask people about, in order: (position, stratum, chance of being drawn).

    `already` are positions that were drawn before, in their order; they are left out and the order goes on. The first
    so many of a longer draw are a valid draw of that many.
    """
    order = list(range(len(scores)))
    random.Random(seed).shuffle(order)
    drawn = set(already)
    total = min(len(order), len(drawn) + n)
    return [(place, 0, total / len(order)) for place in order if place not in drawn][:n]


def labels_needed(current: LabeledRate, width: float) -> int | None:
    """About how many more labels would make the interval that narrow; 0 where it is, None where the width is 0."""
    present = current.high - current.low
    if present <= width:
        return 0
    if width <= 0.0:
        return current.n_cases - current.n_labels
    n, total = current.n_labels, current.n_cases
    # The width falls with √(1/n − 1/N).
    wanted = (1.0 / n - 1.0 / total) * (width / present) ** 2
    return max(1, math.ceil(1.0 / (wanted + 1.0 / total)) - n)


def _check_labels(who: str, labels: Mapping[int, float], n_cases: int) -> None:
    for place, label in labels.items():
        if not 0 <= place < n_cases:
            raise ValueError(f"{who}: labels must be of positions from 0 to {n_cases - 1}; received {place!r}")
        if not 0.0 <= label <= 1.0:
            raise ValueError(f"{who}: labels must be from 0 to 1; received {label!r} at position {place}")
