"""What repeated runs of the same case tell: success within k tries, and spread between and within cases.

Repeats of one case are not independent evidence about the agent: an interval has to be drawn over cases.
"""

from __future__ import annotations

import math
import random
from collections.abc import Hashable, Sequence

from agentunit.formulas.statistics import (
    DRAW_BUDGET,
    FEWEST_RESAMPLES,
    Interval,
    check_confidence,
    check_resamples,
    finite_floats,
    percentile_interval,
)


def pass_at_k(successes: int, n: int, k: int) -> float | None:
    """The chance that at least one of k tries at a case succeeds, from n tries of which some did (pass@k).

    1 − C(n − successes, k) / C(n, k): the share of the k-subsets of the tries that hold a success, an unbiased
    estimate of 1 − (1 − p)ᵏ. From 0 to 1; k = 1 is the success rate. Fewer than k tries cannot tell: None.
    Source: Chen et al., "Evaluating large language models trained on code", arXiv:2107.03374 (2021).

    >>> pass_at_k(1, 4, 2)  # of the 6 pairs of tries, 3 hold the one success
    0.5
    """
    _check_tries("pass_at_k", successes, n, k)
    if k > n:
        return None
    subsets = math.comb(n, k)
    # Whole numbers up to the one division, which Python rounds correctly however large they are.
    return (subsets - math.comb(n - successes, k)) / subsets


def pass_hat_k(successes: int, n: int, k: int) -> float | None:
    """The chance that k tries at a case all succeed, from n tries of which some did (pass^k).

    C(successes, k) / C(n, k): the share of the k-subsets of the tries that hold nothing but successes, an
    unbiased estimate of pᵏ. From 0 to 1; k = 1 is the success rate. Fewer than k tries cannot tell: None.
    Source: Yao et al., "τ-bench", arXiv:2406.12045 (2024).

    >>> pass_hat_k(3, 4, 2)  # of the 6 pairs of tries, 3 hold two of the three successes
    0.5
    """
    _check_tries("pass_hat_k", successes, n, k)
    return None if k > n else math.comb(successes, k) / math.comb(n, k)


def cluster_bootstrap_mean_interval(
    values: Sequence[float],
    clusters: Sequence[Hashable],
    *,
    confidence: float = 0.95,
    resamples: int = 1000,
    seed: int = 0,
) -> Interval | None:
    """The percentile bootstrap interval of a mean whose values come in clusters, such as repeats of a case.

    Draw as many clusters as there are, with replacement, and take the mean of all values in them; repeat. The
    interval runs between the quantiles of those means. `clusters` names each value's cluster. With one value
    per cluster it equals `bootstrap_mean_interval`, whose cap on the work and whose limits it shares: it stays
    within the sample's range, equal values give zero width, and below some 20 clusters it is narrower than it
    claims. Fewer than two clusters: None.
    Source: Davison and Hinkley, "Bootstrap Methods and their Application" (1997), section 3.8.

    >>> cluster_bootstrap_mean_interval([0.0, 0.0, 4.0, 4.0], ["a", "a", "b", "b"])  # "a" alone in a quarter
    Interval(low=0.0, high=4.0, method='bootstrap')
    """
    who = "cluster_bootstrap_mean_interval"
    check_confidence(who, confidence)
    check_resamples(who, resamples)
    sample = finite_floats(who, "values", values)
    if len(clusters) != len(sample):
        raise ValueError(f"{who}: clusters must be as long as values, {len(sample)}; received {len(clusters)}")
    members: dict[Hashable, list[float]] = {}
    for value, cluster in zip(sample, clusters, strict=True):
        members.setdefault(cluster, []).append(value)
    if len(members) < 2:
        return None
    least, largest = min(sample), max(sample)
    if least == largest:
        return Interval(least, least, "bootstrap")
    totals_and_sizes = [(math.fsum(group), len(group)) for group in members.values()]
    draw = random.Random(seed).choices
    affordable = max(FEWEST_RESAMPLES, DRAW_BUDGET // len(members))
    means = []
    for _ in range(min(resamples, affordable)):
        totals, sizes = zip(*draw(totals_and_sizes, k=len(members)), strict=True)
        means.append(math.fsum(totals) / sum(sizes))
    spread = percentile_interval(sorted(means), confidence)
    return Interval(max(least, spread.low), min(largest, spread.high), "bootstrap")


def between_within_variance(groups: Sequence[Sequence[float]]) -> tuple[float | None, float | None]:
    """How much cases differ from each other, and how much a case differs from itself when repeated.

    Between: the sample variance of the groups' means. Within: the mean of the groups' sample variances, over
    the groups with at least two values. Both are 0 or more, in the values' unit squared. The means carry
    repeat noise themselves: of the variance between, about within / repeats is that noise. An empty group says
    nothing and is left out. Between is None for fewer than two groups, within when no group was repeated.

    >>> between_within_variance([[1.0, 3.0], [5.0, 7.0]])  # means 2 and 6; both groups vary by (1 + 1) / 1
    (8.0, 2.0)
    """
    filled = [finite_floats("between_within_variance", f"groups[{place}]", group) for place, group in enumerate(groups)]
    filled = [group for group in filled if group]
    between = _sample_variance([math.fsum(group) / len(group) for group in filled])
    variances = [variance for group in filled if (variance := _sample_variance(group)) is not None]
    return between, math.fsum(variances) / len(variances) if variances else None


def _sample_variance(values: Sequence[float]) -> float | None:
    n = len(values)
    if n < 2:
        return None
    # Measured from one of the values, equal values have a variance of exactly 0, whatever their mean rounds to.
    offsets = [value - values[0] for value in values]
    mean_offset = math.fsum(offsets) / n
    return math.fsum([(offset - mean_offset) ** 2 for offset in offsets]) / (n - 1)


def _check_tries(who: str, successes: int, n: int, k: int) -> None:
    if n < 0:
        raise ValueError(f"{who}: n must be at least 0; received {n!r}")
    if not 0 <= successes <= n:
        raise ValueError(f"{who}: successes must be between 0 and n = {n}; received {successes!r}")
    if k < 1:
        raise ValueError(f"{who}: k must be at least 1; received {k!r}")
