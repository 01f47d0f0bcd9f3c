"""How sure a mean is (quantiles and confidence intervals), how far raters agree, and a monotone mapping."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain, pairwise
from math import fsum
from typing import NamedTuple

# Below this size resampling claims too much: its nominal 95 % covers some 80 % at 5 values, 90 % at 20.
FEWEST_BOOTSTRAP_N = 30
# Above this size the mean of any bounded score is close enough to normal that resampling only costs time.
LARGEST_BOOTSTRAP_N = 2000
# One draw costs well under 0.1 µs in plain Python, so an interval stays within a few tens of milliseconds.
DRAW_BUDGET = 400_000
FEWEST_RESAMPLES = 200
# Squares and sums of a billion such values still fit a float, so no moment can come out infinite.
LARGEST_MAGNITUDE = 1e140
# The exact series costs one term per two degrees of freedom; from here on the expansion is as accurate.
EXPANSION_FROM_DEGREES = 200


@dataclass(frozen=True, slots=True)
class Interval:
    """A confidence interval and the method that produced it: "wilson", "t", "bootstrap", or one over clusters."""

    low: float
    high: float
    method: str


def quantile(sorted_values: Sequence[float], q: float) -> float:
    """The value below which the share `q` of a sorted sample lies.

    Linear interpolation at h = (n − 1) · q, as numpy's default: x[⌊h⌋] + (h − ⌊h⌋) (x[⌊h⌋ + 1] − x[⌊h⌋]).
    q = 0 is the minimum, q = 1 the maximum. The values must be finite and in ascending order, which is not
    checked; an empty sample is an error.

    >>> quantile([1.0, 2.0, 4.0], 0.75)  # h = 1.5: half way from 2 to 4
    3.0
    """
    if not 0.0 <= q <= 1.0:
        raise ValueError(f"quantile: q must be between 0 and 1; received {q!r}")
    if not len(sorted_values):
        raise ValueError("quantile: sorted_values must hold at least one value; received 0 values")
    position = (len(sorted_values) - 1) * q
    index = int(position)
    weight = position - index
    low = sorted_values[index]
    if not weight:
        return float(low)
    high = sorted_values[index + 1]
    # Interpolating from the nearer end keeps the result monotone in q despite rounding.
    return float(high - (high - low) * (1.0 - weight) if weight >= 0.5 else low + (high - low) * weight)


def check_confidence(who: str, confidence: float) -> None:
    """Raise ValueError in `who`'s name unless the confidence level lies strictly between 0 and 1."""
    if not 0.0 < confidence < 1.0:
        raise ValueError(f"{who}: confidence must be above 0 and below 1; received {confidence!r}")


def check_resamples(who: str, resamples: int) -> None:
    """Raise ValueError in `who`'s name unless there is at least one resample."""
    if resamples < 1:
        raise ValueError(f"{who}: resamples must be at least 1; received {resamples!r}")


def finite_floats(who: str, parameter: str, values: Sequence[float]) -> list[float]:
    """The values as floats; ValueError in `who`'s name at the first that is NaN, infinite or 1e140 and up in size."""
    # max and min may pass over a NaN depending on where it stands, so each value is looked at.
    for position, value in enumerate(values):
        if not -LARGEST_MAGNITUDE < value < LARGEST_MAGNITUDE:
            raise ValueError(
                f"{who}: {parameter} must be finite and below {LARGEST_MAGNITUDE} in size; "
                f"received {value!r} at position {position}"
            )
    return [float(value) for value in values]


def percentile_interval(sorted_estimates: Sequence[float], confidence: float = 0.95) -> Interval:
    """The middle share of a sorted bootstrap distribution: its quantiles at (1 ∓ confidence) / 2.

    One estimate gives a zero-width interval; none is an error.

    >>> percentile_interval([0.0, 1.0, 2.0, 3.0, 4.0], confidence=0.5)
    Interval(low=1.0, high=3.0, method='bootstrap')
    """
    check_confidence("percentile_interval", confidence)
    tail = (1.0 - confidence) / 2.0
    return Interval(quantile(sorted_estimates, tail), quantile(sorted_estimates, 1.0 - tail), "bootstrap")


