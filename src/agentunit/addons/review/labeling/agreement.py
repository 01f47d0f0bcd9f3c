"""How well a score agrees with people's labels, and how sure that agreement is.

Labels and predictions are bools or 0/1; scores are finite numbers. A measure that the data cannot define (one
class only, a constant score, no rows) is None.
"""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Sequence
from itertools import accumulate, chain
from operator import add, itemgetter, mul
from typing import Any, NamedTuple, TypeVar

from agentunit.formulas.statistics import Interval, check_confidence, check_resamples, percentile_interval

# Drawing and summing up a row costs about 0.3 µs, so an interval over many rows stays within a second or two.
ROW_BUDGET = 2_000_000
FEWEST_RESAMPLES = 200
MOST_RESAMPLES = 1000

Drawn = TypeVar("Drawn")


class _Confusion(NamedTuple):
    true_positives: int
    false_positives: int
    false_negatives: int
    true_negatives: int


def auroc(labels: Sequence[int], scores: Sequence[float]) -> float | None:
    """The chance that a random positive scores above a random negative.

    (pairs with the positive above + half the tied pairs) / (positives · negatives), the area under the ROC
    curve. 1.0 ranks every positive first, 0.5 is a coin toss, 0.0 ranks every positive last. One class only:
    None.
    Source: Hanley and McNeil, Radiology 143 (1982).

    >>> auroc([1, 0, 1, 0], [0.9, 0.4, 0.4, 0.1])  # of 4 pairs 3 are in order, 1 is tied: (3 + 0.5) / 4
    0.875
    """
    _check_equal_lengths("auroc", labels=labels, scores=scores)
    _check_binary("auroc", "labels", labels)
    _check_finite("auroc", "scores", scores)
    codes, levels = _tie_level_codes(labels, scores)
    return _auroc_of_codes(codes, levels)


def accuracy(labels: Sequence[int], predictions: Sequence[int]) -> float | None:
    """The share of rows on which prediction and label agree.

    (TP + TN) / n, from 0 to 1. No rows: None.

    >>> accuracy([1, 1, 0, 0], [1, 0, 0, 0])
    0.75
    """
    counts = _confusion("accuracy", labels, predictions)
    return _ratio(counts.true_positives + counts.true_negatives, len(labels))


def balanced_accuracy(labels: Sequence[int], predictions: Sequence[int]) -> float | None:
    """The accuracy a prediction would have if both classes were equally common.

    (TP / (TP + FN) + TN / (TN + FP)) / 2, from 0 to 1; a constant prediction gets 0.5. One class only: None.

    >>> balanced_accuracy([1, 0, 0, 0], [1, 1, 0, 0])  # (1/1 + 2/3) / 2
    0.8333333333333333
    """
    counts = _confusion("balanced_accuracy", labels, predictions)
    sensitivity = _ratio(counts.true_positives, counts.true_positives + counts.false_negatives)
    specificity = _ratio(counts.true_negatives, counts.true_negatives + counts.false_positives)
    if sensitivity is None or specificity is None:
        return None
    return (sensitivity + specificity) / 2.0


def cohen_kappa(labels: Sequence[int], predictions: Sequence[int]) -> float | None:
    """The agreement beyond what two raters with the same habits would reach by chance.

    (observed − expected) / (1 − expected), where expected = P(label 1) · P(prediction 1) + P(label 0) ·
    P(prediction 0). 1 is full agreement, 0 is chance, below 0 (−1 at worst) is worse than chance. No rows,
    or both sides constant and equal (chance alone explains everything): None.
    Source: Cohen, Educ. Psychol. Meas. 20 (1960).

    >>> cohen_kappa([1, 1, 0, 0], [1, 0, 0, 0])  # observed 3/4, expected 1/2 · 1/4 + 1/2 · 3/4 = 1/2
    0.5
    """
    counts = _confusion("cohen_kappa", labels, predictions)
    n = len(labels)
    positives = counts.true_positives + counts.false_negatives
    predicted = counts.true_positives + counts.false_positives
    # Observed and expected agreement times n², so that everything up to the division is exact.
    observed = n * (counts.true_positives + counts.true_negatives)
    expected = positives * predicted + (n - positives) * (n - predicted)
    return _ratio(observed - expected, n * n - expected)


