"""Bounds of a mean of values that lie in a known range, whatever their distribution: Gaffke's, weighted.

One unseen value at the worst end of the range joins the sample, and the bound is a quantile of the sample's mean
under random weights. For pass/fail values it is the exact binomial bound. That it holds for every distribution is a
conjecture without a known exception.
Source: Gaffke, Math. Methods Stat. 14 (2005); Learned-Miller and Thomas, arXiv:1905.06208 (2019).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

# The exact sum takes a quarter of n² steps; from here on the saddlepoint is within rounding of a table.
LARGEST_EXACT_SUM = 100
# Bounds are searched to this share of the range between the lowest value and the mean.
_CLOSE_ENOUGH = 1e-7
_FIRST_STEP, _MOST_STEPS = 0.02, 60


def weighted_mean_bound(
    values: Sequence[float], *, lowest: float, alpha: float, weights: Sequence[float] | None = None
) -> float:
    """The lower bound, at the one-sided level alpha, of the mean that the values were drawn from.

    The alpha-quantile of Σ E·w·v / Σ E·w over the values and one unseen value `lowest` with the largest weight, E being
    independent exponential numbers. No value may be below `lowest`. No values: `lowest`.

    >>> round(weighted_mean_bound([1.0] * 59, lowest=0.0, alpha=0.05), 4)  # 0.05 ** (1 / 59)
    0.9505
    """
    if not values:
        return lowest
    # The standard module pulls in fractions and decimal: ten milliseconds that only an interval should cost.
    from statistics import NormalDist

    shares = [1.0] * len(values) if weights is None else list(weights)
    all_values, all_weights = [*values, lowest], [*shares, max(shares)]

    def chance_below(mean: float) -> float:
        return positive_part_chance(
            [weight * (mean - value) for value, weight in zip(all_values, all_weights, strict=True)]
        )

    total = math.fsum(shares)
    estimate = math.fsum(w * v for v, w in zip(values, shares, strict=True)) / total
    spread, skew = (
        math.fsum(w * (v - estimate) ** power for v, w in zip(values, shares, strict=True)) / total for power in (2, 3)
    )
    guess = approximate_bound(estimate, spread, skew, len(values), lowest, -NormalDist().inv_cdf(alpha))
    return _crossing(chance_below, lowest, max(lowest, estimate), guess, alpha)


def approximate_bound(
    mean: float, variance: float, third_moment: float, n: int, lowest: float, critical: float
) -> float:
    """Gaffke's lower bound from the central moments of n values alone, by the expansion of Cornish and Fisher.

    >>> round(approximate_bound(0.5, 0.25, 0.0, 30, 0.0, 1.96), 2)  # 15 of 30: the exact bound is 0.313
    0.31
    """
    # The unseen value at the lowest end moves the mean by `shift`; the moments are those of n + 1 values.
    distance = lowest - mean
    shift = distance / (n + 1)
    far = distance - shift
    variance_of_all = (n * (variance + shift * shift) + far * far) / (n + 1)
    third_of_all = (n * (third_moment - 3.0 * shift * variance - shift**3) + far**3) / (n + 1)
    deviation = math.sqrt(variance_of_all / (n + 2))
    if deviation <= 1e-12:
        return max(lowest, mean + shift)
    skewness = 2.0 * third_of_all / ((n + 2) * (n + 3)) / deviation**3
    z = -critical
    quantile = z + (z * z - 1.0) * skewness / 6.0 - (2.0 * z**3 - 5.0 * z) * skewness * skewness / 36.0
    return max(lowest, mean + shift + quantile * deviation)


def pass_fail_bound(passes: int, n: int, n_cases: int, alpha: float) -> float:
    """The lower bound, at the one-sided level alpha, of the share of passes among all cases, n of which were drawn.

    Exact for cases drawn without replacement: the least share under which `passes` or more have a chance above alpha by
    the hypergeometric law. For many cases it is Clopper and Pearson's bound. No passes: 0.

    >>> pass_fail_bound(3, 3, 4, 0.2)  # with 3 passes among the 4 cases, 3 of 3 have the chance 1/4
    0.75
    """
    least, most = passes, n_cases - (n - passes)
    while least < most:
        middle = (least + most) // 2
        if _hypergeometric_tail(passes, n, middle, n_cases) > alpha:
            most = middle
        else:
            least = middle + 1
    return least / n_cases


def _hypergeometric_tail(passes: int, n: int, n_passing: int, n_cases: int) -> float:
    """The chance of `passes` or more in n draws from `n_cases`, of which `n_passing` pass."""
    n_failing = n_cases - n_passing
    first, last = max(passes, n - n_failing), min(n, n_passing)
    if first > last:
        return 0.0
    lgamma = math.lgamma
    constant = (
        lgamma(n_passing + 1) + lgamma(n_failing + 1) + lgamma(n + 1) + lgamma(n_cases - n + 1) - lgamma(n_cases + 1)
    )
    terms = [
        math.exp(
            constant
            - lgamma(k + 1) - lgamma(n_passing - k + 1) - lgamma(n - k + 1) - lgamma(n_failing - n + k + 1)
        )
        for k in range(first, last + 1)
    ]  # fmt: skip
    return min(1.0, math.fsum(terms))


def positive_part_chance(coefficients: Sequence[float]) -> float:
    """The chance that Σ c·E is above 0, E being independent exponential numbers of mean 1.

    Exact: of a positive and a negative coefficient, a and −b, one is used up by the other, and the first is left with
    the chance a / (a + b). Beyond 100 coefficients Lugannani and Rice's saddlepoint formula takes its place.
    Nothing but zeros: 0.

    >>> positive_part_chance([1.0, -3.0])
    0.25
    """
    gains = sorted(each for each in coefficients if each > 0.0)
    losses = sorted(-each for each in coefficients if each < 0.0)
    if not gains or not losses:
        return 1.0 if gains else 0.0
    if len(gains) + len(losses) > LARGEST_EXACT_SUM:
        return _saddlepoint_chance([*gains, *(-each for each in losses)])
    survives = [0.0] * (len(losses) + 1)
    for gain in gains:
        left_over = survives[0] = 1.0
        for j, loss in enumerate(losses, start=1):
            left_over = (loss * survives[j] + gain * left_over) / (gain + loss)
            survives[j] = left_over
    return survives[-1]


def _saddlepoint_chance(coefficients: Sequence[float]) -> float:
    """Lugannani and Rice's approximation of the chance that Σ c·E is above 0."""
    # K(s) = −Σ log(1 − s·c) is convex between the poles 1 / min c and 1 / max c; its slope is 0 at the saddlepoint.
    least, most = 1.0 / min(coefficients), 1.0 / max(coefficients)
    saddle = 0.0
    for _ in range(100):
        ratios = [c / (1.0 - saddle * c) for c in coefficients]
        slope, curvature = math.fsum(ratios), math.fsum([ratio * ratio for ratio in ratios])
        least, most = (saddle, most) if slope < 0.0 else (least, saddle)
        step = saddle - slope / curvature
        following = step if least < step < most else (least + most) / 2.0
        if abs(following - saddle) <= 1e-12 * (abs(saddle) + 1e-300) or following == saddle:
            break
        saddle = following
    cumulant = -math.fsum([math.log1p(-saddle * c) for c in coefficients])
    ratios = [c / (1.0 - saddle * c) for c in coefficients]
    curvature = math.fsum([ratio * ratio for ratio in ratios])
    signed_root = math.copysign(math.sqrt(max(0.0, -2.0 * cumulant)), saddle)
    scaled = saddle * math.sqrt(curvature)
    if abs(signed_root) < 1e-4:
        # At the mean both terms grow without bound and their difference is the skewness.
        third = 2.0 * math.fsum([ratio**3 for ratio in ratios])
        return 0.5 - third / (6.0 * math.sqrt(2.0 * math.pi) * curvature * math.sqrt(curvature))
    density = math.exp(-0.5 * signed_root * signed_root) / math.sqrt(2.0 * math.pi)
    upper_tail = 0.5 * math.erfc(signed_root / math.sqrt(2.0))
    return min(1.0, max(0.0, upper_tail + density * (1.0 / scaled - 1.0 / signed_root)))


def _crossing(chance: Callable[[float], float], low: float, high: float, guess: float, alpha: float) -> float:
    """Where a chance that rises from 0 reaches alpha, from below, near the guess; the upper end where it never does."""
    close_enough = _CLOSE_ENOUGH * (high - low)
    below, above, side, step = -alpha, math.nan, 0, _FIRST_STEP
    middle = guess if low < guess < high else (low + high) / 2.0
    for _ in range(_MOST_STEPS):
        if high - low <= close_enough:
            break
        found = chance(middle) - alpha
        # Illinois: an end that stays twice in a row counts half, so that both ends close in.
        if found <= 0.0:
            low, below = middle, found
            above = above / 2.0 if side < 0 else above
            side = -1
        else:
            high, above = middle, found
            below = below / 2.0 if side > 0 else below
            side = 1
        if math.isnan(above):
            # Nothing above the guess is known yet, and it is most often near: steps up that double.
            middle, step = low + step * (high - low), min(0.5, 2.0 * step)
            continue
        middle = (low * above - high * below) / (above - below)
        if not low < middle < high:
            middle = (low + high) / 2.0
    return low
