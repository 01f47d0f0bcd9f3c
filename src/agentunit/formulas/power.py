"""What a comparison of that many cases could have seen: an insignificant result is no news if nothing could show.

Both functions are about the one-sample t test of paired differences, and serve as well for the sign-flip test.
"""

from __future__ import annotations

import math

from agentunit.formulas.statistics import LARGEST_MAGNITUDE, t_critical_value

# Beyond any evaluation; the search would otherwise run on towards an effect that rounding hides.
MOST_CASES = 10**12
# A confidence of 1 − alpha still has digits enough here for Student's critical value.
LEAST_ALPHA = 1e-9


def smallest_detectable_effect(sd: float, n: int, *, alpha: float = 0.05, power: float = 0.8, sides: int = 1) -> float:
    """The mean difference that n paired cases find significant with the chance `power`.

    (t · (1 − 1/4ν) + z · √(1 + t²/2ν)) · sd / √n, where `sd` is the standard deviation of the differences,
    ν = n − 1, t is Student's critical value at alpha / sides and z the normal quantile at `power`. The bracket
    approximates the noncentral t distribution: within 1 % of it from n = 5 at an alpha of 0.05 and a power of
    0.8 (2 % at n = 3, 5 % at n = 2), and tends to the textbook z_alpha + z_power as n grows. 0 or more;
    sd = 0 gives 0. Fewer than two cases have no sd: an error.
    Source: Abramowitz and Stegun 26.7.10; Johnson and Welch, Biometrika 31 (1940).

    >>> round(smallest_detectable_effect(1.0, 10_000), 4)  # (1.6449 + 0.8416) / √10000
    0.0249
    """
    who = "smallest_detectable_effect"
    _check_settings(who, sd, alpha, power, sides)
    if n < 2:
        raise ValueError(f"{who}: n must be at least 2; received {n!r}")
    # The standard module pulls in fractions and decimal: ten milliseconds that only a power question should cost.
    from statistics import NormalDist

    degrees = n - 1
    # The critical value is two-sided: a confidence of 1 − 2 · alpha leaves alpha above it.
    t = t_critical_value(1.0 - 2.0 * alpha / sides, degrees)
    z = NormalDist().inv_cdf(power)
    standard_errors = t * (1.0 - 0.25 / degrees) + z * math.sqrt(1.0 + t * t / (2.0 * degrees))
    return standard_errors * (sd / math.sqrt(n))


def cases_needed(effect: float, sd: float, *, alpha: float = 0.05, power: float = 0.8, sides: int = 1) -> int | None:
    """The fewest paired cases that find a mean difference of `effect` significant with the chance `power`.

    The least n with smallest_detectable_effect(sd, n) ≤ |effect|; about ((z_alpha + z_power) · sd / effect)²,
    and a little more where that is small. At least 2. An effect of 0, or one that even 10¹² cases would miss:
    None.

    >>> cases_needed(0.1, 0.5)  # (2.4865 · 5)² = 154.6; Student's t asks for one more than 155
    156
    """
    who = "cases_needed"
    _check_settings(who, sd, alpha, power, sides)
    if not math.isfinite(effect):
        raise ValueError(f"{who}: effect must be finite; received {effect!r}")
    wanted = abs(effect)

    def detects(n: int) -> bool:
        return smallest_detectable_effect(sd, n, alpha=alpha, power=power, sides=sides) <= wanted

    if not wanted or not detects(MOST_CASES):
        return None
    enough = 2
    while not detects(enough):
        enough *= 2
    # Half of `enough` was tried and was too few, unless the least number did at once.
    too_few = enough // 2
    while enough - too_few > 1:
        middle = (too_few + enough) // 2
        if detects(middle):
            enough = middle
        else:
            too_few = middle
    return enough


def _check_settings(who: str, sd: float, alpha: float, power: float, sides: int) -> None:
    if not 0.0 <= sd < LARGEST_MAGNITUDE:
        raise ValueError(f"{who}: sd must be at least 0 and below {LARGEST_MAGNITUDE}; received {sd!r}")
    if not LEAST_ALPHA <= alpha < 0.5:
        raise ValueError(f"{who}: alpha must be at least {LEAST_ALPHA} and below 0.5; received {alpha!r}")
    if not 0.5 <= power < 1.0:
        raise ValueError(f"{who}: power must be at least 0.5 and below 1; received {power!r}")
    if sides not in (1, 2):
        raise ValueError(f"{who}: sides must be 1 or 2; received {sides!r}")
