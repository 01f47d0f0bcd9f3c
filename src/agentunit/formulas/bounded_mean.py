"""The mean of values that lie in a known range, whatever their distribution: bounds of it, and growing evidence.

The bounds are Gaffke's, weighted. One unseen value at the worst end of the range joins the sample, and the bound is a
quantile of the sample's mean under random weights. For pass/fail values it is the exact binomial bound. That it holds
for every distribution is a conjecture without a known exception.
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


# Bets as shares of the largest that cannot lose everything: small ones for small differences.
_LARGEST_BET, _SMALLEST_BET, _N_BETS = 0.95, 0.02, 12
_BETS = tuple(_LARGEST_BET * (_SMALLEST_BET / _LARGEST_BET) ** (step / (_N_BETS - 1)) for step in range(_N_BETS))


class MeanEvidence:
    r"""How strongly values from ``low`` to ``high`` speak for a mean above (``side="above"``) or below a threshold.

    Capital that starts at 1 is bet on each value: with a bet λ it is multiplied by ``1 + λ (x − threshold)``. If the
    mean does not lie beyond the threshold, capital is not expected to grow, so it ever reaches 1/α with a chance of at
    most α (Ville's inequality), whenever one looks. The capital is spread evenly over twelve bets of fixed size, so
    that neither the size of the difference nor the spread of the values needs to be known beforehand. Values must come
    in an order that does not depend on them, each with the same mean given those before it.

    ``p_value`` is the smallest α at which the capital has ever been enough.

    Waudby-Smith, Ramdas: Estimating means of bounded random variables by betting (2024).

    >>> evidence = MeanEvidence(0.5, "above")
    >>> for _ in range(8):
    ...     evidence.add(1.0)
    >>> evidence.shows(0.05)
    True
    >>> evidence.add(0.0)
    >>> evidence.shows(0.05)  # what was shown stays shown
    True
    """

    def __init__(self, threshold: float, side: str, *, low: float = 0.0, high: float = 1.0) -> None:
        if not low < high:
            raise ValueError(f"MeanEvidence: low must be below high; received {low!r} and {high!r}")
        if side not in ("above", "below"):
            raise ValueError(f"MeanEvidence: side must be above or below; received {side!r}")
        self._low, self._width = low, high - low
        self._turned = side == "below"
        self._threshold = self._scaled(threshold)
        self.n = 0
        self._logs = [0.0] * _N_BETS
        self._best = 0.0

    def add(self, value: float) -> None:
        """Take one more value."""
        self.add_group([value], 1)

    def add_group(self, values: Sequence[float], largest: int) -> None:
        """Take values that depend on each other as one: groups are independent, and none has more than ``largest``.

        It counts as threshold + Σ (x − threshold) / largest, whose mean over groups lies beyond the threshold exactly
        where the mean over all values does.

        >>> evidence = MeanEvidence(0.5, "above")
        >>> evidence.add_group([1.0, 1.0, 0.0], largest=4)  # 0.5 + 0.5 / 4: one step of 0.125 above
        >>> other = MeanEvidence(0.5, "above")
        >>> other.add(0.625)
        >>> evidence.n, evidence.log_capital() == other.log_capital()
        (1, True)
        """
        if not 0 < len(values) <= largest:
            raise ValueError(f"MeanEvidence: a group must have from 1 to {largest} values; received {len(values)}")
        for value in values:
            if not -1e-9 <= self._scaled(value) <= 1.0 + 1e-9:
                high = self._low + self._width
                raise ValueError(f"MeanEvidence: value must be from {self._low:g} to {high:g}; received {value!r}")
        excess = math.fsum([self._scaled(value) - self._threshold for value in values]) / largest
        self.n += 1
        # No mean lies above the greatest value, and every mean but the least lies above that: nothing to bet on.
        if self._threshold >= 1.0:
            return
        gain = excess / max(self._threshold, 1e-12)
        self._logs = [log + math.log1p(bet * gain) for log, bet in zip(self._logs, _BETS, strict=True)]
        self._best = max(self._best, self.log_capital())

    @property
    def p_value(self) -> float:
        """The smallest error rate at which the evidence has ever been enough."""
        return math.exp(-self._best)

    def shows(self, alpha: float) -> bool:
        """Whether the mean lies beyond the threshold; wrong with a chance of at most ``alpha``, however often asked."""
        return self._best >= -math.log(alpha)

    def values_needed(self, alpha: float) -> int | None:
        """About how many more values would do if they went on like those so far; ``None`` if none ever would."""
        if self.shows(alpha):
            return 0
        rate = max(self._logs) / self.n if self.n else 0.0
        lacking = -math.log(alpha) - self.log_capital()
        return math.ceil(lacking / rate) if rate > 1e-9 else None

    def _scaled(self, value: float) -> float:
        scaled = (value - self._low) / self._width
        return 1.0 - scaled if self._turned else scaled

    def log_capital(self) -> float:
        """The natural logarithm of the capital now."""
        most = max(self._logs)
        return most + math.log(math.fsum(math.exp(log - most) for log in self._logs) / _N_BETS)
