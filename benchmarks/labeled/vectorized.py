"""The labeled rate of many draws at once, by numpy; ``tests/benchmarks`` compares it with the plain formula."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from agentunit.formulas.bounded_mean import pass_fail_bound
from agentunit.formulas.score_correction import LEAST_GAIN, N_FOLDS

Array = NDArray[np.float64]

_PARTS = np.arange(11) / 10.0
_ROOT_2_PI = math.sqrt(2.0 * math.pi)
# So many draws at a time stay in the processor's cache.
_CHUNK = 400
_CLOSE_ENOUGH = 2e-4


@dataclass(frozen=True)
class Intervals:
    """Estimates and bounds, one a draw, and how far each relied on the scores."""

    rate: Array
    low: Array
    high: Array
    weight: Array


def labeled_rates(
    labels: Array,
    scores: Array,
    reach: tuple[float, float],
    n_cases: int,
    *,
    sizes: Array | None = None,
    drawn_share: float | None = None,
    confidence: float = 0.95,
) -> Intervals:
    """What ``labeled_rate`` gives for each row of labels; scores are minus the mean of all cases, `reach` their ends.

    `sizes` are how much each label counts, and `drawn_share` the smallest share of cases that was drawn, where either
    differs from a plain draw.
    """
    order = np.argsort(scores, axis=1, kind="stable")
    labels, scores = np.take_along_axis(labels, order, 1), np.take_along_axis(scores, order, 1)
    weights = None if sizes is None else np.take_along_axis(sizes, order, 1)
    share = labels.shape[1] / n_cases if drawn_share is None else drawn_share
    sides = [
        _lower_sides(each, scores, reach, n_cases, weights, share, (1.0 - confidence) / 2.0)
        for each in (labels, 1.0 - labels)
    ]
    rate = np.clip((sides[0].rate + 1.0 - sides[1].rate) / 2.0, 0.0, 1.0)
    if sizes is None:
        known = labels.sum(1) / n_cases
        rate = np.clip(rate, known, known + 1.0 - labels.shape[1] / n_cases)
    low, high = np.minimum(rate, sides[0].low), np.maximum(rate, 1.0 - sides[1].low)
    return Intervals(rate, low, high, (sides[0].weight - sides[1].weight) / 2.0)


def _lower_sides(
    labels: Array,
    scores: Array,
    reach: tuple[float, float],
    n_cases: int,
    sizes: Array | None,
    share: float,
    alpha: float,
) -> Intervals:
    n = labels.shape[1]
    critical = -NormalDist().inv_cdf(alpha)
    weights = _weights(labels, scores, reach, sizes, critical)
    by_fold = weights[:, np.arange(n) % N_FOLDS]
    values = labels - by_fold * scores
    lowest = -np.maximum(weights * reach[0], weights * reach[1]).max(1)
    estimate = values.mean(1) if sizes is None else (sizes * values).sum(1) / sizes.sum(1)
    exact = ~weights.any(1) & ((labels == 0.0) | (labels == 1.0)).all(1)
    shrunk = np.empty(len(labels))
    if sizes is not None:
        exact[:] = False
    if exact.any():
        shrunk[exact] = _pass_fail_bounds(n, n_cases, alpha)[np.rint(labels[exact].sum(1)).astype(int)]
    if not exact.all():
        rest = ~exact
        bound = lower_bounds(values[rest], lowest[rest], alpha, critical, None if sizes is None else sizes[rest])
        shrunk[rest] = estimate[rest] - math.sqrt(max(0.0, 1.0 - share)) * (estimate[rest] - bound)
        if sizes is None:
            shrunk[rest] = np.maximum(shrunk[rest], labels[rest].sum(1) / n_cases)
    if sizes is None and n >= n_cases - 1:
        shrunk = labels.sum(1) / n_cases
    return Intervals(estimate, shrunk, shrunk, by_fold.mean(1))


@cache
def _pass_fail_bounds(n: int, n_cases: int, alpha: float) -> Array:
    return np.array([pass_fail_bound(passes, n, n_cases, alpha) for passes in range(n + 1)])


def _weights(labels: Array, scores: Array, reach: tuple[float, float], sizes: Array | None, critical: float) -> Array:
    """The weight of every draw and fold."""
    n_draws, n = labels.shape
    n_folds = min(N_FOLDS, n)
    if reach[1] - reach[0] <= 1e-9:
        return np.zeros((n_draws, n_folds))
    stretch = np.ones(n_draws)
    if sizes is not None:
        mean_size = sizes.mean(1, keepdims=True)
        stretch = sizes.max(1) / mean_size[:, 0]
        labels, scores = (_as_equals(each, sizes, mean_size) for each in (labels, scores))
    whole = _power_sums(labels, scores)
    found = np.empty((n_draws, n_folds))
    for fold in range(n_folds):
        others = whole - _power_sums(labels[:, fold::N_FOLDS], scores[:, fold::N_FOLDS])
        found[:, fold] = _best_weights(others, n, reach, critical, stretch)
    found[~found.all(1)] = 0.0
    return found


def _as_equals(values: Array, sizes: Array, mean_size: Array) -> Array:
    mean = (sizes * values).sum(1, keepdims=True) / sizes.sum(1, keepdims=True)
    return mean + sizes / mean_size * (values - mean)


def _power_sums(y: Array, u: Array) -> Array:
    columns = (np.ones_like(y), y, u, y * y, y * u, u * u, y**3, y * y * u, y * u * u, u**3)
    return np.stack([column.sum(1) for column in columns])


def _best_weights(sums: Array, n: int, reach: tuple[float, float], critical: float, stretch: Array) -> Array:
    means = sums[1:] / sums[0]
    spread = means[4] - means[1] ** 2
    slope = np.where(spread > 1e-9, (means[3] - means[0] * means[1]) / np.maximum(spread, 1e-9), 0.0)
    w = _PARTS * slope[:, None]
    y, u, yy, yu, uu, yyy, yyu, yuu, uuu = means[:, :, None]
    mean = y - w * u
    second = yy - 2.0 * w * yu + w * w * uu
    third = yyy - 3.0 * w * yyu + 3.0 * w * w * yuu - w**3 * uuu
    lowest = mean + stretch[:, None] * (-np.maximum(w * reach[0], w * reach[1]) - mean)
    variance, skew = np.maximum(0.0, second - mean * mean), third - 3.0 * mean * second + 2.0 * mean**3
    distance = mean - _approximate_bound(mean, variance, skew, n, lowest, critical)
    distance[:, 0] *= 1.0 - LEAST_GAIN
    best: Array = np.take_along_axis(w, distance.argmin(1)[:, None], 1)[:, 0]
    return best


def _approximate_bound(mean: Array, variance: Array, third: Array, n: int, lowest: Array, critical: float) -> Array:
    distance = lowest - mean
    shift = distance / (n + 1)
    far = distance - shift
    variance_of_all = (n * (variance + shift * shift) + far * far) / (n + 1)
    third_of_all = (n * (third - 3.0 * shift * variance - shift**3) + far**3) / (n + 1)
    deviation = np.maximum(np.sqrt(variance_of_all / (n + 2)), 1e-12)
    skewness = 2.0 * third_of_all / ((n + 2) * (n + 3)) / deviation**3
    z = -critical
    quantile = z + (z * z - 1.0) * skewness / 6.0 - (2.0 * z**3 - 5.0 * z) * skewness * skewness / 36.0
    return np.maximum(lowest, mean + shift + quantile * deviation)


def lower_bounds(values: Array, lowest: Array, alpha: float, critical: float, sizes: Array | None = None) -> Array:
    """Gaffke's lower bound of each row, by the saddlepoint formula."""
    chunks = range(0, len(values), _CHUNK)
    parts = [
        _lower_bounds(
            values[at : at + _CHUNK],
            lowest[at : at + _CHUNK],
            alpha,
            critical,
            None if sizes is None else sizes[at : at + _CHUNK],
        )
        for at in chunks
    ]
    return np.concatenate(parts)