def wilson_interval(successes: int, n: int, confidence: float = 0.95) -> Interval:
    """The range of true success rates that `successes` out of `n` leaves plausible.

    With p = successes / n and z the two-sided normal critical value:
    (p + z²/2n ∓ z · √(p(1 − p)/n + z²/4n²)) / (1 + z²/n).
    Always within 0..1 and never of zero width: 20 of 20 reads 0.84..1.00, not 1.00 ± 0.00. n = 0 is an error.
    Source: Wilson, "Probable inference", J. Am. Stat. Assoc. 22 (1927).

    >>> interval = wilson_interval(20, 20)  # p = 1 leaves 1 / (1 + z²/n) = 1 / (1 + 3.8415/20)
    >>> round(interval.low, 4), interval.high
    (0.8389, 1.0)
    """
    check_confidence("wilson_interval", confidence)
    if n < 1:
        raise ValueError(f"wilson_interval: n must be at least 1; received {n!r}")
    if not 0 <= successes <= n:
        raise ValueError(f"wilson_interval: successes must be between 0 and n = {n}; received {successes!r}")
    z_squared = _normal_critical_value(confidence) ** 2
    rate = successes / n
    center = rate + z_squared / (2 * n)
    margin = math.sqrt(z_squared * (rate * (1.0 - rate) / n + z_squared / (4 * n * n)))
    scale = 1.0 + z_squared / n
    # The two ends below are exact in the formula; only rounding would move them.
    low = 0.0 if successes == 0 else max(0.0, (center - margin) / scale)
    high = 1.0 if successes == n else min(1.0, (center + margin) / scale)
    return Interval(low, high, "wilson")


def normal_interval(mean: float, sample_variance: float, n: int, confidence: float = 0.95) -> Interval:
    """The interval of a mean that is normally distributed with unknown variance.

    mean ∓ t · √(sample_variance / n), t being Student's critical value with n − 1 degrees of freedom.
    Unbounded: it knows nothing of a score's range. Variance 0 gives zero width; n < 2 is an error.

    >>> interval = normal_interval(10.0, 4.0, 4)  # t = 3.1824, standard error √(4/4) = 1
    >>> round(interval.low, 4), round(interval.high, 4)
    (6.8176, 13.1824)
    """
    check_confidence("normal_interval", confidence)
    if n < 2:
        raise ValueError(f"normal_interval: n must be at least 2; received {n!r}")
    if not 0.0 <= sample_variance < math.inf:
        raise ValueError(
            f"normal_interval: sample_variance must be finite and not negative; received {sample_variance!r}"
        )
    if not math.isfinite(mean):
        raise ValueError(f"normal_interval: mean must be finite; received {mean!r}")
    margin = t_critical_value(confidence, n - 1) * math.sqrt(sample_variance / n)
    return Interval(mean - margin, mean + margin, "t")


def cluster_mean_interval(
    totals: Sequence[float], sizes: Sequence[int], *, pass_fail: bool = False, confidence: float = 0.95
) -> Interval | None:
    """The interval of the mean of all values where values of one cluster are alike: only clusters are independent.

    `totals` and `sizes` are the sum and the number of values of each cluster. With G clusters, N values and the mean
    m = Σ total / N: m ∓ t · √(G / (G − 1) · Σ (total − size · m)²) / N, t being Student's critical value with G − 1
    degrees of freedom (the cluster-robust variance of a mean). Clusters of one value each give Student's interval.
    Where all values are 0 or 1 (`pass_fail`) it is never narrower than Wilson's over the values: clusters that
    happen to be alike would claim ± 0. Nothing but passes, or failures, have Wilson's with each cluster as one value.
    Few clusters of very different sizes make it too narrow, though far less than counting values does. Fewer than
    two clusters: None.
    Source: Liang and Zeger, "Longitudinal data analysis using generalized linear models", Biometrika 73 (1986).

    >>> interval = cluster_mean_interval([0.0, 4.0], [2, 2])  # m = 1, √(2 · (4 + 4)) / 4 = 1, t = 12.7062
    >>> round(interval.low, 4), round(interval.high, 4), interval.method
    (-11.7062, 13.7062, 'cluster t')
    """
    check_confidence("cluster_mean_interval", confidence)
    sums = finite_floats("cluster_mean_interval", "totals", totals)
    if len(sizes) != len(sums) or any(size < 1 for size in sizes):
        received = f"{list(sizes)!r:.80}"
        raise ValueError(
            f"cluster_mean_interval: sizes must be {len(sums)} whole numbers of at least 1; received {received}"
        )
    n_clusters, n = len(sums), sum(sizes)
    if n_clusters < 2:
        return None
    total = math.fsum(sums)
    if pass_fail and total in (0.0, float(n)):
        whole = wilson_interval(n_clusters if total else 0, n_clusters, confidence)
        return Interval(whole.low, whole.high, "cluster wilson")
    mean = total / n
    squares = math.fsum([(each - size * mean) ** 2 for each, size in zip(sums, sizes, strict=True)])
    margin = t_critical_value(confidence, n_clusters - 1) * math.sqrt(n_clusters / (n_clusters - 1) * squares) / n
    low, high = mean - margin, mean + margin
    if pass_fail:
        plain = wilson_interval(round(total), n, confidence)
        low, high = min(low, plain.low), max(high, plain.high)
    return Interval(low, high, "cluster t")