def spearman(xs: Sequence[float], ys: Sequence[float]) -> float | None:
    """How far two columns rise and fall together, whatever their scales.

    Pearson's correlation of the ranks, ties sharing the mean of their ranks; from −1 (opposite order) to 1
    (same order). Fewer than three rows, or a constant column: None.
    Source: Spearman, Am. J. Psychol. 15 (1904).

    >>> spearman([1, 2, 3], [10, 30, 20])  # rank differences 0, 1, 1: 1 − 6 · 2 / (3 · 8)
    0.5
    """
    _check_equal_lengths("spearman", xs=xs, ys=ys)
    _check_finite("spearman", "xs", xs)
    _check_finite("spearman", "ys", ys)
    n = len(xs)
    if n < 3:
        return None
    x_ranks, y_ranks = _doubled_ranks(xs), _doubled_ranks(ys)
    # Every rank column has the same sum, ties or not: twice 1 + … + n.
    rank_sum = n * (n + 1)
    squared_sum = rank_sum * rank_sum
    x_spread = n * sum(map(mul, x_ranks, x_ranks)) - squared_sum
    y_spread = n * sum(map(mul, y_ranks, y_ranks)) - squared_sum
    if not x_spread or not y_spread:
        return None
    shared: int = n * sum(map(mul, x_ranks, y_ranks)) - squared_sum
    return max(-1.0, min(1.0, shared / math.sqrt(x_spread * y_spread)))


def bootstrap_statistic_interval(
    statistic: Callable[..., float | None],
    columns: tuple[Sequence[Any], ...],
    *,
    groups: Sequence[Hashable] | None = None,
    confidence: float = 0.95,
    resamples: int | None = None,
    seed: int = 0,
) -> Interval | None:
    """The percentile bootstrap interval of any statistic of one or more columns.

    Draw as many rows as there are, with replacement, and call `statistic(*columns)` on them; repeat. With
    `groups`, whole groups are drawn: rows from one source document are not independent, and drawing them one
    by one would claim more certainty than there is. Resamples on which the statistic is None are dropped. By
    default there are 2,000,000 / rows resamples, within 200..1000. None for fewer than two rows (or groups),
    and when fewer than half of the resamples define the statistic. A statistic that is equal in all of them
    has zero width: a perfect AUROC does, however few the rows.

    >>> bootstrap_statistic_interval(accuracy, ([1, 0], [1, 1]))  # a quarter holds the first row only
    Interval(low=0.0, high=1.0, method='bootstrap')
    """
    who = "bootstrap_statistic_interval"
    if not columns:
        raise ValueError(f"{who}: columns must hold at least one column; received 0 columns")
    _check_equal_lengths(who, **{f"columns[{index}]": column for index, column in enumerate(columns)})
    n = len(columns[0])
    resamples = _resample_count(who, n, groups, confidence, resamples)
    estimates = []
    for rows in _resampled(range(n), groups, resamples, seed):
        # A resample has at least two rows, so this picks a tuple of them, never a bare item.
        pick = itemgetter(*rows)
        estimates.append(statistic(*[pick(column) for column in columns]))
    return _interval_of_estimates(who, estimates, confidence)


def auroc_interval(
    labels: Sequence[int],
    scores: Sequence[float],
    *,
    groups: Sequence[Hashable] | None = None,
    confidence: float = 0.95,
    resamples: int | None = None,
    seed: int = 0,
) -> Interval | None:
    """The percentile bootstrap interval of the AUROC, without a sort per resample.

    Rows are ranked once; a resample only changes how often each stands at its place, so it costs O(n). The
    same seed draws the same rows as `bootstrap_statistic_interval(auroc, …)` and gives the same interval; its
    degenerate cases are the same too.

    >>> auroc_interval([1, 0] * 50, [1, 0] * 50)  # no resample puts a negative above a positive
    Interval(low=1.0, high=1.0, method='bootstrap')
    """
    _check_equal_lengths("auroc_interval", labels=labels, scores=scores)
    _check_binary("auroc_interval", "labels", labels)
    _check_finite("auroc_interval", "scores", scores)
    resamples = _resample_count("auroc_interval", len(labels), groups, confidence, resamples)
    codes, levels = _tie_level_codes(labels, scores)
    estimates = [_auroc_of_codes(drawn, levels) for drawn in _resampled(codes, groups, resamples, seed)]
    return _interval_of_estimates("auroc_interval", estimates, confidence)