def _lower_bounds(values: Array, lowest: Array, alpha: float, critical: float, sizes: Array | None) -> Array:
    n_draws, n = values.shape
    shares = np.ones_like(values) if sizes is None else sizes
    mean = (shares * values).sum(1) / shares.sum(1)
    none_above = values.max(1) <= lowest + 1e-12
    low, high = np.where(none_above, mean - 1.0, lowest), mean.copy()
    all_values = np.concatenate([values, low[:, None]], 1)
    all_shares = np.concatenate([shares, shares.max(1, keepdims=True)], 1)
    deviation = values - mean[:, None]
    moments = (deviation**2).mean(1), (deviation**3).mean(1)
    start = _approximate_bound(mean, *moments, n, low, critical)
    at = np.clip(start, low + 1e-3 * (mean - low), mean - 1e-6 * (mean - low))
    saddle, previous, gap_before = np.zeros(n_draws), at, np.zeros(n_draws)
    for turn in range(40):
        chance, saddle = _chance_above_zero(all_shares * (at[:, None] - all_values), saddle)
        gap = np.log(np.maximum(chance, 1e-300)) - math.log(alpha)
        low, high = np.where(gap <= 0.0, at, low), np.where(gap > 0.0, at, high)
        if np.abs(gap).max() < _CLOSE_ENOUGH:
            break
        with np.errstate(all="ignore"):
            slope = (gap - gap_before) / (at - previous) if turn else 2.0 / np.maximum(1e-9, mean - at)
            following = np.where(np.isfinite(slope) & (slope > 0.0), at - gap / slope, (low + high) / 2.0)
        following = np.where((following > low) & (following < high), following, (low + high) / 2.0)
        previous, gap_before = at, gap
        at = np.where(np.abs(gap) < _CLOSE_ENOUGH / 10.0, at, following)
    return np.where(none_above, lowest, at)


