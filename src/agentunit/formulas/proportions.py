"""Whether a candidate is no worse by more than a margin, without assuming that differences lie symmetrically.

Rare losses are what an evaluation is about, and what a symmetric test misses. Pass/fail scores have a score test of
their own; other scores have one that counts a single unseen case at the worst end of the scale. Beside them: what a
comparison of that many cases could have shown, since an insignificant result is no news if nothing could show.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence

from agentunit.formulas.statistics import LARGEST_MAGNITUDE, Interval, check_confidence, finite_floats, t_critical_value

# The exact sum takes a quarter of n² steps, a fifth of a second here; beyond it the normal law is as close.
LARGEST_EXACT_SUM = 2000
# A statistic that ties with the observed one differs from it by rounding alone.
TIE_TOLERANCE = 1e-9
# Beyond any evaluation; the search would otherwise run on toward an effect that rounding hides.
MOST_CASES = 10**12
# A confidence of 1 − alpha still has digits enough here for Student's critical value.
LEAST_ALPHA = 1e-9


def tango_statistic(b: int, c: int, n: int, difference: float) -> float:
    """How far two paired pass rates are from a supposed difference, in standard errors under that supposition.

    `b` of n cases passed only in the candidate, `c` only in the baseline. With D the supposed difference,
    (b − c − n·D) / √(n · (2q + D(1 − D))), where q is the most likely rate of "only in the baseline" given D:
    the upper root of 2n·q² + (−b − c + (2n − b + c)·D)·q − c·D(1 − D) = 0. Approximately standard normal; it
    falls as D grows. D = 0 is McNemar's (b − c) / √(b + c), and 0 where no case differs.
    Source: Tango, Stat. Med. 17 (1998).

    >>> round(tango_statistic(0, 1, 44, -0.1), 3)  # Tango's example: 43 of 44 lenses clean by both, one by the old way
    1.709
    """
    _check_counts("tango_statistic", b, c, n)
    if not -1.0 < difference < 1.0:
        raise ValueError(f"tango_statistic: difference must be above -1 and below 1; received {difference!r}")
    linear = -b - c + (2 * n - b + c) * difference
    constant = -c * difference * (1.0 - difference)
    root = (math.sqrt(max(0.0, linear * linear - 8 * n * constant)) - linear) / (4 * n)
    # Rounding alone could leave the rates that are possible at all.
    lost_rate = min((1.0 - difference) / 2.0, max(0.0, -difference, root))
    variance = n * (2.0 * lost_rate + difference * (1.0 - difference))
    return (b - c - n * difference) / math.sqrt(variance) if variance > 0.0 else 0.0


def paired_proportion_interval(b: int, c: int, n: int, confidence: float = 0.95) -> Interval:
    """The range of differences in pass rate that `b` gains and `c` losses in n cases leave plausible.

    All D with |tango_statistic| up to the two-sided normal critical value. Always within −1..1 and never of zero
    width: no change in 20 cases reads −0.16..0.16, not 0 ± 0.
    Source: Tango, Stat. Med. 17 (1998).

    >>> interval = paired_proportion_interval(0, 0, 20)  # ends at ± z² / (n + z²) = 3.8415 / 23.8415
    >>> round(interval.low, 4), round(interval.high, 4)
    (-0.1611, 0.1611)
    """
    check_confidence("paired_proportion_interval", confidence)
    _check_counts("paired_proportion_interval", b, c, n)
    # The standard module pulls in fractions and decimal: ten milliseconds that only an interval should cost.
    from statistics import NormalDist

    critical = -NormalDist().inv_cdf((1.0 - confidence) / 2.0)
    return Interval(-_upper_end(c, b, n, critical), _upper_end(b, c, n, critical), "score")


def _upper_end(b: int, c: int, n: int, critical: float) -> float:
    inside, outside = (b - c) / n, 1.0
    # Halving ends where two neighboring floats have nothing between them.
    while inside < (middle := (inside + outside) / 2.0) < outside:
        if tango_statistic(b, c, n, middle) >= -critical:
            inside = middle
        else:
            outside = middle
    return inside


def paired_proportion_test(b: int, c: int, n: int, *, margin: float) -> float:
    """The p-value of H0 "the candidate's pass rate is lower by the margin or more": non-inferiority of pass/fail.

    `b` of n cases passed only in the candidate, `c` only in the baseline. The upper tail of the normal law at
    tango_statistic(b, c, n, −margin), but no less than the exact chance of a statistic as high where every change
    is a loss: there, with few losses, the normal law is off. No change at all gives at least (1 − margin)ⁿ. By
    enumeration it falls below 0.05 in at most 6.5 % of samples under H0, from 20 cases and for margins up to 0.2.
    From 0 to 1.
    Source: Tango, Stat. Med. 17 (1998).

    >>> round(paired_proportion_test(0, 1, 44, margin=0.1), 4)  # 0.9⁴⁴ + 44 · 0.1 · 0.9⁴³, above Tango's 0.0438
    0.0571
    """
    who = "paired_proportion_test"
    _check_counts(who, b, c, n)
    if not 0.0 < margin < 1.0:
        raise ValueError(f"{who}: margin must be above 0 and below 1; received {margin!r}")
    observed = tango_statistic(b, c, n, -margin)
    most_losses = _most_losses(observed - TIE_TOLERANCE, n, margin)
    return max(0.5 * math.erfc(observed / math.sqrt(2.0)), _binomial_cdf(most_losses, n, margin))


def _most_losses(statistic: float, n: int, margin: float) -> int:
    """The most losses, without any gain, whose statistic is still that high; −1 when even none is not."""
    # The statistic falls with the losses; bisect wants what rises.
    return bisect_right(range(n + 1), -statistic, key=lambda losses: -tango_statistic(0, losses, n, -margin)) - 1


def _binomial_cdf(most: int, n: int, rate: float) -> float:
    if most >= n:
        return 1.0
    log_rate, log_rest = math.log(rate), math.log1p(-rate)
    log_n = math.lgamma(n + 1)
    terms = [
        math.exp(log_n - math.lgamma(k + 1) - math.lgamma(n - k + 1) + k * log_rate + (n - k) * log_rest)
        for k in range(most + 1)
    ]
    return min(1.0, math.fsum(terms))


def bounded_mean_test(differences: Sequence[float], *, margin: float, worst: float) -> float | None:
    """The p-value of H0 "the mean difference is −margin or lower", whatever the differences' distribution.

    Differences are candidate − baseline, higher being better, none possible below −worst. One unseen case at
    −worst joins them, and p is the chance that their mean with random weights (the gaps between uniform numbers)
    is −margin or lower. It is computed exactly: of a loss a and a gain b, both relative to −margin, with
    exponential weights, one is used up by the other, and the gain survives with the chance b / (a + b). Beyond
    2000 differences other than −margin the normal law takes its place, but p is never below the chance that the
    unseen case alone outweighs all gains. Nothing but zeros give (1 − margin / worst)ⁿ. From 0 to 1; no differences:
    None. For pass/fail it is the exact binomial test.
    That p is below alpha in at most the share alpha of samples under H0 is a conjecture without a known exception.
    Source: Gaffke, Math. Methods Stat. 14 (2005); Learned-Miller and Thomas, arXiv:1905.06208 (2019).

    >>> bounded_mean_test([1.0], margin=0.5, worst=2.0)  # gain 1.5 against the unseen loss 1.5
    0.5
    >>> round(bounded_mean_test([0.0] * 59, margin=0.05, worst=1.0), 4)  # 0.95⁵⁹
    0.0485
    """
    who = "bounded_mean_test"
    if not 0.0 < worst < LARGEST_MAGNITUDE:
        raise ValueError(f"{who}: worst must be above 0 and below {LARGEST_MAGNITUDE}; received {worst!r}")
    if not 0.0 < margin < worst:
        raise ValueError(f"{who}: margin must be above 0 and below worst = {worst!r}; received {margin!r}")
    sample = finite_floats(who, "differences", differences)
    if not sample:
        return None
    lowest = min(sample)
    if lowest < -worst:
        raise ValueError(f"{who}: differences must be at least -worst = {-worst!r}; received {lowest!r}")
    # In units of the worst, so that neither products nor squares leave the range of a float.
    relative = [(difference + margin) / worst for difference in sample]
    relative.append(margin / worst - 1.0)
    losses = sorted(-each for each in relative if each < 0.0)
    gains = sorted(each for each in relative if each > 0.0)
    if len(losses) + len(gains) > LARGEST_EXACT_SUM + 1:
        spread = math.sqrt(math.fsum([each * each for each in relative]))
        by_normal_law = 0.5 * math.erfc(math.fsum(relative) / spread / math.sqrt(2.0))
        # The one unseen loss is what the normal law misses where the margin is a small part of the worst.
        return max(by_normal_law, math.exp(-math.fsum([math.log1p(gain / losses[-1]) for gain in gains])))
    # survives[j]: the chance that some loss is left over from the losses so far against the first j gains.
    survives = [0.0] * (len(gains) + 1)
    for loss in losses:
        left_over = survives[0] = 1.0
        for j, gain in enumerate(gains, start=1):
            left_over = (gain * survives[j] + loss * left_over) / (loss + gain)
            survives[j] = left_over
    return survives[-1]


def cases_to_show_no_worse(
    margin: float, sd: float, *, worst: float | None = None, alpha: float = 0.05, power: float = 0.8
) -> int | None:
    """About how many cases show with the chance `power` that an unchanged candidate is no worse by the margin.

    The least n that meets two needs: (1 − margin / worst)ⁿ ≤ alpha, since fewer could hide one loss in
    worst / margin cases, and (n + 1)·margin − worst ≥ z_alpha · √(n·(sd² + margin²) + worst²) + z_power · sd · √n,
    the normal law for `bounded_mean_test`. `sd` is the spread of the differences. Without `worst` it is for
    `paired_proportion_test`: losses are at most 1, and n·margin ≥ (z_alpha + z_power) · sd · √n. More than
    10¹² cases: None.

    >>> cases_to_show_no_worse(0.05, 0.0)  # ln 0.05 / ln 0.95 = 58.4
    59
    """
    who = "cases_to_show_no_worse"
    largest_loss = 1.0 if worst is None else worst
    if not 0.0 < margin < largest_loss:
        raise ValueError(f"{who}: margin must be above 0 and below {largest_loss!r}; received {margin!r}")
    if not 0.0 <= sd < LARGEST_MAGNITUDE:
        raise ValueError(f"{who}: sd must be at least 0 and below {LARGEST_MAGNITUDE}; received {sd!r}")
    for parameter, value, most in (("alpha", alpha, 0.5), ("power", power, 1.0)):
        if not 0.0 < value < most:
            raise ValueError(f"{who}: {parameter} must be above 0 and below {most}; received {value!r}")
    from statistics import NormalDist

    z_alpha, z_power = -NormalDist().inv_cdf(alpha), NormalDist().inv_cdf(power)
    bound, spread = margin / largest_loss, sd / largest_loss
    fewest = math.log(alpha) / math.log1p(-bound)

    def enough(n: int) -> bool:
        if n < fewest:
            return False
        doubt = z_power * spread * math.sqrt(n)
        if worst is None:
            return n * bound >= z_alpha * spread * math.sqrt(n) + doubt
        return (n + 1) * bound - 1.0 >= z_alpha * math.sqrt(n * (spread**2 + bound**2) + 1.0) + doubt

    return _fewest_cases(enough)


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

    return _fewest_cases(detects, least=2) if wanted else None


def _fewest_cases(enough: Callable[[int], bool], least: int = 1) -> int | None:
    """The fewest cases, `least` or more, that are enough, as all larger numbers are; ``None`` above 10¹²."""
    if not enough(MOST_CASES):
        return None
    return least + bisect_left(range(least, MOST_CASES), True, key=enough)


def _check_settings(who: str, sd: float, alpha: float, power: float, sides: int) -> None:
    if not 0.0 <= sd < LARGEST_MAGNITUDE:
        raise ValueError(f"{who}: sd must be at least 0 and below {LARGEST_MAGNITUDE}; received {sd!r}")
    if not LEAST_ALPHA <= alpha < 0.5:
        raise ValueError(f"{who}: alpha must be at least {LEAST_ALPHA} and below 0.5; received {alpha!r}")
    if not 0.5 <= power < 1.0:
        raise ValueError(f"{who}: power must be at least 0.5 and below 1; received {power!r}")
    if sides not in (1, 2):
        raise ValueError(f"{who}: sides must be 1 or 2; received {sides!r}")


def _check_counts(who: str, b: int, c: int, n: int) -> None:
    if n < 1:
        raise ValueError(f"{who}: n must be at least 1; received {n!r}")
    for parameter, count in (("b", b), ("c", c)):
        if count < 0:
            raise ValueError(f"{who}: {parameter} must be at least 0; received {count!r}")
    if b + c > n:
        raise ValueError(f"{who}: b + c must be at most n = {n}; received {b + c!r}")