@lru_cache(maxsize=256)
def t_critical_value(confidence: float, degrees_of_freedom: int) -> float:
    """The t that Student's |T| stays below with probability `confidence`.

    With t = √ν · tan θ, P(|T| ≤ t) is a finite sum in sin θ and cos θ (Abramowitz and Stegun 26.7.3, 26.7.4):
    ν odd  2/π · (θ + sin θ · (cos θ + 2/3 cos³ θ + … to cos^(ν−2) θ)), ν even  sin θ · (1 + 1/2 cos² θ + …).
    It is solved by Newton's method; from 200 degrees of freedom the expansion about the normal quantile
    (26.7.5) is used. One degree of freedom is the least.

    >>> round(t_critical_value(0.95, 1), 4)  # tan(0.95 · π/2)
    12.7062
    """
    check_confidence("t_critical_value", confidence)
    if degrees_of_freedom < 1:
        raise ValueError(f"t_critical_value: degrees_of_freedom must be at least 1; received {degrees_of_freedom!r}")
    if degrees_of_freedom >= EXPANSION_FROM_DEGREES:
        return _expanded_t_critical_value(confidence, degrees_of_freedom)
    slope_at_zero = (2.0 / math.sqrt(math.pi)) * math.exp(
        math.lgamma((degrees_of_freedom + 1) / 2) - math.lgamma(degrees_of_freedom / 2)
    )
    angle = 0.0
    # The probability is concave in the angle, so Newton's steps from 0 approach the root from below and never
    # pass it; a step that no longer moves the angle forward is rounding.
    for _ in range(200):
        missing = confidence - _probability_within(angle, degrees_of_freedom)
        step = missing / (slope_at_zero * math.cos(angle) ** (degrees_of_freedom - 1))
        if angle + step <= angle:
            break
        angle += step
    return math.sqrt(degrees_of_freedom) * math.tan(angle)


def _probability_within(angle: float, degrees_of_freedom: int) -> float:
    cosine = math.cos(angle)
    odd = degrees_of_freedom % 2
    term = math.sin(angle) * (cosine if odd else 1.0)
    series = 0.0
    for power in range(2 + odd, degrees_of_freedom + 1, 2):
        series += term
        term *= cosine * cosine * (power - 1) / power
    return (2.0 / math.pi) * (angle + series) if odd else series


def _expanded_t_critical_value(confidence: float, degrees_of_freedom: int) -> float:
    z = _normal_critical_value(confidence)
    s = z * z
    corrections = (
        (s + 1) / 4,
        ((5 * s + 16) * s + 3) / 96,
        (((3 * s + 19) * s + 17) * s - 15) / 384,
        ((((79 * s + 776) * s + 1482) * s - 1920) * s - 945) / 92160,
    )
    return z + sum(z * term / float(degrees_of_freedom) ** power for power, term in enumerate(corrections, start=1))


def _normal_critical_value(confidence: float) -> float:
    # The standard module pulls in fractions and decimal: ten milliseconds that only an interval should cost.
    from statistics import NormalDist

    return -NormalDist().inv_cdf((1.0 - confidence) / 2.0)