def _tie_level_codes(labels: Sequence[int], scores: Sequence[float]) -> tuple[list[int], int]:
    """Each row as 2 · (place of its score among the distinct scores) + label; the number of distinct ones."""
    distinct = sorted(set(scores))
    level_of = {score: level for level, score in enumerate(distinct)}
    codes = [2 * level_of[score] + int(label) for label, score in zip(labels, scores, strict=True)]
    return codes, len(distinct)


def _auroc_of_codes(codes: Sequence[int], levels: int) -> float | None:
    counts = [0] * (2 * levels)
    for code in codes:
        counts[code] += 1
    negatives_up_to = list(accumulate(counts[0::2], initial=0))
    positives_at = counts[1::2]
    negatives = negatives_up_to[-1]
    # Twice the negatives below a positive's level plus once those at it: the counts below and up to it.
    doubled_wins = sum(map(mul, positives_at, map(add, negatives_up_to, negatives_up_to[1:])))
    return _ratio(doubled_wins, 2 * (len(codes) - negatives) * negatives)


def _doubled_ranks(values: Sequence[float]) -> list[int]:
    """Twice the mean rank of each value: a whole number even for ties."""
    occurrences = Counter(values)
    doubled_rank: dict[float, int] = {}
    below = 0
    for value in sorted(occurrences):
        doubled_rank[value] = 2 * below + occurrences[value] + 1
        below += occurrences[value]
    return [doubled_rank[value] for value in values]


def _resample_count(
    who: str, n: int, groups: Sequence[Hashable] | None, confidence: float, resamples: int | None
) -> int:
    check_confidence(who, confidence)
    if groups is not None and len(groups) != n:
        raise ValueError(f"{who}: groups must be as long as the columns, {n}; received {len(groups)}")
    if resamples is None:
        return max(FEWEST_RESAMPLES, min(MOST_RESAMPLES, ROW_BUDGET // max(1, n)))
    check_resamples(who, resamples)
    return resamples


def _resampled(
    rows: Sequence[Drawn], groups: Sequence[Hashable] | None, resamples: int, seed: int
) -> Iterator[Sequence[Drawn]]:
    """Resamples of rows, whatever stands for a row: draws depend on their number, groups and seed alone."""
    draw = random.Random(seed).choices
    if groups is None:
        if len(rows) >= 2:
            for _ in range(resamples):
                yield draw(rows, k=len(rows))
        return
    members: dict[Hashable, list[Drawn]] = {}
    for row, group in zip(rows, groups, strict=True):
        members.setdefault(group, []).append(row)
    clusters = list(members.values())
    if len(clusters) >= 2:
        for _ in range(resamples):
            yield list(chain.from_iterable(draw(clusters, k=len(clusters))))


def _interval_of_estimates(who: str, estimates: Sequence[float | None], confidence: float) -> Interval | None:
    defined = sorted([estimate for estimate in estimates if estimate is not None])
    for estimate in defined:
        if not math.isfinite(estimate):
            raise ValueError(f"{who}: statistic must give a finite number or None; received {estimate!r}")
    # With most resamples undefined, the rest would describe only the lucky ones.
    if not defined or 2 * len(defined) < len(estimates):
        return None
    return percentile_interval(defined, confidence)


def _confusion(who: str, labels: Sequence[int], predictions: Sequence[int]) -> _Confusion:
    _check_equal_lengths(who, labels=labels, predictions=predictions)
    _check_binary(who, "labels", labels)
    _check_binary(who, "predictions", predictions)
    pairs = Counter(zip(labels, predictions, strict=True))
    return _Confusion(pairs[1, 1], pairs[0, 1], pairs[1, 0], pairs[0, 0])


def _ratio(numerator: int, denominator: int) -> float | None:
    return numerator / denominator if denominator else None


def _check_equal_lengths(who: str, **columns: Sequence[Any]) -> None:
    lengths = [len(column) for column in columns.values()]
    if len(set(lengths)) > 1:
        raise ValueError(
            f"{who}: {' and '.join(columns)} must be equally long; received {' and '.join(map(str, lengths))}"
        )


def _check_binary(who: str, parameter: str, values: Sequence[int]) -> None:
    for position, value in enumerate(values):
        if value not in (0, 1):
            raise ValueError(f"{who}: {parameter} must be 0 or 1; received {value!r} at position {position}")


def _check_finite(who: str, parameter: str, values: Sequence[float]) -> None:
    for position, value in enumerate(values):
        if not math.isfinite(value):
            raise ValueError(f"{who}: {parameter} must be finite; received {value!r} at position {position}")
