"""Whether two runs over the same cases differ: tests, intervals and effect sizes of paired differences.

A difference is candidate − baseline of one case; average a case's repeats first, since a test counts every
difference as independent evidence. Differences are finite and below 1e140 in size.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Hashable, Sequence
from importlib import import_module
from operator import getitem
from typing import Any, Literal

from agentunit.formulas.repeats import cluster_bootstrap_mean_interval
from agentunit.formulas.statistics import (
    FEWEST_BOOTSTRAP_N,
    LARGEST_MAGNITUDE,
    Interval,
    bootstrap_mean_interval,
    check_resamples,
    finite_floats,
    mean_interval,
)

Alternative = Literal["two-sided", "greater", "less"]

# 0.9 − 0.8 and 0.1 differ in the last bits; sums that close, relative to the sum of all sizes, are tied.
TIE_TOLERANCE = 1e-10
# The sum of all sizes in units of the whole-number scale: every signed sum of rounded parts fits 64 bits.
SCALE = 2**60
# Sign tables of this many differences at a time stay in the processor's cache: three times as fast as all at once.
BLOCK_SIZE = 512
# Loading numpy takes about as long as this many differences take without it.
NUMPY_FROM_DIFFERENCES = 2_000
# Up to here C(n, k) / 2ⁿ in whole numbers takes about a millisecond; from logarithms a million pairs still have nine
# digits right.
LARGEST_EXACT_PAIRS = 10_000
# Up to here the exact power takes some tenths of a second; beyond it the normal law is within half a point of it.
LARGEST_EXACT_POWER = 500


def paired_permutation_test(
    differences: Sequence[float],
    *,
    alternative: Alternative = "two-sided",
    margin: float = 0.0,
    resamples: int = 10_000,
    seed: int = 0,
) -> float | None:
    """The p-value of a mean difference, by asking how often random signs would take it as far.

    If the two runs do not differ, each difference could as well have had the other sign. p is the share of the
    sign choices whose sum is at least as extreme as the observed one: at least as high ("greater"), as low
    ("less"), or as far from 0 ("two-sided"). All 2ⁿ choices are taken when that is at most `resamples`,
    n counting the differences other than 0; otherwise m = `resamples` seeded random ones, and
    p = (as extreme + 1) / (m + 1). Above 0, at most 1; only zeros: 1; no differences: None.

    `margin` makes it a test of non-inferiority, of H0 "the mean difference is −margin or lower" ("greater") or
    "margin or higher" ("less"): the differences are shifted by the margin first. Under H0 they must then lie
    symmetrically about 0, and with pass/fail scores they do not: where losses are few, p comes out too small
    (50 cases, 5 % of them lost, margin 0.05: three in ten runs fall below p = 0.05).
    Source: Fisher, "The Design of Experiments" (1935), section 21; Phipson and Smyth, "Permutation p-values
    should never be zero", Stat. Appl. Genet. Mol. Biol. 9 (2010).

    >>> paired_permutation_test([1.0, 2.0, 3.0], alternative="greater")  # of 8 sign choices only + + + reaches 6
    0.125
    >>> paired_permutation_test([1.0, 2.0, -3.0])  # a sum of 0 is the least extreme
    1.0
    """
    who = "paired_permutation_test"
    _check_alternative(who, alternative)
    check_resamples(who, resamples)
    if not 0.0 <= margin < LARGEST_MAGNITUDE:
        raise ValueError(f"{who}: margin must be at least 0 and below {LARGEST_MAGNITUDE}; received {margin!r}")
    if margin and alternative == "two-sided":
        raise ValueError(f"{who}: alternative must be 'greater' or 'less' with a margin; received {alternative!r}")
    sample = finite_floats(who, "differences", differences)
    if not sample:
        return None
    if alternative == "less":
        sample = [-difference for difference in sample]
    parts = _whole_number_parts([_shifted(difference, margin) for difference in sample])
    if not parts:
        return 1.0
    tolerance = int(TIE_TOLERANCE * SCALE)
    exact = len(parts) < resamples.bit_length()
    sums = _every_signed_sum(parts) if exact else _random_signed_sums(parts, resamples, seed)
    if alternative == "two-sided":
        least_extreme = abs(sum(parts)) - tolerance
        extreme = sum([abs(total) >= least_extreme for total in sums])
    else:
        least_extreme = sum(parts) - tolerance
        extreme = sum([total >= least_extreme for total in sums])
    return extreme / len(sums) if exact else (extreme + 1) / (resamples + 1)


def mcnemar_test(b: int, c: int, *, alternative: Alternative = "two-sided") -> float:
    """The p-value of a difference in pass rates, from the cases on which two runs disagree.

    `b` cases passed only in the candidate, `c` only in the baseline. If the runs do not differ, b is binomial
    with b + c draws and chance 1/2. "greater" (the candidate is better): P(B ≥ b); "less": P(B ≤ b);
    "two-sided": twice the smaller, at most 1. No disagreement: 1. Exact; below 1e-308 it may come out as 0.
    Source: McNemar, Psychometrika 12 (1947), in its exact form.

    >>> mcnemar_test(4, 1)  # 2 · (5 + 1) / 32
    0.375
    >>> mcnemar_test(4, 1, alternative="greater")
    0.1875
    """
    _check_alternative("mcnemar_test", alternative)
    for parameter, count in (("b", b), ("c", c)):
        if count < 0:
            raise ValueError(f"mcnemar_test: {parameter} must be at least 0; received {count!r}")
    if alternative == "greater":
        return _fair_coin_tail(b, b + c)
    if alternative == "less":
        return _fair_coin_tail(c, b + c)
    return min(1.0, 2.0 * _fair_coin_tail(max(b, c), b + c))


def smallest_detectable_drop(b: int, c: int, n: int, *, alpha: float = 0.05, power: float = 0.8) -> float | None:
    """The drop in pass rate that the one-sided McNemar test of n cases finds with the chance `power`.

    `b` cases passed only in the candidate, `c` only in the baseline; half of them are taken to be gains and half
    losses that chance makes again, each at the rate r = (b + c) / 2n. A drop of δ adds losses at the rate δ. The
    disagreements are then binomial with n draws and the chance 2r + δ, of which each is a loss with the chance
    (r + δ) / (2r + δ); the result is the least δ for which so many are losses, often enough, that a fair coin makes
    them below alpha. Exact up to 500 cases, the normal law beyond. No drop is seen often enough: None.
    Source: Connor, Biometrics 43 (1987).

    >>> round(smallest_detectable_drop(0, 0, 66), 3)  # five or more losses are needed; 66 draws with 0.0996: 80 %
    0.1
    >>> smallest_detectable_drop(0, 0, 4) is None  # four losses of four have p = 1/16
    True
    """
    who = "smallest_detectable_drop"
    mcnemar_test(b, c)
    if n < max(1, b + c):
        raise ValueError(f"{who}: n must be at least 1 and at least b + c = {b + c!r}; received {n!r}")
    for parameter, value, most in (("alpha", alpha, 0.5), ("power", power, 1.0)):
        if not 0.0 < value < most:
            raise ValueError(f"{who}: {parameter} must be above 0 and below {most}; received {value!r}")
    rate = (b + c) / (2.0 * n)
    finds = _exact_power(n, rate, alpha) if n <= LARGEST_EXACT_POWER else _normal_power(n, rate, alpha)
    missed, found = 0.0, 1.0 - 2.0 * rate
    if found <= 0.0 or finds(found) < power:
        return None
    while found - missed > 1e-5:
        middle = (missed + found) / 2.0
        if finds(middle) < power:
            missed = middle
        else:
            found = middle
    return found


def _exact_power(n: int, rate: float, alpha: float) -> Callable[[float], float]:
    # The fewest losses among so many disagreements whose p-value is below alpha.
    fewest, least = [], 0
    for disagreements in range(n + 1):
        # One more disagreement never asks for fewer losses, nor for more than one more.
        while least <= disagreements and _fair_coin_tail(least, disagreements) >= alpha:
            least += 1
        fewest.append(least)
    log_choices = [math.lgamma(k + 1) for k in range(n + 2)]

    def chance(k: int, of: int, log_rate: float, log_rest: float) -> float:
        return math.exp(log_choices[of] - log_choices[k] - log_choices[of - k] + k * log_rate + (of - k) * log_rest)

    def power_of(drop: float) -> float:
        both = min(2.0 * rate + drop, 1.0 - 1e-12)
        loss = min(max((rate + drop) / both, 1e-12), 1.0 - 1e-12)
        total = []
        for disagreements in range(n + 1):
            weight = chance(disagreements, n, math.log(both), math.log1p(-both))
            if weight > 1e-9:
                logs = math.log(loss), math.log1p(-loss)
                tail = [chance(k, disagreements, *logs) for k in range(fewest[disagreements], disagreements + 1)]
                total.append(weight * math.fsum(tail))
        return math.fsum(total)

    return power_of


def _normal_power(n: int, rate: float, alpha: float) -> Callable[[float], float]:
    from statistics import NormalDist

    normal = NormalDist()
    critical = -normal.inv_cdf(alpha)

    def power_of(drop: float) -> float:
        both = 2.0 * rate + drop
        spread = math.sqrt(max(both - drop * drop, 1e-12))
        return normal.cdf((drop * math.sqrt(n) - critical * math.sqrt(both)) / spread)

    return power_of


def paired_bootstrap_interval(
    differences: Sequence[float],
    *,
    clusters: Sequence[Hashable] | None = None,
    confidence: float = 0.95,
    resamples: int = 1000,
    seed: int = 0,
) -> Interval | None:
    """The interval of a mean difference, by percentile bootstrap; with `clusters`, drawn over whole clusters.

    As `bootstrap_mean_interval` of the differences, or `cluster_bootstrap_mean_interval` where several of them
    belong together (repeats of a case, questions about one document). Below 30 differences without clusters
    Student's t takes its place: so few resampled claim too much. Equal differences give zero width, however few
    they are. Fewer than two differences (or clusters): None.

    >>> interval = paired_bootstrap_interval([0.0, 4.0])  # t = 12.706 with one degree of freedom, √(8 / 2) = 2
    >>> round(interval.low, 3), round(interval.high, 3), interval.method
    (-23.412, 27.412, 't')
    """
    who = "paired_bootstrap_interval"
    sample = finite_floats(who, "differences", differences)
    if clusters is None:
        if len(sample) < FEWEST_BOOTSTRAP_N:
            return mean_interval(sample, shares=False, confidence=confidence, resamples=resamples)
        return bootstrap_mean_interval(sample, confidence=confidence, resamples=resamples, seed=seed)
    if len(clusters) != len(sample):
        raise ValueError(f"{who}: clusters must be as long as differences, {len(sample)}; received {len(clusters)}")
    return cluster_bootstrap_mean_interval(sample, clusters, confidence=confidence, resamples=resamples, seed=seed)


def effect_size(differences: Sequence[float]) -> float | None:
    """The mean difference in units of the differences' own spread (Cohen's d_z).

    mean / √(Σ (difference − mean)² / (n − 1)); unbounded, 0 for no mean difference. By Cohen's convention 0.2
    is small, 0.5 medium, 0.8 large. Fewer than two differences, or none that differ from each other by more
    than rounding: None.
    Source: Cohen, "Statistical Power Analysis for the Behavioral Sciences", 2nd edition (1988), section 2.3.5.

    >>> effect_size([1.0, 3.0, 5.0])  # mean 3, sd √((4 + 0 + 4) / 2) = 2
    1.5
    """
    sample = finite_floats("effect_size", "differences", differences)
    n = len(sample)
    largest = max(map(abs, sample), default=0.0)
    if n < 2 or max(sample) - min(sample) <= TIE_TOLERANCE * largest:
        return None
    # Brought near 1 by a power of two, which rounds nothing, so that the squares of tiny differences do not vanish.
    exponent = math.frexp(largest)[1]
    relative = [math.ldexp(difference, -exponent) for difference in sample]
    mean = math.fsum(relative) / n
    return mean / math.sqrt(math.fsum([(value - mean) ** 2 for value in relative]) / (n - 1))


def holm(p_values: Sequence[float]) -> list[float]:
    """p-values of several tests, raised so that the chance of any false alarm stays below the level they are held to.

    In ascending order the i-th of m (from 1) is multiplied by m − i + 1, and is no less than any before it and
    no more than 1. The results stand in the order given; none is below its own p-value. No values: an
    empty list.
    Source: Holm, Scand. J. Stat. 6 (1979).

    >>> holm([0.25, 0.0625, 0.125])  # 3 · 0.0625; 2 · 0.125; 1 · 0.25, which is no less than the 0.25 before it
    [0.25, 0.1875, 0.25]
    """
    for position, p_value in enumerate(p_values):
        if not 0.0 <= p_value <= 1.0:
            raise ValueError(f"holm: p_values must be between 0 and 1; received {p_value!r} at position {position}")
    adjusted = [0.0] * len(p_values)
    highest = 0.0
    for rank, position in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__)):
        highest = max(highest, min(1.0, (len(p_values) - rank) * p_values[position]))
        adjusted[position] = highest
    return adjusted


def _shifted(difference: float, margin: float) -> float:
    shifted = difference + margin
    # 0.75 − 0.8 + 0.05 is −4e-17: a case exactly at the margin must not pull to either side.
    return 0.0 if margin and abs(shifted) <= TIE_TOLERANCE * margin else shifted


def _whole_number_parts(differences: Sequence[float]) -> list[int]:
    """The differences as whole numbers of which the sizes add up to about SCALE, without the zeros.

    Whole numbers add up to the same sum in any order and on any Python version, and `sum` is at its fastest.
    """
    total_size = math.fsum(map(abs, differences))
    if not total_size:
        return []
    parts = [round(difference / total_size * SCALE) for difference in differences]
    return [part for part in parts if part]


def _every_signed_sum(parts: Sequence[int]) -> list[int]:
    sums = [0]
    for part in parts:
        sums = [total + part for total in sums] + [total - part for total in sums]
    return sums


def _random_signed_sums(parts: Sequence[int], resamples: int, seed: int) -> list[int]:
    random_bytes = random.Random(seed).randbytes
    numpy = _numpy_if_worth_it(len(parts))
    sums: Any = [0] * resamples
    for start in range(0, len(parts), BLOCK_SIZE):
        block = parts[start : start + BLOCK_SIZE]
        # A random byte is the signs of eight differences at once: it picks their signed sum from a table.
        tables = [
            _every_signed_sum([*block[at : at + 8], *[0] * (at + 8 - len(block))]) for at in range(0, len(block), 8)
        ]
        width = len(tables)
        draws = [random_bytes(width) for _ in range(resamples)]
        if numpy is None:
            sums = [total + sum(map(getitem, tables, signs)) for total, signs in zip(sums, draws, strict=True)]
        else:
            sums = _added_by_numpy(numpy, sums, tables, b"".join(draws))
    return [int(total) for total in sums]


def _numpy_if_worth_it(n_differences: int) -> Any:
    """numpy, where it is installed and the work is long enough to be worth loading it; else ``None``."""
    if n_differences < NUMPY_FROM_DIFFERENCES:
        return None
    try:
        return import_module("numpy")
    except ImportError:
        return None


def _added_by_numpy(numpy: Any, sums: Any, tables: Sequence[Sequence[int]], draws: bytes) -> Any:
    """The same sums of the same signs: whole numbers of 64 bits, so not a digit depends on who adds them."""
    totals = numpy.asarray(sums, dtype=numpy.int64)
    signs = numpy.frombuffer(draws, dtype=numpy.uint8).reshape(len(totals), len(tables))
    for position, table in enumerate(tables):
        totals = totals + numpy.asarray(table, dtype=numpy.int64)[signs[:, position]]
    return totals


def _fair_coin_tail(least: int, n: int) -> float:
    """The chance of `least` or more heads in n tosses."""
    if 2 * least <= n:
        # More than half of the distribution: the other tail has fewer terms and loses no digits.
        return 1.0 - _fair_coin_tail(n - least + 1, n) if least else 1.0
    if least > n:
        return 0.0
    if n <= LARGEST_EXACT_PAIRS:
        term = math.comb(n, least) / (1 << n)
    else:
        log_choices = math.lgamma(n + 1) - math.lgamma(least + 1) - math.lgamma(n - least + 1)
        term = math.exp(log_choices - n * math.log(2.0))
    terms = []
    heads = least
    while term:
        terms.append(term)
        term *= (n - heads) / (heads + 1)
        heads += 1
    return math.fsum(terms)


def _check_alternative(who: str, alternative: str) -> None:
    if alternative not in ("two-sided", "greater", "less"):
        raise ValueError(f"{who}: alternative must be 'two-sided', 'greater' or 'less'; received {alternative!r}")