def bootstrap_mean_interval(
    values: Sequence[float], *, confidence: float = 0.95, resamples: int = 1000, seed: int = 0
) -> Interval | None:
    """The percentile bootstrap interval of a mean: the middle share of the means of resampled samples.

    Draw n values with replacement, take their mean, repeat; the interval runs between the quantiles of those
    means. The same values, seed and settings give the same interval. Large samples get fewer resamples (about
    400,000 draws in all, though never below 200 resamples by this rule). It stays within the sample's range,
    so a sample of equal values has zero width, and below some 30 values it is narrower than it claims: for a
    skewed score a nominal 95 % covers about 80 % at n = 5 and 87 % at n = 10. Fewer than two values: None.
    Source: Efron and Tibshirani, "An Introduction to the Bootstrap" (1993), chapter 13.

    >>> bootstrap_mean_interval([0.0, 4.0])  # both extremes are drawn in a quarter of the resamples
    Interval(low=0.0, high=4.0, method='bootstrap')
    """
    check_confidence("bootstrap_mean_interval", confidence)
    check_resamples("bootstrap_mean_interval", resamples)
    sample = finite_floats("bootstrap_mean_interval", "values", values)
    n = len(sample)
    if n < 2:
        return None
    least, largest = min(sample), max(sample)
    if least == largest:
        return Interval(least, least, "bootstrap")
    draw = random.Random(seed).choices
    affordable = max(FEWEST_RESAMPLES, DRAW_BUDGET // n)
    # fsum, not sum: sum's rounding differs between Python versions, and a stored interval must not.
    totals = sorted([math.fsum(draw(sample, k=n)) for _ in range(min(resamples, affordable))])
    spread = percentile_interval([total / n for total in totals], confidence)
    return Interval(max(least, spread.low), min(largest, spread.high), "bootstrap")


def mean_interval(
    values: Sequence[float],
    *,
    shares: bool = True,
    confidence: float = 0.95,
    resamples: int = 1000,
    seed: int = 0,
) -> Interval | None:
    """The interval of a mean by the method that suits the sample.

    Every value 0 or 1: Wilson, so that a sample of nothing but passes still shows its doubt; not where the values
    are no `shares` but counts or amounts that happen to be 0 or 1. Otherwise percentile bootstrap from 30 to 2000
    values, Student's t for fewer and for more; t is not held to a score's range. Fewer than two values: None.
    Equal values other than passes or failures give a zero-width interval: the sample holds no sign of its spread.

    >>> mean_interval([1, 1, 1, 1]).method, mean_interval([0.5, 0.5, 0.7]).method
    ('wilson', 't')
    >>> mean_interval([1, 1, 1, 1], shares=False)  # four calls of one second each
    Interval(low=1.0, high=1.0, method='t')
    """
    check_confidence("mean_interval", confidence)
    check_resamples("mean_interval", resamples)
    sample = finite_floats("mean_interval", "values", values)
    n = len(sample)
    if n < 2:
        return None
    successes = sample.count(1.0)
    if shares and successes + sample.count(0.0) == n:
        return wilson_interval(successes, n, confidence)
    if FEWEST_BOOTSTRAP_N <= n <= LARGEST_BOOTSTRAP_N:
        return bootstrap_mean_interval(sample, confidence=confidence, resamples=resamples, seed=seed)
    # Rounding may carry the mean of equal values out of their range, and give them a spread.
    mean = min(max(sample), max(min(sample), math.fsum(sample) / n))
    sample_variance = math.fsum([(value - mean) ** 2 for value in sample]) / (n - 1)
    return normal_interval(mean, sample_variance, n, confidence)


def krippendorff_alpha(units: Sequence[Sequence[float]]) -> float | None:
    """The agreement of any number of raters beyond chance; each unit holds what its raters said, in any order.

    1 − D_o / D_e: the mean squared difference of two values within a unit (each unit weighted by its values, pairs by
    1 / (m − 1)) against that of any two values. For values 0 and 1 this is the alpha of two categories. 1 is full
    agreement, 0 is chance, below 0 is worse. Units with fewer than two values tell nothing; where none has two, or
    all values are the same: None.
    Source: Krippendorff, Content Analysis (1980), interval metric.

    >>> krippendorff_alpha([[1, 1], [1, 0], [0, 0], [0, 0]])  # D_o = 2/8, D_e = 2·3·5/(8·7) = 30/56
    0.5333333333333333
    """
    for unit in units:
        finite_floats("krippendorff_alpha", "units", unit)
    rated = [unit for unit in units if len(unit) > 1]
    values = list(chain.from_iterable(rated))
    n = len(values)
    expected = _squared_differences(values) / (n * (n - 1)) if n else 0.0
    if expected <= 0.0:
        return None
    return 1.0 - fsum(_squared_differences(unit) / (len(unit) - 1) for unit in rated) / n / expected


def _squared_differences(values: Sequence[float]) -> float:
    """The sum of (a − b)² over all ordered pairs."""
    mean = fsum(values) / len(values)
    return 2.0 * len(values) * fsum((value - mean) ** 2 for value in values)


# A monotone mapping, fitted to pairs elsewhere.


class Knot(NamedTuple):
    """A point of a mapping: this score becomes this value."""

    score: float
    value: float


def mapped(score: float, knots: Sequence[Knot]) -> float:
    """A score by a mapping: on the line between its neighbors, and at the ends that of the first or last knot.

    >>> mapped(0.5, [Knot(0.0, 0.1), Knot(1.0, 0.3)]), mapped(2.0, [Knot(0.0, 0.1)])
    (0.2, 0.1)
    """
    if not knots:
        return score
    if score <= knots[0].score:
        return knots[0].value
    for before, after in pairwise(knots):
        if score <= after.score:
            share = (score - before.score) / (after.score - before.score) if after.score > before.score else 1.0
            return before.value + share * (after.value - before.value)
    return knots[-1].value
