"""Fits what makes probabilities of scores, and thresholds; chosen and measured by leaving out whole sets.

Only sets whose licences allow training shipped weights enter the fit of probabilities. Each set counts alike, and in it
supported and unsupported answers do: a value is a probability for someone who expects half of all answers to be supported.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from agentunit_local.grounding.kinds import KINDS
from agentunit_local.grounding.support import Mix
from sklearn.linear_model import LogisticRegression

from training.groundedness.agreement import auroc, rank_correlation
from training.groundedness.examples import TRAINABLE
from training.groundedness.scored import ScoredAnswer

# The best of seven round mixes on sets that were left out of training, for both sizes: weights fitted freely on few kinds
# of data did worse on the other kinds.
WEIGHTS = {"logit": 2.0, "token": 0.5, "words": 0.6, "figures": 0.5}
OUTSIDE = ("halueval_qa",)
"""Sets that are told apart by shared word pairs alone: they decide nothing."""
_FEWEST_OF_A_LABEL = 8
_BINS = 10
_RESAMPLES = 500


def scaled_mix(rows: Iterable[ScoredAnswer]) -> Mix:
    """The mix with the centres and scales of its parts on the claims of rows, not yet made probabilities."""
    raw: dict[str, list[float]] = defaultdict(list)
    for row in rows:
        for claim in row.claims if row.dataset.startswith(TRAINABLE) and row.dataset not in OUTSIDE else ():
            raw["logit"].append(claim.score.logit)
            raw["token"].append(-(claim.score.worst_logit or 0.0))
            raw["words"].append(claim.compared.words)
            raw["figures"].append(claim.compared.figures)
    centres = {name: round(float(np.mean(values)), 5) for name, values in raw.items()}
    scales = {name: round(float(np.std(values)), 5) for name, values in raw.items()}
    return Mix(centres, scales, WEIGHTS, 1.0, 0.0, {})


def fit_probabilities(rows: Sequence[ScoredAnswer], mix: Mix, memory: float) -> Mix:
    """The mix with slope and intercept fitted on the sets that may train shipped weights.

    ``memory`` corrects the slope of a model that was trained on these very rows and is too sure of them: the slope on
    rows that were left out of its training, by that on rows that were not (1 where the rows were left out).
    """
    fitted = [row for row in rows if row.dataset.startswith(TRAINABLE) and row.dataset not in OUTSIDE]
    sizes = Counter((row.dataset, row.label) for row in fitted)
    values = np.array([row.value(mix) for row in fitted])
    labels = np.array([row.label for row in fitted])
    weights = np.array([1 / max(_FEWEST_OF_A_LABEL, sizes[row.dataset, row.label]) for row in fitted])
    model = LogisticRegression(C=100.0).fit(
        values[:, None], labels, sample_weight=weights * len(weights) / weights.sum()
    )
    slope = float(model.coef_[0, 0]) * memory
    intercept = _centred(slope * values, labels, weights)
    return replace(mix, slope=round(slope, 5), intercept=round(intercept, 5))


def _centred(logits: np.ndarray, labels: np.ndarray, weights: np.ndarray) -> float:
    """What to add to logits so that their mean probability is the mean label."""
    low, high = -20.0, 20.0
    for _ in range(60):
        middle = (low + high) / 2
        mean = np.average(1 / (1 + np.exp(-(logits + middle))), weights=weights)
        low, high = (middle, high) if mean < np.average(labels, weights=weights) else (low, middle)
    return (low + high) / 2


def balanced_threshold(rows: Sequence[ScoredAnswer], value: Callable[[ScoredAnswer], float]) -> float | None:
    """The value at which supported and unsupported answers are rejected and accepted alike, each set counting alike.

    ``None`` where no set has enough answers of both labels.
    """
    sizes = Counter((row.dataset, row.label) for row in rows)
    whole = {dataset for dataset, _ in sizes if min(sizes[dataset, 0.0], sizes[dataset, 1.0]) >= _FEWEST_OF_A_LABEL}
    kept = [(value(row), row.label, 1 / sizes[row.dataset, row.label]) for row in rows if row.dataset in whole]
    if not kept:
        return None
    points = sorted(kept)
    accepted_bad = sum(weight for _, label, weight in points if label == 0)
    rejected_good = 0.0
    for place, label, weight in points:
        if rejected_good >= accepted_bad:
            return place
        if label:
            rejected_good += weight
        else:
            accepted_bad -= weight
    return points[-1][0]


def fit_thresholds(rows: Sequence[ScoredAnswer], mix: Mix) -> dict[str, float]:
    """The threshold of each kind of answer, and of all kinds for one that no set has."""
    binary = [row for row in rows if not row.graded and row.dataset not in OUTSIDE]

    def value(row: ScoredAnswer) -> float:
        return mix.probability(row.value(mix))

    of_all = balanced_threshold(binary, value) or 0.5
    found = {kind: balanced_threshold([row for row in binary if row.kind == kind], value) for kind in KINDS}
    return {kind: round(of_all if place is None else place, 2) for kind, place in found.items()}


def left_out(rows: Sequence[ScoredAnswer], mix: Mix, memory: float) -> dict[str, Any]:
    """Every set as one that neither probabilities nor thresholds were fitted on, and how far probabilities are off."""
    binary = [row for row in rows if not row.graded]
    sets: dict[str, dict[str, Any]] = {}
    pooled: list[tuple[float, float, str]] = []
    for name in sorted({row.dataset for row in rows}):
        others = [row for row in binary if row.dataset != name]
        fitted = fit_probabilities(others, mix, memory)
        thresholds = fit_thresholds(others, fitted)
        here = [row for row in rows if row.dataset == name]
        values = np.array([fitted.probability(row.value(fitted)) for row in here])
        labels = np.array([row.label for row in here])
        sets[name] = {"n": len(here), "trained_on": name.startswith(TRAINABLE)}
        if here[0].graded:
            sets[name] |= {"spearman": round(rank_correlation(labels, values), 4)}
            continue
        said = np.array([value >= thresholds.get(row.kind, 0.5) for value, row in zip(values, here, strict=True)])
        sets[name] |= {
            **_area(labels, values),
            "mean_score": round(float(values.mean()), 3),
            "supported": round(float(labels.mean()), 3),
            "accepted_of_supported": round(float(said[labels == 1].mean()), 3),
            "rejected_of_unsupported": round(float(1 - said[labels == 0].mean()), 3),
        }
        if name not in OUTSIDE:
            pooled += [(value, label, name) for value, label in zip(values.tolist(), labels.tolist(), strict=True)]
    seen = [each for each in pooled if each[2].startswith(TRAINABLE)]
    unseen = [each for each in pooled if not each[2].startswith(TRAINABLE)]
    errors = {"pooled": pooled, "sets that train the model": seen, "sets never trained on": unseen}
    return {
        "datasets": sets,
        "calibration_error": {name: round(calibration_error(some), 3) for name, some in errors.items() if some},
        "calibration_error_even_shares": {
            name: round(calibration_error(some, even=True), 3) for name, some in errors.items() if some
        },
    }


def calibration_error(pooled: Sequence[tuple[float, float, str]], even: bool = False) -> float:
    """The expected calibration error: mean score against share of supported answers, by tenths of the scale.

    ``pooled`` has values, labels and sets. With ``even``, every set counts alike and in it both labels do: that is what
    probabilities are fitted for, whatever the rate of supported answers in a set.
    """
    values, labels = np.array([each[0] for each in pooled]), np.array([each[1] for each in pooled])
    sizes = Counter((name, label) for _, label, name in pooled)
    weights = np.array([1 / sizes[name, label] if even else 1.0 for _, label, name in pooled])
    bins = np.minimum((values * _BINS).astype(int), _BINS - 1)
    off = [abs(((values - labels) * weights)[bins == n].sum()) for n in set(bins.tolist())]
    return float(sum(off) / weights.sum())


def _area(labels: np.ndarray, values: np.ndarray) -> dict[str, float]:
    rng = np.random.default_rng(7)
    found: list[float] = []
    while len(found) < _RESAMPLES:
        chosen = rng.integers(0, len(labels), len(labels))
        if 0 < labels[chosen].sum() < len(labels):
            found.append(auroc(labels[chosen], values[chosen]))
    low, high = np.quantile(found, [0.025, 0.975])
    return {"auroc": round(auroc(labels, values), 4), "auroc_low": round(low, 4), "auroc_high": round(high, 4)}