def _chance_above_zero(coefficients: Array, saddle: Array) -> tuple[Array, Array]:
    """Lugannani and Rice's chance that each row's Σ c·E is above 0, and the saddlepoints."""
    least, most = 1.0 / coefficients.min(1), 1.0 / coefficients.max(1)
    saddle = np.where((saddle > least) & (saddle < most), saddle, 0.0)
    for _ in range(60):
        ratios = coefficients / (1.0 - saddle[:, None] * coefficients)
        slope, curvature = ratios.sum(1), np.einsum("ij,ij->i", ratios, ratios)
        least, most = np.where(slope < 0.0, saddle, least), np.where(slope < 0.0, most, saddle)
        step = saddle - slope / curvature
        following = np.where((step > least) & (step < most), step, (least + most) / 2.0)
        settled = np.all(np.abs(following - saddle) <= 1e-5 * np.abs(saddle) + 1e-12)
        saddle = following
        if settled:
            break
    rest = 1.0 - saddle[:, None] * coefficients
    ratios = coefficients / rest
    curvature = np.einsum("ij,ij->i", ratios, ratios)
    root = np.sign(saddle) * np.sqrt(np.maximum(0.0, 2.0 * np.log(rest).sum(1)))
    scaled = saddle * np.sqrt(curvature)
    at_mean = np.abs(root) < 1e-4
    root, scaled = np.where(at_mean, 1.0, root), np.where(at_mean, 1.0, scaled)
    chance = _upper_tail(root) + np.exp(-0.5 * root * root) / _ROOT_2_PI * (1.0 / scaled - 1.0 / root)
    third = 2.0 * (ratios**3).sum(1)
    chance = np.where(at_mean, 0.5 - third / (6.0 * _ROOT_2_PI * curvature**1.5), chance)
    return np.clip(chance, 0.0, 1.0), saddle


def _upper_tail(z: Array) -> Array:
    from scipy.special import ndtr

    found: Array = ndtr(-z)
    return found
